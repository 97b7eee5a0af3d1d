//! CUDA: NVIDIA's GPUs, without CUDA's libraries at build time.
//!
//! `libcuda` and `libnvrtc` are loaded when a device is looked for, by their few functions: a crate for that would be larger than this module and panics where a function is
//! missing. The kernels are compiled for the device when it is opened. Without a GPU their text is tested as C++ on the host (`twin`).

mod compile;
mod functions;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod twin;

use crate::Found;
use crate::device::{Device, Kernel, Layout, Stream, Window};
use crate::owner::Owner;
use bywash_core::memory::{Imported, Region};
use core::ffi::{CStr, c_int};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};
use functions::{Compiler, Driver, Pointer, first};
use std::sync::Arc;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`, from cuda.h.
const CAPABILITY: [c_int; 2] = [75, 76];
/// `CU_DEVICE_ATTRIBUTE_INTEGRATED`.
const INTEGRATED: c_int = 18;
/// `CU_DEVICE_ATTRIBUTE_CLOCK_RATE` (kHz), `MULTIPROCESSOR_COUNT`, `MEMORY_CLOCK_RATE` (kHz), `GLOBAL_MEMORY_BUS_WIDTH` (bits).
const LIMITS: [c_int; 4] = [13, 16, 36, 37];
/// Bitwise instructions that a multiprocessor starts in a cycle: 64 on compute capability 5.0 and later (CUDA C programming guide, arithmetic instructions).
const BITWISE: f64 = 64.0;

/// `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED`.
const ALREADY_REGISTERED: c_int = 712;

/// The device's context and kernels, set up once.
struct Context {
    owner: Owner,
    /// Dropped by its owner alone.
    driver: ManuallyDrop<Driver>,
    device: c_int,
    context: Pointer,
    module: Pointer,
    kernels: [Pointer; Kernel::ALL.len()],
    description: String,
    /// A launch did not end: nothing that the device may still use is freed any more.
    hangs: AtomicBool,
}

// SAFETY: contexts, modules and functions may be used by any thread for which the context is current.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for Context {}

impl Context {
    /// Opens the first device.
    fn new() -> Result<Self, String> {
        let driver = first("libcuda.so.1", Driver::each())?;
        let mut count = 0;
        // SAFETY: here and below, what is written to lives until each call returns.
        unsafe {
            driver.check("cuInit", (driver.init)(0))?;
            driver.check("cuDeviceGetCount", (driver.device_count)(&mut count))?;
        }
        if count == 0 {
            return Err("libcuda.so.1 finds no device".into());
        }
        let (mut device, mut version, mut name) = (0, 0, [0; 128]);
        // SAFETY: as above; the name has room for what is said.
        unsafe {
            driver.check("cuDeviceGet", (driver.device)(&mut device, 0))?;
            driver.check("cuDriverGetVersion", (driver.version)(&mut version))?;
            driver.check("cuDeviceGetName", (driver.device_name)(name.as_mut_ptr(), name.len() as c_int - 1, device))?;
        }
        let [major, minor] = [attribute(&driver, device, CAPABILITY[0])?, attribute(&driver, device, CAPABILITY[1])?];
        let place = if attribute(&driver, device, INTEGRATED)? == 1 { "integrated" } else { "memory of its own" };
        // SAFETY: the name ends in a zero, for the last byte was kept from the driver.
        let shown = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let description = format!("CUDA {}.{}, {shown}, compute capability {major}.{minor}, {place}", version / 1000, version % 1000 / 10);
        // Each release of NVRTC compiles for other devices: the latest has left old ones, and the one before does not know new ones.
        let codes = Compiler::each().map(|compiler| compile::compile(&compiler?, 10 * major + minor));
        Self::of(driver, device, description, codes)
    }

    /// A device, with the kernels' code: the first of these that there is and that the driver takes.
    fn of(
        driver: Driver,
        device: c_int,
        description: String,
        codes: impl Iterator<Item = Result<Vec<u8>, String>>,
    ) -> Result<Self, String> {
        let mut made = Self {
            owner: Owner::this_process(),
            driver: ManuallyDrop::new(driver),
            device,
            context: null_mut(),
            module: null_mut(),
            kernels: [null_mut(); 6],
            description,
            hangs: AtomicBool::new(false),
        };
        first("libnvrtc.so", codes.map(|code| made.load(&code?)))?;
        Ok(made)
    }

    fn load(&mut self, code: &[u8]) -> Result<(), String> {
        if self.context.is_null() {
            // SAFETY: the device is there; `drop` undoes what was done.
            self.driver.check("cuDevicePrimaryCtxRetain", unsafe { (self.driver.retain)(&mut self.context, self.device) })?;
        }
        let (mut module, mut kernels) = (null_mut(), [null_mut(); Kernel::ALL.len()]);
        let loaded = self.enter().and_then(|_entered| {
            // SAFETY: the code is a whole ELF image; names are C strings; `drop` undoes what was done.
            unsafe {
                self.driver.check("cuModuleLoadData", (self.driver.module_load)(&mut module, code.as_ptr().cast()))?;
                let found = kernels.iter_mut().zip(compile::NAMES).try_for_each(|(kernel, name)| {
                    self.driver.check("cuModuleGetFunction", (self.driver.module_function)(kernel, module, name.as_ptr()))
                });
                if found.is_err() {
                    (self.driver.module_unload)(core::mem::replace(&mut module, null_mut()));
                }
                found
            }
        });
        (self.module, self.kernels) = (module, kernels);
        loaded
    }

    /// See [`Device::limits`].
    fn limits(&self) -> Result<(f64, f64), String> {
        let [clock, processors, memory_clock, bits] = LIMITS.map(|which| attribute(&self.driver, self.device, which).map(f64::from));
        Ok((clock? * 1e3 * processors? * BITWISE, 2.0 * memory_clock? * 1e3 * bits? / 8.0))
    }

    /// Makes the context this thread's as long as what is returned lives. Afterwards it has again the one that it had: a caller may use CUDA for itself.
    fn enter(&self) -> Result<Entered<'_>, String> {
        // SAFETY: the context lives as long as `self`.
        self.driver.check("cuCtxPushCurrent", unsafe { (self.driver.push)(self.context) }).map(|()| Entered(self, PhantomData))
    }

    /// Whether nothing of it is given back: it hangs, or is another process's.
    fn is_left_alone(&self) -> bool {
        self.hangs.load(Ordering::Relaxed) || !self.owner.is_here()
    }
}

/// A context that is this thread's, with which it stays.
struct Entered<'a>(&'a Context, PhantomData<*const ()>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut left = null_mut();
        // SAFETY: it was pushed by this thread, and whoever pushed others since has popped them; the pointer lives until the call returns.
        unsafe { (self.0.driver.pop)(&mut left) };
    }
}

fn attribute(driver: &Driver, device: c_int, which: c_int) -> Result<c_int, String> {
    let mut value = 0;
    // SAFETY: the number lives until the call returns.
    driver.check("cuDeviceGetAttribute", unsafe { (driver.device_attribute)(&mut value, which, device) }).map(|()| value)
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.is_left_alone() {
            return;
        }
        if !self.context.is_null() {
            if let Ok(_entered) = self.enter()
                && !self.module.is_null()
            {
                // SAFETY: streams hold the context, so none is left.
                unsafe { (self.driver.module_unload)(self.module) };
            }
            // SAFETY: as above, and it is no thread's of this engine any more.
            unsafe { (self.driver.release)(self.device) };
        }
        // SAFETY: it is dropped here alone, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.driver) };
    }
}

/// A CUDA device.
pub(crate) struct Cuda {
    context: Arc<Context>,
    layout: Layout,
    streams: usize,
}

impl Cuda {
    /// The first device, with other streams (bytes of text, how many) than usual if it is said.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn open(streams: Option<(usize, usize)>) -> Result<Found<Self>, String> {
        let (text, streams) = streams.unwrap_or((16 << 20, 8));
        Ok(Found { device: Self { context: Arc::new(Context::new()?), layout: Layout::new(text), streams }, is_software: false })
    }
}

/// Memory of the host whose pages stay in place, so that the device copies from and to them.
struct Pinned {
    context: Arc<Context>,
    address: usize,
    /// Whether it was for this window; if not, for another one of the region.
    is_registered: bool,
}

impl Imported for Pinned {
    fn hangs(&self) -> bool {
        self.context.hangs.load(Ordering::Relaxed)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Not in a child that inherited it.
        if self.is_registered
            && self.context.owner.is_here()
            && let Ok(_entered) = self.context.enter()
        {
            // SAFETY: it was registered when this was made, and no launch that uses it is under way: texts are borrowed as long as they are computed.
            unsafe { (self.context.driver.unregister)(core::ptr::with_exposed_provenance_mut(self.address)) };
        }
    }
}

impl Device for Cuda {
    fn describe(&self) -> String {
        self.context.description.clone()
    }

    fn layout(&self) -> Layout {
        self.layout
    }

    fn limits(&self) -> Option<(f64, f64)> {
        self.context.limits().ok()
    }

    fn streams(&self) -> usize {
        self.streams
    }

    fn imports(&self) -> bool {
        true
    }

    /// Streams know it by its address.
    fn import(&self, region: &Region) -> Option<Window> {
        let _entered = self.context.enter().ok()?;
        // SAFETY: whoever keeps a region leaves its memory where it is until windows on it are gone, and for ever if the device hangs.
        let status = unsafe { (self.context.driver.register)(core::ptr::with_exposed_provenance_mut(region.address()), region.bytes(), 0) };
        // Another engine of this process on the same device may have done so: its window goes when this one does.
        let is_registered = match status {
            0 => true,
            ALREADY_REGISTERED => false,
            _ => return None,
        };
        let pinned = Pinned { context: self.context.clone(), address: region.address(), is_registered };
        Some(Window { handle: region.address() as u64, computes: false, hold: Box::new(pinned) })
    }

    fn stream(&self) -> Result<Box<dyn Stream>, String> {
        Ok(Box::new(stream::CudaStream::new(self.context.clone(), self.layout())?))
    }
}
