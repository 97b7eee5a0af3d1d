//! Calibration: what operations cost on an engine of this machine, measured once and kept as a TOML cost sheet.
//!
//! Each figure is the shortest of several runs, so that other load on the machine does not enter it; the [running estimate](bywash_policy::estimate)
//! takes care of what real conditions add. A machine is told by its processor's name and the engine's own description: a sheet from
//! another one is not used.

mod cache;
mod samples;

pub use cache::{default_cache, load_or_measure, sheet_path};

use crate::execute;
use bywash_core::{Algorithm, CostCurve, CostSheet, Engine, Error, Keyed, OwnedOperation, Result, Task};
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

/// Measures these algorithms on an engine within about the budget, shared evenly: an operation that takes longer than its share is run
/// three times, or only once where even the whole budget is used up. An algorithm
/// that the engine fails to do is left off the sheet.
pub fn measure(engine: &dyn Engine, algorithms: &[Algorithm], budget: Duration) -> CostSheet {
    let mut sheet = CostSheet::empty(engine.name());
    sheet.modelled = engine.is_modelled();
    sheet.batch_max = engine.batch_max().max(1);
    sheet.lanes = sheet.batch_max * engine.workers().max(1);
    let end = Instant::now() + budget;
    for (index, &algorithm) in algorithms.iter().enumerate() {
        let share = end.saturating_duration_since(Instant::now()) / (algorithms.len() - index) as u32;
        if let Ok(curve) = curve(engine, algorithm, share, end) {
            sheet.algorithms.insert(algorithm.name().to_owned(), curve);
        }
    }
    sheet
}

/// Within `budget`; by `last` at the latest, but for one run of each size.
fn curve(engine: &dyn Engine, algorithm: Algorithm, budget: Duration, last: Instant) -> Result<CostCurve> {
    let end = Instant::now() + budget;
    let sizes: &[usize] = if algorithm.is_public_key() { &[0] } else { &SIZES };
    let (params, _) = sample(algorithm, 0)?;
    let (mut keyed, mut setup_ns) = timed(|| execute::open(engine, &params))?;
    for _ in 1..TIMES_MIN {
        let again = timed(|| execute::open(engine, &params))?;
        (keyed, setup_ns) = (again.0, setup_ns.min(again.1));
    }
    let mut points: Vec<(u64, f64)> = Vec::with_capacity(sizes.len());
    for (index, &size) in sizes.iter().enumerate() {
        let share = end.saturating_duration_since(Instant::now()) / (sizes.len() - index) as u32;
        let (_, mut operation) = sample(algorithm, size)?;
        points.push((size as u64, shortest_ns(engine, &*keyed, &mut operation, share, last)?));
    }
    Ok(CostCurve { setup_ns, points })
}

fn timed<T>(act: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let begun = Instant::now();
    let made = act()?;
    Ok((made, begun.elapsed().as_nanos() as f64))
}

/// The shortest time of one run: of as many as the budget holds, of three at least while there is time for them.
fn shortest_ns(engine: &dyn Engine, keyed: &dyn Keyed, operation: &mut OwnedOperation, budget: Duration, last: Instant) -> Result<f64> {
    let end = Instant::now() + budget;
    let first = runs_ns(engine, keyed, operation, 1)?;
    let runs = ((budget.as_nanos() as f64 / 16.0 / first.max(1.0)) as u32).clamp(1, RUNS_MAX);
    let (mut shortest, mut times) = (first, 1);
    while Instant::now() < end || (times < TIMES_MIN && Instant::now() < last) {
        shortest = shortest.min(runs_ns(engine, keyed, operation, runs)?);
        times += 1;
    }
    Ok(shortest)
}

fn runs_ns(engine: &dyn Engine, keyed: &dyn Keyed, operation: &mut OwnedOperation, runs: u32) -> Result<f64> {
    let begun = Instant::now();
    for _ in 0..runs {
        let mut tasks = [Task::new(keyed, operation.borrow())];
        execute::run(engine, &mut tasks);
        match &tasks[0].outcome {
            // The sample signature is not a valid one, which costs as much to find out.
            Ok(_) | Err(Error::Authentication) => {}
            Err(error) => return Err(error.clone()),
        }
    }
    Ok(begun.elapsed().as_nanos() as f64 / f64::from(runs))
}
