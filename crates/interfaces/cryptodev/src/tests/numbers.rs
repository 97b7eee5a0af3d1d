//! Numbers through `CIOCKEY`.

use crate::testing::{Ranges, device};
use crate::{Answer, Errno};
use bywash_cryptodev_abi::{CRK_MAXPARAM, freebsd, linux::*};

/// A request with these numbers, little-endian, and room for a result of so many bytes; what it answers, and what it wrote.
fn ask(crk_op: u32, numbers: &[&[u8]], room: usize) -> Result<Vec<u8>, Errno> {
    let (device, memory) = (device(), Ranges::default());
    let result = memory.put(&vec![0; room + 1]);
    let mut crk_param = [CrParam::default(); CRK_MAXPARAM];
    for (parameter, number) in crk_param.iter_mut().zip(numbers) {
        *parameter = CrParam { crp_p: memory.put(number), crp_nbits: 8 * number.len() as u32 };
    }
    crk_param[numbers.len()] = CrParam { crp_p: result, crp_nbits: 8 * room as u32 };
    let asked = CryptKop { crk_op, crk_status: 7, crk_iparams: numbers.len() as u16, crk_oparams: 1, crk_param, ..CryptKop::default() };
    let argument = memory.put_struct(&asked);
    assert_eq!(device.request(CIOCKEY, argument, &memory)?, Answer::Value(0));
    assert_eq!(memory.get_struct::<CryptKop>(argument).crk_status, 0);
    let mut written = memory.get(result, room + 1);
    assert_eq!(written.pop(), Some(0), "nothing is written behind the result");
    Ok(written)
}

#[test]
fn powers_by_every_way() {
    // 4^13 mod 497 is 445.
    assert_eq!(ask(CRK_MOD_EXP, &[&[4], &[13], &[0xF1, 0x01]], 2), Ok(vec![0xBD, 0x01]));
    assert_eq!(ask(CRK_MOD_EXP, &[&[4, 0, 0], &[13, 0], &[0xF1, 0x01, 0]], 4), Ok(vec![0xBD, 0x01, 0, 0]));
    // 5^13 mod 77 is 26: p, q, base, dp, dq, qinv.
    assert_eq!(ask(CRK_MOD_EXP_CRT, &[&[11], &[7], &[5], &[3], &[1], &[8]], 1), Ok(vec![26]));
    // The private key, the peer's public value, the modulus: 4^13 again.
    assert_eq!(ask(CRK_DH_COMPUTE_KEY, &[&[13], &[4], &[0xF1, 0x01]], 16).map(|key| key[..2].to_vec()), Ok(vec![0xBD, 0x01]));
}

#[test]
fn diffie_hellman_agrees() {
    // The Mersenne prime 2^127 - 1: x = 3^a, y = 3^b, and each side's secret.
    let modulus = &[[0xFF; 15].as_slice(), &[0x7F]].concat()[..];
    let (a, b) = ([0x17u8; 16].as_slice(), [0x2B; 16].as_slice());
    let public = |private| ask(CRK_MOD_EXP, &[&[3], private, modulus], 16).unwrap();
    let secret = |private, public: &[u8]| ask(CRK_DH_COMPUTE_KEY, &[private, public, modulus], 16).unwrap();
    assert_eq!(secret(a, &public(b)), secret(b, &public(a)));
    assert_ne!(secret(a, &public(b)), vec![0; 16]);
}

#[test]
fn what_cannot_be_computed_is_refused() {
    let invalid = Err(Errno::EINVAL);
    assert_eq!(ask(CRK_MOD_EXP, &[&[4], &[13], &[8]], 2), invalid, "an even modulus");
    assert_eq!(ask(CRK_MOD_EXP, &[&[4], &[13]], 2), invalid, "two numbers");
    assert_eq!(ask(CRK_MOD_EXP, &[&[4], &[13], &[0xF1, 0x01]], 1), invalid, "no room");
    assert_eq!(ask(CRK_MOD_EXP, &[&[4], &[13], &[1; 1025]], 1025), invalid, "more than 8192 bits");
    assert_eq!(ask(CRK_MOD_EXP_CRT, &[&[11], &[7], &[5], &[3], &[1], &[9]], 1), invalid, "another qinv");
    assert_eq!(ask(99, &[&[4], &[13], &[7]], 1), invalid, "no operation");
    for public in [&[][..], &[0], &[1], &[0xF0, 0x01], &[0xF1, 0x01], &[0, 0, 1]] {
        assert_eq!(ask(CRK_DH_COMPUTE_KEY, &[&[13], public, &[0xF1, 0x01]], 2), invalid, "{public:?}");
    }
}

#[test]
fn bad_pointers_are_faults() {
    let (device, memory) = (device(), Ranges::default());
    assert_eq!(device.request(CIOCKEY, 0, &memory), Err(Errno::EFAULT));
    let number = CrParam { crp_p: memory.put(&[7]), crp_nbits: 8 };
    for broken in 0..4 {
        let mut crk_param = [CrParam::default(); CRK_MAXPARAM];
        crk_param[..4].fill(number);
        crk_param[broken].crp_p = 0;
        let asked = CryptKop { crk_op: CRK_MOD_EXP, crk_iparams: 3, crk_oparams: 1, crk_param, ..CryptKop::default() };
        assert_eq!(device.request(CIOCKEY, memory.put_struct(&asked), &memory), Err(Errno::EFAULT), "parameter {broken}");
    }
}

#[test]
fn both_dialects_say_what_is_there() {
    let (device, memory) = (device(), Ranges::default());
    for request in [CIOCASYMFEAT, freebsd::CIOCASYMFEAT] {
        let features = memory.put(&[0; 4]);
        device.request(request, features, &memory).unwrap();
        assert_eq!(
            memory.get(features, 4),
            (CRF_MOD_EXP | CRF_MOD_EXP_CRT | CRF_DSA_SIGN | CRF_DSA_VERIFY | CRF_DH_COMPUTE_KEY).to_ne_bytes()
        );
    }
}
