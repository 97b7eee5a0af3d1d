//! Calibration: what operations cost on an engine of this machine, measured once and kept as a TOML cost sheet.
//!
//! Public-key operations that an engine has lanes for are measured alone and as one full batch. Of a device that computes others in launches it is measured what a launch of
//! one small text takes, which is its hand-over, how much of that and of each byte is the host's processor's time, and what texts of each size take beyond that in a
//! launch of several.
//!
//! [`measure`] is quick: five sizes within a budget, which a program can pay when it starts. [`measure_full`] takes its time: two sizes for each octave
//! to beyond the caches, with lines [fitted](fit) through them, and batches of every number.
//!
//! Each figure is the shortest of several runs, so that other load on the machine does not enter it; the [running estimate](bywash_policy::estimate)
//! takes care of what real conditions add. A machine is told by its processor's name and the engine's own description: a sheet from
//! another one is not used.

mod cache;
mod fit;
mod full;
mod host;
mod samples;

pub use cache::{default_cache, keep, kept, load_or_measure, load_or_measure_with, processor, sheet_path};

use crate::execute;
use bywash_core::{Algorithm, CostCurve, CostSheet, Engine, Error, Keyed, OwnedOperation, Result, Task};
pub use fit::{Fit, fit};
pub use full::{Thorough, measure_full, sizes};
pub use samples::sample;
use std::time::{Duration, Instant};

/// Time for the measurement of one engine.
pub const BUDGET: Duration = Duration::from_millis(150);

/// Input sizes in bytes at which an operation is measured if its time depends on them.
pub const SIZES: [usize; 5] = [16, 256, 1024, 16384, 131_072];

/// Runs between two looks at the clock, at most.
const RUNS_MAX: u32 = 1024;

/// Runs of an operation however long it takes, unless the whole measurement is over time: the first one may meet a cold processor.
const TIMES_MIN: u32 = 3;

/// An operation that takes less than this is run three times in any case: a first run alone is several times what such an operation costs
/// (code and tables not in the caches), and a sheet of first runs would call sixteen bytes dearer than a kilobyte.
const CHEAP: Duration = Duration::from_micros(100);

/// Points of one algorithm that are measured again, at most.
const AGAIN: usize = 4;

/// The most bytes of all that go in a launch where launches are measured.
const LAUNCH_BYTES: usize = 1 << 20;

/// Measures these algorithms on an engine within about the budget, shared evenly: an operation that takes longer than its share is run
/// three times, or, unless it is cheap, only once where even the whole budget is used up. An algorithm
/// that the engine fails to do is left off the sheet.
pub fn measure(engine: &dyn Engine, algorithms: &[Algorithm], budget: Duration) -> CostSheet {
    let mut sheet = head(engine, algorithms);
    measure_onto(&mut sheet, engine, algorithms, budget);
    sheet
}

/// The same, for a sheet that has others.
fn measure_onto(sheet: &mut CostSheet, engine: &dyn Engine, algorithms: &[Algorithm], budget: Duration) {
    let mut curves = Vec::with_capacity(algorithms.len());
    let end = Instant::now() + budget;
    for (index, &algorithm) in algorithms.iter().enumerate() {
        let share = end.saturating_duration_since(Instant::now()) / (algorithms.len() - index) as u32;
        if let Ok((curve, handover_ns)) = curve(engine, algorithm, share, end) {
            curves.push((algorithm, curve, handover_ns));
        }
    }
    put(sheet, curves);
    host::put(sheet, engine, algorithms);
}

/// A curve, and the hand-over that it was measured beside.
type Measured = (Algorithm, CostCurve, Option<f64>);

/// Puts curves on a sheet, each with the hand-over that it was measured beside, if it was: the shortest is the sheet's, unless it has one, and what others took beyond that is theirs.
fn put(sheet: &mut CostSheet, curves: Vec<Measured>) {
    if sheet.handover_ns == 0.0 {
        sheet.handover_ns = curves.iter().filter_map(|(_, _, ns)| *ns).min_by(f64::total_cmp).unwrap_or(0.0);
    }
    for (algorithm, mut curve, handover_ns) in curves {
        let beyond = handover_ns.map_or(0.0, |ns| ns - sheet.handover_ns);
        let figures = curve.points.iter_mut().map(|(_, ns)| ns).chain(curve.segments.iter_mut().map(|(_, ns, _)| ns));
        figures.for_each(|ns| *ns = (*ns + beyond).max(1.0));
        sheet.algorithms.insert(algorithm.name().to_owned(), curve);
    }
}

/// Whether an engine does operations in launches, which have room for more of them but do not do them for nothing.
fn launches(engine: &dyn Engine, algorithm: Algorithm) -> bool {
    !engine.is_local() && !algorithm.is_public_key() && engine.lanes(algorithm) > 1
}

/// How many operations of a size are measured together.
fn together(engine: &dyn Engine, algorithm: Algorithm, size: usize) -> usize {
    let lanes = if launches(engine, algorithm) { engine.lanes(algorithm) } else { 1 };
    lanes.min(LAUNCH_BYTES / size.max(1)).max(1)
}

/// What each of so many adds to a launch that took so long.
fn each_ns(launch_ns: f64, handover_ns: Option<f64>, count: usize) -> f64 {
    handover_ns.map_or(launch_ns, |handover_ns| ((launch_ns - handover_ns) / count as f64).max(1.0))
}

/// A sheet that has what an engine says of itself, and no curve yet.
fn head(engine: &dyn Engine, algorithms: &[Algorithm]) -> CostSheet {
    let mut sheet = CostSheet::empty(engine.name());
    sheet.modelled = engine.is_modelled();
    sheet.batch_max = engine.batch_max().max(1);
    // What public-key operations gain from going together is measured, and stands in their curves; what others gain from going in one launch is its hand-over.
    let symmetric = algorithms.iter().filter(|&&algorithm| !algorithm.is_public_key() && !launches(engine, algorithm));
    let even = symmetric.map(|&algorithm| engine.lanes(algorithm));
    sheet.lanes = even.max().unwrap_or(1).max(1) * engine.workers().max(1);
    sheet
}

/// Within `budget`; by `last` at the latest, but for one run of each size. Beside it, the hand-over of an engine that computes in launches.
fn curve(engine: &dyn Engine, algorithm: Algorithm, budget: Duration, last: Instant) -> Result<(CostCurve, Option<f64>)> {
    let end = Instant::now() + budget;
    let sizes: &[usize] = if algorithm.is_public_key() { &[0] } else { &SIZES };
    let (keyed, setup_ns) = setup(engine, algorithm)?;
    let lanes = if algorithm.is_public_key() { engine.lanes(algorithm) } else { 1 };
    let launches = launches(engine, algorithm);
    let parts = sizes.len() + usize::from(lanes > 1 || launches);
    let share = |done: usize| end.saturating_duration_since(Instant::now()) / (parts - done) as u32;
    let ns = |size: usize, count: usize, share: Duration| {
        let (_, operation) = sample(algorithm, size)?;
        shortest_ns(engine, &*keyed, &mut vec![operation; count], share, last)
    };
    let handover_ns = if launches { Some(ns(sizes[0], 1, share(0))?) } else { None };
    let mut points: Vec<(u64, f64)> = Vec::with_capacity(sizes.len());
    for (index, &size) in sizes.iter().enumerate() {
        let count = together(engine, algorithm, size);
        points.push((size as u64, each_ns(ns(size, count, share(index))?, handover_ns, count)));
    }
    for _ in 0..AGAIN {
        let Some(index) = out_of_line(&points) else { break };
        let count = together(engine, algorithm, sizes[index]);
        let again = each_ns(ns(sizes[index], count, Duration::ZERO)?, handover_ns, count);
        points[index].1 = points[index].1.min(again);
    }
    let mut batch = Vec::new();
    if lanes > 1 {
        batch.push((lanes as u64, ns(0, lanes, share(sizes.len()))?));
    }
    Ok((CostCurve { setup_ns, points, batch, ..CostCurve::default() }, handover_ns))
}

/// A point that something else on the machine disturbed: dearer than a larger size, or out of all proportion to a smaller one. Where time was short each was run but once.
fn out_of_line(points: &[(u64, f64)]) -> Option<usize> {
    let mut pairs = points.windows(2).map(|pair| (pair[0], pair[1]));
    let dearer = pairs.clone().position(|((_, ns), (_, of_larger))| ns > 2.0 * of_larger);
    let in_proportion = |(bytes, ns): (u64, f64), larger: u64| ns * larger as f64 / bytes.max(1) as f64;
    dearer.or_else(|| pairs.position(|(smaller, (larger, ns))| ns > 3.0 * in_proportion(smaller, larger)).map(|index| index + 1))
}

/// A session, and the shortest time of opening it.
fn setup(engine: &dyn Engine, algorithm: Algorithm) -> Result<(Box<dyn Keyed>, f64)> {
    let (params, _) = sample(algorithm, 0)?;
    let (mut keyed, mut setup_ns) = timed(|| execute::open(engine, &params))?;
    for _ in 1..TIMES_MIN {
        let again = timed(|| execute::open(engine, &params))?;
        (keyed, setup_ns) = (again.0, setup_ns.min(again.1));
    }
    Ok((keyed, setup_ns))
}

fn timed<T>(act: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let begun = Instant::now();
    let made = act()?;
    Ok((made, begun.elapsed().as_nanos() as f64))
}

/// The shortest time of one run of these operations together: of as many as the budget holds, of three at least while there is time for them
/// or where they are cheap.
fn shortest_ns(engine: &dyn Engine, keyed: &dyn Keyed, operations: &mut [OwnedOperation], budget: Duration, last: Instant) -> Result<f64> {
    let end = Instant::now() + budget;
    let first = runs_ns(engine, keyed, operations, 1)?;
    let runs = ((budget.as_nanos() as f64 / 16.0 / first.max(1.0)) as u32).clamp(1, RUNS_MAX);
    let is_cheap = first < CHEAP.as_nanos() as f64;
    let (mut shortest, mut times) = (first, 1);
    while Instant::now() < end || (times < TIMES_MIN && (is_cheap || Instant::now() < last)) {
        shortest = shortest.min(runs_ns(engine, keyed, operations, runs)?);
        times += 1;
    }
    Ok(shortest)
}

fn runs_ns(engine: &dyn Engine, keyed: &dyn Keyed, operations: &mut [OwnedOperation], runs: u32) -> Result<f64> {
    let mut tasks: Vec<_> = operations.iter_mut().map(|operation| Task::new(keyed, operation.borrow())).collect();
    let begun = Instant::now();
    for _ in 0..runs {
        execute::run(engine, &mut tasks);
        for task in &tasks {
            match &task.outcome {
                // The sample signature is not a valid one, which costs as much to find out.
                Ok(_) | Err(Error::Authentication) => {}
                Err(error) => return Err(error.clone()),
            }
        }
    }
    Ok(begun.elapsed().as_nanos() as f64 / f64::from(runs))
}

#[cfg(test)]
mod tests {
    use super::out_of_line;

    #[test]
    fn what_was_disturbed_is_told_from_what_is_dear() {
        let line = [(16, 30.0), (256, 35.0), (1024, 70.0), (16384, 800.0), (131_072, 6400.0)];
        assert_eq!(out_of_line(&line), None);
        let disturbed = |index: usize, ns: f64| {
            let mut points = line;
            points[index].1 = ns;
            out_of_line(&points)
        };
        assert_eq!(disturbed(0, 117_265.0), Some(0), "dearer than a larger size");
        assert_eq!(disturbed(2, 4000.0), Some(2));
        assert_eq!(disturbed(4, 91_000.0), Some(4), "the largest, out of proportion");
        assert_eq!(disturbed(4, 15_000.0), None, "a cache ends there");
        assert_eq!((out_of_line(&[]), out_of_line(&[(0, 5000.0)])), (None, None));
    }
}
