//! niwa2005: prediction of what an FPGA should hold. Table 2 is measured; tables 6, 7 and 8 and figures 3, 4, 5 and 7 are simulated, with the very policies
//! that also run live, on the paper's machine and traces of its generator; so is what it leaves for later, software and circuits side by side.

mod bands;
mod models;
mod side_by_side;
mod table2;
mod traces;

use crate::{Options, Outcome, Part, Progress, Result, Tell};
use bywash_policy::reload::bigram::Matrix;
use bywash_sim::Machine;
use bywash_sim::generate::{Reading, generate};
use bywash_sim::niwa2005::{learn, learn_lessons};
use core::ops::Range;

/// Seeds of a simulation.
const SEEDS: usize = 24;
/// What is simulated to see whether all works.
const QUICK: Reading = Reading { requests: 5_000, ..Reading::BEST };

/// The parts, in the order in which they run.
pub(crate) const PARTS: &[&str] = &["table2", "models", "side-by-side", "traces"];
/// What runs each of them.
const RUN: [Part<()>; PARTS.len()] = [table2::run, models::run, side_by_side::run, traces::run];

pub(crate) fn run(options: &Options, progress: &mut Tell<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    outcome.run_parts(options, PARTS, &RUN, progress);
    Ok(outcome)
}

/// How the generator is read, and the seeds of its traces.
fn simulated(options: &Options) -> (Reading, Range<u64>) {
    let (reading, seeds) = if options.quick { (QUICK, 3) } else { (Reading::BEST, SEEDS) };
    (reading, 0..options.rounds.unwrap_or(seeds) as u64)
}

/// What Predict has learnt.
fn lessons(options: &Options, machine: &Machine, reading: &Reading) -> Matrix {
    if options.quick { learn(machine, [generate(reading, 1_000)]) } else { learn_lessons(machine, reading) }
}

/// Does something for each seed, on all cores; answers in the order of the seeds.
fn for_each_seed<T: Send>(seeds: Range<u64>, progress: &mut Tell<'_>, work: impl Fn(u64) -> T + Sync) -> Result<Vec<T>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let (done, finished) = std::sync::mpsc::channel();
    let mut answers = std::thread::scope(|scope| {
        for _ in 0..threads {
            let (done, next, work) = (done.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= seeds.end || done.send((seed, work(seed))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        // Once this has failed nobody takes answers any more, and the threads end.
        finished.into_iter().map(|answer| progress(Progress::Step).map(|()| answer)).collect::<Result<Vec<(u64, T)>>>()
    })?;
    answers.sort_by_key(|(seed, _)| *seed);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}
