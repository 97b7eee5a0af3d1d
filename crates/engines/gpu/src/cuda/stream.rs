//! A CUDA stream with pinned memory on the host and memory on the device: one launch at a time.

use super::Context;
use super::functions::{Address, NOT_READY, Pointer};
use crate::device::{Launch, Layout, Lies, Step, Stream, Transfer, UnderWay, Waited};
use bywash_core::wipe;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use zeroize::Zeroize;

/// How soon is looked first whether it has ended; then after an eighth of the time that has passed, but no later than that.
const LOOK: Duration = Duration::from_micros(20);
const LOOK_MAX: Duration = Duration::from_micros(100);
/// After so long nobody is in a hurry.
const SOON: Duration = Duration::from_secs(1);
const LOOK_LATE: Duration = Duration::from_millis(10);
/// Lanes of a block, as `dialect.h` promises the compiler.
const BLOCK: u32 = 128;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

const CONTROL: usize = 0;
const INPUT: usize = 1;
const OUTPUT: usize = 2;

/// See the [module](self).
pub(super) struct CudaStream {
    context: Arc<Context>,
    stream: Pointer,
    /// Control, input, output on the host.
    host: [*mut u8; 3],
    /// The same on the device.
    own: [Address; 3],
    sizes: [usize; 3],
    under_way: Option<UnderWay>,
}

// SAFETY: streams and memory belong to no thread; each call makes the context current first.
unsafe impl Send for CudaStream {}

impl CudaStream {
    pub(super) fn new(context: Arc<Context>, layout: Layout) -> Result<Self, String> {
        let hold = context.clone();
        let _entered = hold.enter()?;
        let sizes = [4 * layout.control, layout.text, layout.output()];
        let mut made = Self { context, stream: null_mut(), host: [null_mut(); 3], own: [0; 3], sizes, under_way: None };
        let driver = &made.context.driver;
        // SAFETY: what is written to lives until each call returns; `drop` frees what was made. Pinned memory is written once before it is a slice.
        unsafe {
            driver.check("cuStreamCreate", (driver.stream_create)(&mut made.stream, NON_BLOCKING))?;
            for (index, size) in sizes.into_iter().enumerate() {
                let mut memory: *mut c_void = null_mut();
                driver.check("cuMemHostAlloc", (driver.allocate_host)(&mut memory, size, 0))?;
                made.host[index] = memory.cast();
                made.host[index].write_bytes(0, size);
                driver.check("cuMemAlloc", (driver.allocate)(&mut made.own[index], size))?;
            }
        }
        Ok(made)
    }

    /// Where on the host bytes lie that are to come to this place of a buffer, or from it.
    fn place(&self, buffer: usize, transfer: &Transfer) -> *mut c_void {
        match transfer.host {
            // SAFETY: the buffer has these bytes.
            Lies::Staged => unsafe { self.host[buffer].add(transfer.at).cast() },
            Lies::Imported { handle, offset, .. } => core::ptr::with_exposed_provenance_mut(handle as usize + offset),
        }
    }

    fn copy_in(&self, buffer: usize, transfer: &Transfer) -> Result<(), String> {
        let driver = &self.context.driver;
        let (from, to) = (self.place(buffer, transfer), self.own[buffer] + transfer.at as u64);
        // SAFETY: both places have these bytes, and the host's are left alone until the stream has ended.
        driver.check("cuMemcpyHtoDAsync", unsafe { (driver.copy_in)(to, from, transfer.bytes, self.stream) })
    }

    fn copy_out(&self, transfer: &Transfer) -> Result<(), String> {
        let driver = &self.context.driver;
        let (from, to) = (self.own[OUTPUT] + transfer.at as u64, self.place(OUTPUT, transfer));
        // SAFETY: as above.
        driver.check("cuMemcpyDtoHAsync", unsafe { (driver.copy_out)(to, from, transfer.bytes, self.stream) })
    }

    fn wipe(&self, buffer: usize, bytes: Range<usize>) -> Result<(), String> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (driver, at) = (&self.context.driver, self.own[buffer] + bytes.start as u64);
        // SAFETY: the buffer has these bytes.
        driver.check("cuMemsetD8Async", unsafe { (driver.fill)(at, 0, bytes.len(), self.stream) })
    }

    /// Wipes what a launch left on the device: keys, texts, sums.
    fn wipe_all(&self, launch: &Launch) -> Result<(), String> {
        let text = launch.text.next_multiple_of(16);
        self.wipe(CONTROL, 0..4 * launch.control)?;
        self.wipe(INPUT, 0..text)?;
        self.wipe(OUTPUT, 0..text)?;
        self.wipe(OUTPUT, launch.sums.clone())?;
        self.wipe(OUTPUT, launch.scratch.clone())
    }

    fn launch(&self, step: &Step) -> Result<(), String> {
        let [mut control, mut text, mut result] = self.own;
        let (mut records, mut count, mut lanes) = (step.records, step.count, step.lanes);
        let mut parameters: [*mut c_void; 6] = [
            (&raw mut control).cast(),
            (&raw mut text).cast(),
            (&raw mut result).cast(),
            (&raw mut records).cast(),
            (&raw mut count).cast(),
            (&raw mut lanes).cast(),
        ];
        let driver = &self.context.driver;
        let kernel = self.context.kernels[step.kernel.index()];
        let blocks = step.lanes.div_ceil(BLOCK);
        // SAFETY: parameters are those of every kernel, copied by the call; lanes beyond the last do nothing, and records name places within the buffers.
        let status = unsafe { (driver.launch)(kernel, blocks, 1, 1, BLOCK, 1, 1, 0, self.stream, parameters.as_mut_ptr(), null_mut()) };
        driver.check("cuLaunchKernel", status)
    }

    fn slice(&mut self, buffer: usize) -> &mut [u8] {
        // SAFETY: the memory has these bytes, written once, and lives as long as `self`, which is borrowed alone; nobody looks while the stream is at work.
        unsafe { core::slice::from_raw_parts_mut(self.host[buffer], self.sizes[buffer]) }
    }
}

/// Bytes that the host has in a stream's own memory.
fn staged(bytes: Range<usize>) -> Transfer {
    Transfer { at: bytes.start, bytes: bytes.len(), host: Lies::Staged }
}

impl Stream for CudaStream {
    fn control(&mut self) -> &mut [u32] {
        // SAFETY: as in `slice`, borrowed alone; pinned memory is aligned to pages.
        unsafe { core::slice::from_raw_parts_mut(self.host[CONTROL].cast(), self.sizes[CONTROL] / 4) }
    }

    fn input(&mut self) -> &mut [u8] {
        self.slice(INPUT)
    }

    fn output(&mut self) -> &mut [u8] {
        self.slice(OUTPUT)
    }

    fn start(&mut self, launch: &Launch) -> Result<(), String> {
        let context = self.context.clone();
        let _entered = context.enter()?;
        // From here on the stream may be at work, whatever fails.
        self.under_way = Some(launch.under_way());
        let queue = || {
            self.copy_in(CONTROL, &staged(0..4 * launch.control))?;
            launch.inputs.iter().try_for_each(|input| self.copy_in(INPUT, input))?;
            // Kernels of a stream run one after the other: each sees what those before it wrote.
            launch.steps.iter().try_for_each(|step| self.launch(step))?;
            launch.outputs.iter().try_for_each(|output| self.copy_out(output))?;
            self.copy_out(&staged(launch.sums.clone()))
        };
        // What was queued is wiped though more of it failed.
        let queued = queue();
        queued.and(self.wipe_all(launch))
    }

    fn resident(&mut self, launch: &Launch, times: u32, together: &Barrier) -> Result<Range<Instant>, String> {
        let run = |stream: &mut Self, wiped: usize| {
            stream.under_way = Some(UnderWay::over(wiped, launch.text * times as usize));
            stream.wait().map(drop)
        };
        // As in `start`.
        self.under_way = Some(UnderWay::over(0, launch.text));
        let context = self.context.clone();
        let entered = context.enter();
        let load = || {
            entered.as_ref().map_err(String::clone)?;
            self.copy_in(CONTROL, &staged(0..4 * launch.control))?;
            launch.inputs.iter().try_for_each(|input| self.copy_in(INPUT, input))
        };
        let loaded = load().and_then(|()| run(self, 0));
        together.wait();
        loaded?;
        let begin = Instant::now();
        (0..times).try_for_each(|_| launch.steps.iter().try_for_each(|step| self.launch(step)))?;
        run(self, 0)?;
        let took = begin..Instant::now();
        self.wipe_all(launch)?;
        run(self, launch.control)?;
        Ok(took)
    }

    fn start_copies(&mut self, inward: bool, times: u32) -> Result<(), String> {
        let context = self.context.clone();
        let _entered = context.enter()?;
        let all = staged(0..self.sizes[INPUT]);
        self.under_way = Some(UnderWay::over(0, all.bytes * times as usize));
        (0..times).try_for_each(|_| if inward { self.copy_in(INPUT, &all) } else { self.copy_out(&all) })
    }

    fn wait(&mut self) -> Result<Waited, String> {
        let Some(UnderWay { control, bound, must_end }) = self.under_way else { return Ok(Waited::Ended) };
        let hangs = |context: &Context, reason: String| {
            context.hangs.store(true, Ordering::Relaxed);
            Err(reason)
        };
        let context = self.context.clone();
        let _entered = match context.enter() {
            Ok(entered) => entered,
            Err(reason) => return hangs(&context, reason),
        };
        let begin = Instant::now();
        loop {
            let passed = begin.elapsed();
            // SAFETY: the stream is there.
            match unsafe { (self.context.driver.stream_query)(self.stream) } {
                NOT_READY if passed < bound => {
                    std::thread::sleep((passed / 8).clamp(LOOK, if passed < SOON { LOOK_MAX } else { LOOK_LATE }));
                }
                NOT_READY if must_end => return Ok(Waited::Late),
                NOT_READY => return hangs(&self.context, format!("the device did not answer within {} s", bound.as_secs())),
                status => {
                    self.under_way = None;
                    self.control()[..control].zeroize();
                    let ended = self.context.driver.check("cuStreamQuery", status);
                    // An error is the whole context's, and does not say what the device may still reach.
                    return ended.map(|()| Waited::Ended).or_else(|reason| hangs(&self.context, reason));
                }
            }
        }
    }

    #[cfg(test)]
    fn device_memory(&mut self) -> (Vec<u32>, Vec<u8>) {
        let context = self.context.clone();
        let _entered = context.enter().unwrap();
        let driver = &self.context.driver;
        // SAFETY: as in `copy_out`.
        let status = unsafe { (driver.copy_out)(self.host[CONTROL].cast(), self.own[CONTROL], self.sizes[CONTROL], self.stream) };
        driver.check("cuMemcpyDtoHAsync", status).unwrap();
        self.copy_out(&staged(0..self.sizes[OUTPUT])).unwrap();
        self.under_way = Some(UnderWay::over(0, 0));
        self.wait().unwrap();
        (self.control().to_vec(), self.output().to_vec())
    }
}

impl CudaStream {
    /// Waits until nothing is under way, if that is to be expected or has to be.
    fn end(&mut self) -> bool {
        // Nobody waits twice for a device that hangs, but for what reaches memory of others.
        let must_end = self.under_way.is_some_and(|under_way| under_way.must_end);
        if self.under_way.is_some() && (must_end || !self.context.hangs.load(Ordering::Relaxed)) {
            while matches!(self.wait(), Ok(Waited::Late)) {}
        }
        self.under_way.is_none()
    }

    /// Its memory on the host that was made.
    fn made(&self) -> impl Iterator<Item = (*mut u8, usize)> {
        self.host.into_iter().zip(self.sizes).filter(|(memory, _)| !memory.is_null())
    }
}

#[cfg(test)]
impl CudaStream {
    /// What is under way is late from now on.
    pub(super) fn hurry(&mut self) {
        self.under_way.iter_mut().for_each(|under_way| under_way.bound = Duration::ZERO);
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        // Of a launch that hangs all that it may still use is left as it is, keys too.
        if !self.context.owner.is_here() || !self.end() {
            return;
        }
        // What a launch that failed left of keys and texts; an engine that is closed leaves nothing either.
        for (memory, size) in self.made() {
            // SAFETY: the memory has these bytes, and nothing is under way.
            wipe(unsafe { core::slice::from_raw_parts_mut(memory, size) });
        }
        if self.context.is_left_alone() {
            return;
        }
        let Ok(_entered) = self.context.enter() else { return };
        let driver = &self.context.driver;
        // SAFETY: nothing is under way; what was not made is null, which is not freed.
        unsafe {
            for (memory, _) in self.made() {
                (driver.free_host)(memory.cast());
            }
            for memory in self.own.into_iter().filter(|memory| *memory != 0) {
                (driver.free)(memory);
            }
            if !self.stream.is_null() {
                (driver.stream_destroy)(self.stream);
            }
        }
    }
}
