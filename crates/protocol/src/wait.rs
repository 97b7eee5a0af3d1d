//! Waiting for a word in shared memory to change: spinning while it pays, then sleeping in the kernel.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Acquire;
use rustix::thread::futex;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC`, which every process on a machine reads alike.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits until the word is no longer `expected`, spinning for `spin` first; `None` when `timeout` has passed.
///
/// The kernel is asked to sleep only if the word still has the value, so no wake-up is lost, provided that whoever changes the word
/// [wakes](wake) its sleepers. While spinning it offers the processor to others now and then, for the other side may need this very one.
pub fn spin_then_wait(word: &AtomicU32, expected: u32, spin: Duration, timeout: Duration) -> Option<u32> {
    if let Some(value) = spin_while(word, expected, spin) {
        return Some(value);
    }
    let deadline = monotonic_ns().saturating_add(timeout.as_nanos() as u64);
    loop {
        let value = word.load(Acquire);
        if value != expected {
            return Some(value);
        }
        let left = deadline.saturating_sub(monotonic_ns());
        if left == 0 {
            return None;
        }
        sleep_on(word, expected, Duration::from_nanos(left));
    }
}

/// Spins until the word is no longer `expected`; `None` when `spin` has passed.
pub fn spin_while(word: &AtomicU32, expected: u32, spin: Duration) -> Option<u32> {
    spin_until(spin, || {
        let value = word.load(Acquire);
        (value != expected).then_some(value)
    })
}

/// Spins until `ready` answers; `None` when `spin` has passed. Asks at least once.
pub fn spin_until<T>(spin: Duration, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
    if let Some(value) = ready() {
        return Some(value);
    }
    if spin.is_zero() {
        return None;
    }
    let deadline = monotonic_ns() + spin.as_nanos() as u64;
    loop {
        for _ in 0..32 {
            core::hint::spin_loop();
            if let Some(value) = ready() {
                return Some(value);
            }
        }
        if monotonic_ns() >= deadline {
            return None;
        }
        rustix::thread::sched_yield();
    }
}

/// One sleep in the kernel while the word is `expected`: ends by a wake-up, a signal, a changed word or the timeout.
pub(crate) fn sleep_on(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = rustix::time::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
    // Every way in which this can end sends the caller back to look at the word, so the reason does not matter.
    let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&timeout));
}

/// Wakes everybody who sleeps on the word, in any process.
pub fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Wakes sleepers on a word that the other side may have filled with sleepers of its own, at a cost that is bounded: an honest client has
/// one or a few threads there.
pub(crate) fn wake_few(word: &AtomicU32) {
    const FEW: u32 = 64;
    let _ = futex::wake(word, futex::Flags::empty(), FEW);
}

/// Learns whether spinning pays: it does where answers have lately come within the spin's reach.
///
/// After a miss the chance to spin is halved, after a hit it returns at once; a waiter that has missed often asks for a spin
/// only now and then, to notice that times have changed.
#[derive(Clone, Debug)]
pub struct Spin {
    limit: Duration,
    misses: u32,
    skipped: u32,
}

impl Spin {
    /// Spins at most this long; zero never spins.
    pub const fn new(limit: Duration) -> Self {
        Self { limit, misses: 0, skipped: 0 }
    }

    /// How long to spin this time.
    pub fn budget(&mut self) -> Duration {
        if self.misses < 4 {
            return self.limit;
        }
        self.skipped += 1;
        if self.skipped >= 1 << self.misses.min(8) {
            self.skipped = 0;
            return self.limit;
        }
        Duration::ZERO
    }

    /// What came of it: whether the answer was there within `limit`.
    pub fn learn(&mut self, waited: Duration) {
        if waited <= self.limit {
            self.misses = 0;
            self.skipped = 0;
        } else {
            self.misses = self.misses.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering::Release;

    #[test]
    fn a_change_is_seen_and_a_timeout_is_kept() {
        let word = AtomicU32::new(1);
        assert_eq!(spin_then_wait(&word, 0, Duration::ZERO, Duration::ZERO), Some(1));
        assert_eq!(spin_then_wait(&word, 1, Duration::ZERO, Duration::from_millis(2)), None);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(10));
                word.store(5, Release);
                wake(&word);
            });
            assert_eq!(spin_then_wait(&word, 0, Duration::ZERO, Duration::from_secs(30)), Some(5));
        });
    }

    #[test]
    fn spinning_stops_where_it_never_pays_and_comes_back() {
        let mut spin = Spin::new(Duration::from_micros(20));
        for _ in 0..20 {
            spin.learn(Duration::from_millis(1));
        }
        let spins = (0..1000).filter(|_| !spin.budget().is_zero()).count();
        assert!((1..10).contains(&spins), "{spins}");
        spin.learn(Duration::from_micros(3));
        assert_eq!(spin.budget(), Duration::from_micros(20));
    }
}
