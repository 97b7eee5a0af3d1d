//! The end of `bywash run --files`: what its programs wrote last goes to the disk. Where it cannot, this process still has it, and stays until it can.

use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::shown::Shown;
use crate::terminal::say;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often it is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long after it was said that something cannot be stored a signal gives it up: `timeout` sends several, and Ctrl-C is often pressed twice.
const GIVES_UP: Duration = Duration::from_secs(1);

/// Stores what was written in the volume in `folder`, which `store` tries. It returns when that is done, or when somebody who was told so gives it up.
pub(crate) fn store(folder: &Path, store: impl Fn() -> io::Result<()>) {
    let Err(error) = store() else { return };
    let folder = folder.shown();
    let mut signals = match interrupt::watch_ending() {
        Ok(signals) => signals,
        // Nobody could end what waits for ever.
        Err(failure) => return say!("bywash: --files {folder}: {failure}"),
    };
    say!(
        "bywash: --files {folder}: what was written last cannot be stored: {error}; make room, this waits for it, or press Ctrl-C (SIGTERM) to lose it"
    );
    let said = Instant::now();
    let mut tried = said;
    loop {
        sleep(LOOK);
        if signals.pending().next().is_some() && said.elapsed() >= GIVES_UP {
            return say!("bywash: --files {folder}: given up, as told");
        }
        if tried.elapsed() >= AGAIN {
            if store().is_ok() {
                return say!("bywash: --files {folder}: all is stored now");
            }
            tried = Instant::now();
        }
    }
}

/// What a run ends with that loses something of it, whatever its program ended with.
pub(crate) fn lost(folder: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("--files {}: {error}; `bywash fsck` says whether all else is well", folder.shown()))
}
