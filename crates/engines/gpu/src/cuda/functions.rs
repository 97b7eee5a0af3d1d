//! The few functions of CUDA's driver and of its compiler that are used, loaded when they are wanted: building needs no CUDA, and a machine without it says so.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use libloading::Library;

/// A handle of CUDA's.
pub(super) type Pointer = *mut c_void;
/// An address on the device.
pub(super) type Address = u64;

/// `CUDA_ERROR_NOT_READY`: a stream is still at work.
pub(super) const NOT_READY: c_int = 600;

/// The first that did well of what was tried; `library` is what is missing where nothing was.
///
/// # Errors
/// Why none did, each reason once: a library may be there by several names.
pub(super) fn first<T>(library: &str, tried: impl Iterator<Item = Result<T, String>>) -> Result<T, String> {
    let mut reasons: Vec<String> = Vec::new();
    for each in tried {
        match each {
            Ok(done) => return Ok(done),
            Err(reason) if reasons.contains(&reason) => {}
            Err(reason) => reasons.push(reason),
        }
    }
    Err(if reasons.is_empty() { format!("{library} cannot be loaded") } else { reasons.join("; ") })
}

macro_rules! functions {
    ($(#[$doc:meta])* $name:ident, [$($library:literal),+], $($function:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        $(#[$doc])*
        pub(super) struct $name {
            $(pub(super) $function: unsafe extern "C" fn($($argument),*) -> $result,)*
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl $name {
            /// Those of each library that is here, the one that is preferred first; loaded as it is asked for.
            pub(super) fn each() -> impl Iterator<Item = Result<Self, String>> {
                [$($library),+].into_iter().filter_map(|name| {
                    // SAFETY: NVIDIA's libraries may be loaded at any time, and their initialisers run once.
                    let library = unsafe { Library::new(name) }.ok()?;
                    // SAFETY: the library is what its name says.
                    Some(unsafe { Self::of(library, name) })
                })
            }

            /// Those of this library.
            ///
            /// # Errors
            /// Which function is missing.
            ///
            /// # Safety
            /// The functions' types are those of cuda.h and nvrtc.h.
            pub(super) unsafe fn of(library: Library, name: &str) -> Result<Self, String> {
                // SAFETY: the caller's word.
                unsafe {
                    Ok(Self {
                        $($function: *library.get($symbol).map_err(|_| format!("{name} lacks {}", stringify!($function)))?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}

functions! {
    /// `libcuda`, the driver.
    Driver, ["libcuda.so.1"],
    init = b"cuInit\0": fn(c_uint) -> c_int;
    version = b"cuDriverGetVersion\0": fn(*mut c_int) -> c_int;
    device_count = b"cuDeviceGetCount\0": fn(*mut c_int) -> c_int;
    device = b"cuDeviceGet\0": fn(*mut c_int, c_int) -> c_int;
    device_name = b"cuDeviceGetName\0": fn(*mut c_char, c_int, c_int) -> c_int;
    device_attribute = b"cuDeviceGetAttribute\0": fn(*mut c_int, c_int, c_int) -> c_int;
    retain = b"cuDevicePrimaryCtxRetain\0": fn(*mut Pointer, c_int) -> c_int;
    release = b"cuDevicePrimaryCtxRelease_v2\0": fn(c_int) -> c_int;
    push = b"cuCtxPushCurrent_v2\0": fn(Pointer) -> c_int;
    pop = b"cuCtxPopCurrent_v2\0": fn(*mut Pointer) -> c_int;
    module_load = b"cuModuleLoadData\0": fn(*mut Pointer, *const c_void) -> c_int;
    module_unload = b"cuModuleUnload\0": fn(Pointer) -> c_int;
    module_function = b"cuModuleGetFunction\0": fn(*mut Pointer, Pointer, *const c_char) -> c_int;
    allocate = b"cuMemAlloc_v2\0": fn(*mut Address, usize) -> c_int;
    free = b"cuMemFree_v2\0": fn(Address) -> c_int;
    allocate_host = b"cuMemHostAlloc\0": fn(*mut *mut c_void, usize, c_uint) -> c_int;
    free_host = b"cuMemFreeHost\0": fn(*mut c_void) -> c_int;
    register = b"cuMemHostRegister_v2\0": fn(*mut c_void, usize, c_uint) -> c_int;
    unregister = b"cuMemHostUnregister\0": fn(*mut c_void) -> c_int;
    stream_create = b"cuStreamCreate\0": fn(*mut Pointer, c_uint) -> c_int;
    stream_destroy = b"cuStreamDestroy_v2\0": fn(Pointer) -> c_int;
    stream_query = b"cuStreamQuery\0": fn(Pointer) -> c_int;
    copy_in = b"cuMemcpyHtoDAsync_v2\0": fn(Address, *const c_void, usize, Pointer) -> c_int;
    copy_out = b"cuMemcpyDtoHAsync_v2\0": fn(*mut c_void, Address, usize, Pointer) -> c_int;
    fill = b"cuMemsetD8Async\0": fn(Address, u8, usize, Pointer) -> c_int;
    launch = b"cuLaunchKernel\0": fn(Pointer, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Pointer, *mut *mut c_void, *mut *mut c_void) -> c_int;
    error_string = b"cuGetErrorString\0": fn(c_int, *mut *const c_char) -> c_int;
}

functions! {
    /// `libnvrtc`, the compiler.
    Compiler, ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"],
    create = b"nvrtcCreateProgram\0": fn(*mut Pointer, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;
    compile = b"nvrtcCompileProgram\0": fn(Pointer, c_int, *const *const c_char) -> c_int;
    code_size = b"nvrtcGetCUBINSize\0": fn(Pointer, *mut usize) -> c_int;
    code = b"nvrtcGetCUBIN\0": fn(Pointer, *mut c_char) -> c_int;
    log_size = b"nvrtcGetProgramLogSize\0": fn(Pointer, *mut usize) -> c_int;
    log = b"nvrtcGetProgramLog\0": fn(Pointer, *mut c_char) -> c_int;
    destroy = b"nvrtcDestroyProgram\0": fn(*mut Pointer) -> c_int;
}

impl Driver {
    /// `what` failed unless `status` is 0.
    pub(super) fn check(&self, what: &str, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut text = core::ptr::null();
        // SAFETY: it writes a static string, or nothing for a status it does not know.
        let words = unsafe {
            (self.error_string)(status, &mut text);
            if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy() }
        };
        Err(format!("{what}: error {status}, {words}"))
    }
}
