//! Raw RSA.

use super::number::Number;
use super::{Refused, accepted, forks, lc, refused};
use bywash_core::{RsaPrivateKey, RsaPublicKey};
use core::ffi::c_int;
use core::ptr::NonNull;

/// An RSA key, private or public.
pub(crate) struct Rsa {
    key: NonNull<lc::RSA>,
}

/// `RSA_sign_raw` and `RSA_encrypt`.
type Raw = unsafe extern "C" fn(*mut lc::RSA, *mut usize, *mut u8, usize, *const u8, usize, c_int) -> c_int;

/// The longest public exponent that the library takes without being told that it is large, in bits.
const EXPONENT_BITS_USUAL: u32 = 33;

fn is_large(exponent: &[u8]) -> bool {
    let first = exponent.iter().position(|&byte| byte != 0).unwrap_or(exponent.len());
    let significant = &exponent[first..];
    significant.first().is_some_and(|top| (significant.len() as u32 * 8) - top.leading_zeros() > EXPONENT_BITS_USUAL)
}

impl Rsa {
    /// A private key whose parts belong together.
    ///
    /// `RSA_check_key`, which the constructor calls (`crypto/fipsmodule/rsa/rsa.c`), checks in constant time that n = p q, d e = 1 mod p-1 and
    /// mod q-1, and that the three CRT parts are what they must be; it tests no primality, and costs a
    /// quarter to a half of one operation (RSA-2048: 0.12 ms).
    pub(crate) fn private(key: &RsaPrivateKey) -> Result<Self, Refused> {
        let [n, e] = public_numbers(&key.public)?;
        let d = Number::from_bytes(&key.private_exponent)?;
        let p = Number::from_bytes(&key.prime1)?;
        let q = Number::from_bytes(&key.prime2)?;
        let dp = Number::from_bytes(&key.exponent1)?;
        let dq = Number::from_bytes(&key.exponent2)?;
        let qinv = Number::from_bytes(&key.coefficient)?;
        let new = if is_large(&key.public.exponent) { lc::RSA_new_private_key_large_e } else { lc::RSA_new_private_key };
        let _inside = forks::enter();
        // SAFETY: all numbers live through the call, which copies them.
        let rsa = unsafe { new(n.as_ptr(), e.as_ptr(), d.as_ptr(), p.as_ptr(), q.as_ptr(), dp.as_ptr(), dq.as_ptr(), qinv.as_ptr()) };
        NonNull::new(rsa).map(|key| Self { key }).ok_or_else(refused)
    }

    /// A public key.
    pub(crate) fn public(key: &RsaPublicKey) -> Result<Self, Refused> {
        let [n, e] = public_numbers(key)?;
        let new = if is_large(&key.exponent) { lc::RSA_new_public_key_large_e } else { lc::RSA_new_public_key };
        let _inside = forks::enter();
        // SAFETY: both numbers live through the call, which copies them.
        let rsa = unsafe { new(n.as_ptr(), e.as_ptr()) };
        NonNull::new(rsa).map(|key| Self { key }).ok_or_else(refused)
    }

    /// `input^d mod n`, blinded, its result verified with e before it is given out, so that a computing fault gives away no factor
    /// (`rsa_default_private_transform` in `crypto/fipsmodule/rsa/rsa_impl.c`).
    pub(crate) fn private_operation(&self, input: &[u8], output: &mut [u8]) -> Result<(), Refused> {
        self.raw(lc::RSA_sign_raw, input, output)
    }

    /// `input^e mod n`.
    pub(crate) fn public_operation(&self, input: &[u8], output: &mut [u8]) -> Result<(), Refused> {
        self.raw(lc::RSA_encrypt, input, output)
    }

    fn raw(&self, operation: Raw, input: &[u8], output: &mut [u8]) -> Result<(), Refused> {
        let mut written = 0;
        let _inside = forks::enter();
        // SAFETY: the spans are valid for their lengths. rsa.h: RSA_sign_raw is "considered non-mutating for thread-safety purposes and may be
        // used concurrently", although it takes a mutable pointer; so does RSA_encrypt.
        accepted(unsafe {
            operation(self.key.as_ptr(), &mut written, output.as_mut_ptr(), output.len(), input.as_ptr(), input.len(), lc::RSA_NO_PADDING)
        })?;
        if written == output.len() { Ok(()) } else { Err(Refused) }
    }
}

fn public_numbers(key: &RsaPublicKey) -> Result<[Number; 2], Refused> {
    Ok([Number::from_bytes(&key.modulus)?, Number::from_bytes(&key.exponent)?])
}

impl Drop for Rsa {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again. The library wipes every part.
        unsafe { lc::RSA_free(self.key.as_ptr()) };
    }
}

// SAFETY: rsa.h: an RSA object "may be used concurrently on multiple threads by non-mutating functions", and only such are called.
unsafe impl Send for Rsa {}
// SAFETY: as above.
unsafe impl Sync for Rsa {}
