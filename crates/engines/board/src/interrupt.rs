//! The card's interrupt: a thread that stands for it, started by the first operation that waits for one.
//!
//! What it costs the processor, a real card's interrupt costs the kernel; [`Waiting`](crate::Waiting)'s bench shows it on its own.

use rustix::thread::futex;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering::Release};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Instant;

/// How a waiting thread is told that its lane is done.
pub(crate) enum Signal {
    /// The word becomes 1, and whoever sleeps on it wakes.
    Word(Arc<AtomicU32>),
    /// The event descriptor becomes readable.
    Descriptor(Arc<OwnedFd>),
}

/// The interrupts that a card has yet to raise.
pub(crate) struct Interrupts {
    line: Arc<Line>,
    started: Once,
}

#[derive(Default)]
struct Line {
    pending: Mutex<Pending>,
    bell: Condvar,
}

#[derive(Default)]
struct Pending {
    /// By time, then in order of arrival.
    signals: BTreeMap<(Instant, u64), Signal>,
    ever: u64,
    closed: bool,
}

impl Interrupts {
    pub(crate) fn new() -> Self {
        Self { line: Arc::default(), started: Once::new() }
    }

    /// Has the signal raised at that time.
    pub(crate) fn schedule(&self, due: Instant, signal: Signal) {
        let mut pending = self.line.lock();
        let number = pending.ever;
        pending.ever += 1;
        pending.signals.insert((due, number), signal);
        let first = pending.signals.first_key_value().is_some_and(|(&key, _)| key == (due, number));
        drop(pending);
        if first {
            self.line.bell.notify_one();
        }
        let line = self.line.clone();
        self.started.call_once(|| {
            std::thread::spawn(move || line.raise_all());
        });
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.line.lock().closed = true;
        self.line.bell.notify_one();
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn raise_all(&self) {
        // An interrupt is not put off by 50 us to save power, as a sleeper's timer is. Should this fail, it is.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut pending = self.lock();
        while !pending.closed {
            let due = pending.signals.first_key_value().map(|(&(due, _), _)| due);
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            pending = match left {
                None => self.bell.wait(pending).unwrap_or_else(PoisonError::into_inner),
                Some(left) if !left.is_zero() => self.bell.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0,
                Some(_) => {
                    let signal = pending.signals.pop_first();
                    drop(pending);
                    if let Some((_, signal)) = signal {
                        signal.raise();
                    }
                    self.lock()
                }
            };
        }
    }
}

impl Signal {
    fn raise(&self) {
        match self {
            Self::Word(word) => {
                word.store(1, Release);
                // Nobody may be asleep yet; then the word is enough.
                let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
            }
            Self::Descriptor(descriptor) => {
                // It could only fail by overflowing a counter that is read after every write.
                let _ = rustix::io::write(descriptor, &1u64.to_ne_bytes());
            }
        }
    }
}
