//! The runs, and what they came to.

use super::cards::Card;
use super::lessons::learn;
use super::policies::Policy;
use super::traffic::Source;
use crate::failure::{Exit, Failure};
use bywash_core::CostSheet;
use bywash_measure::statistics::quantile;
use bywash_policy::reload::Circuits;
use bywash_sim::niwa2005::five_smallest;
use bywash_sim::optimum::least;
use bywash_sim::study::{Figures, Key, Learnt, Point, Scene, apply, fits_clock, shown};
use bywash_sim::watch::{Served, Watch};
use bywash_sim::{Machine, Report, Trace};
use std::ops::ControlFlow;

/// Parts of a run for which the processor's load is told; up to four times as many for a run that takes longer than its requests take to arrive.
const PARTS: usize = 100;

/// What is to be run.
pub(crate) struct Plan<'a> {
    pub(crate) cards: &'a [Card],
    pub(crate) processor: Option<&'a CostSheet>,
    /// The rate is among each, if it is not the trace's own.
    pub(crate) points: &'a [Point],
    pub(crate) policies: &'a [Policy],
    pub(crate) seeds: u64,
    pub(crate) side_by_side: bool,
    /// Whether the first seed's runs are kept for plots.
    pub(crate) plots: bool,
}

/// One policy on one engine at one point.
pub(crate) struct Cell {
    pub(crate) card: usize,
    pub(crate) point: Point,
    pub(crate) policy: Policy,
    /// By seed.
    pub(crate) runs: Vec<Figures>,
    /// The first seed's, if there are to be plots.
    pub(crate) first: Option<(Report, Seen)>,
}

impl Cell {
    /// A figure's 10 % quantile, median and 90 % quantile over the seeds.
    pub(crate) fn band(&self, figure: impl Fn(&Figures) -> f64) -> [f64; 3] {
        let values: Vec<f64> = self.runs.iter().map(figure).collect();
        [0.1, 0.5, 0.9].map(|q| quantile(&values, q))
    }

    /// A figure's median.
    pub(crate) fn median(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        self.band(figure)[1]
    }

    /// Whether the optimum is known, of every seed.
    pub(crate) fn knows_optimum(&self) -> bool {
        self.runs.iter().all(|run| run.knows_optimum)
    }
}

/// What is seen of a run. Times are nanoseconds.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    on_circuits: u64,
    first: Option<u64>,
    /// When each load began, when it was there, and what.
    pub(crate) loads: Vec<(u64, u64, Circuits)>,
    /// How long the processor was busy in each part of the time.
    busy: Vec<u64>,
    /// How long a part is; 0 if only requests are to be counted.
    part: u64,
}

impl Seen {
    /// For plots of a run whose requests arrive within this time.
    fn new(elapsed: u64) -> Self {
        Self { part: (elapsed / PARTS as u64).max(1), ..Self::default() }
    }

    /// When the first request came.
    pub(crate) fn origin(&self) -> u64 {
        self.first.unwrap_or(0)
    }

    /// The processor's load over time: seconds, share.
    pub(crate) fn load_over_time(&self) -> Vec<(f64, f64)> {
        let part = self.part as f64;
        self.busy.iter().enumerate().map(|(n, &busy)| ((n as f64 + 0.5) * part / 1e9, busy as f64 / part)).collect()
    }

    fn spent(&mut self, mut begin: u64, end: u64) {
        while begin < end {
            while begin / self.part >= 4 * PARTS as u64 {
                self.busy = self.busy.chunks(2).map(|pair| pair.iter().sum()).collect();
                self.part *= 2;
            }
            let place = (begin / self.part) as usize;
            if self.busy.len() <= place {
                self.busy.resize(place + 1, 0);
            }
            let until = end.min((place as u64 + 1) * self.part);
            self.busy[place] += until - begin;
            begin = until;
        }
    }
}

impl Watch for Seen {
    fn served(&mut self, served: &Served) {
        let origin = *self.first.get_or_insert(served.arrival);
        self.on_circuits += u64::from(served.on_circuit);
        if self.part > 0 && !served.on_circuit {
            self.spent(served.begin - origin, served.end - origin);
        }
    }

    fn loads(&mut self, begin: u64, there: u64, set: Circuits) {
        if self.part > 0 {
            self.loads.push((begin, there, set));
        }
    }
}

/// How many runs a plan has.
pub(crate) fn steps(plan: &Plan<'_>) -> u64 {
    (plan.cards.len() * plan.points.len() * plan.policies.len()) as u64 * plan.seeds
}

/// The machines of a plan, each with what was learnt for it.
pub(crate) fn prepare(plan: &Plan<'_>, source: &Source) -> Result<Vec<Bench>, Failure> {
    let like = &plan.cards[0].sheet;
    let (mut places, mut machines) = (Vec::new(), Vec::new());
    for (place, card) in plan.cards.iter().enumerate() {
        for point in machine_points(plan.points) {
            let sheet = apply(&card.sheet, &point).map_err(|reason| Failure::new(Exit::Usage, format!("--sweep {reason}")))?;
            machines.push(card.machine(&sheet, plan.processor, like)?);
            places.push((place, point, five_smallest(&sheet).unwrap_or_default()));
        }
    }
    let learnt = learn(&machines, plan.policies, source);
    let bench = |(((card, point, smallest), machine), learnt)| Bench { card, point, machine, learnt, smallest };
    Ok(places.into_iter().zip(machines).zip(learnt).map(bench).collect())
}

/// Numbers of slots for which there are not as many circuits that have room together, a line each.
pub(crate) fn without_room(plan: &Plan<'_>, benches: &[Bench]) -> Vec<String> {
    let mut lines = Vec::new();
    for Bench { card, point, machine, .. } in benches {
        let of = |key: Key| point.iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
        let (name, most) = (&plan.cards[*card].sheet.name, machine.fit.most_together());
        if let Some(slots) = of(Key::Slots).filter(|slots| *slots > most as f64) {
            let area = of(Key::Area).map(|area| format!(" with area {}", shown(area))).unwrap_or_default();
            let line =
                format!("slots={slots}: the area of '{name}'{area} has room for {most} circuits at most, so slots beyond change nothing");
            lines.extend((!lines.contains(&line)).then_some(line));
        }
    }
    lines
}

/// Runs all of it, unless `step`, which is called after each run, ends it; how many seeds there are of all policies, and of no others anything.
pub(crate) fn run(
    plan: &Plan<'_>,
    source: &Source,
    benches: &[Bench],
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<(Vec<Cell>, u64), Failure> {
    let of_a_seed = steps(plan) / plan.seeds;
    let (mut cells, mut done): (Vec<Cell>, u64) = (Vec::new(), 0);
    'all: for seed in 0..plan.seeds {
        let trace = source.trace(seed);
        for bench in benches {
            bench.check(plan, &trace)?;
            let ran = bench.run(plan, &trace, seed, &mut |card, point, policy, figures, first| {
                if seed == 0 {
                    cells.push(Cell { card, point: point.clone(), policy, runs: Vec::new(), first });
                }
                cells[(done % of_a_seed) as usize].runs.push(figures);
                done += 1;
                step()
            });
            if ran.is_break() {
                break 'all;
            }
        }
    }
    let seeds = done / of_a_seed;
    cells.iter_mut().for_each(|cell| cell.runs.truncate(seeds as usize));
    Ok((cells, seeds))
}

/// The points without their rates, each once.
fn machine_points(points: &[Point]) -> Vec<Point> {
    let mut all: Vec<Point> = Vec::new();
    for point in points.iter().map(without_rate) {
        if !all.contains(&point) {
            all.push(point);
        }
    }
    all
}

fn without_rate(point: &Point) -> Point {
    point.iter().copied().filter(|(key, _)| *key != Key::Rate).collect()
}

/// A machine with what was learnt for it.
pub(crate) struct Bench {
    card: usize,
    point: Point,
    machine: Machine,
    learnt: Learnt,
    smallest: Circuits,
}

type Take<'a> = &'a mut dyn FnMut(usize, &Point, Policy, Figures, Option<(Report, Seen)>) -> ControlFlow<()>;

impl Bench {
    /// Whether the clock holds the longest that the requests could take.
    fn check(&self, plan: &Plan<'_>, trace: &Trace) -> Result<(), Failure> {
        let slowest = plan.points.iter().map(|point| stretch(point, trace)).fold(0.0, f64::max);
        if fits_clock(&self.machine, trace, slowest) {
            return Ok(());
        }
        let name = &plan.cards[self.card].sheet.name;
        let reason = "could take 146 years and more for these requests, which no clock here holds; see to its sheet, --rate and --sweep";
        Err(Failure::config(format!("'{name}' {reason}")))
    }

    fn run(&self, plan: &Plan<'_>, trace: &Trace, seed: u64, take: Take<'_>) -> ControlFlow<()> {
        let Self { machine, learnt, smallest, .. } = self;
        let scene = Scene { machine, trace, learnt, smallest: *smallest, seed, side_by_side: plan.side_by_side };
        let least = least(machine, trace.iter(), plan.side_by_side);
        let totals: Vec<f64> = plan.policies.iter().map(|&policy| scene.run(policy.simulated(), 0.0, &mut ()).elapsed_ns as f64).collect();
        for point in plan.points.iter().filter(|point| without_rate(point) == self.point) {
            let stretch = stretch(point, trace);
            for (&policy, &total) in plan.policies.iter().zip(&totals) {
                let kept = seed == 0 && plan.plots;
                let mut seen = if kept { Seen::new((trace.span() * stretch * 1e9) as u64) } else { Seen::default() };
                let report = scene.run(policy.simulated(), stretch, &mut seen);
                let figures = Figures::of(&report, seen.on_circuits, total, least);
                take(self.card, point, policy, figures, kept.then_some((report, seen)))?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// How much more slowly than the trace says requests come at a point.
fn stretch(point: &Point, trace: &Trace) -> f64 {
    let rate = point.iter().find(|(key, _)| *key == Key::Rate).map(|(_, rate)| *rate);
    rate.map_or(1.0, |rate| trace.stretch_to(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_over_time_is_bounded_and_nothing_of_it_is_lost() {
        let mut seen = Seen::new(1000);
        let served = |arrival, begin, end| Served { arrival, begin, end, core: bywash_policy::reload::Circuit(0), on_circuit: false };
        seen.served(&served(5, 5, 25));
        assert_eq!(seen.busy, [10, 10], "from the first arrival on, in parts of ten");
        seen.served(&served(6, 25, 1_000_000));
        assert!(seen.busy.len() <= 4 * PARTS && seen.busy.iter().sum::<u64>() == 999_995, "{}", seen.busy.len());
        assert!(seen.load_over_time().iter().all(|&(_, share)| share <= 1.0));
    }
}
