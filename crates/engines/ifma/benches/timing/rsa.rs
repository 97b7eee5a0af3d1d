//! RSA with 2048 bits: secret keys, and secret inputs. Blindings are of 1, which hides nothing.

use crate::openssl::OpenSsl;
use crate::{Planned, Random, Subject};
use bywash_ifma::LANES;
use bywash_ifma::rsa::{BlindTask, Blinding, PrivateKey, PrivateParts, PrivateTask, blind, private};
use std::hint::black_box;

const BITS: usize = 2048;
const BYTES: usize = BITS / 8;
/// Keys of the class of random keys.
const KEYS: usize = 16;

pub(crate) fn subjects() -> Vec<Planned> {
    vec![
        Planned { name: "rsa-2048 load", leaks: false, make: || Box::new(Load::new()) },
        Planned { name: "rsa-2048 key", leaks: false, make: || Box::new(Keys::new()) },
        Planned { name: "rsa-2048 input", leaks: false, make: || Box::new(Inputs::new()) },
    ]
}

/// A key's numbers, in the order of [`PrivateParts`]; those below a prime as long as a prime.
fn parts() -> [Vec<u8>; 7] {
    let key = OpenSsl::load().generate_rsa(BITS);
    ["n", "e", "rsa-factor1", "rsa-factor2", "rsa-exponent1", "rsa-exponent2", "rsa-coefficient1"].map(|name| {
        let number = key.number(name);
        let zeros = if name == "n" || name == "e" { 0 } else { BYTES / 2 - number.len() };
        [vec![0; zeros], number].concat()
    })
}

fn private_key([modulus, public_exponent, prime1, prime2, exponent1, exponent2, coefficient]: &[Vec<u8>; 7]) -> PrivateKey {
    let parts = PrivateParts { modulus, public_exponent, prime1, prime2, exponent1, exponent2, coefficient };
    PrivateKey::new(&parts).expect("OpenSSL's keys are good")
}

/// Blindings of 1.
fn blindings(key: &PrivateKey) -> [Blinding; LANES] {
    let mut one = [0; BYTES];
    one[BYTES - 1] = 1;
    let mut blindings: [Blinding; LANES] = Default::default();
    blind(&mut blindings.each_mut().map(|blinding| BlindTask { key, random: &one, blinding }));
    blindings
}

fn run(key: &PrivateKey, blindings: &mut [Blinding; LANES], inputs: &[[u8; BYTES]; LANES], outputs: &mut [[u8; BYTES]; LANES]) {
    let lanes = inputs.iter().zip(outputs).zip(blindings);
    let mut tasks: Vec<_> =
        lanes.map(|((input, output), blinding)| PrivateTask { key, blinding, input, output, verified: false }).collect();
    private(black_box(&mut tasks));
    assert!(tasks.iter().all(|task| task.verified));
}

/// Making a key ready for the kernels: one key always, against another each time. Its numbers are copied to the same place first.
struct Load {
    parts: Vec<[Vec<u8>; 7]>,
    chosen: [Vec<u8>; 7],
}

impl Load {
    fn new() -> Self {
        let parts: Vec<_> = (0..=KEYS).map(|_| parts()).collect();
        Self { chosen: parts[0].clone(), parts }
    }
}

impl Subject for Load {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        let other = 1 + random.word() as usize % KEYS;
        let parts = &self.parts[other * usize::from(!fixed)];
        for (chosen, part) in self.chosen.iter_mut().zip(parts) {
            chosen.copy_from_slice(part);
        }
    }

    fn run(&mut self) {
        black_box(private_key(black_box(&self.chosen)));
    }
}

/// One key always, against another each time. The key is made anew for every run, so that it lies where the last one lay.
struct Keys {
    parts: Vec<[Vec<u8>; 7]>,
    key: Vec<PrivateKey>,
    blindings: [Blinding; LANES],
    outputs: [[u8; BYTES]; LANES],
}

impl Keys {
    fn new() -> Self {
        Self {
            parts: (0..=KEYS).map(|_| parts()).collect(),
            key: Vec::with_capacity(1),
            blindings: Default::default(),
            outputs: [[0; BYTES]; LANES],
        }
    }
}

impl Subject for Keys {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        let other = 1 + random.word() as usize % KEYS;
        self.key.clear();
        self.key.push(private_key(&self.parts[other * usize::from(!fixed)]));
        self.blindings = blindings(&self.key[0]);
    }

    fn run(&mut self) {
        run(&self.key[0], &mut self.blindings, &[[0x55; BYTES]; LANES], &mut self.outputs);
    }
}

/// 1 always, whose powers are all 1, against random inputs.
struct Inputs {
    key: PrivateKey,
    blindings: [Blinding; LANES],
    inputs: [[u8; BYTES]; LANES],
    outputs: [[u8; BYTES]; LANES],
}

impl Inputs {
    fn new() -> Self {
        let key = private_key(&parts());
        Self { blindings: blindings(&key), key, inputs: [[0; BYTES]; LANES], outputs: [[0; BYTES]; LANES] }
    }
}

impl Subject for Inputs {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        let mut one = [0; BYTES];
        one[BYTES - 1] = 1;
        random.fill(self.inputs.as_flattened_mut(), fixed, [one; LANES].as_flattened());
        for input in &mut self.inputs {
            input[0] &= 0x7F;
        }
    }

    fn run(&mut self) {
        run(&self.key, &mut self.blindings, &self.inputs, &mut self.outputs);
    }
}
