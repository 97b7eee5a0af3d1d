//! The curves P-256 and P-384: ECDSA and ECDH.

use super::number::{Number, write_padded};
use super::{Refused, accepted, forks, lc, refused};
use core::ffi::c_void;
use core::ptr::{NonNull, null, null_mut};

/// First byte of an uncompressed point, SEC 1 s2.3.3.
const UNCOMPRESSED: u8 = 4;

/// A curve of SP 800-186.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
}

impl Curve {
    /// Length of a coordinate or scalar in bytes.
    pub(crate) const fn scalar(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }

    /// Length of an uncompressed point in bytes.
    pub(crate) const fn point(self) -> usize {
        1 + 2 * self.scalar()
    }
}

/// A key on one of the curves, private or public.
pub(crate) struct EcKey {
    key: NonNull<lc::EC_KEY>,
    curve: Curve,
}

/// A point known to be on the curve.
struct Point(NonNull<lc::EC_POINT>);

impl Point {
    fn from_bytes(key: &EcKey, bytes: &[u8]) -> Result<Self, Refused> {
        if bytes.len() != key.curve.point() || bytes[0] != UNCOMPRESSED {
            return Err(Refused);
        }
        let group = key.group();
        let point = Self::empty(group)?;
        // SAFETY: group and point are live, `bytes` readable; the callee refuses coordinates off the curve.
        accepted(unsafe { lc::EC_POINT_oct2point(group, point.0.as_ptr(), bytes.as_ptr(), bytes.len(), null_mut()) })?;
        Ok(point)
    }

    fn empty(group: *const lc::EC_GROUP) -> Result<Self, Refused> {
        // SAFETY: the group is a live built-in one.
        NonNull::new(unsafe { lc::EC_POINT_new(group) }).map(Self).ok_or_else(refused)
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again.
        unsafe { lc::EC_POINT_free(self.0.as_ptr()) };
    }
}

/// A signature's two numbers.
struct Signature(NonNull<lc::ECDSA_SIG>);

impl Drop for Signature {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again.
        unsafe { lc::ECDSA_SIG_free(self.0.as_ptr()) };
    }
}

impl EcKey {
    fn empty(curve: Curve) -> Result<Self, Refused> {
        let name = match curve {
            Curve::P256 => lc::NID_X9_62_prime256v1,
            Curve::P384 => lc::NID_secp384r1,
        };
        // SAFETY: takes a constant of the library.
        let key = unsafe { lc::EC_KEY_new_by_curve_name(name) };
        NonNull::new(key).map(|key| Self { key, curve }).ok_or_else(refused)
    }

    /// A private key; `Refused` if the scalar is 0 or not below the group's order.
    pub(crate) fn private(curve: Curve, scalar: &[u8]) -> Result<Self, Refused> {
        let fresh = Self::empty(curve)?;
        let scalar = Number::from_bytes(scalar)?;
        // SAFETY: key and number are live; the number is copied.
        accepted(unsafe { lc::EC_KEY_set_private_key(fresh.key.as_ptr(), scalar.as_ptr()) })?;
        Ok(fresh)
    }

    /// A public key; `Refused` if the point is not on the curve.
    pub(crate) fn public(curve: Curve, point: &[u8]) -> Result<Self, Refused> {
        let fresh = Self::empty(curve)?;
        let point = Point::from_bytes(&fresh, point)?;
        // SAFETY: key and point are live; the point is copied.
        accepted(unsafe { lc::EC_KEY_set_public_key(fresh.key.as_ptr(), point.0.as_ptr()) })?;
        Ok(fresh)
    }

    fn group(&self) -> *const lc::EC_GROUP {
        // SAFETY: the key is live; the group is a built-in constant.
        unsafe { lc::EC_KEY_get0_group(self.key.as_ptr()) }
    }

    /// ECDSA signature `r || s` of a digest; `output` is as long as both. Nonce, inversion and multiplication are constant-time in the library (`ecdsa_sign_impl`), and
    /// the nonce is drawn with the key and digest mixed in, against a weak random source.
    pub(crate) fn sign(&self, digest: &[u8], output: &mut [u8]) -> Result<(), Refused> {
        let _inside = forks::enter();
        // SAFETY: the key is only read (a const pointer, ec_key.h); `digest` is readable.
        let signature = unsafe { lc::ECDSA_do_sign(digest.as_ptr(), digest.len(), self.key.as_ptr()) };
        let signature = NonNull::new(signature).map(Signature).ok_or_else(refused)?;
        let (r, s) = output.split_at_mut(self.curve.scalar());
        // SAFETY: the signature is live and so are its numbers.
        unsafe {
            write_padded(lc::ECDSA_SIG_get0_r(signature.0.as_ptr()), r)?;
            write_padded(lc::ECDSA_SIG_get0_s(signature.0.as_ptr()), s)
        }
    }

    /// Whether `r || s` signs the digest; `Refused` if not.
    pub(crate) fn verify(&self, digest: &[u8], signature: &[u8]) -> Result<(), Refused> {
        if signature.len() != 2 * self.curve.scalar() {
            return Err(Refused);
        }
        let (r, s) = signature.split_at(self.curve.scalar());
        let (r, s) = (Number::from_bytes(r)?, Number::from_bytes(s)?);
        // SAFETY: takes nothing; null is handled.
        let pair = NonNull::new(unsafe { lc::ECDSA_SIG_new() }).map(Signature).ok_or_else(refused)?;
        // SAFETY: set0 takes both numbers over, and fails only for null ones, which these are not; the key is only read.
        unsafe {
            accepted(lc::ECDSA_SIG_set0(pair.0.as_ptr(), r.into_raw(), s.into_raw()))?;
            accepted(lc::ECDSA_do_verify(digest.as_ptr(), digest.len(), pair.0.as_ptr(), self.key.as_ptr()))
        }
    }

    /// ECDH: x coordinate of the shared point; `Refused` if the peer's point is not an uncompressed point on the curve.
    pub(crate) fn agree(&self, peer: &[u8], shared: &mut [u8]) -> Result<(), Refused> {
        let peer = Point::from_bytes(self, peer)?;
        let scalar = self.curve.scalar();
        if shared.len() != scalar {
            return Err(Refused);
        }
        let output = shared.as_mut_ptr().cast::<c_void>();
        // SAFETY: point and key are live and only read; `output` has the room told of; no key derivation function.
        let written = unsafe { lc::ECDH_compute_key(output, scalar, peer.0.as_ptr(), self.key.as_ptr(), None) };
        if written == scalar as i32 { Ok(()) } else { Err(refused()) }
    }

    /// The uncompressed public point of a private key.
    pub(crate) fn public_value(&self, output: &mut [u8]) -> Result<(), Refused> {
        let point = Point::empty(self.group())?;
        // SAFETY: key, group and point are live; a null second point asks for a multiple of the generator, by the constant-time path;
        // `output` has the room told of.
        let written = unsafe {
            let scalar = lc::EC_KEY_get0_private_key(self.key.as_ptr());
            if scalar.is_null() {
                return Err(Refused);
            }
            accepted(lc::EC_POINT_mul(self.group(), point.0.as_ptr(), scalar, null(), null(), null_mut()))?;
            let form = lc::point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED;
            lc::EC_POINT_point2oct(self.group(), point.0.as_ptr(), form, output.as_mut_ptr(), output.len(), null_mut())
        };
        if written == output.len() { Ok(()) } else { Err(refused()) }
    }
}

impl Drop for EcKey {
    fn drop(&mut self) {
        // SAFETY: ours, live, and not used again. The library wipes the scalar.
        unsafe { lc::EC_KEY_free(self.key.as_ptr()) };
    }
}

// SAFETY: ec_key.h: a key "may be used concurrently on multiple threads by non-mutating functions", and after `new` only such are called.
unsafe impl Send for EcKey {}
// SAFETY: as above.
unsafe impl Sync for EcKey {}
