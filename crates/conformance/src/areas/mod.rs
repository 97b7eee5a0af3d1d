//! The areas, one file each (vectors of one family together).

mod aeads;
mod batches;
mod cipher_vectors;
mod ciphers;
mod counters;
mod curve_vectors;
mod declarations;
mod dsa;
mod forgeries;
mod hash_pieces;
mod hashes;
mod numbers;
pub(crate) mod public_batches;
mod public_keys;
mod refusals;
mod robustness;
mod rsa_vectors;
mod streams;
mod threads;

use crate::checker::Checker;
use crate::report::Area;
use bywash_core::{Algorithm, Kind};

/// Runs one area. A file of vectors that cannot be read is a failure of the suite itself, and is reported as one.
pub(crate) fn run(area: Area, checker: &mut Checker<'_>) {
    let read = match area {
        Area::CipherVectors => cipher_vectors::ciphers(checker),
        Area::AeadVectors => cipher_vectors::aeads(checker),
        Area::HashVectors => hashes::vectors(checker),
        Area::RsaVectors => rsa_vectors::run(checker),
        Area::CurveVectors => curve_vectors::run(checker),
        Area::Ciphers => return ciphers::run(checker),
        Area::Aeads => return aeads::run(checker),
        Area::Hashes => return hashes::run(checker),
        Area::PublicKeys => public_keys::run(checker).and_then(|()| numbers::run(checker)).and_then(|()| dsa::run(checker)),
        Area::Streams => {
            streams::run(checker);
            return hash_pieces::run(checker);
        }
        Area::Counters => return counters::run(checker),
        Area::Forgeries => return forgeries::run(checker),
        Area::Threads => threads::run(checker),
        Area::Batches => {
            batches::run(checker);
            public_batches::run(checker)
        }
        Area::Refusals => refusals::run(checker),
        Area::Declarations => return declarations::run(checker),
        Area::Robustness => return robustness::run(checker),
    };
    if let Err(error) = read {
        checker.check_engine(None, false, || error);
    }
    reached(area, checker);
}

/// Fails what an area of published vectors should have checked and no vector has reached: a source that is gone would not be missed otherwise.
fn reached(area: Area, checker: &mut Checker<'_>) {
    let missed = of_kind(|kind| vectors_of(kind) == Some(area)).into_iter().filter(|&algorithm| !checker.has_checked(algorithm));
    for algorithm in checker.supported(&missed.collect::<Vec<_>>()) {
        match unpublished(algorithm) {
            Some(why) => checker.skip(Some(algorithm), why),
            None => checker.check(algorithm, false, || "no published vector has reached it".into()),
        }
    }
}

/// The area with the published vectors of a sort.
fn vectors_of(kind: Kind) -> Option<Area> {
    Some(match kind {
        Kind::Cipher { .. } => Area::CipherVectors,
        Kind::Aead { .. } => Area::AeadVectors,
        Kind::Digest { .. } | Kind::Mac { .. } => Area::HashVectors,
        Kind::RsaPrivate { .. } | Kind::RsaPublic { .. } => Area::RsaVectors,
        Kind::Agreement { .. } | Kind::PublicValue { .. } => Area::CurveVectors,
        Kind::EcdsaSign { .. } | Kind::EcdsaVerify { .. } | Kind::EddsaSign { .. } => Area::CurveVectors,
        _ => return None,
    })
}

/// Why there is no published vector of an algorithm: the second implementation alone checks it.
fn unpublished(algorithm: Algorithm) -> Option<&'static str> {
    use Algorithm as A;
    let is_of = |families: &[&str]| algorithm.is_legacy_cipher() && families.iter().any(|family| algorithm.name().starts_with(family));
    match algorithm {
        A::EcdsaP256Sign | A::EcdsaP384Sign => Some("signatures have random nonces: those that are made are verified"),
        A::DesCtr | A::TripleDesCtr => Some("no vector of counter mode is known to us, but of ECB and CBC"),
        _ if is_of(&["Serpent", "Twofish", "RC6"]) && !algorithm.name().ends_with("-ECB") => Some("its authors have published ECB alone"),
        _ => None,
    }
}

/// The algorithms of a sort, in order.
fn of_kind(wanted: impl Fn(Kind) -> bool) -> Vec<Algorithm> {
    Algorithm::ALL.iter().copied().filter(|algorithm| wanted(algorithm.kind())).collect()
}

fn all_ciphers() -> Vec<Algorithm> {
    of_kind(|kind| matches!(kind, Kind::Cipher { .. }))
}

fn all_aeads() -> Vec<Algorithm> {
    of_kind(|kind| matches!(kind, Kind::Aead { .. }))
}

/// Length of a symmetric algorithm's key; 0 for others.
fn key_len(algorithm: Algorithm) -> usize {
    match algorithm.kind() {
        Kind::Cipher { key, .. } | Kind::Aead { key, .. } => key,
        _ => 0,
    }
}

/// Input lengths that a cipher takes among `lengths`.
fn fitting(algorithm: Algorithm, lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let (block, xts) = match algorithm.kind() {
        Kind::Cipher { block, .. } => (block, algorithm.is_xts()),
        _ => (1, false),
    };
    lengths.filter(|&len| if xts { len >= block } else { len.is_multiple_of(block) }).collect()
}

fn around(middle: usize) -> std::ops::RangeInclusive<usize> {
    middle - 17..=middle + 17
}

/// Every length to 4 KiB, then the neighbourhoods of powers of two at which kernels change their stride.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=4096 + 17).chain(around(8192)).chain(around(16384)).chain(around(65536))
}

/// Fewer of them for legacy ciphers, whose second implementation is slow; every number of blocks is in the tests of `bywash-legacy`.
fn legacy_lengths() -> impl Iterator<Item = usize> {
    let some = [512, 1024, 2048, 4096, 65536].into_iter().flat_map(around);
    (0..=300).chain((301..4096).step_by(41)).chain(some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_engine_cpu::CpuEngine;

    #[test]
    fn a_source_that_is_gone_is_missed() {
        let engine = CpuEngine::new();
        for (area, missed) in [
            (Area::CipherVectors, Algorithm::Aes128Cbc),
            (Area::CipherVectors, Algorithm::BlowfishCbc),
            (Area::AeadVectors, Algorithm::Aegis256),
            (Area::HashVectors, Algorithm::HmacSha1),
            (Area::RsaVectors, Algorithm::Rsa3072Private),
            (Area::CurveVectors, Algorithm::X25519Public),
        ] {
            let mut checker = Checker::new(&engine, area, 1);
            // None of them has read its files.
            reached(area, &mut checker);
            let report = checker.into_report();
            assert!(report.failed.contains_key(&(area, Some(missed))), "{report}");
            assert!(!report.failed.contains_key(&(area, Some(Algorithm::EcdsaP256Sign))), "{report}");
        }
    }

    #[test]
    fn few_have_no_published_vectors() {
        for family in ["Serpent", "Twofish", "RC6"] {
            let has_none = |mode: &str| format!("{family}-128-{mode}").parse().is_ok_and(|algorithm| unpublished(algorithm).is_some());
            assert_eq!(["ECB", "CBC", "CTR"].map(has_none), [false, true, true], "{family}");
        }
    }
}
