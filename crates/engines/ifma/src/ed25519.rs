//! Ed25519 signatures (RFC 8032 section 5.1): eight at once.

use crate::curve25519::edwards;
use crate::curve25519::scalar::Scalar;
use crate::digits::per_lane;
use crate::stack;
use crate::x25519::clamped;
use crate::{LANES, assert_batch};
use core::fmt;
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A private key, expanded once. Wiped when dropped.
#[derive(Clone)]
pub struct Key(Box<Expanded>);

/// RFC 8032, section 5.1.5: the halves of the hashed seed, the first clamped, and the public key.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
struct Expanded {
    scalar: [u8; 32],
    prefix: [u8; 32],
    public: [u8; 32],
}

impl Key {
    /// From the 32 bytes that RFC 8032 calls the private key. The public key is computed here.
    ///
    /// Call it only where [`crate::is_supported`] says yes.
    pub fn new(seed: &[u8; 32]) -> Key {
        assert!(crate::is_supported(), "this processor has no AVX-512 IFMA: ask is_supported");
        stack::wiped_apart::<{ stack::SMALL }, _>(|| {
            let mut key = Box::new(Expanded { scalar: [0; 32], prefix: [0; 32], public: [0; 32] });
            let hash = hash(&[seed]);
            key.scalar.copy_from_slice(&hash[..32]);
            key.prefix.copy_from_slice(&hash[32..]);
            key.scalar = clamped(&key.scalar);
            let scalars = Zeroizing::new([key.scalar; LANES]);
            // SAFETY: the processor has been asked above.
            #[allow(unsafe_code)]
            let [public, ..] = unsafe { edwards::multiples_of_base(&scalars).encode() };
            key.public = public;
            Key(key)
        })
    }

    /// The public key, encoded.
    pub fn public(&self) -> &[u8; 32] {
        &self.0.public
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("public", self.public()).finish_non_exhaustive()
    }
}

/// One signature: a key, a message of any length, and where the signature goes.
pub struct SignTask<'a> {
    /// Who signs.
    pub key: &'a Key,
    /// What is signed, whole: Ed25519 hashes it twice.
    pub message: &'a [u8],
    /// R and S, little-endian.
    pub signature: &'a mut [u8; 64],
}

/// The signature of each task; 1 to 8 tasks. RFC 8032 section 5.1.6, whose names these are.
///
/// Call it only where [`crate::is_supported`] says yes.
pub fn sign(tasks: &mut [SignTask<'_>]) {
    assert_batch(tasks.len());
    stack::wiped_apart::<{ stack::SMALL }, _>(|| {
        let mut nonces: [Option<Scalar>; LANES] = [const { None }; LANES];
        for (nonce, task) in nonces.iter_mut().zip(tasks.iter()) {
            *nonce = Some(Scalar::reduce(&hash(&[&task.key.0.prefix, task.message])));
        }
        let nonces = per_lane(&nonces[..tasks.len()], |nonce| nonce.clone().expect("one for each task"));
        let scalars = Zeroizing::new(per_lane(&nonces, Scalar::to_bytes));
        // SAFETY: `assert_batch` has asked the processor.
        #[allow(unsafe_code)]
        let points = unsafe { edwards::multiples_of_base(&scalars).encode() };
        for ((task, nonce), point) in tasks.iter_mut().zip(&nonces).zip(points) {
            let k = Scalar::reduce(&hash(&[&point, task.key.public(), task.message]));
            task.signature[..32].copy_from_slice(&point);
            task.signature[32..].copy_from_slice(&k.multiply_add(&task.key.0.scalar, nonce));
        }
    });
}

/// SHA-512 of the parts, one after the other.
fn hash(parts: &[&[u8]]) -> Zeroizing<[u8; 64]> {
    let mut state = Sha512::new();
    for part in parts {
        state.update(part);
    }
    Zeroizing::new(state.finalize().into())
}
