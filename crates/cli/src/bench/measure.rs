//! Turns what is to be compared into contenders, and what they reached into cells.

use super::job::Job;
use super::mix::{Mix, Step};
use super::pace::{Pace, Plan};
use super::progress::Progress;
use super::report::{Cell, Latency, Measured};
use super::sites::{OPENSSL, Run, Site};
use crate::interrupt::Interrupt;
use bywash_core::{Algorithm, Direction, Error, Result};
use bywash_manager::limit;
use bywash_measure::noise::Watch;
use bywash_measure::statistics::{median, median_interval, paired_ratio, quantile};
use bywash_measure::turns::{Call, Clock, Contender, Samples, latencies, take_turns};
use std::slice::from_mut;
use std::time::Duration;

/// How everything is measured.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) threads: usize,
    pub(crate) batch: usize,
    pub(crate) plan: Plan,
    /// Whether each call is timed by itself as well.
    pub(crate) latency: bool,
    /// Set when the user has had enough.
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) progress: &'a Progress,
}

/// What an entry's cells are of.
struct Subject {
    algorithm: Option<Algorithm>,
    direction: Direction,
    /// Of one operation, in the mean.
    bytes: f64,
}

/// A place that takes part.
struct Entrant<'a> {
    turns: Contender<'a, Error>,
    /// What is timed for percentiles, if it is not what takes its turns: one operation a call.
    singly: Option<Vec<Call<'a, Error>>>,
}

/// One algorithm at one size in all places, in their order.
pub(crate) fn of_job(sites: &[&dyn Site], job: &Job, setting: &Setting<'_>, watch: &mut Watch) -> Vec<Cell> {
    let algorithm = job.params.algorithm();
    let bytes = if algorithm.is_public_key() { 0 } else { job.operation.input.len() };
    let subject = Subject { algorithm: Some(algorithm), direction: job.operation.direction, bytes: bytes as f64 };
    let entrants = sites.iter().map(|site| entrant(*site, job, setting)).collect();
    cells(sites, entrants, &subject, setting, watch)
}

fn entrant<'a>(site: &'a dyn Site, job: &Job, setting: &Setting<'_>) -> Result<Entrant<'a>> {
    let algorithm = job.params.algorithm();
    if let Some(figure) = site.figure(algorithm, setting.threads) {
        return Ok(Entrant { turns: Contender::Figure(figure), singly: None });
    }
    site.check(job)?;
    let operations = site.batch(algorithm, setting.batch);
    let call = |_| -> Result<Call<'a, Error>> {
        let mut run = site.open(&job.params, job.operation.direction)?;
        let mut batch = vec![job.operation.clone(); operations];
        Ok(Box::new(move || run(&mut batch)))
    };
    Ok(Entrant { turns: Contender::Calls { threads: (0..setting.threads).map(call).collect::<Result<_>>()?, operations }, singly: None })
}

/// A mix in all places, and the bytes of its mean operation.
pub(crate) fn of_mix(sites: &[&dyn Site], mix: &Mix, setting: &Setting<'_>, watch: &mut Watch) -> Result<(usize, Vec<Cell>)> {
    let steps = mix.steps()?;
    let (operations, whole) = (steps.len(), steps.iter().map(|step| step.operation.input.len()).sum::<usize>());
    let entrants = sites.iter().map(|site| mix_entrant(*site, mix, &steps, setting)).collect();
    let mean = whole as f64 / operations.max(1) as f64;
    let subject = Subject { algorithm: None, direction: Direction::Compute, bytes: mean };
    Ok((mean.round() as usize, cells(sites, entrants, &subject, setting, watch)))
}

fn mix_entrant<'a>(site: &'a dyn Site, mix: &Mix, steps: &[Step], setting: &Setting<'_>) -> Result<Entrant<'a>> {
    steps.iter().try_for_each(|step| site.check(&Job { params: step.params.clone(), operation: step.operation.clone() }))?;
    let threads = |at_once| (0..setting.threads).map(|_| walk(site, mix, at_once)).collect::<Result<Vec<_>>>();
    let singly = if setting.latency { Some(threads(1)?) } else { None };
    let operations = steps.len();
    Ok(Entrant { turns: Contender::Calls { threads: threads(operations)?, operations }, singly })
}

/// Runs so many steps of a mix in each call, from where the last one ended, with sessions opened where keys are new.
fn walk<'a>(site: &'a dyn Site, mix: &Mix, at_once: usize) -> Result<Call<'a, Error>> {
    let mut steps: Vec<Step> = mix.steps()?;
    let mut sessions: Vec<Option<Run<'a>>> = Vec::new();
    sessions.resize_with(steps.iter().map(|step| step.session + 1).max().unwrap_or(0), || None);
    let mut next = 0;
    Ok(Box::new(move || {
        for _ in 0..at_once {
            let step = &mut steps[next];
            let session = &mut sessions[step.session];
            if step.new_key || session.is_none() {
                *session = Some(site.open(&step.params, step.operation.direction)?);
            }
            if let Some(run) = session {
                run(from_mut(&mut step.operation))?;
            }
            next = (next + 1) % steps.len();
        }
        Ok(())
    }))
}

/// Lets them take turns, and makes a cell of each.
fn cells(
    sites: &[&dyn Site],
    entrants: Vec<Result<Entrant<'_>>>,
    subject: &Subject,
    setting: &Setting<'_>,
    watch: &mut Watch,
) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::with_capacity(sites.len());
    let (mut places, mut contenders, mut singles) = (Vec::new(), Vec::new(), Vec::new());
    for (place, entrant) in entrants.into_iter().enumerate() {
        cells.push(Cell::Failed { error: INTERRUPTED.into() });
        match entrant {
            Ok(Entrant { turns, singly }) => {
                places.push(place);
                contenders.push(turns);
                singles.push(singly);
            }
            Err(error) => cells[place] = Cell::Failed { error: error.to_string() },
        }
    }
    let limit = || subject.algorithm.and_then(|algorithm| limit::bytes_per_ns(algorithm, subject.direction, || Clock::Cpu.now()));
    let mut ghz = Vec::new();
    let before = limit();
    let pace = Pace::begin(setting.plan, contenders.len());
    let mut between = || {
        setting.progress.round(pace.done());
        ghz.extend(watch.probe());
    };
    let results = take_turns(&mut contenders, setting.plan.effort, &mut between, &|| !setting.interrupt.came() && pace.goes_on());
    // What interrupts the loop makes it too low, never too high.
    let at_most = [before, limit()].into_iter().flatten().reduce(f64::max);
    let ghz = (!ghz.is_empty()).then(|| quantile(&ghz, 0.9));
    let theirs = places.iter().zip(&results).find(|(place, _)| sites[**place].name() == OPENSSL);
    let theirs: Option<Vec<f64>> = theirs.and_then(|(_, samples)| samples.as_ref().ok()).map(|samples| samples.ns_per_op.clone());
    for (((place, samples), contender), single) in places.into_iter().zip(results).zip(contenders).zip(singles) {
        let site = sites[place];
        let confirmed = samples.and_then(|samples| subject.algorithm.map_or(Ok(()), |algorithm| site.confirm(algorithm)).map(|()| samples));
        cells[place] = match confirmed {
            Err(error) => Cell::Failed { error: error.to_string() },
            Ok(samples) if samples.ns_per_op.is_empty() => continue,
            Ok(samples) => {
                let mut cell = figures(site, subject, &samples, (ghz, at_most));
                let rival = theirs.as_ref().filter(|_| site.name() != OPENSSL);
                cell.against_openssl = rival.map(|theirs| paired_ratio(theirs, &samples.ns_per_op));
                if setting.latency && !setting.interrupt.came() {
                    cell.latency_ns = percentiles(contender, single, setting);
                }
                Cell::Measured(Box::new(cell))
            }
        };
    }
    cells
}

/// What a place says that was not measured because the user had had enough.
pub(crate) const INTERRUPTED: &str = "interrupted before its turn came";

fn figures(site: &dyn Site, subject: &Subject, samples: &Samples, (ghz, at_most): (Option<f64>, Option<f64>)) -> Measured {
    let interval = median_interval(&samples.ns_per_op);
    let ops_per_s = median(&samples.ops_per_s);
    let bytes = (subject.bytes > 0.0).then_some(subject.bytes);
    let own_core = site.computes_in_the_calling_thread() && !site.is_modelled();
    let at_most = at_most.filter(|_| own_core);
    Measured {
        ns_per_op: interval.mid,
        ns_interval: [interval.low, interval.high],
        ops_per_s,
        mb_per_s: ops_per_s * subject.bytes / 1e6,
        cycles_per_byte: bytes.zip(ghz).filter(|_| own_core).map(|(bytes, ghz)| interval.mid * ghz / bytes),
        share_of_limit: bytes.zip(at_most).map(|(bytes, at_most)| bytes / interval.mid / at_most),
        against_openssl: None,
        against_baseline: None,
        compared_by: None,
        verdict: None,
        latency_ns: None,
        rounds_ns: samples.ns_per_op.clone(),
    }
}

/// As long as all rounds together, a tenth of a second at least.
fn percentiles(contender: Contender<'_, Error>, singly: Option<Vec<Call<'_, Error>>>, setting: &Setting<'_>) -> Option<Latency> {
    let (mut threads, operations) = match (singly, contender) {
        (Some(threads), _) => (threads, 1),
        (None, Contender::Calls { threads, operations }) => (threads, operations),
        (None, Contender::Figure(_)) => return None,
    };
    let seen = latencies(&mut threads, setting.plan.whole().clamp(Duration::from_millis(100), Duration::from_secs(60))).ok()?;
    let at = |q| seen.value_at_quantile(q);
    Some(Latency { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: seen.max(), calls: seen.len(), operations })
}
