//! Code that leaks, as code should not: the test must find it.

use super::{Planned, Random, Subject};
use std::hint::black_box;

pub(crate) fn subjects() -> Vec<Planned> {
    vec![
        Planned { name: "control: power", leaks: true, make: || Box::new(Power { exponent: [0; 32] }) },
        Planned { name: "control: comparison", leaks: true, make: || Box::new(Comparison { guess: [0; 32] }) },
    ]
}

/// Square and multiply that multiplies only where the exponent's bit is set.
struct Power {
    exponent: [u8; 32],
}

impl Subject for Power {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        random.fill(&mut self.exponent, fixed, &[1; 32]);
    }

    fn run(&mut self) {
        const MODULUS: u128 = (1 << 61) - 1;
        let mut power: u128 = 3;
        for byte in self.exponent {
            for bit in 0..8 {
                power = power * power % MODULUS;
                if byte >> bit & 1 == 1 {
                    power = power * 3 % MODULUS;
                }
            }
        }
        black_box(power);
    }
}

/// A comparison that stops at the first difference: the fixed class is equal to the last byte.
struct Comparison {
    guess: [u8; 32],
}

impl Subject for Comparison {
    fn prepare(&mut self, fixed: bool, random: &mut Random) {
        random.fill(&mut self.guess, fixed, &[0; 32]);
    }

    fn run(&mut self) {
        let secret = black_box([0u8; 32]);
        let mut equal = true;
        for (guess, secret) in black_box(&self.guess).iter().zip(secret) {
            if *guess != secret {
                equal = false;
                break;
            }
        }
        black_box(equal);
    }
}
