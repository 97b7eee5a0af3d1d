//! Bytes that must not leak.

use core::fmt;
use core::ops::{Deref, DerefMut};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Owned secret bytes: zeroised on drop, opaque to `Debug`, compared in constant time.
///
/// It derefs to a slice. It cannot grow, since growing would leave an unwiped copy behind.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct SecretBytes(Box<[u8]>);

impl SecretBytes {
    /// `len` zero bytes, to be filled in place.
    pub fn zeroed(len: usize) -> Self {
        Self(vec![0; len].into_boxed_slice())
    }
}

impl From<&[u8]> for SecretBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl<const N: usize> From<&[u8; N]> for SecretBytes {
    fn from(bytes: &[u8; N]) -> Self {
        Self(bytes.as_slice().into())
    }
}

impl From<Vec<u8>> for SecretBytes {
    /// Takes the vector over. Spare capacity would be dropped unwiped by a plain conversion, so a vector that has any is
    /// copied and the original wiped.
    fn from(mut bytes: Vec<u8>) -> Self {
        if bytes.capacity() == bytes.len() {
            return Self(bytes.into_boxed_slice());
        }
        let exact = Self(bytes.as_slice().into());
        bytes.zeroize();
        exact
    }
}

impl Deref for SecretBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for SecretBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        constant_time_eq(&self.0, &other.0)
    }
}
impl Eq for SecretBytes {}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret, {} bytes]", self.0.len())
    }
}

/// Whether two byte strings are equal, in time that depends on their lengths alone. Keys are compared with every short message, so the fold, which has no branch,
/// goes by vectors: byte by byte it would cost more than the message.
#[inline]
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && core::hint::black_box(a.iter().zip(b).fold(0, |seen, (x, y)| seen | (x ^ y))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_never_prints_the_bytes() {
        let secret = SecretBytes::from(&[0xAB; 4]);
        assert_eq!(format!("{secret:?}"), "[secret, 4 bytes]");
    }

    #[test]
    fn vectors_with_spare_capacity_are_taken_exactly() {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(b"key");
        assert_eq!(&*SecretBytes::from(bytes), b"key");
    }
}
