//! ECDSA and ECDH with P-256 and P-384.

use crate::openssl::{Key, OpenSsl};
use crate::{Planned, Row};
use bywash_ifma::LANES;

pub(crate) fn rows() -> Vec<Planned> {
    vec![
        ("ecdsa-p256 sign".into(), Box::new(p256::sign_row)),
        ("ecdh-p256 agree".into(), Box::new(p256::agree_row)),
        ("ecdh-p256 public value".into(), Box::new(p256::public_row)),
        ("ecdsa-p384 sign".into(), Box::new(p384::sign_row)),
        ("ecdh-p384 agree".into(), Box::new(p384::agree_row)),
        ("ecdh-p384 public value".into(), Box::new(p384::public_row)),
    ]
}

/// A part of a key with zeros in front.
fn padded<const N: usize>(key: &Key, name: &str) -> [u8; N] {
    let number = key.number(name);
    let mut bytes = [0; N];
    bytes[N - number.len()..].copy_from_slice(&number);
    bytes
}

macro_rules! curve {
    ($module:ident, $name:literal, $n:literal, product: $product:expr, square: $square:expr) => {
        mod $module {
            use super::*;
            use bywash_ifma::$module::{AgreeTask, PublicValueTask, SignTask, agree, public_value, sign};

            const N: usize = $n;
            /// Multiply-and-add instructions of a product in the field, and of a square.
            const PRODUCT: u64 = $product;
            const SQUARE: u64 = $square;
            const DOUBLE: u64 = 3 * PRODUCT + 5 * SQUARE;
            const ADD: u64 = 8 * PRODUCT + 3 * SQUARE;
            /// Additions of a multiple of the base point, and of another.
            const BASE_ADDITIONS: u64 = 8 * N as u64 / 6;
            const ADDITIONS: u64 = 8 * N as u64 / 4 - 1;

            fn sign_batch(private: &[u8; N], nonces: &[[u8; N]], digest: &[u8], signatures: &mut [[u8; 2 * N]]) {
                let zip = nonces.iter().zip(signatures);
                let mut tasks: Vec<_> = zip.map(|(nonce, signature)| SignTask { private, nonce, digest, signature, done: false }).collect();
                sign(&mut tasks);
                assert!(tasks.iter().all(|task| task.done));
            }

            /// OpenSSL draws its nonce and encodes in DER, which the engine does for the kernel. Nonces differ, and so do signatures.
            pub(super) fn sign_row(openssl: &'static OpenSsl) -> Row {
                let theirs = openssl.generate_ec($name);
                let (private, mut function) = (padded(&theirs, "priv"), theirs.sign());
                let nonces: [[u8; N]; LANES] = core::array::from_fn(|lane| core::array::from_fn(|i| (i * 7 + lane * 31 + 1) as u8));
                let (digest, mut output) = ([0x5A; 32], [0; 2 * N + 16]);
                let (mut signatures, mut lone) = ([[0; 2 * N]; LANES], [[0; 2 * N]]);
                Row {
                    batch: Box::new(move || sign_batch(&private, &nonces, &digest, &mut signatures)),
                    lone: Box::new(move || sign_batch(&private, &nonces[..1], &digest, &mut lone)),
                    openssl: Box::new(move || function(&digest, &mut output)),
                    products: BASE_ADDITIONS * ADD,
                }
            }

            fn agree_batch(private: &[u8; N], peer: &[u8; 2 * N], shared: &mut [[u8; N]]) {
                let mut tasks: Vec<_> = shared.iter_mut().map(|shared| AgreeTask { private, peer, shared, done: false }).collect();
                agree(&mut tasks);
                assert!(tasks.iter().all(|task| task.done));
            }

            pub(super) fn agree_row(openssl: &'static OpenSsl) -> Row {
                let (ours, theirs) = (openssl.generate_ec($name), openssl.generate_ec($name));
                let (private, x, y) = (padded(&ours, "priv"), padded::<N>(&theirs, "qx"), padded::<N>(&theirs, "qy"));
                let peer: [u8; 2 * N] = [x, y].concat().try_into().expect("2N bytes");
                let mut derive = ours.derive(theirs);
                let (mut shared, mut lone, mut output) = ([[0; N]; LANES], [[0; N]], [0; N]);
                agree_batch(&private, &peer, &mut shared);
                derive(&mut output);
                assert_eq!(output, shared[0], "OpenSSL computes something else");
                Row {
                    batch: Box::new(move || agree_batch(&private, &peer, &mut shared)),
                    lone: Box::new(move || agree_batch(&private, &peer, &mut lone)),
                    openssl: Box::new(move || derive(&mut output)),
                    products: 4 * ADDITIONS * DOUBLE + ADDITIONS * ADD + 7 * (DOUBLE + ADD + 6 * PRODUCT + SQUARE),
                }
            }

            fn public_batch(private: &[u8; N], public: &mut [[u8; 2 * N]]) {
                let mut tasks: Vec<_> = public.iter_mut().map(|public| PublicValueTask { private, public }).collect();
                public_value(&mut tasks);
            }

            /// Against OpenSSL's generation of a key, which draws the private key as well.
            pub(super) fn public_row(openssl: &'static OpenSsl) -> Row {
                let theirs = openssl.generate_ec($name);
                let (private, x, y) = (padded(&theirs, "priv"), padded::<N>(&theirs, "qx"), padded::<N>(&theirs, "qy"));
                let (mut public, mut lone) = ([[0; 2 * N]; LANES], [[0; 2 * N]]);
                public_batch(&private, &mut public);
                assert_eq!(&public[0][..], [x, y].concat(), "OpenSSL computes something else");
                Row {
                    batch: Box::new(move || public_batch(&private, &mut public)),
                    lone: Box::new(move || public_batch(&private, &mut lone)),
                    openssl: Box::new(move || openssl.generate_ec($name).free()),
                    products: BASE_ADDITIONS * ADD,
                }
            }
        }
    };
}

curve!(p256, c"P-256", 32, product: 50 + 30, square: 30 + 30);
curve!(p384, c"P-384", 48, product: 128 + 40, square: 72 + 40);
