//! DSA keys and signatures.

use super::number::{Number, write_padded};
use super::{Refused, accepted, forks, lc, refused};
use core::ptr::{NonNull, null, null_mut};

/// A key, with or without its private half.
pub(crate) struct DsaKey(NonNull<lc::DSA>);

/// What the library made, or is to look at.
struct Signature(NonNull<lc::DSA_SIG>);

impl DsaKey {
    /// Of these numbers. Whether they are fit for each other, as far as the library looks at that, is seen when the key is used.
    pub(crate) fn new([p, q, g]: [Number; 3], public: Number, private: Option<Number>) -> Result<Self, Refused> {
        // SAFETY: takes nothing; null is handled.
        let key = Self(NonNull::new(unsafe { lc::DSA_new() }).ok_or_else(refused)?);
        // SAFETY: all are live and ours; given none that is null the call succeeds, and has taken them over.
        accepted(unsafe { lc::DSA_set0_pqg(key.0.as_ptr(), p.into_raw(), q.into_raw(), g.into_raw()) })?;
        let private = private.map_or(null_mut(), Number::into_raw);
        // SAFETY: as above; without a private half null is what says so.
        accepted(unsafe { lc::DSA_set0_key(key.0.as_ptr(), public.into_raw(), private) })?;
        Ok(key)
    }

    /// Signs a digest; each half of the signature fills its place.
    pub(crate) fn sign(&self, digest: &[u8], r: &mut [u8], s: &mut [u8]) -> Result<(), Refused> {
        let _inside = forks::enter();
        // SAFETY: the digest is readable for its length, the key is live; null is handled.
        let made = NonNull::new(unsafe { lc::DSA_do_sign(digest.as_ptr(), digest.len(), self.0.as_ptr()) });
        let made = Signature(made.ok_or_else(refused)?);
        let (mut half, mut other) = (null(), null());
        // SAFETY: the signature is live, the places are ours.
        unsafe { lc::DSA_SIG_get0(made.0.as_ptr(), &raw mut half, &raw mut other) };
        // SAFETY: both belong to the signature, which lives on.
        unsafe { write_padded(half, r) }?;
        // SAFETY: as above.
        unsafe { write_padded(other, s) }
    }

    /// Whether a signature is of this digest and key.
    pub(crate) fn verify(&self, digest: &[u8], r: Number, s: Number) -> Result<bool, Refused> {
        // SAFETY: takes nothing; null is handled.
        let given = Signature(NonNull::new(unsafe { lc::DSA_SIG_new() }).ok_or_else(refused)?);
        // SAFETY: all are live and ours; given none that is null the call succeeds, and has taken them over.
        accepted(unsafe { lc::DSA_SIG_set0(given.0.as_ptr(), r.into_raw(), s.into_raw()) })?;
        let _inside = forks::enter();
        // SAFETY: the digest is readable for its length, key and signature are live.
        match unsafe { lc::DSA_do_verify(digest.as_ptr(), digest.len(), given.0.as_ptr(), self.0.as_ptr()) } {
            1 => Ok(true),
            0 => Ok(false),
            _ => Err(refused()),
        }
    }
}

impl Drop for DsaKey {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again; it wipes the private half.
        unsafe { lc::DSA_free(self.0.as_ptr()) };
    }
}

impl Drop for Signature {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again.
        unsafe { lc::DSA_SIG_free(self.0.as_ptr()) };
    }
}
