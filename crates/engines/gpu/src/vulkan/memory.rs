//! Buffers.

use super::context::{Context, SHARED, failed};
use ash::vk::{self, MemoryPropertyFlags as Flags};
use bywash_core::memory::Imported;
use core::sync::atomic::Ordering;
use std::sync::Arc;

/// A storage buffer with memory of its own.
pub(super) struct Buffer {
    context: Arc<Context>,
    pub(super) handle: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Where the host sees it; null where it does not.
    pub(super) host: *mut u8,
    pub(super) size: usize,
}

// SAFETY: the handles and the mapping belong to no thread.
unsafe impl Send for Buffer {}

/// Who sees a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Both, without copies.
    Both,
    /// The host, and the device in copies.
    Host,
    /// The device alone.
    Device,
}

impl Buffer {
    /// A buffer of so many bytes.
    pub(super) fn new(context: &Arc<Context>, size: usize, seen: Seen) -> Result<Self, String> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let create = vk::BufferCreateInfo::default().size(size as u64).usage(usage);
        let device = &context.device;
        // SAFETY: the structure lives until the call returns.
        let handle = unsafe { device.create_buffer(&create, None) }.map_err(failed("vkCreateBuffer"))?;
        let mut buffer = Self { context: context.clone(), handle, memory: vk::DeviceMemory::null(), host: core::ptr::null_mut(), size };
        // SAFETY: the buffer was just made.
        let needs = unsafe { device.get_buffer_memory_requirements(handle) };
        let kind =
            memory_type(&context.memories, needs.memory_type_bits, seen).ok_or("the device has no memory of the kind that is needed")?;
        let allocate = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(kind);
        // SAFETY: the buffer is unbound, the memory as large as it needs, and mapped once and whole.
        unsafe {
            buffer.memory = device.allocate_memory(&allocate, None).map_err(failed("vkAllocateMemory"))?;
            device.bind_buffer_memory(handle, buffer.memory, 0).map_err(failed("vkBindBufferMemory"))?;
            if seen != Seen::Device {
                let mapped =
                    device.map_memory(buffer.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).map_err(failed("vkMapMemory"))?;
                buffer.host = mapped.cast();
                buffer.host.write_bytes(0, size);
            }
        }
        Ok(buffer)
    }

    /// Its bytes; none if the host does not see it.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        if self.host.is_null() {
            return &mut [];
        }
        // SAFETY: the mapping has `size` bytes that were written once, and lives as long as `self`, which is borrowed alone; streams do not look while the device computes.
        unsafe { core::slice::from_raw_parts_mut(self.host, self.size) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.context.is_left_alone() {
            return;
        }
        // SAFETY: nothing that is under way uses it: streams wait before they are dropped, and wipe it. Freeing memory unmaps it; null is ignored.
        unsafe {
            self.context.device.destroy_buffer(self.handle, None);
            self.context.device.free_memory(self.memory, None);
        }
    }
}

/// What buffers over memory of the host's are used for.
pub(super) fn imported_usage(computes: bool) -> vk::BufferUsageFlags {
    let copies = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    if computes { copies | vk::BufferUsageFlags::STORAGE_BUFFER } else { copies }
}

/// A buffer over memory of the host's that is there already.
pub(super) struct HostBuffer {
    context: Arc<Context>,
    pub(super) handle: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl HostBuffer {
    /// Over so many bytes at an address, which stay there as long as this lives; `computes`: for kernels, too.
    pub(super) fn new(context: &Arc<Context>, address: usize, bytes: usize, computes: bool) -> Option<Self> {
        use vk::ExternalMemoryHandleTypeFlags as Handle;
        let external = context.external.as_ref()?;
        if !address.is_multiple_of(external.alignment) || !bytes.is_multiple_of(external.alignment) {
            return None;
        }
        let (device, kind) = (&context.device, Handle::HOST_ALLOCATION_EXT);
        let mut handles = vk::ExternalMemoryBufferCreateInfo::default().handle_types(kind);
        let usage = imported_usage(computes);
        let create = vk::BufferCreateInfo::default().size(bytes as u64).usage(usage).push_next(&mut handles);
        let pointer = core::ptr::with_exposed_provenance_mut(address);
        let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
        // SAFETY: the extension is on where `external` is; structures live until each call returns; the memory is there, of whole pages. What fails halfway is undone by `drop`.
        unsafe {
            let ask = external.functions.fp().get_memory_host_pointer_properties_ext;
            ask(device.handle(), kind, pointer, &mut properties).result().ok()?;
            let handle = device.create_buffer(&create, None).ok()?;
            let mut made = Self { context: context.clone(), handle, memory: vk::DeviceMemory::null() };
            let needs = device.get_buffer_memory_requirements(handle);
            if needs.size > bytes as u64 {
                return None;
            }
            let allowed = properties.memory_type_bits & needs.memory_type_bits;
            let memory_type = memory_type(&context.memories, allowed, Seen::Host)?;
            let mut import = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(kind).host_pointer(pointer);
            let allocate = vk::MemoryAllocateInfo::default().allocation_size(bytes as u64).memory_type_index(memory_type);
            made.memory = device.allocate_memory(&allocate.push_next(&mut import), None).ok()?;
            device.bind_buffer_memory(handle, made.memory, 0).ok()?;
            Some(made)
        }
    }
}

impl Imported for HostBuffer {
    fn hangs(&self) -> bool {
        self.context.hangs.load(Ordering::Relaxed)
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // A child that inherited it leaves it alone.
        if !self.context.owner.is_here() {
            return;
        }
        // SAFETY: no launch that uses it is under way: texts are borrowed as long as they are computed, and while the device hangs this is not dropped. Null is ignored.
        unsafe {
            self.context.device.destroy_buffer(self.handle, None);
            self.context.device.free_memory(self.memory, None);
        }
    }
}

/// The first kind of memory that is allowed and has what is best, or else what is needed.
fn memory_type(memories: &vk::PhysicalDeviceMemoryProperties, allowed: u32, seen: Seen) -> Option<u32> {
    let coherent = Flags::HOST_VISIBLE | Flags::HOST_COHERENT;
    let (needed, better) = match seen {
        Seen::Both => (SHARED, SHARED | Flags::HOST_CACHED),
        Seen::Host => (coherent, coherent | Flags::HOST_CACHED),
        Seen::Device => (Flags::DEVICE_LOCAL, Flags::DEVICE_LOCAL),
    };
    let find = |wanted: Flags| {
        let mut kinds = (0..).zip(memories.memory_types_as_slice());
        kinds.find(|(index, kind)| allowed & 1 << index != 0 && kind.property_flags.contains(wanted)).map(|(index, _)| index)
    };
    find(better).or_else(|| find(needed))
}
