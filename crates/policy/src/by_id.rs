//! What is kept by the numbers of requests.

use crate::RequestId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose order is of no account: who walks it sorts what he finds, or two runs would differ.
pub type ById<T> = HashMap<RequestId, T, BuildHasherDefault<IdHasher>>;

/// Hashes a request's number without a random seed, so that two runs do the same. The numbers are the driver's own: no client can choose colliding ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing; the rotation brings the well-mixed high bits to where the map looks for its bucket.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}
