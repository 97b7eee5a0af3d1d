//! DSA and Diffie-Hellman with numbers that come without a session: NIST's vectors, and signatures of our own.

use crate::checker::Checker;
use crate::vectors::{self, Record};
use bywash_core::{DsaGroup, DsaSign, DsaVerify, Error, ModExp};

pub(crate) fn run(checker: &mut Checker<'_>) -> Result<(), String> {
    let group = DsaGroup { p: &[1], q: &[1], g: &[1] };
    match checker.engine.dsa_verify(&DsaVerify { group, digest: &[1], public: &[2], r: &[1], s: &[1] }) {
        Err(Error::Unavailable { what }) => checker.skip(None, what),
        _ => {
            signatures(checker)?;
            refusals(checker)?;
        }
    }
    match checker.engine.mod_exp(&ModExp { base: &[2], exponent: &[3], modulus: &[7] }, &mut [0]) {
        Err(Error::Unavailable { .. }) => Ok(()),
        _ => secrets(checker),
    }
}

/// The numbers of a group, as they stand at the head of a section.
struct Numbers([Vec<u8>; 3]);

impl Numbers {
    fn of(record: &Record) -> Result<Self, String> {
        Ok(Self([record.bytes("P")?, record.bytes("Q")?, record.bytes("G")?]))
    }

    fn group(&self) -> DsaGroup<'_> {
        let [p, q, g] = &self.0;
        DsaGroup { p, q, g }
    }
}

/// SigVer of NIST, and in each of its groups signatures of the engine's own.
fn signatures(checker: &mut Checker<'_>) -> Result<(), String> {
    let mut numbers = None;
    for record in vectors::DSA.records()? {
        if record.has("P") {
            let found = Numbers::of(&record)?;
            own(checker, &found.group(), &record);
            numbers = Some(found);
            continue;
        }
        let numbers: &Numbers = numbers.as_ref().ok_or("a case before its group")?;
        let [digest, public, r, s] = ["Digest", "Y", "R", "S"].map(|name| record.bytes(name));
        let (digest, public, r, s) = (digest?, public?, r?, s?);
        let expected = record.text("Result")? == "P";
        let got = checker.engine.dsa_verify(&DsaVerify { group: numbers.group(), digest: &digest, public: &public, r: &r, s: &s });
        checker.check_engine(None, got.as_ref().ok() == Some(&expected), || format!("{}: {got:?}, expected {expected}", record.place()));
    }
    Ok(())
}

/// A key made up, what it signs, and what is made of that.
fn own(checker: &mut Checker<'_>, group: &DsaGroup<'_>, record: &Record) {
    for length in [1, 20, 28, 32, 64] {
        let digest = checker.random.bytes(length);
        // Below q, whose first bit is set.
        let mut private = checker.random.bytes(group.q.len());
        private[0] &= 0x7F;
        let mut public = vec![0; group.p.len()];
        let powers = checker.engine.mod_exp(&ModExp { base: group.g, exponent: &private, modulus: group.p }, &mut public);
        let [mut r, mut s] = [0, 0].map(|_| vec![0; group.q.len()]);
        let signed = checker.engine.dsa_sign(&DsaSign { group: *group, digest: &digest, private: &private }, &mut r, &mut s);
        checker.check_engine(None, powers.is_ok() && signed.is_ok(), || format!("{}: signing: {powers:?}, {signed:?}", record.place()));
        let verify =
            |digest: &[u8], r: &[u8], s: &[u8]| checker.engine.dsa_verify(&DsaVerify { group: *group, digest, public: &public, r, s });
        let mut other = s.clone();
        other[3] ^= 4;
        let answers = [verify(&digest, &r, &s), verify(&digest, &r, &other), verify(&digest, &[], &s), verify(&digest, group.q, &s)];
        let mut again = [vec![0; r.len()], vec![0; s.len()]];
        let [r2, s2] = &mut again;
        let repeated = checker.engine.dsa_sign(&DsaSign { group: *group, digest: &digest, private: &private }, r2, s2);
        let is_new = repeated.is_ok() && again[0] != r;
        let expected = [Ok(true), Ok(false), Ok(false), Ok(false)];
        checker.check_engine(None, answers == expected, || format!("{}: {answers:?}", record.place()));
        checker.check_engine(None, is_new, || format!("{}: two signatures of one secret number", record.place()));
    }
}

fn refusals(checker: &mut Checker<'_>) -> Result<(), String> {
    let numbers = Numbers::of(vectors::DSA.records()?.first().ok_or("no vectors")?)?;
    let group = numbers.group();
    let (mut r, mut s) = (vec![0; group.q.len()], vec![0; group.q.len()]);
    let mut with = |what: &str, group: DsaGroup<'_>, private: &[u8]| {
        // Each signature has a random number of its own, and an engine that only verifies what it signed takes some for good where g has not the order q.
        for _ in 0..40 {
            let got = checker.engine.dsa_sign(&DsaSign { group, digest: &[1; 20], private }, &mut r, &mut s);
            checker.check_engine(None, matches!(got, Err(Error::Number { .. })), || format!("signing with {what}: {got:?}"));
        }
    };
    with("a private key of 0", group, &[0]);
    with("a private key of q", group, group.q);
    with("an even p", DsaGroup { p: &[&group.p[..group.p.len() - 1], &[2]].concat(), ..group }, &[9]);
    with("a q of 159 bits", DsaGroup { q: &[0x7F; 20], ..group }, &[9]);
    with("g = 1", DsaGroup { g: &[1], ..group }, &[9]);
    // No group: whatever came out would be no signature.
    with("g = 2", DsaGroup { g: &[2], ..group }, &[9]);
    with("another p", DsaGroup { p: &[0xFF; 128], ..group }, &[9]);
    let long = [&[0; 40][..], &[9]].concat();
    let got = checker.engine.dsa_sign(&DsaSign { group, digest: &[1; 20], private: &long }, &mut r, &mut s);
    checker.check_engine(None, got.is_ok(), || format!("signing with zeros in front of the private key: {got:?}"));
    let short = checker.engine.dsa_sign(&DsaSign { group, digest: &[1; 20], private: &[9] }, &mut [0; 19], &mut [0; 20]);
    checker.check_engine(None, matches!(short, Err(Error::Number { .. })), || format!("signing into 19 bytes: {short:?}"));
    Ok(())
}

/// What two sides agree on, by SP 800-56A.
fn secrets(checker: &mut Checker<'_>) -> Result<(), String> {
    let mut prime = Vec::new();
    for record in vectors::DH.records()? {
        if record.has("P") {
            prime = record.bytes("P")?;
            continue;
        }
        let (private, public, expected) = (record.bytes("X")?, record.bytes("Y")?, record.bytes("Z")?);
        let mut got = vec![0; prime.len()];
        let computed = checker.engine.mod_exp(&ModExp { base: &public, exponent: &private, modulus: &prime }, &mut got);
        let padded = [vec![0; prime.len() - expected.len()], expected].concat();
        checker.check_engine(None, computed.is_ok() && got == padded, || format!("{}: another secret", record.place()));
    }
    Ok(())
}
