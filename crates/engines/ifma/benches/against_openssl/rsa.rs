//! RSA, raw.

use crate::openssl::{Key, OpenSsl};
use crate::{Planned, Row};
use bywash_ifma::LANES;
use bywash_ifma::rsa::{BlindTask, Blinding, PrivateKey, PrivateParts, PrivateTask, PublicKey, PublicTask, blind, private, public};

pub(crate) fn rows() -> Vec<Planned> {
    let sizes = [1024, 2048, 3072, 4096];
    let private = sizes.map(|bits| -> Planned { (format!("rsa-{bits} private"), Box::new(move |openssl| private_row(openssl, bits))) });
    let public = sizes.map(|bits| -> Planned { (format!("rsa-{bits} public"), Box::new(move |openssl| public_row(openssl, bits))) });
    private.into_iter().chain(public).collect()
}

/// Multiply-and-add instructions of a Montgomery product of so many digits, and of a square: in tiles of ten digits, without those that the
/// kernel saves (see its module `montgomery`).
fn product(digits: u64) -> u64 {
    let tiles = digits / 10;
    reduction(tiles) + 100 * tiles * (tiles + 1)
}

fn square(digits: u64) -> u64 {
    let tiles = digits / 10;
    reduction(tiles) + 55 * tiles * (tiles + 1)
}

fn reduction(tiles: u64) -> u64 {
    let saved = (tiles - 1) * tiles.saturating_sub(2) / 2;
    200 * (tiles * tiles - saved)
}

/// Digits of half a modulus of so many bits.
fn half(bits: usize) -> u64 {
    bits as u64 * 10 / 1024
}

/// Two operands below any modulus of the size.
fn operands(bits: usize) -> [Vec<u8>; 2] {
    [3u8, 5].map(|step| (0..bits / 8).map(|i| if i == 0 { 1 } else { i as u8 * step }).collect())
}

fn private_key(key: Key) -> PrivateKey {
    let [modulus, public_exponent, prime1, prime2, exponent1, exponent2, coefficient] =
        &["n", "e", "rsa-factor1", "rsa-factor2", "rsa-exponent1", "rsa-exponent2", "rsa-coefficient1"].map(|name| key.number(name));
    let parts = PrivateParts { modulus, public_exponent, prime1, prime2, exponent1, exponent2, coefficient };
    PrivateKey::new(&parts).expect("OpenSSL's keys are good")
}

/// A blinding for each lane. They are made once in 256 batches, which is not in the figure.
fn blindings(keys: &[PrivateKey; 2], operands: &[Vec<u8>; 2]) -> [Blinding; LANES] {
    let mut blindings: [Blinding; LANES] = Default::default();
    let lanes = blindings.iter_mut().enumerate();
    let tasks = lanes.map(|(lane, blinding)| BlindTask { key: &keys[lane % 2], random: &operands[lane % 2], blinding });
    blind(&mut tasks.collect::<Vec<_>>());
    blindings
}

fn private_batch(keys: &[PrivateKey; 2], blindings: &mut [Blinding; LANES], inputs: &[Vec<u8>; 2], outputs: &mut [Vec<u8>]) {
    let mut tasks: Vec<_> = outputs
        .iter_mut()
        .zip(blindings)
        .enumerate()
        .map(|(lane, (output, blinding))| PrivateTask { key: &keys[lane % 2], blinding, input: &inputs[lane % 2], output, verified: false })
        .collect();
    private(&mut tasks);
    assert!(tasks.iter().all(|task| task.verified));
}

/// A batch alternates between two keys, as OpenSSL does.
fn private_row(openssl: &'static OpenSsl, bits: usize) -> Row {
    let theirs = [openssl.generate_rsa(bits), openssl.generate_rsa(bits)];
    let keys = std::rc::Rc::new(theirs.map(private_key));
    let inputs = operands(bits);
    let mut functions = theirs.map(|key| key.rsa(true));
    let mut outputs = vec![vec![0; bits / 8]; LANES];
    let mut hidden = blindings(&keys, &inputs);
    private_batch(&keys, &mut hidden, &inputs, &mut outputs);
    let mut output = vec![0; bits / 8];
    for lane in 0..2 {
        functions[lane](&inputs[lane], &mut output);
        assert_eq!(output, outputs[lane], "OpenSSL computes something else");
    }
    let k = half(bits);
    let windows = (bits as u64 / 2).div_ceil(5);
    let power = (windows - 1) * (5 * square(k) + product(k)) + 15 * (square(k) + product(k)) + 4 * product(k);
    let check = 2 * product(2 * k) + 16 * square(2 * k);
    let blinding = 2 * product(2 * k) + 2 * square(2 * k);
    let mut lone_hidden = blindings(&keys, &inputs);
    let (batch_inputs, lone_inputs, batch_keys) = (inputs.clone(), inputs.clone(), keys.clone());
    let mut lone_outputs = outputs[..1].to_vec();
    let mut next = 0;
    Row {
        batch: Box::new(move || private_batch(&batch_keys, &mut hidden, &batch_inputs, &mut outputs)),
        lone: Box::new(move || private_batch(&keys, &mut lone_hidden, &lone_inputs, &mut lone_outputs)),
        openssl: Box::new(move || {
            next = 1 - next;
            functions[next](&inputs[next], &mut output);
        }),
        products: 2 * power + check + blinding,
    }
}

fn public_batch(key: &PublicKey, input: &[u8], outputs: &mut [Vec<u8>]) {
    let mut tasks: Vec<_> = outputs.iter_mut().map(|output| PublicTask { key, input, output }).collect();
    public(&mut tasks);
}

/// With the exponent 65537.
fn public_row(openssl: &'static OpenSsl, bits: usize) -> Row {
    let theirs = openssl.generate_rsa(bits);
    let key = std::rc::Rc::new(PublicKey::new(&theirs.number("n"), &theirs.number("e")).expect("OpenSSL's keys are good"));
    let [input, _] = operands(bits);
    let mut function = theirs.rsa(false);
    let mut outputs = vec![vec![0; bits / 8]; LANES];
    public_batch(&key, &input, &mut outputs);
    let mut output = vec![0; bits / 8];
    function(&input, &mut output);
    assert_eq!(output, outputs[0], "OpenSSL computes something else");
    let (batch_input, lone_input, batch_key) = (input.clone(), input.clone(), key.clone());
    let mut lone_outputs = outputs[..1].to_vec();
    Row {
        batch: Box::new(move || public_batch(&batch_key, &batch_input, &mut outputs)),
        lone: Box::new(move || public_batch(&key, &lone_input, &mut lone_outputs)),
        openssl: Box::new(move || function(&input, &mut output)),
        products: 2 * product(2 * half(bits)) + 16 * square(2 * half(bits)),
    }
}
