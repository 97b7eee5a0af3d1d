//! P-256 and P-384.

use crate::{Planned, Random, Subject};
use bywash_ifma::{LANES, p256, p384};
use std::hint::black_box;

pub(crate) fn subjects() -> Vec<Planned> {
    vec![
        Planned { name: "p256 sign", leaks: false, make: || Box::new(P256Sign::default()) },
        Planned { name: "p256 agree", leaks: false, make: || Box::new(P256Agree::new()) },
        Planned { name: "p384 sign", leaks: false, make: || Box::new(P384Sign::default()) },
        Planned { name: "p384 agree", leaks: false, make: || Box::new(P384Agree::new()) },
    ]
}

/// Scalars below the order: 1 in the fixed class, which is all zeros but one bit.
fn scalars<const N: usize>(scalars: &mut [[u8; N]; LANES], fixed: bool, random: &mut Random) {
    let mut one = [0; N];
    one[N - 1] = 1;
    random.fill(scalars.as_flattened_mut(), fixed, [one; LANES].as_flattened());
    for scalar in scalars {
        scalar[0] &= 0x7F;
    }
}

macro_rules! curve {
    ($curve:ident, $bytes:literal, $sign:ident, $agree:ident) => {
        /// With a key and a nonce.
        struct $sign {
            private: [[u8; $bytes]; LANES],
            nonce: [[u8; $bytes]; LANES],
            signature: [[u8; 2 * $bytes]; LANES],
        }

        impl Default for $sign {
            fn default() -> Self {
                Self { private: [[0; $bytes]; LANES], nonce: [[0; $bytes]; LANES], signature: [[0; 2 * $bytes]; LANES] }
            }
        }

        impl Subject for $sign {
            fn prepare(&mut self, fixed: bool, random: &mut Random) {
                scalars(&mut self.private, fixed, random);
                scalars(&mut self.nonce, fixed, random);
            }

            fn run(&mut self) {
                let digest = &[0x5A; $bytes];
                let secrets = self.private.iter().zip(&self.nonce);
                let mut tasks: Vec<_> = secrets
                    .zip(&mut self.signature)
                    .map(|((private, nonce), signature)| $curve::SignTask { private, nonce, digest, signature, done: false })
                    .collect();
                $curve::sign(black_box(&mut tasks));
            }
        }

        /// With the same peer always.
        struct $agree {
            private: [[u8; $bytes]; LANES],
            shared: [[u8; $bytes]; LANES],
            peer: [u8; 2 * $bytes],
        }

        impl $agree {
            fn new() -> Self {
                let mut peer = [0; 2 * $bytes];
                $curve::public_value(&mut [$curve::PublicValueTask { private: &[0x5A; $bytes], public: &mut peer }]);
                Self { private: [[0; $bytes]; LANES], shared: [[0; $bytes]; LANES], peer }
            }
        }

        impl Subject for $agree {
            fn prepare(&mut self, fixed: bool, random: &mut Random) {
                scalars(&mut self.private, fixed, random);
            }

            fn run(&mut self) {
                let peer = &self.peer;
                let mut tasks: Vec<_> = self
                    .private
                    .iter()
                    .zip(&mut self.shared)
                    .map(|(private, shared)| $curve::AgreeTask { private, peer, shared, done: false })
                    .collect();
                $curve::agree(black_box(&mut tasks));
            }
        }
    };
}

curve!(p256, 32, P256Sign, P256Agree);
curve!(p384, 48, P384Sign, P384Agree);
