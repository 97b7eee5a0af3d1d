//! How much of its processors' time the machine takes away in one piece, so that nobody there could have been on time.

use rustix::time::{ClockId, clock_gettime};
use std::thread;
use std::time::Duration;

/// From when on a gap counts: more than an interrupt takes, and what a goal of a millisecond cannot do without.
const GAP: Duration = Duration::from_micros(300);

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
