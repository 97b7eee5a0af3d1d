//! Timing: every place in turn, round after round, so that a machine that slows down slows all of them; then medians.

use bywash_core::{Algorithm, Error, Operation, OwnedOperation, Result, SessionParams};
use bywash_manager::calibrate;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// Somewhere operations can run.
pub(crate) trait Site: Sync {
    /// What the column is headed with.
    fn name(&self) -> &str;

    /// Whether its times come from a model.
    fn is_modelled(&self) -> bool {
        false
    }

    /// Whether it has anything to show for this algorithm.
    fn offers(&self, _algorithm: Algorithm) -> bool {
        true
    }

    /// Whether what was measured really ran there.
    fn confirm(&self, _algorithm: Algorithm) -> Result<()> {
        Ok(())
    }

    /// Opens a session there.
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Work>>;
}

/// A session somewhere.
pub(crate) trait Work: Send + Sync {
    /// Runs one operation to its end.
    fn run(&self, operation: &mut Operation<'_>) -> Result<()>;

    /// How many operations one run does.
    fn width(&self) -> usize {
        1
    }

    /// A figure that it measured itself, where its operations cannot be run one by one.
    fn figure(&self) -> Option<Result<Figure>> {
        None
    }
}

/// What time is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Wall,
    /// The thread's processor time: other load does not count.
    Cpu,
}

impl Clock {
    fn now(self) -> Duration {
        let time = clock_gettime(if self == Self::Cpu { ClockId::ThreadCPUTime } else { ClockId::Monotonic });
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }
}

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) threads: usize,
    pub(crate) rounds: usize,
    /// Of one place in one round.
    pub(crate) slice: Duration,
    pub(crate) clock: Clock,
}

/// What one place reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    /// As one thread sees it.
    pub(crate) ns_per_op: f64,
    /// Of all threads together.
    pub(crate) ops_per_s: f64,
}

/// The median figure of each site, in their order; a site that cannot do it has an error.
pub(crate) fn measure(sites: &[&dyn Site], params: &SessionParams, bytes: usize, effort: Effort) -> Vec<Result<Figure>> {
    let works: Vec<Result<Box<dyn Work>>> = sites.iter().map(|site| site.open(params)).collect();
    let mut samples: Vec<Result<Vec<Figure>>> = works.iter().map(|work| work.as_ref().map(|_| Vec::new()).map_err(Clone::clone)).collect();
    for _ in 0..effort.rounds {
        for (work, sample) in works.iter().zip(&mut samples) {
            if let (Ok(work), Ok(figures)) = (work, sample.as_mut()) {
                let figure = work.figure().unwrap_or_else(|| slice(&**work, params.algorithm(), bytes, effort));
                match figure {
                    Ok(figure) => figures.push(figure),
                    Err(error) => *sample = Err(error),
                }
            }
        }
    }
    let confirmed = |(index, sample): (usize, Result<Vec<Figure>>)| {
        let figures = sample?;
        sites[index].confirm(params.algorithm())?;
        Ok(median(figures))
    };
    samples.into_iter().enumerate().map(confirmed).collect()
}

/// The figure in the middle by time of one operation.
fn median(mut figures: Vec<Figure>) -> Figure {
    figures.sort_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op));
    figures.get(figures.len() / 2).copied().unwrap_or(Figure { ns_per_op: 0.0, ops_per_s: 0.0 })
}

/// All threads start together; each has its own buffers.
fn slice(work: &dyn Work, algorithm: Algorithm, bytes: usize, effort: Effort) -> Result<Figure> {
    let start = Barrier::new(effort.threads);
    let one = || {
        let ready = calibrate::sample(algorithm, bytes).and_then(|(_, mut operation)| {
            run_once(work, &mut operation)?;
            Ok(operation)
        });
        start.wait();
        ready.and_then(|mut operation| spin(work, &mut operation, effort))
    };
    let results: Vec<Result<f64>> = thread::scope(|scope| {
        let others: Vec<_> = (1..effort.threads).map(|_| scope.spawn(one)).collect();
        let mut results = vec![one()];
        results.extend(others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        results
    });
    let each: Vec<f64> = results.into_iter().collect::<Result<_>>()?;
    Ok(Figure { ns_per_op: each.iter().sum::<f64>() / each.len() as f64, ops_per_s: each.iter().map(|ns| 1e9 / ns).sum() })
}

/// Nanoseconds of one operation. The clock is read once for a growing number of operations, so that reading it does not count.
fn spin(work: &dyn Work, operation: &mut OwnedOperation, Effort { slice, clock, .. }: Effort) -> Result<f64> {
    let begun = clock.now();
    let (mut done, mut step) = (0u64, 1u64);
    loop {
        for _ in 0..step {
            run_once(work, operation)?;
        }
        done += step * work.width() as u64;
        let elapsed = clock.now() - begun;
        if elapsed >= slice {
            return Ok((elapsed.as_nanos() as f64 / done as f64).max(0.1));
        }
        if elapsed * 16 < slice {
            step *= 2;
        }
    }
}

/// The sample's signature is not a valid one, which costs as much to find out.
fn run_once(work: &dyn Work, operation: &mut OwnedOperation) -> Result<()> {
    match work.run(&mut operation.borrow()) {
        Err(Error::Authentication) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let figure = |ns_per_op| Figure { ns_per_op, ops_per_s: 1.0 };
        assert_eq!(median(vec![figure(9.0), figure(1.0), figure(5.0)]).ns_per_op, 5.0);
    }
}
