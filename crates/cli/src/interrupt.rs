//! Ctrl-C in the midst of long work: what is done so far is kept and shown.

use crate::failure::Failure;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a process exits with that SIGINT ended, as shells count.
const CODE: u8 = 130;

/// `timeout -s INT` tells a process and then its whole group: that is not somebody who grows impatient.
const ONE_AND_THE_SAME: Duration = Duration::from_millis(300);

/// Whether the user has had enough.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches SIGINT from now on; one that comes a while after the first ends the process at once.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT]).map_err(|error| Failure::failed(format!("cannot catch SIGINT: {error}")))?;
        let caught = Arc::new(AtomicBool::new(false));
        let came = caught.clone();
        std::thread::spawn(move || {
            let mut first = None;
            for _ in &mut signals {
                came.store(true, Ordering::Relaxed);
                if first.get_or_insert_with(Instant::now).elapsed() >= ONE_AND_THE_SAME {
                    std::process::exit(CODE.into());
                }
            }
        });
        Ok(Self(caught))
    }

    /// Whether it came.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What a process then exits with.
    pub(crate) fn exit_code() -> ExitCode {
        ExitCode::from(CODE)
    }
}
