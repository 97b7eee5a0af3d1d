//! Parameter arrays that we build, for callbacks and for delegation.

use super::abi::{OCTET_STRING, Param, UNSIGNED_INTEGER, UTF8_STRING};
use core::ffi::{CStr, c_uint};
use zeroize::Zeroize;

/// A parameter array that owns its values and wipes them when dropped.
#[derive(Default)]
pub struct OwnedParams {
    entries: Vec<Param>,
    values: Vec<Vec<u8>>,
}

impl OwnedParams {
    /// An empty array.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an octet string.
    #[must_use]
    pub fn octets(self, key: &'static CStr, value: &[u8]) -> Self {
        self.push(key, OCTET_STRING, value.to_vec())
    }

    /// Adds a string.
    #[must_use]
    pub fn utf8(self, key: &'static CStr, value: &str) -> Self {
        let mut array = self.push(key, UTF8_STRING, [value.as_bytes(), &[0]].concat());
        if let Some(entry) = array.entries.last_mut() {
            entry.data_size -= 1;
        }
        array
    }

    /// Adds a 64-bit unsigned number.
    #[must_use]
    pub fn number(self, key: &'static CStr, value: u64) -> Self {
        self.push(key, UNSIGNED_INTEGER, value.to_ne_bytes().to_vec())
    }

    /// Adds an unsigned number of any length, given big-endian.
    #[must_use]
    pub fn big_endian(self, key: &'static CStr, value: &[u8]) -> Self {
        let mut bytes = if value.is_empty() { vec![0] } else { value.to_vec() };
        if cfg!(target_endian = "little") {
            bytes.reverse();
        }
        self.push(key, UNSIGNED_INTEGER, bytes)
    }

    fn push(mut self, key: &'static CStr, data_type: c_uint, mut value: Vec<u8>) -> Self {
        // A vector's bytes stay where they are when the vector itself moves.
        let size = value.len();
        if value.capacity() == 0 {
            value.reserve_exact(1);
        }
        self.entries.push(Param::new(key, data_type, value.as_mut_ptr().cast(), size));
        self.values.push(value);
        self
    }

    /// The array, ended; valid until this is changed or dropped.
    pub fn as_ptr(&mut self) -> *mut Param {
        if self.entries.last().is_none_or(|last| !last.key.is_null()) {
            self.entries.push(Param::END);
        }
        self.entries.as_mut_ptr()
    }
}

impl Drop for OwnedParams {
    fn drop(&mut self) {
        self.values.iter_mut().for_each(Zeroize::zeroize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::Params;

    #[test]
    fn what_is_pushed_can_be_read() {
        let mut owned = OwnedParams::new().octets(c"o", b"").utf8(c"u", "text").number(c"n", 9).big_endian(c"b", &[1, 2]);
        // SAFETY: the array is ended and `owned` outlives it.
        let params = unsafe { Params::new(owned.as_ptr()) };
        assert_eq!(params.get(c"o").unwrap().octets(), Some(&[][..]));
        assert_eq!(params.get(c"u").unwrap().utf8(), Some("text"));
        assert_eq!(params.get(c"n").unwrap().number(), Some(9));
        assert_eq!(params.get(c"b").unwrap().big_endian().unwrap(), [1, 2]);
    }
}
