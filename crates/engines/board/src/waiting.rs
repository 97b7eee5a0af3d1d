//! How a thread waits for the card.

use crate::interrupt::{Interrupts, Signal};
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::futex;
use std::fmt;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Acquire};
use std::time::{Duration, Instant};

/// How a thread waits for the card's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Sleeps for as long as the operation is known to take, and a reserve (munetoh s3). No interrupt is needed.
    FixedSleep,
    /// Looks again and again, giving the processor away in between where somebody wants it. No interrupt is needed.
    Poll,
    /// Sleeps on a word in memory that the interrupt's handler changes.
    Futex,
    /// Reads an event descriptor, as drivers in user space have it from the kernel (VFIO, UIO).
    Eventfd,
}

impl Waiting {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::FixedSleep, Self::Poll, Self::Futex, Self::Eventfd];

    /// Waits until a lane is done.
    pub(crate) fn until(self, due: Instant, interrupts: &Interrupts) {
        let left = || due.saturating_duration_since(Instant::now());
        match self {
            _ if left().is_zero() => {}
            Self::FixedSleep => sleep(left()),
            Self::Poll => {
                while !left().is_zero() {
                    rustix::thread::sched_yield();
                }
            }
            Self::Futex => {
                let word = Arc::new(AtomicU32::new(0));
                interrupts.schedule(due, Signal::Word(word.clone()));
                while word.load(Acquire) == 0 {
                    // However this sleep ends, the word is what counts.
                    let _ = futex::wait(&word, futex::Flags::PRIVATE, 0, None);
                }
            }
            Self::Eventfd => match own_eventfd() {
                Some(descriptor) => {
                    interrupts.schedule(due, Signal::Descriptor(descriptor.clone()));
                    let mut count = [0; 8];
                    while rustix::io::read(&descriptor, &mut count) == Err(rustix::io::Errno::INTR) {}
                }
                // Out of descriptors: the answer is due all the same.
                None => sleep(left()),
            },
        }
    }
}

/// Sleeps for just so long: a model's time is not put off by 50 us to save power. Should that not be granted, it is.
fn sleep(left: Duration) {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    std::thread::sleep(left);
}

/// One event descriptor for each thread, made when first needed, as a driver would hold it open.
fn own_eventfd() -> Option<Arc<OwnedFd>> {
    thread_local! {
        static OWN: Option<Arc<OwnedFd>> = eventfd(0, EventfdFlags::CLOEXEC).ok().map(Arc::new);
    }
    OWN.with(Clone::clone)
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FixedSleep => "fixed sleep",
            Self::Poll => "polling",
            Self::Futex => "futex",
            Self::Eventfd => "eventfd",
        })
    }
}
