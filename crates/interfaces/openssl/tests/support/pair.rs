//! What is done without Bywash and with it, and proof of who did it.

use super::{KEYPAIR, Library, Pkey};
use bywash_core::Algorithm;
use bywash_openssl::ffi::OwnedParams;

/// No parameters, or the first.
pub(crate) fn none() -> OwnedParams {
    OwnedParams::new()
}

/// One library without and one with Bywash.
pub(crate) struct Pair {
    pub(crate) plain: Library,
    pub(crate) bywash: Library,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self { plain: Library::plain(), bywash: Library::bywash() }
    }

    /// A key generated without Bywash, and the same key with it.
    pub(crate) fn both(&self, name: &str, key: Pkey) -> (Pkey, Pkey) {
        let ours = key.transfer(name, KEYPAIR, &self.bywash);
        assert!(ours.is_bywash());
        (key, ours)
    }
}

/// Runs something and says how many operations an engine did meanwhile.
pub(crate) fn counting<T>(library: &Library, algorithm: Algorithm, run: impl FnOnce() -> T) -> (T, u64) {
    let before = library.counted(algorithm);
    let result = run();
    (result, library.counted(algorithm) - before)
}
