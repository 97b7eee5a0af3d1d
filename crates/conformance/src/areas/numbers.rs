//! Numbers that come without a session, against `num-bigint`.

use crate::checker::Checker;
use crate::oracle::RsaKey;
use bywash_core::number::NUMBER_MAX;
use bywash_core::{CrtExp, Error, ModExp, Result, RsaPrivateKey};
use num_bigint::BigUint;

pub(crate) fn run(checker: &mut Checker<'_>) -> std::result::Result<(), String> {
    match checker.engine.mod_exp(&ModExp { base: &[2], exponent: &[3], modulus: &[7] }, &mut [0]) {
        Err(Error::Unavailable { what }) => checker.skip(None, what),
        _ => powers(checker),
    }
    let keys = RsaKey::one_of_each_size()?;
    let key = keys.first().ok_or("no key")?;
    let smallest = key.private();
    match checker.engine.crt_exp(&parts(&smallest, &[2]), &mut [0; NUMBER_MAX]) {
        Err(Error::Unavailable { what }) => checker.skip(None, what),
        _ => {
            keys.iter().for_each(|key| by_remainders(checker, key));
            tiny_primes(checker);
            wrong_parts(checker, &smallest);
            for e in [3u32, 5, 17, 257, 65537, 11, 35, 65539, u32::MAX] {
                // Not each has an inverse modulo p - 1 and q - 1.
                if let Some(key) = key.with_exponent(BigUint::from(e)) {
                    by_remainders(checker, &key);
                }
            }
            let unusual = [11u32, 13, 19, 23]
                .into_iter()
                .find_map(|e| key.with_exponent(BigUint::from(e)))
                .ok_or("no unusual exponent has an inverse")?;
            by_remainders(checker, &unusual);
        }
    }
    Ok(())
}

fn powers(checker: &mut Checker<'_>) {
    for bytes in [1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 96, 127, 128, 129, 256, 384, 512] {
        for _ in 0..4 {
            let [mut modulus, mut base, mut exponent] = [0; 3].map(|_| checker.random.bytes(bytes));
            *modulus.last_mut().expect("a byte") |= 1;
            power(checker, &base, &exponent, &modulus);
            // Sizes that differ, and zeros in front of all of them.
            let (shorter, longer) = (checker.random.within(0..=bytes), checker.random.within(0..=40));
            exponent.truncate(shorter);
            base.extend(checker.random.bytes(longer));
            let padded = |number: &[u8]| [&[0; 9], number].concat();
            power(checker, &padded(&base), &padded(&exponent), &padded(&modulus));
        }
    }
    let largest = vec![0xFF; NUMBER_MAX];
    power(checker, &largest, &[0xFF, 3], &largest);
    edges(checker);
    refusals(checker);
}

/// Exponents and bases of 0 and 1, moduli of 1, and numbers that are equal or differ by 1.
fn edges(checker: &mut Checker<'_>) {
    let modulus: &[u8] = &[0xC5, 0, 0, 0, 0, 0, 0, 0, 0x11];
    let below: &[u8] = &[0xC5, 0, 0, 0, 0, 0, 0, 0, 0x10];
    let above: &[u8] = &[0xC5, 0, 0, 0, 0, 0, 0, 0, 0x12];
    for modulus in [&[1][..], &[0, 0, 1], &[3], modulus] {
        for base in [&[][..], &[0], &[1], &[2], &[0, 2], below, modulus, above, &[0xFF; 40]] {
            for exponent in [&[][..], &[0], &[0; 20], &[1], &[2], &[0, 3], &[0x80, 0, 0, 0, 0, 0, 0, 0], below] {
                power(checker, base, exponent, modulus);
            }
        }
    }
}

fn power(checker: &mut Checker<'_>, base: &[u8], exponent: &[u8], modulus: &[u8]) {
    let [a, b, n] = [base, exponent, modulus].map(BigUint::from_bytes_be);
    let expected = a.modpow(&b, &n);
    let room = modulus.len() + base.len() % 3;
    let got = filled(room, |out| checker.engine.mod_exp(&ModExp { base, exponent, modulus }, out));
    compare(checker, &got, &expected, || format!("{base:02x?} ^ {exponent:02x?} mod {modulus:02x?}"));
}

/// What a call wrote into an output that was not blank.
fn filled(room: usize, call: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Vec<u8>> {
    let mut out = vec![0xA5; room];
    call(&mut out).map(|()| out)
}

fn compare(checker: &mut Checker<'_>, got: &Result<Vec<u8>>, expected: &BigUint, what: impl FnOnce() -> String) {
    let holds = got.as_ref().is_ok_and(|out| BigUint::from_bytes_be(out) == *expected);
    checker.check_engine(None, holds, || format!("{} is {expected:x}, not {got:02x?}", what()));
}

fn refusals(checker: &mut Checker<'_>) {
    let long = vec![1; NUMBER_MAX + 1];
    let cases: [(&str, [&[u8]; 3], usize); 6] = [
        ("an even modulus", [&[2], &[3], &[8]], 1),
        ("a modulus of 0", [&[2], &[3], &[0, 0]], 2),
        ("no modulus", [&[2], &[3], &[]], 2),
        ("no room", [&[2], &[3], &[1, 1, 1]], 2),
        ("a long exponent", [&[2], &long, &[7]], 1),
        ("a long modulus", [&[2], &[3], &long], NUMBER_MAX + 1),
    ];
    for (what, [base, exponent, modulus], room) in cases {
        let got = filled(room, |out| checker.engine.mod_exp(&ModExp { base, exponent, modulus }, out));
        checker.check_engine(None, matches!(got, Err(Error::Number { .. })), || format!("{what}: {got:02x?}"));
    }
}

fn parts<'k>(key: &'k RsaPrivateKey, base: &'k [u8]) -> CrtExp<'k> {
    let RsaPrivateKey { prime1, prime2, exponent1, exponent2, coefficient, .. } = key;
    CrtExp { base, p: prime1, q: prime2, dp: exponent1, dq: exponent2, qinv: coefficient }
}

fn by_remainders(checker: &mut Checker<'_>, key: &RsaKey) {
    let private = key.private();
    let number = |value: u32| key.bytes(&BigUint::from(value));
    let multiple = [&[0; 3][..], &private.prime2].concat();
    let mut bases = vec![vec![], number(0), number(1), number(2), multiple, vec![0xFF; key.len()], vec![0xFF; key.len() + 8]];
    bases.push(checker.random.bytes(key.len()));
    for base in bases {
        let expected = BigUint::from_bytes_be(&key.apply_private(&key.bytes(&BigUint::from_bytes_be(&base))));
        let got = filled(key.len() + 5, |out| checker.engine.crt_exp(&parts(&private, &base), out));
        compare(checker, &got, &expected, || format!("{} bits, by remainders, {base:02x?}", key.bits));
    }
}

/// The same with primes of a byte: every base, also those that share a factor with p * q.
fn tiny_primes(checker: &mut Checker<'_>) {
    for (p, q, d) in [(11u8, 7, 7u8), (7, 11, 13), (251, 241, 77), (3, 5, 3)] {
        let qinv = BigUint::from(q).modinv(&BigUint::from(p)).expect("two primes").to_bytes_be();
        for base in 0..=u8::MAX {
            let numbers = CrtExp { base: &[base], p: &[p], q: &[q], dp: &[d % (p - 1)], dq: &[d % (q - 1)], qinv: &qinv };
            let expected = BigUint::from(base).modpow(&BigUint::from(d), &BigUint::from(u32::from(p) * u32::from(q)));
            let got = filled(2, |out| checker.engine.crt_exp(&numbers, out));
            compare(checker, &got, &expected, || format!("{base} ^ {d} mod {p} * {q}"));
        }
    }
}

/// Parts that do not belong together, or are no primes, give an error, and nothing of what was computed with them.
fn wrong_parts(checker: &mut Checker<'_>, key: &RsaPrivateKey) {
    let base = &[3][..];
    let sound = parts(key, base);
    let off = |number: &[u8]| (BigUint::from_bytes_be(number) - BigUint::from(2u8)).to_bytes_be();
    let more = |number: &[u8]| (BigUint::from_bytes_be(number) + BigUint::from(2u8)).to_bytes_be();
    let (p, q, dp, dq, qinv) = (off(sound.p), off(sound.q), more(sound.dp), more(sound.dq), off(sound.qinv));
    let cases = [
        // The public exponent is a usual one: an engine can tell.
        ("another dp", CrtExp { dp: &dp, ..sound }),
        ("another dq", CrtExp { dq: &dq, ..sound }),
        ("another p", CrtExp { p: &p, ..sound }),
        ("another q", CrtExp { q: &q, ..sound }),
        ("another qinv", CrtExp { qinv: &qinv, ..sound }),
        ("p twice", CrtExp { q: sound.p, ..sound }),
        ("dp not below p", CrtExp { dp: sound.p, ..sound }),
        ("an even p", CrtExp { p: &[0x80; 64], ..sound }),
        ("a short q", CrtExp { q: &[7], ..sound }),
        ("no p", CrtExp { p: &[], ..sound }),
        ("p and q of 1", CrtExp { p: &[1], q: &[1], ..sound }),
    ];
    for (what, numbers) in cases {
        let mut out = [0; NUMBER_MAX];
        let got = checker.engine.crt_exp(&numbers, &mut out);
        let clean = out.iter().all(|&byte| byte == 0);
        checker.check_engine(None, clean && matches!(got, Err(Error::Number { .. })), || format!("{what}: {got:?}, output clean: {clean}"));
    }
}
