//! Contenders in turn: every one in each round, so that a machine that slows down slows all of them; each round begins with another one, so that what
//! comes as regularly as the turns (the scheduler's slices) does not always meet the same.

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// What time is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The time that passes.
    Wall,
    /// The thread's processor time: other load does not count, and neither does what other threads do for it.
    Cpu,
}

impl Clock {
    /// Its present reading.
    pub fn now(self) -> Duration {
        let time = clock_gettime(if self == Self::Cpu { ClockId::ThreadCPUTime } else { ClockId::Monotonic });
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }
}

/// What one call of a contender does, in a thread of its own and with buffers of its own.
pub type Call<'a, E> = Box<dyn FnMut() -> Result<(), E> + Send + 'a>;

/// What takes its turn.
pub enum Contender<'a, E> {
    /// Calls that are timed here.
    Calls {
        /// One for each thread; they all run at the same time.
        threads: Vec<Call<'a, E>>,
        /// Operations that one call does.
        operations: usize,
    },
    /// It gives figures of its own in every round.
    Figure(Figure<'a, E>),
}

/// What gives figures of its own: nanoseconds of an operation as one thread sees it, operations a second of all threads.
pub type Figure<'a, E> = Box<dyn FnMut() -> Result<(f64, f64), E> + 'a>;

/// How long and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Rounds over all contenders.
    pub rounds: usize,
    /// Of one contender in one round.
    pub slice: Duration,
    /// What its time is read from.
    pub clock: Clock,
}

/// What one contender reached, round by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Nanoseconds of one operation, as one thread sees it.
    pub ns_per_op: Vec<f64>,
    /// Operations a second of all threads together.
    pub ops_per_s: Vec<f64>,
}

/// Runs the contenders in turn, `between` before each; a contender that fails has its error instead of samples, and the others go on. `go_on` is asked
/// before each round; who says no gets what was measured so far. A round that was begun is finished.
pub fn take_turns<E: Send>(
    contenders: &mut [Contender<'_, E>],
    effort: Effort,
    between: &mut dyn FnMut(),
    go_on: &dyn Fn() -> bool,
) -> Vec<Result<Samples, E>> {
    let mut results: Vec<Result<Samples, E>> = contenders.iter().map(|_| Ok(Samples::default())).collect();
    let count = contenders.len();
    for round in 0..effort.rounds {
        if !go_on() {
            break;
        }
        for index in (0..count).map(|place| (round + place) % count) {
            let Ok(samples) = &mut results[index] else { continue };
            between();
            match contenders[index].turn(effort) {
                Ok((ns_per_op, ops_per_s)) => {
                    samples.ns_per_op.push(ns_per_op);
                    samples.ops_per_s.push(ops_per_s);
                }
                Err(error) => results[index] = Err(error),
            }
        }
    }
    results
}

impl<E: Send> Contender<'_, E> {
    /// One turn: nanoseconds of an operation as one thread sees it, operations a second of all.
    fn turn(&mut self, effort: Effort) -> Result<(f64, f64), E> {
        let (threads, operations) = match self {
            Self::Figure(figure) => return figure(),
            Self::Calls { threads, operations } => (threads, *operations as f64),
        };
        let spun = in_parallel(threads, |call| spin(call, effort))?;
        let mean = spun.iter().map(Spun::ns).sum::<f64>() / spun.len() as f64;
        Ok((mean / operations, calls_per_s(&spun) * operations))
    }
}

/// What one thread did in a slice.
struct Spun {
    calls: u64,
    begun: Duration,
    ended: Duration,
}

impl Spun {
    /// Nanoseconds of one call.
    fn ns(&self) -> f64 {
        ((self.ended - self.begun).as_nanos() as f64 / self.calls as f64).max(0.1)
    }
}

/// What all threads did, in the time from when the first of them began to when the last ended: where there are more threads than processors, they run one after the other.
fn calls_per_s(spun: &[Spun]) -> f64 {
    let begun = spun.iter().map(|one| one.begun).min().unwrap_or_default();
    let ended = spun.iter().map(|one| one.ended).max().unwrap_or_default();
    spun.iter().map(|one| one.calls).sum::<u64>() as f64 / (ended - begun).as_secs_f64().max(1e-10)
}

/// All threads start together, after one call of each that does not count.
fn in_parallel<E: Send, T: Send>(calls: &mut [Call<'_, E>], work: impl Fn(&mut Call<'_, E>) -> Result<T, E> + Sync) -> Result<Vec<T>, E> {
    let start = Barrier::new(calls.len().max(1));
    let one = |call: &mut Call<'_, E>| {
        let ready = call();
        start.wait();
        ready.and_then(|()| work(call))
    };
    let Some((first, others)) = calls.split_first_mut() else { return Ok(Vec::new()) };
    thread::scope(|scope| {
        let others: Vec<_> = others.iter_mut().map(|call| scope.spawn(|| one(call))).collect();
        let mut results = vec![one(first)];
        results.extend(others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        results.into_iter().collect()
    })
}

/// Calls for as long as a slice. The clock is read once for a growing number of calls, so that reading it does not count.
fn spin<E>(call: &mut Call<'_, E>, Effort { slice, clock, .. }: Effort) -> Result<Spun, E> {
    let begun = clock.now();
    let (mut calls, mut step) = (0u64, 1u64);
    loop {
        for _ in 0..step {
            call()?;
        }
        calls += step;
        let ended = clock.now();
        if ended - begun >= slice {
            return Ok(Spun { calls, begun, ended });
        }
        if (ended - begun) * 16 < slice {
            step *= 2;
        }
    }
}

/// Times each call by itself, in all threads at once, for as long as a slice: nanoseconds of a call by the clock that passes. Reading the clock
/// is in every one of them; [`clock_ns`] says what that costs.
pub fn latencies<E: Send>(threads: &mut [Call<'_, E>], slice: Duration) -> Result<Histogram<u64>, E> {
    let each = in_parallel(threads, |call| {
        let mut seen = histogram();
        let begun = Instant::now();
        let mut before = begun;
        while before - begun < slice {
            call()?;
            let after = Instant::now();
            seen.saturating_record((after - before).as_nanos() as u64);
            before = after;
        }
        Ok(seen)
    })?;
    Ok(each.into_iter().fold(histogram(), |mut all, one| {
        all += one;
        all
    }))
}

/// Times up to a minute, to three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3)
        .unwrap_or_else(|_| unreachable!("bounds and digits are constants that the library takes"))
}

/// Nanoseconds that reading the clock once takes: the median of many.
pub fn clock_ns() -> f64 {
    let mut calls: [Call<'_, std::convert::Infallible>; 1] = [Box::new(|| Ok(()))];
    latencies(&mut calls, Duration::from_millis(1)).map_or(0.0, |seen| seen.value_at_quantile(0.5) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    const EFFORT: Effort = Effort { rounds: 3, slice: Duration::from_micros(200), clock: Clock::Wall };

    fn calls<'a>(count: &'a AtomicUsize, threads: usize, operations: usize) -> Contender<'a, String> {
        let call = || -> Call<'a, String> {
            Box::new(|| {
                count.fetch_add(1, SeqCst);
                Ok(())
            })
        };
        Contender::Calls { threads: (0..threads).map(|_| call()).collect(), operations }
    }

    #[test]
    fn all_take_their_turns_and_one_that_fails_stops_no_other() {
        let (first, second, mut between) = (AtomicUsize::new(0), AtomicUsize::new(0), 0);
        let mut left = 2;
        let failing = Box::new(move || {
            left -= 1;
            if left == 0 { Err("it broke".to_owned()) } else { Ok((5.0, 2e8)) }
        });
        let mut all = [calls(&first, 1, 1), Contender::Figure(failing), calls(&second, 2, 4)];
        let results = take_turns(&mut all, EFFORT, &mut || between += 1, &|| true);
        assert!(first.load(SeqCst) >= 6 && second.load(SeqCst) >= 12);
        assert_eq!(between, 3 + 2 + 3);
        assert_eq!(results[1], Err("it broke".to_owned()));
        for result in [&results[0], &results[2]] {
            let samples = result.as_ref().unwrap();
            assert_eq!((samples.ns_per_op.len(), samples.ops_per_s.len()), (3, 3));
            assert!(samples.ns_per_op.iter().all(|ns| *ns > 0.0));
        }
    }

    #[test]
    fn each_round_begins_with_another() {
        let seen = std::cell::RefCell::new(Vec::new());
        let named = |name: char| -> Contender<'_, String> {
            let seen = &seen;
            Contender::Figure(Box::new(move || {
                seen.borrow_mut().push(name);
                Ok((1.0, 1e9))
            }))
        };
        take_turns(&mut ['a', 'b', 'c'].map(named), Effort { rounds: 4, ..EFFORT }, &mut || {}, &|| true);
        assert_eq!(seen.into_inner().into_iter().collect::<String>(), "abcbcacababc");
    }

    #[test]
    fn threads_that_run_one_after_the_other_are_no_faster_than_one() {
        let spun = |begun: u64, ended: u64, calls| Spun { calls, begun: Duration::from_millis(begun), ended: Duration::from_millis(ended) };
        assert_eq!(calls_per_s(&[spun(0, 1000, 100)]), 100.0);
        assert_eq!(calls_per_s(&[spun(0, 1000, 100), spun(0, 1000, 100)]), 200.0);
        assert_eq!(calls_per_s(&[spun(0, 1000, 100), spun(1000, 2000, 100)]), 100.0);
        assert_eq!(spun(1000, 2000, 100).ns(), 1e7);
    }

    #[test]
    fn who_says_stop_keeps_what_there_is() {
        let (count, asked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = take_turns(&mut [calls(&count, 1, 1)], EFFORT, &mut || {}, &|| asked.fetch_add(1, SeqCst) < 2);
        assert_eq!(results[0].as_ref().unwrap().ns_per_op.len(), 2);
    }

    #[test]
    fn every_call_is_in_the_histogram() {
        let count = AtomicUsize::new(0);
        let Contender::Calls { mut threads, .. } = calls(&count, 2, 1) else { unreachable!() };
        let seen = latencies(&mut threads, Duration::from_millis(1)).unwrap();
        // One call of each thread does not count.
        assert_eq!(seen.len() as usize + 2, count.load(SeqCst));
        assert!(clock_ns() < 1e6);
    }
}
