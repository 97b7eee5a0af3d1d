//! DSA: NIST's group and signature, and signatures of whoever answers.

use super::{LONGEST, check, number};
use crate::port::{Handle, at, out};
use crate::{Check, bytes, refused, same, same_bytes, unhex};
use bywash_cryptodev_abi::{CRK_MAXPARAM, linux::*};

/// NIST CAVP, FIPS 186-3 DSA, SigVer, L = 1024, N = 160, SHA-1: the group of the first section.
#[rustfmt::skip]
const P: &str = "\
    dc5bf3a88b2d99e4c95cdd7a0501cc38630d425cf5c390af3429cff1f35147b795caea923f0d3577158f8a0c89dabd1962c2c453306b5d70cacfb014\
    30aceb54e5a5fa6f9340d3bd2da612fceeb76b0ec1ebfae635a56ab141b108e00dc76eefe2edd0c514c21c457457c39065dba9d0ecb7569c247172d8\
    438ad2827b60435b";
/// Its q.
#[rustfmt::skip]
const Q: &str = "\
    e956602b83d195dbe945b3ac702fc61f81571f1d";
/// Its g.
#[rustfmt::skip]
const G: &str = "\
    d7eb9ca20a3c7a079606bafc4c9261ccaba303a5dc9fe9953f197dfe548c234895baa77f441ee6a2d97b909cbbd26ff7b869d24cae51b5c6edb127a4\
    b5d75cd8b46608bfa148249dffdb59807c5d7dde3fe3080ca3a2d28312142becb1fa8e24003e21c7287108174b95d5bc711e1c8d9b1076784f5dc37a\
    964a5e51390da713";
/// The digest of a message of it.
#[rustfmt::skip]
const DIGEST: &str = "\
    b8dad2b991d3fedfffafc792e0b04a6e7d545396";
/// The public key.
#[rustfmt::skip]
const Y: &str = "\
    6240ea0647117c38fe705106d56db578f3e10130928452d4f3587881b8a2bc6873a8befc3237f20914e2a91c7f07a928ee22adeed23d74ab7f82ea11\
    f70497e578f7a9b4cbd6f10226222b0b4da2ea1e49813d6bb9882fbf675c0846bb80cc891857b89b0ef1beb6cce3378a9aab5d66ad4cb9277cf447df\
    e1e64434749432fb";
/// One half of the signature.
#[rustfmt::skip]
const R: &str = "\
    b5af307867fb8b54390013cc67020ddf1f2c0b81";
/// The other.
#[rustfmt::skip]
const S: &str = "\
    620d3b22ab5031440c3e35eab6f481298f9e9f08";

/// The argument for these numbers, of which the first is a digest, and these places.
fn argument(crk_op: u32, numbers: &[&[u8]], places: &mut [Vec<u8>]) -> CryptKop {
    let mut crk_param = [CrParam::default(); CRK_MAXPARAM];
    for (parameter, number) in crk_param.iter_mut().zip(numbers) {
        *parameter = CrParam { crp_p: at(number), crp_nbits: 8 * number.len() as u32 };
    }
    for (parameter, place) in crk_param.iter_mut().skip(numbers.len()).zip(places.iter_mut()) {
        *parameter = CrParam { crp_p: out(place), crp_nbits: 8 * place.len() as u32 };
    }
    let (crk_iparams, crk_oparams) = (numbers.len() as u16, places.len() as u16);
    CryptKop { crk_op, crk_status: 7, crk_iparams, crk_oparams, crk_param, ..CryptKop::default() }
}

/// p, q, g, little-endian.
fn group() -> [Vec<u8>; 3] {
    [P, Q, G].map(number)
}

/// A signature by a private key: r and s.
fn sign(device: &Handle<'_>, digest: &[u8], [p, q, g]: &[Vec<u8>; 3], private: &[u8], room: usize) -> Result<[Vec<u8>; 2], i32> {
    let mut places = [vec![0xEE; room], vec![0xEE; room]];
    let mut asked = argument(CRK_DSA_SIGN, &[digest, p, q, g, private], &mut places);
    device.ask(CIOCKEY, &mut asked)?;
    let places = core::hint::black_box(places);
    // A status that was left spoils the answer.
    Ok(if asked.crk_status == 0 { places } else { [Vec::new(), Vec::new()] })
}

/// What `crk_status` says of a signature.
fn verify(device: &Handle<'_>, digest: &[u8], [p, q, g]: &[Vec<u8>; 3], public: &[u8], [r, s]: &[Vec<u8>; 2]) -> Result<u32, i32> {
    let mut asked = argument(CRK_DSA_VERIFY, &[digest, p, q, g, public, r, s], &mut []);
    device.ask(CIOCKEY, &mut asked)?;
    Ok(asked.crk_status)
}

pub(super) fn add(list: &mut Vec<Check>) {
    let bad = libc::EBADMSG as u32;
    let nist = || (unhex(DIGEST), number(Y), [R, S].map(number));
    check(list, "dsa/nist", move |device| {
        let (digest, public, signature) = nist();
        same(0, verify(device, &digest, &group(), &public, &signature)?)
    });
    check(list, "dsa/another-digest", move |device| {
        let (mut digest, public, signature) = nist();
        digest[0] ^= 1;
        same(bad, verify(device, &digest, &group(), &public, &signature)?)
    });
    check(list, "dsa/another-signature", move |device| {
        let (digest, public, [r, mut s]) = nist();
        s[7] ^= 1;
        same(bad, verify(device, &digest, &group(), &public, &[r, s])?)
    });
    for (name, half) in [("0", vec![0]), ("q", number(Q)), ("too-large", vec![0xFF; 64])] {
        check(list, &format!("dsa/r-{name}"), move |device| {
            let (digest, public, [_, s]) = nist();
            same(bad, verify(device, &digest, &group(), &public, &[half.clone(), s])?)
        });
    }
    check(list, "dsa/signed-and-verified", |device| {
        let (group, private) = (group(), bytes(19, 3));
        let [p, _, g] = &group;
        let public = super::power(device, g, &private, p)?;
        for length in [1, 20, 32, 64] {
            let digest = bytes(length, 9);
            let signature = sign(device, &digest, &group, &private, 20)?;
            same(0, verify(device, &digest, &group, &public, &signature)?)?;
            // The secret number is another each time.
            same(true, signature[0] != sign(device, &digest, &group, &private, 20)?[0])?;
        }
        Ok(())
    });
    check(list, "dsa/more-room-than-q-has", |device| {
        let [r, s] = sign(device, &[1; 20], &group(), &[5], 40)?;
        same(true, [r, s].iter().all(|half| half[20..].iter().all(|byte| matches!(byte, 0 | 0xEE))))
    });
    check(list, "dsa/no-room", |device| refused(libc::EINVAL, sign(device, &[1; 20], &group(), &[5], 10)));
    for (name, index, wrong) in [
        ("p-even", 0, vec![2u8; 128]),
        ("p-too-long", 0, vec![1; LONGEST + 1]),
        ("q-of-159-bits", 1, vec![0x7F; 20]),
        ("q-of-512-bits", 1, vec![0xFF; 64]),
        ("g-1", 2, vec![1]),
        ("g-of-no-group", 2, vec![2]),
    ] {
        check(list, &format!("dsa/{name}"), move |device| {
            let mut numbers = group();
            numbers[index] = wrong.clone();
            refused(libc::EINVAL, sign(device, &[1; 20], &numbers, &[5], 64))
        });
    }
    check(list, "dsa/private-key-0", |device| refused(libc::EINVAL, sign(device, &[1; 20], &group(), &[0], 20)));
    check(list, "dsa/private-key-q", |device| refused(libc::EINVAL, sign(device, &[1; 20], &group(), &number(Q), 20)));
    check(list, "dsa/no-digest", |device| refused(libc::EINVAL, sign(device, &[], &group(), &[5], 20)));
    check(list, "dsa/place-nowhere", |device| {
        let [p, q, g] = &group();
        let mut places = [vec![0xEE; 20], vec![0xEE; 20]];
        let mut asked = argument(CRK_DSA_SIGN, &[&[1; 20], p, q, g, &[5]], &mut places);
        asked.crk_param[6].crp_p = 16;
        refused(libc::EFAULT, device.ask(CIOCKEY, &mut asked))?;
        same_bytes(&[0xEE; 20], core::hint::black_box(&places[1]))
    });
}
