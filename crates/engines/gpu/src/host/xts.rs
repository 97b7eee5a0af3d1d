//! Tweaks of XTS (IEEE 1619-2018 s5.2), and the end of a data unit whose last block is stolen from (s5.3.2).

use super::aes::{Block, Schedule};

/// A tweak, little-endian.
pub(crate) type Tweak = u128;

/// Blocks that share one tweak in the control buffer; `kernels/record.h` has it as eight blocks for each of 32 lanes.
pub(crate) const GROUP: usize = 256;

/// The tweak `blocks` further on, at most 64.
fn shifted(tweak: Tweak, blocks: u32) -> Tweak {
    if blocks == 0 {
        return tweak;
    }
    let carry = tweak >> (128 - blocks);
    tweak << blocks ^ carry ^ carry << 1 ^ carry << 2 ^ carry << 7
}

/// The tweak so many blocks further on.
pub(crate) fn advance(tweak: Tweak, blocks: usize) -> Tweak {
    let whole = (0..blocks / 64).fold(tweak, |tweak, _| shifted(tweak, 64));
    shifted(whole, (blocks % 64) as u32)
}

fn exclusive_or(block: Block, tweak: Tweak) -> Block {
    (u128::from_le_bytes(block) ^ tweak).to_le_bytes()
}

/// The last whole block and the part of one after it, 17 to 31 bytes, under the tweak of that whole block.
pub(crate) fn steal(schedule: &Schedule, encrypts: bool, tweak: Tweak, input: &[u8], output: &mut [u8]) {
    let next = shifted(tweak, 1);
    let cipher = |block: Block, tweak: Tweak| {
        let block = exclusive_or(block, tweak);
        exclusive_or(if encrypts { schedule.encrypt(block) } else { schedule.decrypt(block) }, tweak)
    };
    let (first, second) = if encrypts { (tweak, next) } else { (next, tweak) };
    let mut whole = [0; 16];
    whole.copy_from_slice(&input[..16]);
    let stolen = cipher(whole, first);
    let part = input.len() - 16;
    let mut filled = stolen;
    filled[..part].copy_from_slice(&input[16..]);
    output[..16].copy_from_slice(&cipher(filled, second));
    output[16..16 + part].copy_from_slice(&stolen[..part]);
}
