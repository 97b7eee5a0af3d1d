//! What the contexts of signatures and asymmetric ciphers have in common: a twin's context, asked for its state instead of being mirrored.

use crate::ffi::abi::{INTEGER, OCTET_PTR, Param, UNSIGNED_INTEGER, UTF8_STRING};
use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr;

/// Room for a name, as `OSSL_MAX_NAME_SIZE`.
const NAME_MAX: usize = 50;

/// Questions to a twin's `get_ctx_params`: the twin checks and keeps every setting, so its answer cannot be out of step with what it would do.
pub(super) struct Question {
    number: [c_int; 2],
    unsigned: [c_uint; 3],
    size: usize,
    name: [[u8; NAME_MAX]; 2],
    pointer: *const u8,
    params: Vec<Param>,
}

impl Question {
    /// Room for answers; boxed, because the questions point into it.
    pub(super) fn new() -> Box<Self> {
        Box::new(Self { number: [0; 2], unsigned: [0; 3], size: 0, name: [[0; NAME_MAX]; 2], pointer: ptr::null(), params: Vec::new() })
    }

    fn push(&mut self, key: &'static CStr, data_type: c_uint, data: *mut c_void, size: usize) {
        self.params.push(Param::new(key, data_type, data, size));
    }

    /// Asks for an `int`.
    pub(super) fn number(&mut self, slot: usize, key: &'static CStr) {
        let data = (&raw mut self.number[slot]).cast();
        self.push(key, INTEGER, data, size_of::<c_int>());
    }

    /// Asks for an `unsigned int`, which is `default` for who does not know it.
    pub(super) fn unsigned(&mut self, slot: usize, key: &'static CStr, default: c_uint) {
        self.unsigned[slot] = default;
        let data = (&raw mut self.unsigned[slot]).cast();
        self.push(key, UNSIGNED_INTEGER, data, size_of::<c_uint>());
    }

    /// Asks for a `size_t`.
    pub(super) fn size(&mut self, key: &'static CStr) {
        let data = (&raw mut self.size).cast();
        self.push(key, UNSIGNED_INTEGER, data, size_of::<usize>());
    }

    /// Asks for a name.
    pub(super) fn name(&mut self, slot: usize, key: &'static CStr) {
        let data = self.name[slot].as_mut_ptr().cast();
        self.push(key, UTF8_STRING, data, NAME_MAX);
    }

    /// Asks where some octets are; the last question.
    pub(super) fn pointer(&mut self, key: &'static CStr) {
        let data = (&raw mut self.pointer).cast();
        self.push(key, OCTET_PTR, data, 0);
    }

    /// Puts the questions.
    pub(super) fn ask(&mut self, twin: *mut c_void, get: unsafe extern "C" fn(*mut c_void, *mut Param) -> c_int) -> Option<()> {
        self.params.push(Param::END);
        // SAFETY: the twin's function and context; every question has its room, and the array is ended.
        (unsafe { get(twin, self.params.as_mut_ptr()) } == 1).then_some(())
    }

    /// The answer to [`number`](Self::number).
    pub(super) fn number_of(&self, slot: usize) -> c_int {
        self.number[slot]
    }

    /// The answer to [`unsigned`](Self::unsigned).
    pub(super) fn unsigned_of(&self, slot: usize) -> c_uint {
        self.unsigned[slot]
    }

    /// The answer to [`size`](Self::size).
    pub(super) fn size_of(&self) -> usize {
        self.size
    }

    /// The answer to [`name`](Self::name).
    pub(super) fn name_of(&self, slot: usize) -> &str {
        CStr::from_bytes_until_nul(&self.name[slot]).ok().and_then(|name| name.to_str().ok()).unwrap_or_default()
    }

    /// The answer to [`pointer`](Self::pointer).
    pub(super) fn octets_of(&self) -> &[u8] {
        let length = self.params.iter().rev().find(|param| param.data_type == OCTET_PTR).map_or(0, |param| param.return_size);
        if self.pointer.is_null() || length == usize::MAX {
            return &[];
        }
        // SAFETY: the twin says that so many octets are there; they stay until its setting is changed, and nothing does that now.
        unsafe { core::slice::from_raw_parts(self.pointer, length) }
    }
}

/// Bytes that libcrypto points at; empty where it points nowhere.
///
/// # Safety
/// `data` is null or `length` bytes are there for `'a`.
pub(super) unsafe fn bytes<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: passed on from the caller.
    unsafe { core::slice::from_raw_parts(data, length) }
}
