//! Counts and times by kind of work, where a measurement asks for them.

use bywash_client::variable;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::fmt::Write;
use std::time::Instant;

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Deriving session keys.
    Derivation,
    /// Making, keying and ending cipher contexts.
    Setup,
    /// Random bytes.
    Random,
    /// AES and GHASH.
    Bulk,
    /// Signatures of the handshake.
    Other,
}

const NAMES: [&str; 5] = ["derivation", "setup", "random", "bulk", "other"];

static IS_ON: AtomicBool = AtomicBool::new(false);
static CALLS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];
static NANOSECONDS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

static PASSED_ON: AtomicU64 = AtomicU64::new(0);

/// Counts a context that has become libcrypto's.
pub(crate) fn passed_on() {
    PASSED_ON.fetch_add(1, Relaxed);
}

/// Begins to count if the environment asks for it, and has what was counted written at exit.
pub(crate) fn begin() {
    if variable("BYWASH_DDS_TALLY").is_some() {
        IS_ON.store(true, Relaxed);
        // SAFETY: a function that stays, for the library is never unloaded.
        unsafe { libc::atexit(write) };
    }
}

/// Runs a call, counted.
#[inline]
pub(crate) fn timed<R>(kind: Kind, run: impl FnOnce() -> R) -> R {
    if !IS_ON.load(Relaxed) {
        return run();
    }
    let start = Instant::now();
    let result = run();
    let took = start.elapsed().as_nanos() as u64;
    CALLS[kind as usize].fetch_add(1, Relaxed);
    NANOSECONDS[kind as usize].fetch_add(took, Relaxed);
    result
}

/// What a clock that is read twice adds to each call, in nanoseconds: the least of some.
fn overhead() -> u64 {
    (0..1000).map(|_| Instant::now().elapsed().as_nanos() as u64).min().unwrap_or(0)
}

extern "C" fn write() {
    let written = std::panic::catch_unwind(|| {
        let Some(path) = variable("BYWASH_DDS_TALLY") else { return };
        let mut text = String::from("kind,calls,ns\n");
        let overhead = overhead();
        for (index, name) in NAMES.iter().enumerate() {
            let calls = CALLS[index].load(Relaxed);
            let _ = writeln!(text, "{name},{calls},{}", NANOSECONDS[index].load(Relaxed).saturating_sub(calls * overhead));
        }
        let _ = writeln!(text, "passed on,{},0", PASSED_ON.load(Relaxed));
        let mut path = path;
        path.push(format!(".{}", std::process::id()));
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("bywash: cannot write {}: {error}; name another place in BYWASH_DDS_TALLY", path.display());
        }
    });
    drop(written);
}
