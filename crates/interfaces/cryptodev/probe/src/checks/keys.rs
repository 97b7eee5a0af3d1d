//! `CIOCKEY`: powers of large numbers, which Linux's module declares and never had.

mod dsa;

use crate::pages::Pages;
use crate::port::{at, out};
use crate::{Check, Handle, Outcome, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::{CRK_MAXPARAM, freebsd, linux::*};

const HOW: &str = "the module declares CIOCKEY and answers EINVAL; CIOCASYMFEAT of the module says so";
/// Longest number in bytes.
const LONGEST: usize = 1024;
/// 4^13 mod 497 is 445 (little-endian, as all numbers of this interface).
const SMALL: [&[u8]; 3] = [&[4], &[13], &[0xF1, 1]];
const SMALL_POWER: [u8; 2] = [0xBD, 1];
/// 5^13 mod 77 is 26: p, q, base, dp, dq, qinv.
const PARTS: [&[u8]; 6] = [&[11], &[7], &[5], &[3], &[1], &[8]];

/// The prime of 2048 bits of RFC 3526 s3.
#[rustfmt::skip]
const GROUP_14: &str = "\
    ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6d\
    f25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3d\
    c2007cb8a163bf0598da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb9ed529077096966d670c354e4abc9804f1746c08\
    ca18217c32905e462e36ce3be39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf6955817183995497cea956ae515d2261898fa0510\
    15728e5a8aacaa68ffffffffffffffff";
/// What becomes of the bytes from 5 on, to the power of those from 3 on, both of 256 bytes and little-endian, by that prime; as Python's `pow` has it.
#[rustfmt::skip]
const POWER_2048: &str = "\
    f3087e8e6b5d91b187afce52ade55c30742ab80b269e4409edeb2f567370815caa15e3c246ab4ca06dd60ab689a1d07ef890f1f7c7c49e5ae275af27\
    9b3b327f1d9c6759fd3b4e6601a95a820a1c0ecaacfb6569f33b0f7d5eee406d25d55ecab6925af744e3d33d13f8fe1585bbb00ce44899539c6773ed\
    80bfda32e0bcafd78c5297ebad130a74ba052c6d6c7a662dfd0ac6706563a7bbb5e91eb2d9d6ae160478443d4e3738436fe3c38b07d8dec68ec212bf\
    60d7effa788c3ffb9de649c7a8c420291aa0e93d92c1878e1986f16234edc74b0cfb25a71e1e70341023665f7864d26fa58a4281fc75a216f8994dec\
    b5f6d7d826655680a6fe4c444afdf370";
/// A prime of 512 bits, made for this test.
#[rustfmt::skip]
const P: &str = "\
    f85d5729e8dc4fbe854a0ed73ddcb2fd39881f6381074af6fbcd13207d3064ffcc4ba40cc926948f1d489ba16fea003fd2c976e8f193769a25216ef7\
    420be381";
/// Another.
#[rustfmt::skip]
const Q: &str = "\
    ee29f0630164692f7e5f869c58dc1e94d9a357dc23a2f5197f20b1824af0df91221f815b17807bd7f687f28b63354460699868d1ff38c20c91bb15d3\
    5fc77049";
/// The inverse of 65537 modulo `P` - 1.
#[rustfmt::skip]
const DP: &str = "\
    9a8ff41ba7c7db74b49c7709ea7cbb832d57923929663177ed121db21d568db4471e57b481461a33ca44925df038cef8e923e9756449a208a1cce1b2\
    cc8e7b81";
/// The same modulo `Q` - 1.
#[rustfmt::skip]
const DQ: &str = "\
    ca3a1243ff0aa3c610284cc4b52f33487104a1b5eb0c93d1f28070399228b5ad26ac59ca5f4a59de2717887b92e1c80d959c34651bb1b613b62a857d\
    d5f62301";
/// The inverse of `Q` modulo `P`.
#[rustfmt::skip]
const QINV: &str = "\
    84950c6c8f29235b88a2a3af114f59111d63e630277053259b51a4cc7185e48cafb99ac64b1990e46c2e3fb3d4b706b9804e109da4f80933ae025ddf\
    74375c86";
/// `P` times `Q`.
#[rustfmt::skip]
const N: &str = "\
    e70f77337b5ce4c910294800fb834be5a4e1641d65fe57895e325df29811775a6b887c12e1b0cffc186dcb9a784a8428e21d5a58d5943586f8f595fc\
    b4b39160d08319d9679f5d3d82bdcdd0f252e5b3d6248111ccb253e7022baea391c3668cbf0b29dda8129c4e937970d3e5d43982a95acc4c9e67ac2b\
    e47caa64c1334fc9";

pub(crate) fn add(list: &mut Vec<Check>) {
    powers(list);
    parts(list);
    secrets(list);
    dsa::add(list);
    refusals(list);
    addresses(list);
}

fn check(list: &mut Vec<Check>, name: &str, run: impl Fn(&Handle<'_>) -> Outcome + 'static) {
    list.push(Check::new(format!("key/{name}"), move |port| run(&Handle::open(port)?)).deviating(HOW));
}

/// The argument for these numbers, and this place for the result.
fn argument(crk_op: u32, numbers: &[&[u8]], result: CrParam) -> CryptKop {
    let mut crk_param = [CrParam::default(); CRK_MAXPARAM];
    for (parameter, number) in crk_param.iter_mut().zip(numbers) {
        *parameter = CrParam { crp_p: at(number), crp_nbits: 8 * number.len() as u32 };
    }
    crk_param[numbers.len()] = result;
    CryptKop { crk_op, crk_status: 7, crk_iparams: numbers.len() as u16, crk_oparams: 1, crk_param, ..CryptKop::default() }
}

/// What is computed, in a place of so many bytes.
fn asked(device: &Handle<'_>, request: u32, crk_op: u32, numbers: &[&[u8]], room: usize) -> Result<Vec<u8>, i32> {
    let mut result = vec![0xEE; room + 1];
    let place = CrParam { crp_p: out(&mut result), crp_nbits: 8 * room as u32 };
    let mut asked = argument(crk_op, numbers, place);
    device.ask(request, &mut asked)?;
    let written = core::hint::black_box(&mut result);
    // A status that was left, or a byte too many, spoils the answer.
    if asked.crk_status != 0 || written.pop() != Some(0xEE) { Ok(Vec::new()) } else { Ok(result) }
}

fn power(device: &Handle<'_>, base: &[u8], exponent: &[u8], modulus: &[u8]) -> Result<Vec<u8>, i32> {
    asked(device, CIOCKEY, CRK_MOD_EXP, &[base, exponent, modulus], modulus.len())
}

/// A number of the vectors, little-endian.
fn number(digits: &str) -> Vec<u8> {
    unhex(digits).into_iter().rev().collect()
}

fn powers(list: &mut Vec<Check>) {
    check(list, "power/small", |device| same_bytes(&SMALL_POWER, &power(device, SMALL[0], SMALL[1], SMALL[2])?));
    check(list, "power/2048-bits", |device| {
        same_bytes(&number(POWER_2048), &power(device, &bytes(256, 5), &bytes(256, 3), &number(GROUP_14))?)
    });
    check(list, "power/base-above-the-modulus", |device| {
        let above = (4u16 + 497 * 100).to_le_bytes();
        same_bytes(&SMALL_POWER, &power(device, &above, SMALL[1], SMALL[2])?)
    });
    check(list, "power/zeros-in-front", |device| {
        same_bytes(&SMALL_POWER, &asked(device, CIOCKEY, CRK_MOD_EXP, &[&[4, 0, 0], &[13, 0], &[0xF1, 1, 0, 0]], 2)?)
    });
    check(list, "power/exponent-0", |device| same_bytes(&[1, 0], &power(device, SMALL[0], &[0], SMALL[2])?));
    check(list, "power/base-0", |device| same_bytes(&[0, 0], &power(device, &[0], SMALL[1], SMALL[2])?));
    check(list, "power/modulus-1", |device| same_bytes(&[0], &power(device, SMALL[0], SMALL[1], &[1])?));
    check(list, "power/8192-bits", |device| {
        // The square of 2^4096 is 2^8192, which is 1 by the modulus 2^8192 - 1.
        let mut base = vec![0; 512];
        base.push(1);
        let mut one = vec![0; LONGEST];
        one[0] = 1;
        same_bytes(&one, &power(device, &base, &[2], &[0xFF; LONGEST])?)
    });
    check(list, "power/more-room-than-the-modulus-has", |device| {
        let result = asked(device, CIOCKEY, CRK_MOD_EXP, &SMALL, 16)?;
        same_bytes(&SMALL_POWER, &result[..2])?;
        same(true, result[2..].iter().all(|byte| *byte == 0 || *byte == 0xEE))
    });
    check(list, "power/bits-that-are-no-whole-bytes", |device| {
        let mut result = [0xEE; 3];
        let mut asked = argument(CRK_MOD_EXP, &SMALL, CrParam { crp_p: out(&mut result), crp_nbits: 9 });
        asked.crk_param[0].crp_nbits = 3;
        asked.crk_param[2].crp_nbits = 9;
        device.ask(CIOCKEY, &mut asked)?;
        same_bytes(&[0xBD, 1, 0xEE], core::hint::black_box(&result))
    });
    check(list, "power/freebsd", |device| {
        for request in [freebsd::CIOCKEY, freebsd::CIOCKEY2] {
            same_bytes(&SMALL_POWER, &asked(device, request, CRK_MOD_EXP, &SMALL, 2)?)?;
        }
        Ok(())
    });
    check(list, "features", |device| {
        for request in [CIOCASYMFEAT, freebsd::CIOCASYMFEAT] {
            let mut features = u32::MAX;
            device.ask(request, &mut features)?;
            same(CRF_MOD_EXP | CRF_MOD_EXP_CRT | CRF_DSA_SIGN | CRF_DSA_VERIFY | CRF_DH_COMPUTE_KEY, features)?;
        }
        Ok(())
    });
}

fn parts(list: &mut Vec<Check>) {
    check(list, "parts/small", |device| same_bytes(&[26], &asked(device, CIOCKEY, CRK_MOD_EXP_CRT, &PARTS, 1)?));
    check(list, "parts/1024-bits-are-undone-by-the-public-exponent", |device| {
        let parts = [P, Q, DP, DQ, QINV].map(number);
        let (base, modulus) = ([&bytes(127, 5)[..], &[1]].concat(), number(N));
        let [p, q, dp, dq, qinv] = &parts;
        let signed = asked(device, CIOCKEY, CRK_MOD_EXP_CRT, &[p, q, &base, dp, dq, qinv], 128)?;
        same(true, signed != base)?;
        same_bytes(&base, &power(device, &signed, &[1, 0, 1], &modulus)?)
    });
    for (index, name) in [(0, "p"), (1, "q"), (3, "dp"), (4, "dq"), (5, "qinv")] {
        check(list, &format!("parts/another-{name}"), move |device| {
            let mut parts = [P, Q, P, DP, DQ, QINV].map(number);
            parts[2] = bytes(128, 1);
            parts[index][0] ^= 2;
            let numbers: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
            refused(libc::EINVAL, asked(device, CIOCKEY, CRK_MOD_EXP_CRT, &numbers, 128))
        });
    }
    check(list, "parts/lengths-differ", |device| {
        let mut numbers = PARTS;
        let long = [&[0x0B; 9][..]].concat();
        numbers[0] = &long;
        refused(libc::EINVAL, asked(device, CIOCKEY, CRK_MOD_EXP_CRT, &numbers, 16))
    });
}

fn secrets(list: &mut Vec<Check>) {
    let secret = |device: &Handle<'_>, private: &[u8], public: &[u8], modulus: &[u8]| {
        asked(device, CIOCKEY, CRK_DH_COMPUTE_KEY, &[private, public, modulus], modulus.len())
    };
    check(list, "secret/small", move |device| same_bytes(&SMALL_POWER, &secret(device, SMALL[1], SMALL[0], SMALL[2])?));
    check(list, "secret/2048-bits-agree", move |device| {
        let (modulus, alice, bob) = (number(GROUP_14), bytes(32, 3), bytes(32, 5));
        let (of_alice, of_bob) = (power(device, &[2], &alice, &modulus)?, power(device, &[2], &bob, &modulus)?);
        let agreed = secret(device, &alice, &of_bob, &modulus)?;
        same(256, agreed.len())?;
        same_bytes(&agreed, &secret(device, &bob, &of_alice, &modulus)?)
    });
    for (name, public) in [("0", [0, 0]), ("1", [1, 0]), ("modulus-less-1", [0xF0, 1]), ("modulus", [0xF1, 1]), ("more", [0xFF, 0xFF])] {
        check(list, &format!("secret/public-value-{name}"), move |device| {
            refused(libc::EINVAL, secret(device, SMALL[1], &public, SMALL[2]))
        });
    }
}

fn refusals(list: &mut Vec<Check>) {
    let mut with = |name: &str, errno: i32, crk_op: u32, numbers: &'static [&'static [u8]], room: usize| {
        check(list, &format!("refused/{name}"), move |device| refused(errno, asked(device, CIOCKEY, crk_op, numbers, room)));
    };
    with("modulus-0", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[13], &[0]], 2);
    with("modulus-without-bits", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[13], &[]], 2);
    with("modulus-even", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[13], &[0xF0, 1]], 2);
    with("prime-even", libc::EINVAL, CRK_MOD_EXP_CRT, &[&[12], &[7], &[5], &[3], &[1], &[8]], 1);
    with("prime-0", libc::EINVAL, CRK_MOD_EXP_CRT, &[&[11], &[0], &[5], &[3], &[1], &[8]], 1);
    with("no-room", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[13], &[0xF1, 1]], 1);
    with("too-few", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[13]], 2);
    with("too-many", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[13], &[0xF1, 1], &[1]], 2);
    with("parts-too-few", libc::EINVAL, CRK_MOD_EXP_CRT, &[&[11], &[7], &[5]], 1);
    with("base-too-long", libc::EINVAL, CRK_MOD_EXP, &[&[1; LONGEST + 1], &[13], &[0xF1, 1]], 2);
    with("exponent-too-long", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[1; LONGEST + 1], &[0xF1, 1]], 2);
    with("modulus-too-long", libc::EINVAL, CRK_MOD_EXP, &[&[4], &[13], &[1; LONGEST + 1]], LONGEST + 1);
    with("prime-too-long", libc::EINVAL, CRK_MOD_EXP_CRT, &[&[1; LONGEST / 2 + 1], &[7], &[5], &[3], &[1], &[8]], LONGEST);
    with("no-operation", libc::EINVAL, 5, &[&[4], &[13], &[0xF1, 1]], 2);
    with("dsa-one-place-alone", libc::EINVAL, CRK_DSA_SIGN, &[&[4], &[13], &[7], &[1], &[1]], 2);
    with("dsa-verification-with-a-place", libc::EINVAL, CRK_DSA_VERIFY, &[&[4], &[13], &[7], &[1], &[1], &[1], &[1]], 0);
    for (name, results) in [("no-result", 0), ("two-results", 2), ("65535-results", u16::MAX)] {
        check(list, &format!("refused/{name}"), move |device| {
            let asked = argument(CRK_MOD_EXP, &SMALL, CrParam::default());
            refused(libc::EINVAL, device.ask(CIOCKEY, &mut CryptKop { crk_oparams: results, ..asked }))
        });
    }
    check(list, "refused/a-number-of-4-gibibits", |device| {
        let mut asked = argument(CRK_MOD_EXP, &SMALL, CrParam::default());
        asked.crk_param[1].crp_nbits = u32::MAX;
        refused(libc::EINVAL, device.ask(CIOCKEY, &mut asked))
    });
}

fn addresses(list: &mut Vec<Check>) {
    for (name, address) in [("null", 0), ("nowhere", 16), ("kernel", 0xffff_8000_0000_0000), ("top", u64::MAX)] {
        check(list, &format!("address/argument-{name}"), move |device| refused(libc::EFAULT, device.ask_at(CIOCKEY, address)));
        for (index, number) in ["base", "exponent", "modulus", "result"].into_iter().enumerate() {
            check(list, &format!("address/{number}-{name}"), move |device| {
                let mut result = [0; 2];
                let mut asked = argument(CRK_MOD_EXP, &SMALL, CrParam { crp_p: out(&mut result), crp_nbits: 16 });
                asked.crk_param[index].crp_p = address;
                refused(libc::EFAULT, device.ask(CIOCKEY, &mut asked))
            });
        }
    }
    check(list, "address/number-at-the-end-of-a-page", |device| {
        let (mut pages, mut result) = (Pages::new(1), [0; 2]);
        pages.last(2).copy_from_slice(SMALL[2]);
        let mut asked = argument(CRK_MOD_EXP, &SMALL, CrParam { crp_p: out(&mut result), crp_nbits: 16 });
        asked.crk_param[2].crp_p = pages.end() - 2;
        device.ask(CIOCKEY, &mut asked)?;
        same_bytes(&SMALL_POWER, core::hint::black_box(&result))?;
        asked.crk_param[2].crp_p = pages.end() - 1;
        refused(libc::EFAULT, device.ask(CIOCKEY, &mut asked))
    });
    check(list, "address/result-read-only", |device| {
        let pages = Pages::new(1).read_only();
        let mut asked = argument(CRK_MOD_EXP, &SMALL, CrParam { crp_p: pages.start(), crp_nbits: 16 });
        refused(libc::EFAULT, device.ask(CIOCKEY, &mut asked))
    });
}
