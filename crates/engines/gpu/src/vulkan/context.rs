//! What is set up once: instance, device, queue, pipelines.

use super::SHADERS;
use super::memory::imported_usage;
use crate::device::Kernel;
use crate::owner::Owner;
use ash::ext::external_memory_host;
use ash::{Device, Entry, Instance, vk};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// An instance, with the library.
struct Root {
    instance: Instance,
    /// Keeps `libvulkan` loaded.
    _entry: Entry,
}

impl Root {
    fn new() -> Result<Self, String> {
        // SAFETY: loading the system's Vulkan loader runs its initialisers, as any program that uses Vulkan does.
        let entry = unsafe { Entry::load() }.map_err(|error| format!("libvulkan.so.1 cannot be loaded: {error}"))?;
        let application = vk::ApplicationInfo::default().application_name(c"bywash").api_version(vk::API_VERSION_1_1);
        let create = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the structures live until the call returns; no allocator, no layers.
        let instance = unsafe { entry.create_instance(&create, None) }.map_err(failed("vkCreateInstance"))?;
        Ok(Self { instance, _entry: entry })
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // SAFETY: contexts hold it, so nothing is left that was made of the instance.
        unsafe { self.instance.destroy_instance(None) };
    }
}

/// A device, ready to compute.
pub(super) struct Context {
    /// Outlives the device.
    root: Arc<Root>,
    pub(super) owner: Owner,
    pub(super) device: Device,
    pub(super) kind: vk::PhysicalDeviceType,
    name: String,
    /// Better devices that did not open, and why.
    passed_over: Vec<String>,
    api: u32,
    pub(super) memories: vk::PhysicalDeviceMemoryProperties,
    /// Where memory of the host's can be imported (`VK_EXT_external_memory_host`).
    pub(super) external: Option<External>,
    /// Whether buffers lie in memory that is the device's and the host's alike, so that nothing is copied between the two.
    pub(super) unified: bool,
    /// Most bytes of a buffer that kernels see.
    range_max: usize,
    pub(super) family: u32,
    /// A queue takes submissions of one thread at a time.
    pub(super) queue: Mutex<vk::Queue>,
    pub(super) set_layout: vk::DescriptorSetLayout,
    pub(super) pipeline_layout: vk::PipelineLayout,
    pub(super) pipelines: Vec<vk::Pipeline>,
    /// A launch did not end: nothing that the device may still use is freed any more.
    pub(super) hangs: AtomicBool,
}

/// What importing memory of the host's takes.
pub(super) struct External {
    pub(super) functions: external_memory_host::Device,
    /// Of which addresses and lengths are multiples, in bytes.
    pub(super) alignment: usize,
    /// Whether kernels could read and write what was imported; see [`Context::computes_in`].
    pub(super) computes: bool,
}

/// `what` failed, in words.
pub(super) fn failed(what: &'static str) -> impl Fn(vk::Result) -> String {
    move |error| format!("{what}: {error}")
}

/// How much a kind of device is preferred.
fn rank(kind: vk::PhysicalDeviceType) -> u32 {
    match kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => 4,
        vk::PhysicalDeviceType::INTEGRATED_GPU => 3,
        vk::PhysicalDeviceType::VIRTUAL_GPU => 2,
        vk::PhysicalDeviceType::CPU => 0,
        _ => 1,
    }
}

/// What shared memory must be able to do.
pub(super) const SHARED: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
    vk::MemoryPropertyFlags::DEVICE_LOCAL.as_raw()
        | vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
        | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw(),
);

impl Context {
    /// Opens the best device that can be. `staged` is whether texts are copied to memory of its own, if that is not to be told from the device.
    pub(super) fn new(staged: Option<bool>) -> Result<Self, String> {
        let root = Arc::new(Root::new()?);
        let (mut context, passed_over) = first(candidates(&root.instance)?, |candidate| Self::open(&root, candidate, staged))?;
        context.passed_over = passed_over;
        Ok(context)
    }

    fn open(root: &Arc<Root>, Candidate { physical, family, properties, name }: Candidate, staged: Option<bool>) -> Result<Self, String> {
        let (device, external) = open(&root.instance, physical, family)?;
        // SAFETY: the device is of this instance, and has one queue of that family.
        let (memories, queue) =
            unsafe { (root.instance.get_physical_device_memory_properties(physical), device.get_device_queue(family, 0)) };
        let kind = properties.device_type;
        let shares = matches!(kind, vk::PhysicalDeviceType::INTEGRATED_GPU | vk::PhysicalDeviceType::CPU)
            && memories.memory_types_as_slice().iter().any(|memory| memory.property_flags.contains(SHARED));
        let mut context = Self {
            root: root.clone(),
            owner: Owner::this_process(),
            device,
            kind,
            name,
            passed_over: Vec::new(),
            api: properties.api_version,
            memories,
            external,
            unified: shares && staged != Some(true),
            range_max: properties.limits.max_storage_buffer_range as usize,
            family,
            queue: Mutex::new(queue),
            set_layout: vk::DescriptorSetLayout::null(),
            pipeline_layout: vk::PipelineLayout::null(),
            pipelines: Vec::new(),
            hangs: AtomicBool::new(false),
        };
        context.pipelines()?;
        Ok(context)
    }

    /// Makes a pipeline of each kernel.
    fn pipelines(&mut self) -> Result<(), String> {
        let bindings: [_; 4] = core::array::from_fn(|binding| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(binding as u32)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        });
        let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: here and below, structures live until the call returns, and what they name was made of this device and is destroyed by `drop` alone.
        self.set_layout =
            unsafe { self.device.create_descriptor_set_layout(&create, None) }.map_err(failed("vkCreateDescriptorSetLayout"))?;
        let push = [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(12)];
        let sets = [self.set_layout];
        let create = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&push);
        // SAFETY: as above.
        self.pipeline_layout = unsafe { self.device.create_pipeline_layout(&create, None) }.map_err(failed("vkCreatePipelineLayout"))?;
        for kernel in Kernel::ALL {
            let (words, _) = SHADERS[kernel.index()].as_chunks::<4>();
            let code = aliased(words.iter().map(|word| u32::from_le_bytes(*word)));
            let create = vk::ShaderModuleCreateInfo::default().code(&code);
            // SAFETY: the code is what the compiler made, checked by a test, and some decorations; the rest as above.
            let pipeline = unsafe {
                let module = self.device.create_shader_module(&create, None).map_err(failed("vkCreateShaderModule"))?;
                let stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE).module(module).name(c"main");
                let create = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.pipeline_layout)];
                let made = self.device.create_compute_pipelines(vk::PipelineCache::null(), &create, None);
                self.device.destroy_shader_module(module, None);
                made.map_err(|(_, error)| failed("vkCreateComputePipelines")(error))?
            };
            self.pipelines.extend(pipeline);
        }
        Ok(())
    }

    /// Whether kernels work in imported memory of so many bytes: where a card would read it word by word over its bus, it is copied instead.
    pub(super) fn computes_in(&self, bytes: usize) -> bool {
        self.unified && self.external.as_ref().is_some_and(|external| external.computes) && bytes <= self.range_max
    }

    /// One line for people.
    pub(super) fn describe(&self) -> String {
        let (major, minor) = (vk::api_version_major(self.api), vk::api_version_minor(self.api));
        let what = if self.kind == vk::PhysicalDeviceType::CPU { "a software Vulkan, no GPU" } else { "GPU" };
        let memory = if self.unified { "memory shared with the host" } else { "memory of its own" };
        let passed_over = self.passed_over.iter().map(|reason| format!("; not {reason}"));
        format!("Vulkan {major}.{minor}, {}, {what}, {memory}{}", self.name, passed_over.collect::<String>())
    }

    /// Whether nothing of it is given back: it hangs, or is another process's.
    pub(super) fn is_left_alone(&self) -> bool {
        self.hangs.load(Ordering::Relaxed) || !self.owner.is_here()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_left_alone() {
            // Nor does the library go, which has threads at work, or had them when it was inherited.
            return core::mem::forget(self.root.clone());
        }
        // SAFETY: streams hold the context, so none is left; what is destroyed was made here, or is null, which is ignored.
        unsafe {
            for pipeline in self.pipelines.drain(..) {
                self.device.destroy_pipeline(pipeline, None);
            }
            self.device.destroy_pipeline_layout(self.pipeline_layout, None);
            self.device.destroy_descriptor_set_layout(self.set_layout, None);
            self.device.destroy_device(None);
        }
    }
}

/// A module whose buffers may alias each other, as they do: texts are worked on in place, and sums lie behind results. GLSL takes that for granted and SPIR-V does not (2.18.2), and the compiler
/// does not say it.
fn aliased(module: impl Iterator<Item = u32>) -> Vec<u32> {
    const HEADER: usize = 5;
    const DECORATE: u32 = 71;
    const ALIASED: u32 = 20;
    const BINDING: u32 = 33;
    let words: Vec<u32> = module.collect();
    let (header, mut rest) = words.split_at(HEADER.min(words.len()));
    let mut made = header.to_vec();
    while let Some(&first) = rest.first() {
        let (instruction, others) = rest.split_at(((first >> 16) as usize).clamp(1, rest.len()));
        made.extend(instruction);
        if let &[decorate, target, BINDING, binding] = instruction
            && decorate & 0xffff == DECORATE
            && binding > 0
        {
            made.extend([3 << 16 | DECORATE, target, ALIASED]);
        }
        rest = others;
    }
    made
}

/// A device that computes.
struct Candidate {
    physical: vk::PhysicalDevice,
    /// Of its queue.
    family: u32,
    properties: vk::PhysicalDeviceProperties,
    name: String,
}

/// Each device that computes with its name, the best first.
fn candidates(instance: &Instance) -> Result<Vec<(String, Candidate)>, String> {
    // SAFETY: plain questions about an instance and its devices.
    let devices = unsafe { instance.enumerate_physical_devices() }.map_err(failed("vkEnumeratePhysicalDevices"))?;
    let computes = |physical: vk::PhysicalDevice| {
        // SAFETY: as above.
        let (properties, families) =
            unsafe { (instance.get_physical_device_properties(physical), instance.get_physical_device_queue_family_properties(physical)) };
        let family = families.iter().position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE))? as u32;
        let name = properties.device_name_as_c_str().map_or_else(|_| "unnamed".into(), |name| name.to_string_lossy().into_owned());
        let fits = properties.api_version >= vk::API_VERSION_1_1;
        fits.then_some((name.clone(), Candidate { physical, family, properties, name }))
    };
    let mut found: Vec<_> = devices.into_iter().filter_map(computes).collect();
    found.sort_by_key(|(_, candidate)| core::cmp::Reverse(rank(candidate.properties.device_type)));
    Ok(found)
}

/// The first that opens, and why those before it did not.
fn first<C, T>(candidates: Vec<(String, C)>, mut open: impl FnMut(C) -> Result<T, String>) -> Result<(T, Vec<String>), String> {
    let mut passed_over = Vec::new();
    for (name, candidate) in candidates {
        match open(candidate) {
            Ok(opened) => return Ok((opened, passed_over)),
            Err(reason) => passed_over.push(format!("{name}: {reason}")),
        }
    }
    let none = || "libvulkan.so.1 finds no device with Vulkan 1.1 and a compute queue".to_owned();
    Err(if passed_over.is_empty() { none() } else { passed_over.join("; ") })
}

/// Whether a buffer over memory of the host's is something that the device has.
fn imports_buffers(instance: &Instance, physical: vk::PhysicalDevice, computes: bool) -> bool {
    let usage = imported_usage(computes);
    let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    let buffer = vk::PhysicalDeviceExternalBufferInfo::default().usage(usage).handle_type(kind);
    let mut properties = vk::ExternalBufferProperties::default();
    // SAFETY: a plain question about a device with Vulkan 1.1.
    unsafe { instance.get_physical_device_external_buffer_properties(physical, &buffer, &mut properties) };
    properties.external_memory_properties.external_memory_features.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE)
}

fn open(instance: &Instance, physical: vk::PhysicalDevice, family: u32) -> Result<(Device, Option<External>), String> {
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
    // SAFETY: plain questions about a device.
    let known = unsafe { instance.enumerate_device_extension_properties(physical) }.unwrap_or_default();
    let imports = known.iter().any(|extension| extension.extension_name_as_c_str() == Ok(external_memory_host::NAME))
        && imports_buffers(instance, physical, false);
    let extensions: Vec<_> = imports.then(|| external_memory_host::NAME.as_ptr()).into_iter().collect();
    let create = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
    // SAFETY: the structures live until the call returns.
    let device = unsafe { instance.create_device(physical, &create, None) }.map_err(failed("vkCreateDevice"))?;
    let external = imports.then(|| {
        let mut properties = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut properties);
        // SAFETY: as above.
        unsafe { instance.get_physical_device_properties2(physical, &mut all) };
        let alignment = (properties.min_imported_host_pointer_alignment as usize).max(1);
        External {
            functions: external_memory_host::Device::new(instance, &device),
            alignment,
            computes: imports_buffers(instance, physical, true),
        }
    });
    Ok((device, external))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_buffer_but_the_keys_is_declared_to_alias() {
        for shader in SHADERS {
            let words = || shader.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
            let made = aliased(words());
            assert_eq!(&made[..5], &words().take(5).collect::<Vec<_>>());
            // Three words more for each, and nothing else is another.
            let said = made.windows(3).filter(|words| words[0] == 3 << 16 | 71 && words[2] == 20).count();
            assert!((2..=3).contains(&said), "{said}");
            assert_eq!(made.len(), words().count() + 3 * said);
        }
    }

    /// A card whose driver is broken keeps nobody from the SoC's GPU, and is told of.
    #[test]
    fn the_best_device_that_opens_is_taken_and_better_ones_are_named() {
        let all = || [("card", Err("lost")), ("soc", Ok(3)), ("software", Ok(0))].map(|(name, kind)| (name.to_owned(), kind)).to_vec();
        let open = |kind: Result<u32, &str>| kind.map_err(str::to_owned);
        assert_eq!(first(all(), open), Ok((3, vec!["card: lost".to_owned()])));
        assert_eq!(first(all().split_off(1), open), Ok((3, Vec::new())));
        assert_eq!(first(all(), |_| Err::<(), _>("busy".into())), Err("card: busy; soc: busy; software: busy".into()));
        assert!(first(Vec::new(), open).unwrap_err().contains("no device"));
        match Context::new(None) {
            Ok(mut context) => {
                context.passed_over = first(all(), open).unwrap().1;
                assert!(context.describe().ends_with("; not card: lost"), "{}", context.describe());
            }
            Err(reason) => eprintln!("skipped: {reason}"),
        }
    }

    #[test]
    fn what_is_no_module_is_left_as_it_is() {
        for words in [&[][..], &[1, 2], &[1, 2, 3, 4, 5, 0, 0xffff_0000, 7]] {
            assert_eq!(aliased(words.iter().copied()), words);
        }
    }
}
