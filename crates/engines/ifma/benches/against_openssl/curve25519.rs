//! X25519 and Ed25519.

use crate::openssl::{Curve, OpenSsl};
use crate::{Planned, Row};
use bywash_ifma::{LANES, ed25519, x25519};

/// Multiply-and-add instructions of a product in the field, and of a square.
const PRODUCT: u64 = 50;
const SQUARE: u64 = 30;
/// Of an addition of multiples of the base point.
const ADDITION: u64 = 7 * PRODUCT;
/// Of one step of the ladder, which multiplies by a small constant as well.
const STEP: u64 = 5 * PRODUCT + 4 * SQUARE + 10;

/// Bytes of what `openssl speed` signs, and of what a TLS 1.3 server signs (RFC 8446 section 4.4.3, with SHA-256).
const MESSAGES: [(&str, usize); 2] = [("ed25519 sign", 20), ("ed25519 sign (TLS 1.3)", 130)];

pub(crate) fn rows() -> Vec<Planned> {
    let mut rows: Vec<Planned> = vec![("x25519 agree".into(), Box::new(agree_row)), ("x25519 public value".into(), Box::new(public_row))];
    rows.extend(MESSAGES.map(|(name, len)| -> Planned { (name.into(), Box::new(move |openssl| sign_row(openssl, len))) }));
    rows
}

/// Private keys of the eight lanes.
fn private() -> [[u8; 32]; LANES] {
    core::array::from_fn(|lane| core::array::from_fn(|i| (i * (2 * lane + 3) + 1) as u8))
}

fn agree_batch(private: &[[u8; 32]], peer: &[u8; 32], shared: &mut [[u8; 32]]) {
    let mut tasks: Vec<_> =
        private.iter().zip(shared).map(|(private, shared)| x25519::AgreeTask { private, peer, shared, nonzero: false }).collect();
    x25519::agree(&mut tasks);
    assert!(tasks.iter().all(|task| task.nonzero));
}

fn agree_row(openssl: &'static OpenSsl) -> Row {
    let (private, theirs) = (private(), openssl.raw_key(Curve::X25519, &[7; 32]));
    let peer = theirs.raw_public();
    let mut derive = openssl.raw_key(Curve::X25519, &private[0]).derive(theirs);
    let (mut shared, mut lone, mut output) = ([[0; 32]; LANES], [[0; 32]], [0; 32]);
    agree_batch(&private, &peer, &mut shared);
    derive(&mut output);
    assert_eq!(output, shared[0], "OpenSSL computes something else");
    Row {
        batch: Box::new(move || agree_batch(&private, &peer, &mut shared)),
        lone: Box::new(move || agree_batch(&private[..1], &peer, &mut lone)),
        openssl: Box::new(move || derive(&mut output)),
        products: 255 * STEP + 254 * SQUARE + 12 * PRODUCT,
    }
}

fn public_batch(private: &[[u8; 32]], public: &mut [[u8; 32]]) {
    let mut tasks: Vec<_> = private.iter().zip(public).map(|(private, public)| x25519::PublicValueTask { private, public }).collect();
    x25519::public_value(&mut tasks);
}

fn public_row(openssl: &'static OpenSsl) -> Row {
    let private = private();
    let (mut public, mut lone) = ([[0; 32]; LANES], [[0; 32]]);
    public_batch(&private, &mut public);
    assert_eq!(openssl.raw_key(Curve::X25519, &private[0]).raw_public(), public[0], "OpenSSL computes something else");
    Row {
        batch: Box::new(move || public_batch(&private, &mut public)),
        lone: Box::new(move || public_batch(&private[..1], &mut lone)),
        openssl: Box::new(move || openssl.raw_key(Curve::X25519, &private[0]).free()),
        products: 52 * ADDITION + 254 * SQUARE + 12 * PRODUCT,
    }
}

fn sign_batch(keys: &[ed25519::Key], message: &[u8], signatures: &mut [[u8; 64]]) {
    let mut tasks: Vec<_> = keys.iter().zip(signatures).map(|(key, signature)| ed25519::SignTask { key, message, signature }).collect();
    ed25519::sign(&mut tasks);
}

fn sign_row(openssl: &'static OpenSsl, len: usize) -> Row {
    let (seeds, message) = (private(), vec![0x20; len]);
    let keys = std::rc::Rc::new(seeds.map(|seed| ed25519::Key::new(&seed)));
    let mut sign = openssl.raw_key(Curve::Ed25519, &seeds[0]).digest_sign();
    let (mut signatures, mut lone, mut output) = ([[0; 64]; LANES], [[0; 64]], [0; 64]);
    sign_batch(&keys[..], &message, &mut signatures);
    sign(&message, &mut output);
    assert_eq!(output, signatures[0], "OpenSSL computes something else");
    let (lone_keys, lone_message, their_message) = (keys.clone(), message.clone(), message.clone());
    Row {
        batch: Box::new(move || sign_batch(&keys[..], &message, &mut signatures)),
        lone: Box::new(move || sign_batch(&lone_keys[..1], &lone_message, &mut lone)),
        openssl: Box::new(move || sign(&their_message, &mut output)),
        products: 52 * ADDITION + 254 * SQUARE + 13 * PRODUCT,
    }
}
