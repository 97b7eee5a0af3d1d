//! The arguments of `CIOCKEY`: numbers that fit together mostly, and others.

use crate::cryptodev::{Arena, Choices, address, bytes_of, word};
use bywash_cryptodev::Memory;
use bywash_cryptodev_abi::CRK_MAXPARAM;
use bywash_cryptodev_abi::linux::{CRK_DH_COMPUTE_KEY, CRK_DSA_SIGN, CRK_DSA_VERIFY, CRK_MOD_EXP, CRK_MOD_EXP_CRT, CrParam, CryptKop};

/// Parameters by which an operation computes what it should: 4^13 mod 497, and 5^13 mod 77 by its parts (p, q, base, dp, dq, qinv). Little-endian.
const POWER: [&[u8]; 3] = [&[4], &[13], &[0xF1, 1]];
const PARTS: [&[u8]; 6] = [&[11], &[7], &[5], &[3], &[1], &[8]];
const SECRET: [&[u8]; 3] = [&[13], &[4], &[0xF1, 1]];
/// A group of DSA with the largest prime q of 160 bits and the least p for it, made for this test: p, q, g. Then a private key, its public one, and a signature (r, s) of [`DIGEST`].
#[rustfmt::skip]
const GROUP: [&[u8]; 3] = [&[0x97, 0xaf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xb5, 0x01], &[0xd1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[0x5b, 0x45, 0xdf, 0x6f, 0x09, 0xd8, 0x56, 0xc2, 0x1f, 0x92, 0x90, 0x6b, 0x88, 0x3a, 0xca, 0x02, 0x62, 0x6a, 0x7f, 0xa9, 0x1b]];
const DIGEST: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
const SIGN: [&[u8]; 5] = [DIGEST, GROUP[0], GROUP[1], GROUP[2], &[0x67, 0x45, 0x23, 0x01]];
#[rustfmt::skip]
const VERIFY: [&[u8]; 7] = [
    DIGEST, GROUP[0], GROUP[1], GROUP[2], &[0x84, 0x09, 0x7b, 0xfe, 0x0a, 0x5a, 0x59, 0x11, 0x70, 0x49, 0x32, 0x08, 0x73, 0xb4, 0x31, 0x65, 0x4d, 0x52, 0x01, 0xec, 0x1c, 0x01],
    &[0x9f, 0xae, 0xc5, 0xdb, 0x36, 0x6b, 0xfc, 0x86, 0xb0, 0x40, 0xf5, 0x1a, 0x5f, 0x27, 0xbf, 0xc1, 0xf2, 0x14, 0xf2, 0xee], &[0xa3, 0x9e, 0x37, 0xe7, 0x00, 0xd7, 0xfd, 0xb7, 0x2c, 0x13, 0xc5, 0x7e, 0x3c, 0x40, 0x41, 0x31, 0xef, 0x38, 0xf3, 0x17],
];

/// An argument, with its numbers put into memory. Long ones are rare: a power of 8192 bits takes a tenth of a second.
pub(crate) fn argument(arena: &Arena, choices: &mut dyn Choices) -> Option<Vec<u8>> {
    let (which, odd) = (choices.byte()?, choices.byte()?);
    let (crk_op, right): (u32, &[&[u8]]) = match which % 16 {
        0..=3 => (CRK_MOD_EXP, &POWER),
        4..=7 => (CRK_MOD_EXP_CRT, &PARTS),
        8..=10 => (CRK_DH_COMPUTE_KEY, &SECRET),
        11 | 12 => (CRK_DSA_SIGN, &SIGN),
        13 => (CRK_DSA_VERIFY, &VERIFY),
        _ => (u32::from(choices.byte()? % 8), &POWER),
    };
    let mut crk_param = [CrParam::default(); CRK_MAXPARAM];
    let outputs = match crk_op {
        CRK_DSA_SIGN => 2,
        CRK_DSA_VERIFY => 0,
        _ => 1,
    };
    for (index, parameter) in crk_param.iter_mut().take(right.len() + usize::from(outputs)).enumerate() {
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
    let crk_oparams = if strange { u16::from(choices.byte()? % 3) } else { outputs };
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
