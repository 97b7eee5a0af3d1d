//! Buffers, a command buffer and a fence: one launch at a time.

use super::GROUP;
use super::context::{Context, failed};
use super::memory::{Buffer, Seen};
use crate::device::{Launch, Layout, Lies, Step, Stream, Transfer, UnderWay, WINDOWS_MAX, Waited, Windows};
use ash::vk::{self, Handle};
use bywash_core::wipe;
use core::ops::Range;
use core::sync::atomic::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroize;

/// Between two tries to wait for what must end.
const LATER: Duration = Duration::from_millis(10);

/// Stages and accesses between which barriers stand.
type Scope = (vk::PipelineStageFlags, vk::AccessFlags);
const COMPUTE: Scope = (
    vk::PipelineStageFlags::COMPUTE_SHADER,
    vk::AccessFlags::from_raw(vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::SHADER_WRITE.as_raw()),
);
const TRANSFER: Scope = (
    vk::PipelineStageFlags::TRANSFER,
    vk::AccessFlags::from_raw(vk::AccessFlags::TRANSFER_READ.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw()),
);

const CONTROL: usize = 0;
const INPUT: usize = 1;
const OUTPUT: usize = 2;
/// Of a set: those, and the output buffer once more for the sums.
const BINDINGS: u32 = 4;

/// See the [module](self).
pub(super) struct VulkanStream {
    context: Arc<Context>,
    /// Control, input, output, where the host sees them.
    host: [Buffer; 3],
    /// Where the device has copies of its own: the same.
    own: Option<[Buffer; 3]>,
    descriptors: vk::DescriptorPool,
    set: vk::DescriptorSet,
    /// For the sets of texts that lie in memory of the host's, of the launch that was recorded last; null where kernels do not work there.
    windows: vk::DescriptorPool,
    sets: BTreeMap<Windows, vk::DescriptorSet>,
    commands: vk::CommandPool,
    buffer: vk::CommandBuffer,
    fence: vk::Fence,
    under_way: Option<UnderWay>,
}

/// Whether the device uses nothing of a launch any more: it is done, or the device is lost. Another error of waiting, as of the host's memory, says nothing of the launch.
fn ended(waited: Result<(), vk::Result>) -> bool {
    matches!(waited, Ok(()) | Err(vk::Result::ERROR_DEVICE_LOST))
}

impl VulkanStream {
    pub(super) fn new(context: Arc<Context>, layout: Layout) -> Result<Self, String> {
        let sizes = [4 * layout.control, layout.text, layout.output()];
        let buffers = |seen: Seen| -> Result<[Buffer; 3], String> {
            let [control, input, output] = sizes.map(|size| Buffer::new(&context, size, seen));
            Ok([control?, input?, output?])
        };
        let host = buffers(if context.unified { Seen::Both } else { Seen::Host })?;
        let own = if context.unified { None } else { Some(buffers(Seen::Device)?) };
        let mut stream = Self {
            context,
            host,
            own,
            descriptors: vk::DescriptorPool::null(),
            set: vk::DescriptorSet::null(),
            windows: vk::DescriptorPool::null(),
            sets: BTreeMap::new(),
            commands: vk::CommandPool::null(),
            buffer: vk::CommandBuffer::null(),
            fence: vk::Fence::null(),
            under_way: None,
        };
        stream.objects()?;
        Ok(stream)
    }

    fn objects(&mut self) -> Result<(), String> {
        let context = self.context.clone();
        let device = &context.device;
        let pool = |sets: u32| {
            let sizes = [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(BINDINGS * sets)];
            // SAFETY: the structures live until the call returns.
            unsafe { device.create_descriptor_pool(&vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes), None) }
                .map_err(failed("vkCreateDescriptorPool"))
        };
        self.descriptors = pool(1)?;
        if context.computes_in(0) {
            self.windows = pool(WINDOWS_MAX as u32)?;
        }
        self.set = self.allocate_set(self.descriptors)?;
        self.bind(self.set, Windows::default());
        let commands = vk::CommandPoolCreateInfo::default()
            .queue_family_index(context.family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER | vk::CommandPoolCreateFlags::TRANSIENT);
        // SAFETY: all of the context's device; structures live until each call returns; `drop` destroys what was made.
        unsafe {
            self.commands = device.create_command_pool(&commands, None).map_err(failed("vkCreateCommandPool"))?;
            let allocate = vk::CommandBufferAllocateInfo::default().command_pool(self.commands).command_buffer_count(1);
            self.buffer = device.allocate_command_buffers(&allocate).map_err(failed("vkAllocateCommandBuffers"))?[0];
            self.fence = device.create_fence(&vk::FenceCreateInfo::default(), None).map_err(failed("vkCreateFence"))?;
        }
        Ok(())
    }

    fn allocate_set(&self, pool: vk::DescriptorPool) -> Result<vk::DescriptorSet, String> {
        let layouts = [self.context.set_layout];
        let allocate = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: pool and layout are of this device; the structures live until the call returns.
        Ok(unsafe { self.context.device.allocate_descriptor_sets(&allocate) }.map_err(failed("vkAllocateDescriptorSets"))?[0])
    }

    /// Says what a set's kernels see: control, texts, results, and sums, which are always the stream's own.
    fn bind(&self, set: vk::DescriptorSet, windows: Windows) {
        let [control, input, output] = self.buffers().map(|buffer| buffer.handle);
        let window = |handle: Option<u64>, own| handle.map_or(own, vk::Buffer::from_raw);
        let infos = [control, window(windows.from, input), window(windows.to, output), output]
            .map(|buffer| [vk::DescriptorBufferInfo::default().buffer(buffer).range(vk::WHOLE_SIZE)]);
        let writes: Vec<_> = (0..)
            .zip(&infos)
            .map(|(binding, info)| {
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(binding)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(info)
            })
            .collect();
        // SAFETY: sets and buffers are of one device; nothing uses the set yet. What was imported lives as long as the texts in it are computed.
        unsafe { self.context.device.update_descriptor_sets(&writes, &[]) };
    }

    /// Makes a set for each pair of windows of a launch.
    fn open_windows(&mut self, launch: &Launch) -> Result<(), String> {
        if !self.sets.is_empty() {
            self.sets.clear();
            // SAFETY: the launch that used them has ended: streams wait before they start anew.
            unsafe { self.context.device.reset_descriptor_pool(self.windows, vk::DescriptorPoolResetFlags::empty()) }
                .map_err(failed("vkResetDescriptorPool"))?;
        }
        for windows in launch.steps.iter().map(|step| step.windows).filter(|windows| *windows != Windows::default()) {
            if !self.sets.contains_key(&windows) {
                let set = self.allocate_set(self.windows)?;
                self.bind(set, windows);
                self.sets.insert(windows, set);
            }
        }
        Ok(())
    }

    /// Those that kernels use.
    fn buffers(&self) -> [&Buffer; 3] {
        self.own.as_ref().unwrap_or(&self.host).each_ref()
    }

    fn barrier(&self, from: Scope, to: Scope) {
        let barrier = [vk::MemoryBarrier::default().src_access_mask(from.1).dst_access_mask(to.1)];
        // SAFETY: the command buffer is being recorded by this thread.
        unsafe {
            self.context.device.cmd_pipeline_barrier(self.buffer, from.0, to.0, vk::DependencyFlags::empty(), &barrier, &[], &[]);
        }
    }

    fn copy(&self, from: &Buffer, to: &Buffer, bytes: Range<usize>) {
        self.copy_between((from.handle, bytes.start), (to.handle, bytes.start), bytes.len());
    }

    /// Copies bytes from a place in a buffer to one in another.
    fn copy_between(&self, from: (vk::Buffer, usize), to: (vk::Buffer, usize), bytes: usize) {
        if bytes == 0 {
            return;
        }
        let region = vk::BufferCopy { src_offset: from.1 as u64, dst_offset: to.1 as u64, size: bytes as u64 };
        // SAFETY: recording; both buffers have these bytes.
        unsafe { self.context.device.cmd_copy_buffer(self.buffer, from.0, to.0, &[region]) };
    }

    /// Where bytes lie that are to come to this place of a buffer, or from it; `None` if they are there already.
    fn elsewhere(&self, buffer: usize, transfer: &Transfer) -> Option<(vk::Buffer, usize)> {
        match transfer.host {
            Lies::Imported { handle, offset, .. } => Some((vk::Buffer::from_raw(handle), offset)),
            Lies::Staged => self.own.as_ref().map(|_| (self.host[buffer].handle, transfer.at)),
        }
    }

    fn wipe(&self, buffer: &Buffer, bytes: Range<usize>) {
        if !bytes.is_empty() {
            // SAFETY: recording; the buffer has these bytes, whose number and offset are multiples of 4.
            unsafe { self.context.device.cmd_fill_buffer(self.buffer, buffer.handle, bytes.start as u64, bytes.len() as u64, 0) };
        }
    }

    fn dispatch(&self, step: &Step) {
        let context = &self.context;
        let push: [u32; 3] = [step.records, step.count, step.lanes];
        let mut bytes = [0; 12];
        bytes.as_chunks_mut().0.iter_mut().zip(push).for_each(|(to, word)| *to = word.to_ne_bytes());
        // SAFETY: recording; pipeline, layout and set are the context's. Lanes beyond the last do nothing, and records name places within the buffers.
        unsafe {
            let device = &context.device;
            device.cmd_bind_pipeline(self.buffer, vk::PipelineBindPoint::COMPUTE, context.pipelines[step.kernel.index()]);
            device.cmd_push_constants(self.buffer, context.pipeline_layout, vk::ShaderStageFlags::COMPUTE, 0, &bytes);
            device.cmd_dispatch(self.buffer, step.lanes.div_ceil(GROUP), 1, 1);
        }
    }

    /// Records what `commands` says.
    fn record(&self, commands: impl FnOnce()) -> Result<(), String> {
        let device = &self.context.device;
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: nothing that was recorded before is under way.
        unsafe { device.begin_command_buffer(self.buffer, &begin) }.map_err(failed("vkBeginCommandBuffer"))?;
        commands();
        // SAFETY: recording, by this thread.
        unsafe { device.end_command_buffer(self.buffer) }.map_err(failed("vkEndCommandBuffer"))
    }

    fn upload(&self, launch: &Launch) {
        if let Some(own) = &self.own {
            self.copy(&self.host[CONTROL], &own[CONTROL], 0..4 * launch.control);
        }
        for input in &launch.inputs {
            if let Some(from) = self.elsewhere(INPUT, input) {
                self.copy_between(from, (self.buffers()[INPUT].handle, input.at), input.bytes);
            }
        }
        self.barrier(TRANSFER, COMPUTE);
    }

    fn kernels(&self, launch: &Launch) {
        let (device, layout) = (&self.context.device, self.context.pipeline_layout);
        let mut bound = None;
        for step in &launch.steps {
            if step.after {
                self.barrier(COMPUTE, COMPUTE);
            }
            let set = if step.windows == Windows::default() { self.set } else { self.sets[&step.windows] };
            if bound.replace(set) != Some(set) {
                // SAFETY: recording; all kernels share a layout, of which the set is.
                unsafe { device.cmd_bind_descriptor_sets(self.buffer, vk::PipelineBindPoint::COMPUTE, layout, 0, &[set], &[]) };
            }
            self.dispatch(step);
        }
        self.barrier(COMPUTE, (COMPUTE.0 | TRANSFER.0, COMPUTE.1 | TRANSFER.1));
    }

    fn download(&self, launch: &Launch) {
        use vk::{AccessFlags as Access, PipelineStageFlags as Stages};
        let text = launch.text.next_multiple_of(16);
        self.wipe(self.buffers()[CONTROL], 0..4 * launch.control);
        self.wipe(self.buffers()[OUTPUT], launch.scratch.clone());
        for output in &launch.outputs {
            if let Some(to) = self.elsewhere(OUTPUT, output) {
                self.copy_between((self.buffers()[OUTPUT].handle, output.at), to, output.bytes);
            }
        }
        if let Some(own) = &self.own {
            self.copy(&own[OUTPUT], &self.host[OUTPUT], launch.sums.clone());
            self.wipe(&own[INPUT], 0..text);
            self.barrier(TRANSFER, TRANSFER);
            self.wipe(&own[OUTPUT], 0..text);
            self.wipe(&own[OUTPUT], launch.sums.clone());
        }
        self.barrier(
            (Stages::COMPUTE_SHADER | Stages::TRANSFER, Access::SHADER_WRITE | Access::TRANSFER_WRITE),
            (Stages::HOST, Access::HOST_READ | Access::HOST_WRITE),
        );
    }

    fn submit(&self) -> Result<(), String> {
        let buffers = [self.buffer];
        let submit = [vk::SubmitInfo::default().command_buffers(&buffers)];
        let queue = self.context.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the command buffer is recorded, the fence unsignalled, and the queue locked.
        unsafe {
            self.context.device.reset_fences(&[self.fence]).map_err(failed("vkResetFences"))?;
            self.context.device.queue_submit(*queue, &submit, self.fence).map_err(failed("vkQueueSubmit"))
        }
    }
}

impl Stream for VulkanStream {
    fn control(&mut self) -> &mut [u32] {
        let bytes = self.host[CONTROL].bytes_mut();
        // SAFETY: a mapping is aligned to 64 bytes at least (`minMemoryMapAlignment`), and any words are good.
        unsafe { core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / 4) }
    }

    fn input(&mut self) -> &mut [u8] {
        self.host[INPUT].bytes_mut()
    }

    fn output(&mut self) -> &mut [u8] {
        self.host[OUTPUT].bytes_mut()
    }

    fn start(&mut self, launch: &Launch) -> Result<(), String> {
        self.open_windows(launch)?;
        self.record(|| {
            self.upload(launch);
            self.kernels(launch);
            self.download(launch);
        })?;
        self.submit()?;
        self.under_way = Some(launch.under_way());
        Ok(())
    }

    fn resident(&mut self, launch: &Launch, times: u32, together: &Barrier) -> Result<Range<Instant>, String> {
        let run = |stream: &mut Self, wiped: usize| {
            stream.submit()?;
            stream.under_way = Some(UnderWay::over(wiped, launch.text * times as usize));
            stream.wait().map(drop)
        };
        let opened = self.open_windows(launch);
        let loaded = opened.and_then(|()| self.record(|| self.upload(launch))).and_then(|()| run(self, 0));
        let recorded = loaded.and_then(|()| self.record(|| (0..times).for_each(|_| self.kernels(launch))));
        together.wait();
        recorded?;
        let begin = Instant::now();
        run(self, 0)?;
        let took = begin..Instant::now();
        self.record(|| self.download(launch))?;
        run(self, launch.control)?;
        Ok(took)
    }

    fn start_copies(&mut self, inward: bool, times: u32) -> Result<(), String> {
        let bytes = self.host[INPUT].size;
        let buffer = if inward { INPUT } else { OUTPUT };
        let Some(own) = &self.own else { return Err("the device has no memory of its own".into()) };
        let (from, to) = if inward { (&self.host[buffer], &own[buffer]) } else { (&own[buffer], &self.host[buffer]) };
        self.record(|| {
            for _ in 0..times {
                self.copy(from, to, 0..bytes);
                self.barrier(TRANSFER, TRANSFER);
            }
        })?;
        self.submit()?;
        self.under_way = Some(UnderWay::over(0, bytes * times as usize));
        Ok(())
    }

    fn wait(&mut self) -> Result<Waited, String> {
        let Some(UnderWay { control, bound, must_end }) = self.under_way else { return Ok(Waited::Ended) };
        let begin = Instant::now();
        let waited = loop {
            let left = bound.saturating_sub(begin.elapsed());
            // SAFETY: the fence belongs to what is under way.
            let waited = unsafe { self.context.device.wait_for_fences(&[self.fence], true, left.as_nanos() as u64) };
            if !must_end || ended(waited) {
                break waited;
            }
            // Only an end ends it; memory that is short may come back.
            if left.is_zero() || waited == Err(vk::Result::TIMEOUT) {
                return Ok(Waited::Late);
            }
            std::thread::sleep(LATER);
        };
        if ended(waited) {
            self.under_way = None;
            self.control()[..control].zeroize();
        } else {
            self.context.hangs.store(true, Ordering::Relaxed);
        }
        waited.map(|()| Waited::Ended).map_err(|error| match error {
            vk::Result::TIMEOUT => format!("the device did not answer within {} s", bound.as_secs()),
            error => failed("vkWaitForFences")(error),
        })
    }

    #[cfg(test)]
    fn device_memory(&mut self) -> (Vec<u32>, Vec<u8>) {
        self.record(|| {
            if let Some(own) = &self.own {
                self.copy(&own[CONTROL], &self.host[CONTROL], 0..own[CONTROL].size);
                self.copy(&own[OUTPUT], &self.host[OUTPUT], 0..own[OUTPUT].size);
            }
        })
        .unwrap();
        self.submit().unwrap();
        self.under_way = Some(UnderWay::over(0, 0));
        self.wait().unwrap();
        (self.control().to_vec(), self.output().to_vec())
    }
}

impl VulkanStream {
    /// Waits until nothing is under way, if that is to be expected or has to be.
    fn end(&mut self) -> bool {
        // Nobody waits twice for a device that hangs, but for what reaches memory of others.
        let must_end = self.under_way.is_some_and(|under_way| under_way.must_end);
        if self.under_way.is_some() && (must_end || !self.context.hangs.load(Ordering::Relaxed)) {
            while matches!(self.wait(), Ok(Waited::Late)) {}
        }
        self.under_way.is_none()
    }
}

impl Drop for VulkanStream {
    fn drop(&mut self) {
        // Of a launch that hangs all that it may still use is left as it is, keys too.
        if !self.context.owner.is_here() || !self.end() {
            return;
        }
        // What a launch that failed left of keys and texts; an engine that is closed leaves nothing either.
        self.host.iter_mut().for_each(|buffer| wipe(buffer.bytes_mut()));
        if self.context.is_left_alone() {
            return;
        }
        let device = &self.context.device;
        // SAFETY: nothing is under way; what is destroyed was made by `objects`, or is null, which is ignored.
        unsafe {
            device.destroy_fence(self.fence, None);
            device.destroy_command_pool(self.commands, None);
            device.destroy_descriptor_pool(self.descriptors, None);
            device.destroy_descriptor_pool(self.windows, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_ends_a_launch() {
        assert!(ended(Ok(())) && ended(Err(vk::Result::ERROR_DEVICE_LOST)));
        assert!(!ended(Err(vk::Result::TIMEOUT)) && !ended(Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY)));
    }

    /// A stream whose launch does not end, for nothing was submitted, and where its input lies.
    fn hanging(must_end: bool) -> Option<(VulkanStream, *const u8)> {
        let context = match Context::new(None) {
            Ok(context) => Arc::new(context),
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return None;
            }
        };
        let mut stream = VulkanStream::new(context, Layout::new(4096)).unwrap();
        stream.input().fill(9);
        stream.under_way = Some(UnderWay { control: 0, bound: Duration::from_millis(20), must_end });
        let input = stream.host[INPUT].host.cast_const();
        Some((stream, input))
    }

    #[test]
    fn what_must_end_is_late_and_hangs_nothing() {
        let Some((mut stream, _)) = hanging(true) else { return };
        assert_eq!([stream.wait(), stream.wait()], [Ok(Waited::Late), Ok(Waited::Late)]);
        assert!(!stream.context.hangs.load(Ordering::Relaxed) && stream.under_way.is_some());
        stream.under_way = None;
        assert_eq!(stream.wait(), Ok(Waited::Ended));
    }

    /// One that is under way keeps its memory as it is; what others left in theirs is wiped, though it cannot be given back.
    #[test]
    fn a_device_that_hangs_keeps_no_texts_but_of_its_launches() {
        let Some((mut stream, input)) = hanging(false) else { return };
        let mut idle = VulkanStream::new(stream.context.clone(), Layout::new(4096)).unwrap();
        idle.input().fill(9);
        let others = idle.host[INPUT].host.cast_const();
        assert!(stream.wait().unwrap_err().contains("did not answer"));
        drop((stream, idle));
        // SAFETY: both are mapped until the process ends, for the device hangs.
        let [kept, wiped] = [input, others].map(|input| unsafe { core::slice::from_raw_parts(input, 4096) });
        assert!(kept.iter().all(|byte| *byte == 9) && wiped.iter().all(|byte| *byte == 0));
    }

    /// Were they its own, the parent's buffers would be wiped where drivers share them.
    #[test]
    fn a_child_of_fork_leaves_alone_what_it_inherited() {
        let Some((mut stream, input)) = hanging(false) else { return };
        stream.under_way = None;
        let hold = stream.context.clone();
        let mut stream = Some(stream);
        let keeps = crate::tests::in_a_child(|| {
            drop(stream.take());
            // SAFETY: mapped, for the child has freed nothing.
            unsafe { core::slice::from_raw_parts(input, 4096) }.iter().all(|byte| *byte == 9) && Arc::strong_count(&hold) == 1
        });
        assert!(keeps);
        let mut stream = stream.unwrap();
        assert!(stream.input().iter().all(|byte| *byte == 9));
        assert!(!hold.hangs.load(Ordering::Relaxed));
    }
}
