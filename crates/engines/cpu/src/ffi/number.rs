//! Big numbers, as far as keys and signatures need them.

use super::{Refused, accepted, lc, refused};
use core::ptr::{NonNull, null_mut};

/// An owned `BIGNUM`. `BN_free` wipes its digits.
pub(crate) struct Number(NonNull<lc::BIGNUM>);

impl Number {
    /// From unsigned big-endian bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Refused> {
        // SAFETY: `bytes` is readable for its length; null asks for a new number.
        let number = unsafe { lc::BN_bin2bn(bytes.as_ptr(), bytes.len(), null_mut()) };
        NonNull::new(number).map(Self).ok_or_else(refused)
    }

    /// Whether it is 1.
    pub(crate) fn is_one(&self) -> bool {
        // SAFETY: the number is live, and only read.
        unsafe { lc::BN_is_one(self.as_ptr()) == 1 }
    }

    /// For calls that read it while `self` lives.
    pub(super) fn as_ptr(&self) -> *const lc::BIGNUM {
        self.0.as_ptr()
    }

    /// For calls that write it while `self` lives.
    pub(super) fn as_mut_ptr(&self) -> *mut lc::BIGNUM {
        self.0.as_ptr()
    }

    /// For calls that take it over.
    pub(super) fn into_raw(self) -> *mut lc::BIGNUM {
        let raw = self.0.as_ptr();
        core::mem::forget(self);
        raw
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again.
        unsafe { lc::BN_free(self.0.as_ptr()) };
    }
}

/// Writes a number as exactly `output.len()` big-endian bytes, in time that does not depend on its value.
///
/// # Safety
/// `number` is a live BIGNUM.
pub(super) unsafe fn write_padded(number: *const lc::BIGNUM, output: &mut [u8]) -> Result<(), Refused> {
    // SAFETY: the caller vouches for `number`; `output` is writable for its length.
    accepted(unsafe { lc::BN_bn2bin_padded(output.as_mut_ptr(), output.len(), number) })
}
