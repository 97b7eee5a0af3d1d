//! The end of `bywash run --files`: what its programs wrote last goes to the disk. Where it cannot, this process still has it, and stays until it can.

use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::shown::Shown;
use crate::terminal::say;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// When it is tried again, at first and at last: each time is told in the log.
const AGAIN: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(16);
/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long after it was said that something cannot be stored a signal gives it up: `timeout` sends several, and Ctrl-C is often pressed twice.
const GIVES_UP: Duration = Duration::from_secs(1);

/// Stores what was written in the volume in `folder`, which `store` tries; that says whether something of before is lost. It returns when that is done, or when somebody who was told so
/// gives it up.
pub(crate) fn store(folder: &Path, store: impl Fn() -> io::Result<bool>) {
    let error = match store() {
        Ok(true) => return say!("bywash: note: something that was written earlier could not be stored; who closed it was told so"),
        Ok(false) => return,
        Err(error) => error,
    };
    let folder = folder.shown();
    let mut signals = match interrupt::watch_ending() {
        Ok(signals) => signals,
        // Nobody could end what waits for ever.
        Err(failure) => return say!("bywash: --files {folder}: {failure}"),
    };
    let way_out = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room",
        _ => "see to its disk",
    };
    say!(
        "bywash: --files {folder}: what was written last cannot be stored: {error}; {way_out}, this waits for it, or press Ctrl-C (SIGTERM) to lose it"
    );
    let (mut told, mut tried, mut again) = (Instant::now(), Instant::now(), AGAIN.start);
    loop {
        sleep(LOOK);
        if signals.pending().count() > 0 {
            if told.elapsed() >= GIVES_UP {
                return say!("bywash: --files {folder}: given up, as told");
            }
            // Of several that come together none does.
            told = Instant::now();
        }
        if tried.elapsed() >= again {
            if store().is_ok() {
                return say!("bywash: --files {folder}: all is stored now");
            }
            (tried, again) = (Instant::now(), AGAIN.end.min(2 * again));
        }
    }
}

/// What a run comes to: that something is lost comes before all but what kept its program from running, and is said in any case.
pub(crate) fn worse<T>(outcome: Result<T, Failure>, ended: Result<(), Failure>) -> Result<T, Failure> {
    match (outcome, ended) {
        (Err(failure), Err(lost)) => {
            say!("bywash: {lost}");
            Err(failure)
        }
        (outcome, ended) => ended.and(outcome),
    }
}

/// What a run ends with that loses something of it, whatever its program ended with.
pub(crate) fn lost(folder: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("--files {}: {error}; `bywash fsck` says whether all else is well", folder.shown()))
}
