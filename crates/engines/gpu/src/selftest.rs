//! One known answer of each kernel when a device is opened: one that computes wrongly, be it by its driver or its compiler, is refused before it has a caller's text.
//!
//! The answers are the host's (`host`), whose own are checked against the standards' examples. The text is long enough for counters that carry through all their words, for two groups
//! of tweaks and for sums of three levels.

use crate::engine::GpuEngine;
use crate::host::aes::{Block, Schedule};
use crate::host::{chacha, ghash, poly1305, xts};
use crate::message::bits;
use bywash_core::{Algorithm, Data, Direction, Engine, Key, Operation, SessionParams};

const AAD: &[u8] = b"associated data, twenty-nine.";

/// Enciphers and deciphers with every kernel.
///
/// # Errors
/// What computes wrongly, or how the device failed.
pub(crate) fn check(engine: &GpuEngine) -> Result<(), String> {
    for algorithm in [Algorithm::Aes256Ctr, Algorithm::Aes128Gcm, Algorithm::Aes128Xts, Algorithm::ChaCha20Poly1305] {
        let wrong = |reason: &dyn core::fmt::Display| format!("its self-test of {algorithm} failed: {reason}");
        let key: Vec<u8> = (0..algorithm.key_lengths().0 as u8).collect();
        let mut iv = vec![0xff; algorithm.usual_iv_len()];
        iv.last_mut().into_iter().for_each(|last| *last = 0xf0);
        let text: Vec<u8> = (0..if algorithm.is_xts() { 4992 } else { 5000 }).map(|i: u32| ((i * i) >> 5) as u8).collect();
        let (cipher, expected) = answer(algorithm, &key, &iv, &text);

        let params = SessionParams::new(algorithm, Key::Symmetric(key.as_slice().into())).map_err(|error| wrong(&error))?;
        let keyed = engine.open(&params).map_err(|error| wrong(&error))?;
        let (mut buffer, mut tag) = (text.clone(), vec![0; params.tag_len()]);
        let aad = if tag.is_empty() { &[] } else { AAD };
        for (direction, result) in [(Direction::Encrypt, &cipher), (Direction::Decrypt, &text)] {
            let operation = &mut Operation { direction, iv: &iv, aad, data: Data::InPlace(&mut buffer), tag: &mut tag };
            keyed.run(operation).map_err(|error| wrong(&error))?;
            if buffer != *result || tag != expected[..tag.len()] {
                return Err(wrong(&"the result is not the host's; the device or its driver computes wrongly"));
            }
        }
    }
    Ok(())
}

/// The ciphertext and the tag, as the host computes them.
fn answer(algorithm: Algorithm, key: &[u8], iv: &[u8], text: &[u8]) -> (Vec<u8>, Block) {
    let mut result = text.to_vec();
    let add = |to: &mut [u8], bytes: &[u8]| to.iter_mut().zip(bytes).for_each(|(to, byte)| *to ^= byte);
    let mut tag = [0; 16];
    match algorithm {
        Algorithm::Aes128Xts => {
            let (data, tweaks) = key.split_at(key.len() / 2);
            let data = Schedule::new(data);
            let mut first = [0; 16];
            first.copy_from_slice(iv);
            let mut tweak = u128::from_le_bytes(Schedule::new(tweaks).encrypt(first));
            for block in result.as_chunks_mut::<16>().0 {
                let masked = u128::from_le_bytes(*block) ^ tweak;
                *block = (u128::from_le_bytes(data.encrypt(masked.to_le_bytes())) ^ tweak).to_le_bytes();
                tweak = xts::advance(tweak, 1);
            }
        }
        Algorithm::ChaCha20Poly1305 => {
            let stream = |number: u32| chacha::block(&chacha::state(key, iv, number)).map(u32::to_le_bytes);
            (1..).zip(result.chunks_mut(64)).for_each(|(number, chunk)| add(chunk, stream(number).as_flattened()));
            let keys = stream(0);
            let half = |at: usize| keys[at..at + 4].iter().rev().fold(0, |sum, word| sum << 32 | u128::from(u32::from_le_bytes(*word)));
            let powers = poly1305::Powers::new(half(0));
            let lengths = (AAD.len() as u128 | (text.len() as u128) << 64).to_le_bytes();
            let sum = [AAD, &result, &lengths].into_iter().fold(poly1305::Number::default(), |sum, bytes| powers.hash(sum, bytes));
            tag = sum.tag(half(4));
        }
        _ => {
            let schedule = Schedule::new(key);
            // That of GCM begins with 1, for the tag's mask; here it does not reach the end of its 32 bits.
            let is_gcm = algorithm == Algorithm::Aes128Gcm;
            let mut first = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
            first[..iv.len()].copy_from_slice(iv);
            let first = u128::from_be_bytes(first);
            let blocks = if is_gcm { 1.. } else { 0.. };
            blocks
                .zip(result.chunks_mut(16))
                .for_each(|(number, chunk)| add(chunk, &schedule.encrypt(first.wrapping_add(number).to_be_bytes())));
            if is_gcm {
                let powers = ghash::Powers::new(ghash::element(&schedule.encrypt([0; 16])));
                let sum = [AAD, &result, &bits(AAD.len(), text.len())].into_iter().fold([0; 4], |sum, bytes| powers.hash(sum, bytes));
                tag = schedule.encrypt(first.to_be_bytes());
                add(&mut tag, &ghash::block(sum));
            }
        }
    }
    (result, tag)
}
