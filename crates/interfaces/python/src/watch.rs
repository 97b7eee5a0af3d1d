//! Looks for Ctrl-C during what may take long.

use pyo3::prelude::*;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often Ctrl-C is looked for: to hold Python takes its time while others have it.
const LOOK: Duration = Duration::from_millis(50);

/// Whether nobody pressed Ctrl-C, asked now and then.
pub(crate) fn watch<E: From<io::Error>>() -> impl Fn() -> Result<(), E> + Sync {
    let last = Mutex::new(Instant::now());
    move || {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < LOOK {
            return Ok(());
        }
        *last = Instant::now();
        Python::attach(|py| py.check_signals()).map_err(|error| io::Error::other(error).into())
    }
}

/// A target that looks for Ctrl-C whenever something is written to it.
pub(crate) struct Watched<W, F> {
    target: W,
    watch: F,
}

impl<W: Write> Watched<W, ()> {
    pub(crate) fn new(target: W) -> Watched<W, impl Fn() -> io::Result<()>> {
        Watched { target, watch: watch() }
    }
}

impl<W: Write, F: Fn() -> io::Result<()>> Write for Watched<W, F> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (self.watch)()?;
        self.target.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
