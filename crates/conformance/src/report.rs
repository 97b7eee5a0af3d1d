//! What a run of the suite found.

use bywash_core::Algorithm;
use core::fmt;
use std::collections::BTreeMap;

/// A part of the suite; an engine's crate gets one test for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Area {
    /// ECB, CBC, CFB, OFB, CTR and XTS against NIST, RFC 3686 and 5528, the ciphers' authors and Wycheproof.
    CipherVectors,
    /// GCM and ChaCha20-Poly1305 against NIST and Wycheproof.
    AeadVectors,
    /// Digests and HMACs against NIST, RFC 1321, 2202, 2286 and 4231, RIPEMD-160's authors and Wycheproof.
    HashVectors,
    /// RSA against NIST and Wycheproof, the padding done here.
    RsaVectors,
    /// P-256, P-384, X25519 and Ed25519 against NIST, RFC 7748, the authors of Ed25519 and Wycheproof.
    CurveVectors,
    /// Ciphers against the oracle, at every length.
    Ciphers,
    /// AEADs against the oracle, at every length.
    Aeads,
    /// Digests and MACs against the oracle, at every length.
    Hashes,
    /// Public-key operations against the oracle.
    PublicKeys,
    /// Messages in pieces, and copies of them, against messages in one.
    Streams,
    /// Counters that wrap, in pieces as well.
    Counters,
    /// Tags and signatures that are wrong in one bit.
    Forgeries,
    /// Many threads on one session.
    Threads,
    /// Batches against single operations.
    Batches,
    /// Keys and public values that must be refused.
    Refusals,
    /// What the engine says of itself.
    Declarations,
    /// Random sessions and operations: no panic, no surprise.
    Robustness,
}

impl Area {
    /// Every area.
    pub const ALL: &'static [Area] = &[
        Area::CipherVectors,
        Area::AeadVectors,
        Area::HashVectors,
        Area::RsaVectors,
        Area::CurveVectors,
        Area::Ciphers,
        Area::Aeads,
        Area::Hashes,
        Area::PublicKeys,
        Area::Streams,
        Area::Counters,
        Area::Forgeries,
        Area::Threads,
        Area::Batches,
        Area::Refusals,
        Area::Declarations,
        Area::Robustness,
    ];
}

/// A check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub area: Area,
    /// On what; `None` for the engine as a whole.
    pub algorithm: Option<Algorithm>,
    /// What was expected and what came, with the case's place in its file or its lengths.
    pub what: String,
}

/// Something that was not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// Where.
    pub area: Area,
    /// On what; `None` for the engine as a whole.
    pub algorithm: Option<Algorithm>,
    /// Why.
    pub reason: String,
}

/// How many failures of one area and algorithm are kept in words; all are counted.
const KEPT: u64 = 5;

/// What was checked, what was not, what failed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The engine's name.
    pub engine: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Checks done, by area and algorithm.
    pub checked: BTreeMap<(Area, Option<Algorithm>), u64>,
    /// Checks that did not hold, by area and algorithm.
    pub failed: BTreeMap<(Area, Option<Algorithm>), u64>,
    /// The first failures of each area and algorithm, in words.
    pub failures: Vec<Failure>,
    /// What was not checked, and why.
    pub skipped: Vec<Skip>,
}

impl Report {
    pub(crate) fn new(engine: &str, seed: u64) -> Self {
        Self {
            engine: engine.to_owned(),
            seed,
            checked: BTreeMap::new(),
            failed: BTreeMap::new(),
            failures: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub(crate) fn count(&mut self, area: Area, algorithm: Option<Algorithm>) {
        *self.checked.entry((area, algorithm)).or_default() += 1;
    }

    pub(crate) fn fail(&mut self, area: Area, algorithm: Option<Algorithm>, what: impl FnOnce() -> String) {
        let failed = self.failed.entry((area, algorithm)).or_default();
        *failed += 1;
        if *failed <= KEPT {
            self.failures.push(Failure { area, algorithm, what: what() });
        }
    }

    pub(crate) fn skip(&mut self, area: Area, algorithm: Option<Algorithm>, reason: String) {
        let skip = Skip { area, algorithm, reason };
        if !self.skipped.contains(&skip) {
            self.skipped.push(skip);
        }
    }

    /// Whether everything that was checked held, and anything was checked at all.
    pub fn passed(&self) -> bool {
        self.failed.is_empty() && self.total() > 0
    }

    /// How many checks were done.
    pub fn total(&self) -> u64 {
        self.checked.values().sum()
    }

    /// How many checks of an area were done on an algorithm.
    pub fn checks_of(&self, area: Area, algorithm: Algorithm) -> u64 {
        self.checked.get(&(area, Some(algorithm))).copied().unwrap_or(0)
    }

    /// For tests: panics with the whole report unless it [passed](Self::passed).
    ///
    /// # Panics
    /// If a check failed, or none was done although the area applies to the engine.
    pub fn assert_passed(&self) {
        let nothing_applies = self.total() == 0 && !self.skipped.is_empty();
        assert!(self.passed() || nothing_applies, "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed: u64 = self.failed.values().sum();
        writeln!(f, "engine '{}': {} checks, {failed} failed (again with {}={})", self.engine, self.total(), crate::SEED, self.seed)?;
        for ((area, algorithm), checks) in &self.checked {
            let bad = self.failed.get(&(*area, *algorithm)).copied().unwrap_or(0);
            writeln!(f, "  {:<14} {:<20} {checks:>7} checked{}", format!("{area:?}"), name(*algorithm), note(bad))?;
        }
        for Skip { area, algorithm, reason } in &self.skipped {
            writeln!(f, "  {:<14} {:<20} skipped: {reason}", format!("{area:?}"), name(*algorithm))?;
        }
        for Failure { area, algorithm, what } in &self.failures {
            writeln!(f, "FAILED {area:?}, {}: {what}", name(*algorithm))?;
        }
        Ok(())
    }
}

fn name(algorithm: Option<Algorithm>) -> &'static str {
    algorithm.map_or("(engine)", Algorithm::name)
}

fn note(failed: u64) -> String {
    if failed == 0 { String::new() } else { format!(", {failed} FAILED") }
}
