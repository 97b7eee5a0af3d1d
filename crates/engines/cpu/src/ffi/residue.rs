//! Numbers modulo another, which is odd but for sums, in time that does not depend on their values but where it is said.

use super::number::{Number, write_padded};
use super::{Refused, accepted, lc, refused};
use core::ptr::NonNull;

/// An odd modulus above 1, prepared for Montgomery's multiplication, and room for what is computed on the way.
pub(crate) struct Modulus {
    number: Number,
    prepared: NonNull<lc::BN_MONT_CTX>,
    scratch: Scratch,
}

/// A `BN_CTX`; what its numbers held is wiped when it is freed.
struct Scratch(NonNull<lc::BN_CTX>);

impl Scratch {
    fn new() -> Result<Self, Refused> {
        // SAFETY: takes nothing; null is handled.
        NonNull::new(unsafe { lc::BN_CTX_new() }).map(Self).ok_or_else(refused)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again.
        unsafe { lc::BN_CTX_free(self.0.as_ptr()) };
    }
}

impl Modulus {
    /// From big-endian bytes whose first is not 0.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, Refused> {
        let (number, scratch) = (Number::from_bytes(bytes)?, Scratch::new()?);
        // SAFETY: both are live; an even number is refused by the callee.
        let prepared = unsafe { lc::BN_MONT_CTX_new_consttime(number.as_ptr(), scratch.0.as_ptr()) };
        let prepared = NonNull::new(prepared).ok_or_else(refused)?;
        Ok(Self { number, prepared, scratch })
    }

    /// Calls one of the library's functions that write a result; all of them take a scratch.
    fn result(&self, call: impl FnOnce(*mut lc::BIGNUM, *mut lc::BN_CTX) -> core::ffi::c_int) -> Result<Number, Refused> {
        let result = Number::from_bytes(&[])?;
        accepted(call(result.as_mut_ptr(), self.scratch.0.as_ptr()))?;
        Ok(result)
    }

    /// A number modulo this one. It must be below this times 2^64 for each of this one's words.
    pub(crate) fn reduce(&self, number: &Number) -> Result<Number, Refused> {
        let prepared = self.prepared.as_ptr();
        // SAFETY: live numbers, of which only the result is written. The first call divides by R, the second multiplies by it.
        let divided = self.result(|result, scratch| unsafe { lc::BN_from_montgomery(result, number.as_ptr(), prepared, scratch) })?;
        // SAFETY: as above.
        self.result(|result, scratch| unsafe { lc::BN_to_montgomery(result, divided.as_ptr(), prepared, scratch) })
    }

    /// A power of a number that is below this one. All bytes that the exponent was given in count, zeros too.
    pub(crate) fn power(&self, base: &Number, exponent: &Number) -> Result<Number, Refused> {
        let (number, prepared) = (self.number.as_ptr(), self.prepared.as_ptr());
        // SAFETY: live numbers, of which only the result is written; what was prepared belongs to this number.
        self.result(|result, scratch| unsafe {
            lc::BN_mod_exp_mont_consttime(result, base.as_ptr(), exponent.as_ptr(), number, scratch, prepared)
        })
    }

    /// The product of two numbers that are below this one.
    pub(crate) fn product(&self, a: &Number, b: &Number) -> Result<Number, Refused> {
        let prepared = self.prepared.as_ptr();
        // SAFETY: live numbers, of which only the result is written. The first is multiplied by R, by which the product is divided.
        let a = self.result(|result, scratch| unsafe { lc::BN_to_montgomery(result, a.as_ptr(), prepared, scratch) })?;
        // SAFETY: as above.
        self.result(|result, scratch| unsafe { lc::BN_mod_mul_montgomery(result, a.as_ptr(), b.as_ptr(), prepared, scratch) })
    }

    /// The difference of two numbers that are below this one.
    pub(crate) fn difference(&self, a: &Number, b: &Number) -> Result<Number, Refused> {
        // SAFETY: live numbers, of which only the result is written.
        self.result(|result, _| unsafe { lc::BN_mod_sub_quick(result, a.as_ptr(), b.as_ptr(), self.number.as_ptr()) })
    }

    /// `a * this + b`, of any size.
    pub(crate) fn times_plus(&self, a: &Number, b: &Number) -> Result<Number, Refused> {
        // SAFETY: live numbers, of which only the result is written.
        let product = self.result(|result, scratch| unsafe { lc::BN_mul(result, a.as_ptr(), self.number.as_ptr(), scratch) })?;
        // SAFETY: as above.
        self.result(|result, _| unsafe { lc::BN_uadd(result, product.as_ptr(), b.as_ptr()) })
    }

    /// The modulus itself.
    pub(crate) fn number(&self) -> &Number {
        &self.number
    }
}

impl Number {
    /// Another number modulo this one, which is not 0, by long division in time that depends on both: for what is no secret.
    pub(crate) fn remainder(&self, of: &Number) -> Result<Number, Refused> {
        let (result, scratch) = (Number::from_bytes(&[])?, Scratch::new()?);
        // SAFETY: live numbers, of which only the result is written.
        accepted(unsafe { lc::BN_nnmod(result.as_mut_ptr(), of.as_ptr(), self.as_ptr(), scratch.0.as_ptr()) })?;
        Ok(result)
    }

    /// Whether a number is below this one; this alone shows in the time.
    pub(crate) fn is_above(&self, number: &Number) -> bool {
        // SAFETY: live numbers, only read.
        unsafe { lc::BN_ucmp(number.as_ptr(), self.as_ptr()) < 0 }
    }

    /// The sum, modulo this number, of two numbers that are below it. It may be even.
    pub(crate) fn sum(&self, a: &Number, b: &Number) -> Result<Number, Refused> {
        let result = Number::from_bytes(&[])?;
        // SAFETY: live numbers, of which only the result is written.
        accepted(unsafe { lc::BN_mod_add_quick(result.as_mut_ptr(), a.as_ptr(), b.as_ptr(), self.as_ptr()) })?;
        Ok(result)
    }

    /// Whether two numbers are equal.
    pub(crate) fn equals(&self, other: &Number) -> bool {
        // SAFETY: live numbers, only read.
        unsafe { lc::BN_equal_consttime(self.as_ptr(), other.as_ptr()) == 1 }
    }

    /// Big-endian, with zeros in front.
    pub(crate) fn write(&self, out: &mut [u8]) -> Result<(), Refused> {
        // SAFETY: a live number.
        unsafe { write_padded(self.as_ptr(), out) }
    }
}

impl Drop for Modulus {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again.
        unsafe { lc::BN_MONT_CTX_free(self.prepared.as_ptr()) };
    }
}
