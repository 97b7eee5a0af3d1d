//! Vulkan compute (1.1), for any GPU with a driver: those on SoCs first of all.
//!
//! `libvulkan` is loaded when a device is looked for. The kernels are SPIR-V made of our GLSL by `scripts/shaders`, checked in under `spirv/`.

mod context;
mod memory;
mod stream;

use crate::Found;
use crate::device::{Device, Kernel, Layout, Stream, Window};
use ash::vk::{self, Handle};
use bywash_core::memory::Region;
use context::Context;
use std::sync::Arc;

/// SPIR-V of a kernel, by its number.
const SHADERS: [&[u8]; Kernel::ALL.len()] = [
    include_bytes!("spirv/ghash.spv"),
    include_bytes!("spirv/poly1305.spv"),
    include_bytes!("spirv/ctr.spv"),
    include_bytes!("spirv/xts_encrypt.spv"),
    include_bytes!("spirv/xts_decrypt.spv"),
    include_bytes!("spirv/chacha20.spv"),
];

/// Invocations of a workgroup, as in `dialect.glsl`.
const GROUP: u32 = 64;

/// A Vulkan device.
pub(crate) struct Vulkan {
    context: Arc<Context>,
    layout: Layout,
    streams: usize,
}

impl Vulkan {
    /// The best device there is: one on a card before one on the SoC before one in software. `staged` is whether it is to have memory of its own even if it could share the host's,
    /// `streams` other streams (bytes of text, how many) than usual.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn open(staged: Option<bool>, streams: Option<(usize, usize)>) -> Result<Found<Self>, String> {
        let context = Context::new(staged)?;
        let kind = context.kind;
        let (text, count) = streams.unwrap_or(match kind {
            vk::PhysicalDeviceType::DISCRETE_GPU | vk::PhysicalDeviceType::VIRTUAL_GPU => (16 << 20, 8),
            vk::PhysicalDeviceType::CPU => (2 << 20, 2),
            _ => (8 << 20, 3),
        });
        let is_software = kind == vk::PhysicalDeviceType::CPU;
        Ok(Found { device: Self { context: Arc::new(context), layout: Layout::new(text), streams: count }, is_software })
    }
}

impl Device for Vulkan {
    fn describe(&self) -> String {
        self.context.describe()
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn streams(&self) -> usize {
        self.streams
    }

    fn imports(&self) -> bool {
        self.context.external.is_some()
    }

    /// Streams know it by its buffer.
    fn import(&self, region: &Region) -> Option<Window> {
        let buffer = |computes| Some((memory::HostBuffer::new(&self.context, region.address(), region.bytes(), computes)?, computes));
        let for_kernels = if self.context.computes_in(region.bytes()) { buffer(true) } else { None };
        let (imported, computes) = for_kernels.or_else(|| buffer(false))?;
        Some(Window { handle: imported.handle.as_raw(), computes, hold: Box::new(imported) })
    }

    fn stream(&self) -> Result<Box<dyn Stream>, String> {
        Ok(Box::new(stream::VulkanStream::new(self.context.clone(), self.layout)?))
    }
}

#[cfg(test)]
mod tests;
