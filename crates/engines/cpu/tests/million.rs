//! A million random public-key operations through the lanes, compared with the library's own.
//!
//! `cargo test --release -p bywash-engine-cpu --test million -- --ignored --nocapture` prints how many of each were compared. Only the outcome is
//! shared between the two ways: keys, kernels and code differ.

use bywash_conformance::differential;
use bywash_core::{Algorithm, Engine};
use bywash_engine_cpu::CpuEngine;

/// Cases by algorithm: fewer where one takes long. A million and a little in all.
const CASES: [(Algorithm, usize); 15] = [
    (Algorithm::X25519, 250_000),
    (Algorithm::X25519Public, 250_000),
    (Algorithm::Ed25519Sign, 150_000),
    (Algorithm::EcdsaP256Sign, 120_000),
    (Algorithm::EcdhP256, 60_000),
    (Algorithm::EcdhP256Public, 60_000),
    (Algorithm::EcdsaP384Sign, 6_000),
    (Algorithm::EcdhP384, 6_000),
    (Algorithm::EcdhP384Public, 6_000),
    (Algorithm::Rsa1024Public, 50_000),
    (Algorithm::Rsa2048Public, 40_000),
    (Algorithm::Rsa1024Private, 10_000),
    (Algorithm::Rsa2048Private, 5_000),
    (Algorithm::Rsa3072Private, 1_000),
    (Algorithm::Rsa4096Private, 1_000),
];

fn compare(cases: impl Fn(usize) -> usize) {
    let (tested, second) = (CpuEngine::new(), CpuEngine::without_lanes());
    if tested.batch_max() == 1 {
        println!("skipped: this processor has no AVX-512 IFMA, so there is only one way to compare");
        return;
    }
    let mut all = 0;
    for (algorithm, share) in CASES {
        let compared =
            differential(&tested, &second, algorithm, cases(share), 20_261_121).unwrap_or_else(|difference| panic!("{difference}"));
        println!("{compared:>9} {algorithm}");
        all += compared;
    }
    println!("{all:>9} in all, no difference");
}

#[test]
fn some_thousand_agree() {
    compare(|share| (share / 500).max(16));
}

#[test]
#[ignore = "takes minutes; see the head of this file"]
fn a_million_agree() {
    compare(|share| share);
}
