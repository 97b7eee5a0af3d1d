//! When the machine takes its processors away, and how much of their time in one piece, so that nobody there could have been on time.

use bywash_protocol::turns::First;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// From when on a gap counts: more than an interrupt takes, and what a goal of a millisecond cannot do without.
const GAP: Duration = Duration::from_micros(300);

/// How often [`during`] looks at a processor.
const LOOK: Duration = Duration::from_micros(200);

/// Pieces of time in which a processor was not there, on the monotonic clock: in order, and none overlaps another.
#[derive(Default)]
pub(super) struct Stalls(Vec<[u64; 2]>);

impl Stalls {
    fn of(mut pieces: Vec<[u64; 2]>) -> Self {
        pieces.sort_unstable();
        let mut merged: Vec<[u64; 2]> = Vec::new();
        for [from, to] in pieces {
            match merged.last_mut() {
                Some([_, last]) if from <= *last => *last = to.max(*last),
                _ => merged.push([from, to]),
            }
        }
        Self(merged)
    }

    /// Whether something that took from one moment to another would have been in time without them: they took as much of it as it was late.
    pub(super) fn excuse(&self, begin_ns: u64, end_ns: u64, late_ns: u64) -> bool {
        let lost: u64 = self.0.iter().map(|&[from, to]| to.min(end_ns).saturating_sub(from.max(begin_ns))).sum();
        lost > 0 && lost >= late_ns
    }
}

/// Does some work, and tells which processors were away meanwhile: on each a thread wakes every [`LOOK`], before all programs of the usual kind. What keeps it from that for
/// longer than [`GAP`] is the machine that takes the processor away, or something within the kernel, or a thread that goes before programs as well, such as the module's own, were it at fault.
/// `None` where threads may not go first or be bound to a processor.
///
/// To wake so often is work of its own, and has those chosen sooner who wait for a processor: what is done meanwhile is no measure of a machine without.
pub(super) fn during<T>(work: impl FnOnce() -> T) -> (T, Option<Stalls>) {
    let over = AtomicBool::new(false);
    let processors = sched_getaffinity(None).map_or(Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect());
    thread::scope(|scope| {
        let over = &over;
        let watchers: Vec<_> = processors.into_iter().map(|processor| scope.spawn(move || away(processor, over))).collect();
        let done = {
            let _ends = OnDrop(over);
            work()
        };
        let pieces: Option<Vec<_>> = watchers.into_iter().map(|watcher| watcher.join().ok().flatten()).collect();
        (done, pieces.filter(|pieces| !pieces.is_empty()).map(|pieces| Stalls::of(pieces.concat())))
    })
}

/// Ends the watch, also when what is watched panics.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// When this processor was away, until all is over.
fn away(processor: usize, over: &AtomicBool) -> Option<Vec<[u64; 2]>> {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).ok()?;
    let _first = First::begin().ok()?;
    let (mut last, mut pieces) = (now(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        let next = now();
        if next - last > LOOK + GAP {
            pieces.push([last + LOOK, next].map(|moment| moment.as_nanos() as u64));
        }
        last = next;
    }
    Some(pieces)
}

/// A thread for each processor looks at the clock for so long, with nothing else to do; the share of the time, in percent, that passed between two looks longer apart
/// than [`GAP`]. Where nothing else runs that is the hypervisor's doing.
pub(super) fn stalled_percent(watch: Duration) -> f64 {
    let watchers = thread::available_parallelism().map_or(1, usize::from);
    let stalled: Duration = thread::scope(|scope| {
        let threads: Vec<_> = (0..watchers).map(|_| scope.spawn(|| stalled(watch))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum()
    });
    100.0 * stalled.as_secs_f64() / (watch.as_secs_f64() * watchers as f64)
}

fn stalled(watch: Duration) -> Duration {
    let begun = now();
    let (mut last, mut stalled) = (begun, Duration::ZERO);
    while last - begun < watch {
        let next = now();
        stalled += Some(next - last).filter(|&gap| gap > GAP).unwrap_or_default();
        last = next;
    }
    stalled
}

fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_excuse_what_they_took() {
        let stalls = Stalls::of(vec![[50, 60], [10, 20], [15, 25]]);
        assert_eq!(stalls.0, [[10, 25], [50, 60]]);
        for (begin, end, late, expected) in
            [(0, 30, 15, true), (0, 30, 16, false), (20, 30, 5, true), (20, 30, 6, false), (0, 100, 25, true), (30, 50, 0, false)]
        {
            assert_eq!(stalls.excuse(begin, end, late), expected, "{begin} to {end}, late by {late}");
        }
    }

    #[test]
    fn a_watch_ends_with_what_it_watches() {
        let (done, stalls) = during(|| 7);
        assert_eq!(done, 7);
        if stalls.is_none() {
            eprintln!("skipped: threads may not go first here");
        }
        assert!(std::panic::catch_unwind(|| during(|| panic!("on purpose"))).is_err());
    }
}
