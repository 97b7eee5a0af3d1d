//! The suite over what Vulkan finds here, a GPU or Mesa's software Vulkan, and over what CUDA finds. Skipped, with the reason, where one finds nothing.

use bywash_conformance::{Area, assert_area};
use bywash_engine_gpu::{Backend, GpuEngine};
use std::sync::OnceLock;

fn check(backend: Backend, area: Area) {
    static ENGINES: [OnceLock<Result<GpuEngine, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let place = match backend {
        Backend::Vulkan => &ENGINES[0],
        Backend::Cuda => &ENGINES[1],
    };
    match place.get_or_init(|| backend.open().map_err(|absent| absent.reason)) {
        Ok(engine) => assert_area(engine, area),
        Err(reason) => eprintln!("skipped: {reason}"),
    }
}

macro_rules! areas {
    ($($name:ident = $area:ident),*) => {
        $(#[test]
        fn $name() {
            check(Backend::Vulkan, Area::$area);
            check(Backend::Cuda, Area::$area);
        })*

        #[test]
        fn every_area_has_its_test() {
            assert_eq!([$(Area::$area),*].as_slice(), Area::ALL);
        }
    };
}

areas! {
    cipher_vectors = CipherVectors, aead_vectors = AeadVectors, hash_vectors = HashVectors, rsa_vectors = RsaVectors,
    curve_vectors = CurveVectors, ciphers = Ciphers, aeads = Aeads, hashes = Hashes, public_keys = PublicKeys,
    streams = Streams, counters = Counters, forgeries = Forgeries, threads = Threads, batches = Batches,
    refusals = Refusals, declarations = Declarations, robustness = Robustness
}
