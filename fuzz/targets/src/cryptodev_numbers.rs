//! The arguments of `CIOCKEY`: numbers that fit together mostly, and others.

use crate::cryptodev::{Arena, Choices, address, bytes_of, word};
use bywash_cryptodev::Memory;
use bywash_cryptodev_abi::CRK_MAXPARAM;
use bywash_cryptodev_abi::linux::{CRK_DH_COMPUTE_KEY, CRK_MOD_EXP, CRK_MOD_EXP_CRT, CrParam, CryptKop};

/// Parameters by which an operation computes what it should: 4^13 mod 497, and 5^13 mod 77 by its parts (p, q, base, dp, dq, qinv). Little-endian.
const POWER: [&[u8]; 3] = [&[4], &[13], &[0xF1, 1]];
const PARTS: [&[u8]; 6] = [&[11], &[7], &[5], &[3], &[1], &[8]];
const SECRET: [&[u8]; 3] = [&[13], &[4], &[0xF1, 1]];

/// An argument, with its numbers put into memory. Long ones are rare: a power of 8192 bits takes a tenth of a second.
pub(crate) fn argument(arena: &Arena, choices: &mut dyn Choices) -> Option<Vec<u8>> {
    let (which, odd) = (choices.byte()?, choices.byte()?);
    let (crk_op, right): (u32, &[&[u8]]) = match which % 16 {
        0..=4 => (CRK_MOD_EXP, &POWER),
        5..=9 => (CRK_MOD_EXP_CRT, &PARTS),
        10..=13 => (CRK_DH_COMPUTE_KEY, &SECRET),
        _ => (u32::from(choices.byte()? % 8), &POWER),
    };
    let mut crk_param = [CrParam::default(); CRK_MAXPARAM];
    for (index, parameter) in crk_param.iter_mut().take(right.len() + 1).enumerate() {
        parameter.crp_p = address(choices)?;
        parameter.crp_nbits = match right.get(index) {
            Some(number) if odd < 128 => {
                let _ = arena.write(parameter.crp_p, number);
                8 * number.len() as u32
            }
            _ => bits(choices)?,
        };
    }
    let strange = odd > 240;
    let crk_iparams = if strange { u16::from(choices.byte()? % 10) } else { right.len() as u16 };
    let crk_oparams = if strange { u16::from(choices.byte()? % 3) } else { 1 };
    Some(bytes_of(&CryptKop { crk_op, crk_iparams, crk_oparams, crk_param, ..CryptKop::default() }))
}

/// How long a number is.
fn bits(choices: &mut dyn Choices) -> Option<u32> {
    const EDGES: [u32; 8] = [0, 1, 7, 4096, 4097, 8192, 8193, u32::MAX];
    let (how, a) = (choices.byte()?, choices.byte()?);
    Some(match how {
        0..=31 => EDGES[usize::from(a) % EDGES.len()],
        32..=39 => word(choices)?,
        40..=63 => 16 * u32::from(a),
        _ => u32::from(a),
    })
}
