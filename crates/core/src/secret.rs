//! Bytes that must not leak.

use crate::memory::{HostMemory, Importing, WORTH_BYTES};
use core::fmt;
use core::ops::{Deref, DerefMut};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Owned secret bytes: zeroised on drop, opaque to `Debug`, compared in constant time.
///
/// It derefs to a slice. It cannot grow, since growing would leave an unwiped copy behind. Large ones lie where engines reach them by themselves, if an engine does
/// ([`memory`](crate::memory)).
pub struct SecretBytes(Place);

enum Place {
    Own(Box<[u8]>),
    /// Wiped when it is dropped.
    Host(Box<HostMemory>),
}

/// Overwrites bytes with zeros, which the compiler cannot leave out.
///
/// At the memory's speed: `zeroize` writes each byte by itself, which takes longer than encrypting it.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    zeroize::optimization_barrier(bytes);
}

impl Zeroize for SecretBytes {
    fn zeroize(&mut self) {
        wipe(self);
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        if let Place::Own(bytes) = &mut self.0 {
            wipe(bytes);
        }
    }
}

impl Clone for SecretBytes {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl Default for SecretBytes {
    fn default() -> Self {
        Self(Place::Own(Box::default()))
    }
}

impl ZeroizeOnDrop for SecretBytes {}

/// A vector of secret bytes, to be used again and again: all of its capacity is zeroised on drop. It should be made with the capacity that it needs, for growing leaves an unwiped copy
/// behind.
#[derive(Clone, Default)]
pub struct SecretVec(Vec<u8>);

impl SecretVec {
    /// An empty one with room for so many bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }
}

impl From<Vec<u8>> for SecretVec {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for SecretVec {
    type Target = Vec<u8>;
    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for SecretVec {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for SecretVec {
    fn drop(&mut self) {
        self.0.clear();
        self.0.resize(self.0.capacity(), 0);
        zeroize::optimization_barrier(&self.0[..]);
    }
}

impl fmt::Debug for SecretVec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret, {} bytes]", self.0.len())
    }
}

impl SecretBytes {
    /// `len` zero bytes, to be filled in place.
    pub fn zeroed(len: usize) -> Self {
        Self(if is_worth(len) { Place::Host(Box::new(HostMemory::zeroed(len))) } else { Place::Own(vec![0; len].into_boxed_slice()) })
    }
}

/// Whether bytes of such a length are to lie in [`HostMemory`].
fn is_worth(len: usize) -> bool {
    len >= WORTH_BYTES && Importing::is_there()
}

impl From<&[u8]> for SecretBytes {
    fn from(bytes: &[u8]) -> Self {
        if !is_worth(bytes.len()) {
            return Self(Place::Own(bytes.into()));
        }
        let mut copy = HostMemory::zeroed(bytes.len());
        copy.copy_from_slice(bytes);
        Self(Place::Host(Box::new(copy)))
    }
}

impl<const N: usize> From<&[u8; N]> for SecretBytes {
    fn from(bytes: &[u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl From<Vec<u8>> for SecretBytes {
    /// Takes the vector over. Spare capacity would be dropped unwiped by a plain conversion, so a vector that has any is
    /// copied and the original wiped.
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.capacity() == bytes.len() {
            return Self(Place::Own(bytes.into_boxed_slice()));
        }
        let exact = Self::from(bytes.as_slice());
        drop(SecretVec(bytes));
        exact
    }
}

impl Deref for SecretBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Own(bytes) => bytes,
            Place::Host(memory) => memory,
        }
    }
}

impl DerefMut for SecretBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Place::Own(bytes) => bytes,
            Place::Host(memory) => memory,
        }
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        constant_time_eq(self, other)
    }
}
impl Eq for SecretBytes {}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[secret, {} bytes]", self.len())
    }
}

/// Whether two byte strings are equal, in time that depends on their lengths alone. Keys are compared with every short message, so the fold, which has no branch,
/// goes by vectors, and those of the usual lengths by as few as they have: byte by byte it would cost more than the message.
#[inline]
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    fn differences(a: &[u8], b: &[u8]) -> u8 {
        a.iter().zip(b).fold(0, |seen, (x, y)| seen | (x ^ y))
    }
    let seen = match (a.len(), b.len()) {
        (16, 16) => differences(&a[..16], &b[..16]),
        (32, 32) => differences(&a[..32], &b[..32]),
        (one, other) if one == other => differences(a, b),
        _ => return false,
    };
    core::hint::black_box(seen) == 0
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
    fn one_bit_makes_a_difference_at_every_length() {
        for len in 0..70_usize {
            let one: Vec<u8> = (0..len as u8).collect();
            assert!(constant_time_eq(&one, &one.clone()), "{len}");
            for bit in 0..8 * len {
                let mut other = one.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(!constant_time_eq(&one, &other), "{len}: bit {bit}");
            }
            for longer in 1..3 {
                let mut other = one.clone();
                other.extend_from_slice(&vec![0; longer]);
                assert!(!constant_time_eq(&one, &other) && !constant_time_eq(&other, &one), "{len} and {longer} more");
            }
        }
    }

    #[test]
    fn what_is_wiped_is_zero() {
        for len in [0, 1, 31, 4096] {
            let mut bytes = vec![0xA5; len];
            wipe(&mut bytes);
            assert_eq!(bytes, vec![0; len]);
            let mut secret = SecretBytes::from(&[0xA5; 40][..len.min(40)]);
            secret.zeroize();
            assert!(secret.iter().all(|&byte| byte == 0));
        }
        assert_eq!(format!("{:?}", SecretVec::from(vec![7; 3])), "[secret, 3 bytes]");
    }

    #[test]
    fn vectors_with_spare_capacity_are_taken_exactly() {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(b"key");
        assert_eq!(&*SecretBytes::from(bytes), b"key");
    }
}
