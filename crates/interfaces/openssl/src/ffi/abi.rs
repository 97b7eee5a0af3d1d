//! Layouts of `core.h`.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;

/// `OSSL_CORE_HANDLE`: the provider as the program's libcrypto knows it.
#[repr(C)]
pub struct CoreHandle {
    _opaque: [u8; 0],
}

/// A function of any signature, as dispatch tables hold it.
pub type Function = unsafe extern "C" fn();

/// `OSSL_DISPATCH`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DispatchEntry {
    /// One of [`ids`](super::ids); 0 ends the table.
    pub id: c_int,
    /// The function; its type follows from the id.
    pub function: Option<Function>,
}

impl DispatchEntry {
    /// Ends a table.
    pub const END: Self = Self { id: 0, function: None };
}

/// `OSSL_ALGORITHM`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AlgorithmEntry {
    /// Names separated by colons; null ends the table.
    pub names: *const c_char,
    /// Property definition.
    pub properties: *const c_char,
    /// Dispatch table.
    pub implementation: *const DispatchEntry,
    /// For people.
    pub description: *const c_char,
}

/// Properties of everything this provider offers.
pub const PROPERTIES: &CStr = c"provider=bywash";

impl AlgorithmEntry {
    /// Ends a table.
    pub const END: Self = Self { names: ptr::null(), properties: ptr::null(), implementation: ptr::null(), description: ptr::null() };

    /// An entry with properties of its own, this provider's among them.
    pub const fn with(names: &'static CStr, properties: &'static CStr, implementation: &'static [DispatchEntry]) -> Self {
        Self { names: names.as_ptr(), properties: properties.as_ptr(), implementation: implementation.as_ptr(), description: ptr::null() }
    }

    /// An entry with this provider's properties.
    pub const fn new(names: &'static CStr, implementation: &'static [DispatchEntry]) -> Self {
        Self { names: names.as_ptr(), properties: PROPERTIES.as_ptr(), implementation: implementation.as_ptr(), description: ptr::null() }
    }
}

/// `OSSL_PARAM`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Param {
    /// Name; null ends an array.
    pub key: *const c_char,
    /// One of the type numbers below.
    pub data_type: c_uint,
    /// The value, or room for it.
    pub data: *mut c_void,
    /// Its size, or the room's.
    pub data_size: usize,
    /// The size written, or needed.
    pub return_size: usize,
}

/// `OSSL_PARAM_INTEGER`
pub const INTEGER: c_uint = 1;
/// `OSSL_PARAM_UNSIGNED_INTEGER`
pub const UNSIGNED_INTEGER: c_uint = 2;
/// `OSSL_PARAM_UTF8_STRING`
pub const UTF8_STRING: c_uint = 4;
/// `OSSL_PARAM_OCTET_STRING`
pub const OCTET_STRING: c_uint = 5;
/// `OSSL_PARAM_UTF8_PTR`
pub const UTF8_PTR: c_uint = 6;
/// `OSSL_PARAM_OCTET_PTR`
pub const OCTET_PTR: c_uint = 7;
/// `OSSL_PARAM_UNMODIFIED`: what `return_size` holds until something is written.
pub const UNMODIFIED: usize = usize::MAX;

impl Param {
    /// Ends an array.
    pub const END: Self = Self { key: ptr::null(), data_type: 0, data: ptr::null_mut(), data_size: 0, return_size: 0 };

    /// An entry with room or a value in memory of the caller's.
    pub const fn new(key: &CStr, data_type: c_uint, data: *mut c_void, data_size: usize) -> Self {
        Self { key: key.as_ptr(), data_type, data, data_size, return_size: UNMODIFIED }
    }

    /// Declares a parameter in a list of those that can be got or set. `size` is 0 where any size goes.
    pub const fn declare(key: &'static CStr, data_type: c_uint, size: usize) -> Self {
        Self { key: key.as_ptr(), data_type, data: ptr::null_mut(), data_size: size, return_size: UNMODIFIED }
    }
    /// Declares a `size_t`.
    pub const fn declare_size(key: &'static CStr) -> Self {
        Self::declare(key, UNSIGNED_INTEGER, size_of::<usize>())
    }
    /// Declares an `unsigned int`.
    pub const fn declare_uint(key: &'static CStr) -> Self {
        Self::declare(key, UNSIGNED_INTEGER, size_of::<c_uint>())
    }
    /// Declares an `int`.
    pub const fn declare_int(key: &'static CStr) -> Self {
        Self::declare(key, INTEGER, size_of::<c_int>())
    }
    /// Declares an octet string of any length.
    pub const fn declare_octets(key: &'static CStr) -> Self {
        Self::declare(key, OCTET_STRING, 0)
    }
    /// Declares a string.
    pub const fn declare_utf8(key: &'static CStr) -> Self {
        Self::declare(key, UTF8_STRING, 0)
    }
    /// Declares an unsigned number of any length.
    pub const fn declare_number(key: &'static CStr) -> Self {
        Self::declare(key, UNSIGNED_INTEGER, 0)
    }
}

/// `OSSL_CALLBACK`.
pub type Callback = unsafe extern "C" fn(params: *const Param, arg: *mut c_void) -> c_int;

/// A constant table with pointers in it.
#[repr(transparent)]
pub struct Table<T>(pub T);

// SAFETY: tables are constants: what they point to is static and never written.
unsafe impl<T> Sync for Table<T> {}
