//! A deterministic mutator: the same seed, the same inputs, on every machine.

use crate::Target;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Longest input that mutation makes.
const INPUT_BYTES_MAX: usize = 4096;

/// xorshift64*; good enough to choose bytes, and the same everywhere.
pub struct Random(u64);

impl Random {
    /// From a seed; zero would stay zero, so it is taken for another number.
    pub fn new(seed: u64) -> Self {
        Self(if seed == 0 { 0x9e37_79b9_7f4a_7c15 } else { seed })
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }
}

/// An input on which a target panicked.
#[derive(Debug)]
pub struct Crash {
    /// The bytes.
    pub input: Vec<u8>,
    /// Which iteration it was.
    pub iteration: u64,
}

/// The seed in `BYWASH_SEED`, else one that is always the same.
///
/// # Panics
/// If the variable is set to something that is no number.
pub fn seed_from_env() -> u64 {
    let seed = std::env::var("BYWASH_SEED").ok();
    seed.map_or(1, |text| text.parse().unwrap_or_else(|_| panic!("BYWASH_SEED={text} is no number")))
}

/// Runs the target on its seeds and then on mutated ones.
///
/// # Errors
/// [`Crash`]: the first input on which it panicked.
pub fn run(target: Target, seeds: &[Vec<u8>], iterations: u64, seed: u64) -> Result<(), Crash> {
    let mut random = Random::new(seed);
    for iteration in 0..iterations + seeds.len() as u64 {
        let input = match seeds.get(iteration as usize) {
            Some(input) => input.clone(),
            None => mutate(seeds, &mut random),
        };
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            return Err(Crash { input, iteration });
        }
    }
    Ok(())
}

/// One of the seeds (or nothing), changed in one to eight places.
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = if seeds.is_empty() { Vec::new() } else { seeds[random.below(seeds.len())].clone() };
    for _ in 0..=random.below(8) {
        change(&mut bytes, seeds, random);
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const EDGES: [u32; 8] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let at = random.below(bytes.len() + 1);
    match random.below(7) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.number() as u8,
        2 => bytes.insert(at, random.number() as u8),
        3 if at < bytes.len() => drop(bytes.drain(at..at + 1 + random.below(bytes.len() - at))),
        4 => {
            let word = EDGES[random.below(EDGES.len())].to_le_bytes();
            bytes.iter_mut().skip(at).zip(word).for_each(|(byte, new)| *byte = new);
        }
        5 => {
            let repeated = bytes[at..bytes.len().min(at + 16)].to_vec();
            bytes.splice(at..at, repeated);
        }
        _ if !seeds.is_empty() => {
            let other = &seeds[random.below(seeds.len())];
            bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
        }
        _ => bytes.push(random.number() as u8),
    }
}
