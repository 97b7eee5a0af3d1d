//! The machine and the seven models of niwa2005.

use crate::generate::{Reading, generate};
use crate::machine::Machine;
use crate::oracle::Oracle;
use crate::serial::{self, Report};
use crate::trace::Trace;
use crate::watch::Watch;
use bywash_core::DeviceSheet;
use bywash_policy::reload::bigram::{Bigram, Matrix, Training};
use bywash_policy::reload::fixed::Fixed;
use bywash_policy::reload::lru::Lru;
use bywash_policy::reload::overlap::{AtRandom, Overlap};
use bywash_policy::reload::{Circuit, Circuits, Reload};
use std::borrow::Borrow;
use std::ops::Range;
use std::sync::LazyLock;

/// The rates of table 6, in requests per second. The row printed "50" stands between 500 and 1000 and is 750.
pub const RATES: [f64; 10] = [10.0, 100.0, 200.0, 500.0, 750.0, 1000.0, 2000.0, 4000.0, 10_000.0, 20_000.0];

/// Table 6: the 90 % quantile of latency at each of [`RATES`], of Software, Hardware, Nopredict, Predict, Fix5 and Fix-All relative to Oracle's, and
/// Oracle's in seconds. The last four of these have lost their exponent in print ("0.416" for 41.6 and so on) and are given as they must be.
#[allow(clippy::approx_constant)] // 3.14 is the paper's ratio
pub const TABLE_6: [[f64; 7]; 10] = [
    [3.70, 118.0, 1.17, 1.00, 1.50, 0.78, 0.000_508],
    [12.0, 19_700.0, 1.29, 1.03, 1.90, 0.59, 0.000_914],
    [66.6, 313_000.0, 2.02, 1.16, 3.67, 0.33, 0.002_49],
    [62.1, 25_900.0, 3.00, 1.37, 10.3, 0.20, 0.0934],
    [85.2, 4_900.0, 2.74, 1.31, 7.95, 0.33, 0.569],
    [94.9, 1_570.0, 3.14, 1.24, 6.63, 0.30, 1.89],
    [12.9, 78.1, 2.43, 1.50, 2.70, 0.13, 41.6],
    [3.30, 19.0, 1.34, 1.12, 1.40, 0.34, 178.0],
    [2.57, 13.3, 1.23, 1.08, 1.20, 0.55, 260.0],
    [2.07, 12.2, 1.21, 1.08, 1.20, 0.59, 288.0],
];

/// Seeds of the traces that Predict learns from, none of those that are served. The paper's log of one month has about as many requests as one of them; from so few the
/// 4,510 states are known too badly to come near the paper's Predict, and with many more than these it gets no better.
pub const LESSONS: Range<u64> = 1_000..1_024;

/// With exponential sizes requests of the lightest load lie where the paper has them at this quantile, not at 90 %.
pub const LIGHTEST_QUANTILE: f64 = 0.81;

/// The seven models, in the order of table 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Everything in software.
    Software,
    /// Everything on circuits, which are loaded when a request needs them.
    Hardware,
    /// Loading overlapped with software; the circuit at hand, and one at random.
    Nopredict,
    /// The same, with what the table of pairs predicts.
    Predict,
    /// The five smallest circuits, always.
    Fix5,
    /// All circuits, always.
    FixAll,
    /// As Predict, with what will be used most.
    Oracle,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Software, Self::Hardware, Self::Nopredict, Self::Predict, Self::Fix5, Self::FixAll, Self::Oracle];

    /// Its name in the paper.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Software => "Software",
            Self::Hardware => "Hardware",
            Self::Nopredict => "Nopredict",
            Self::Predict => "Predict",
            Self::Fix5 => "Fix5",
            Self::FixAll => "Fix-All",
            Self::Oracle => "Oracle",
        }
    }

    /// Serves a trace, stretched in time; `matrix` is what Predict has learnt, `seed` what Nopredict draws from. Five and all circuits are held
    /// whatever the machine's slots.
    pub fn run(self, machine: &Machine, trace: &Trace, stretch: f64, matrix: &Matrix, seed: u64) -> Report {
        self.watched(machine, trace, stretch, matrix, seed, &mut ())
    }

    /// The same, and somebody looks on.
    pub fn watched(self, machine: &Machine, trace: &Trace, stretch: f64, matrix: &Matrix, seed: u64, watch: &mut impl Watch) -> Report {
        static SMALLEST: LazyLock<Circuits> = LazyLock::new(|| five_smallest(&sheet()).expect("ten circuits with their areas"));
        let (loaded, mut policy) = self.policy(machine, trace, matrix, *SMALLEST, seed);
        serial::watched(machine, trace.iter(), stretch, loaded, policy.as_mut(), watch)
    }

    /// What is loaded at the start, and who decides from then on. `smallest` is what Fix5 holds; the rest as in [`run`](Self::run).
    pub fn policy<'a>(
        self,
        machine: &'a Machine,
        trace: &'a Trace,
        matrix: &Matrix,
        smallest: Circuits,
        seed: u64,
    ) -> (Circuits, Box<dyn Reload + 'a>) {
        let fit = &machine.fit;
        let none = Circuits::NONE;
        match self {
            Self::Software => (none, Box::new(Fixed)),
            Self::Hardware => (none, Box::new(Lru::new(fit))),
            Self::Nopredict => (none, Box::new(Overlap::new(AtRandom::new(fit, seed), fit))),
            Self::Predict => (none, Box::new(Overlap::new(Bigram::new(matrix.clone()), fit))),
            Self::Fix5 => (smallest, Box::new(Fixed)),
            Self::FixAll => (Circuits::first(fit.circuits()), Box::new(Fixed)),
            Self::Oracle => (none, Box::new(Overlap::new(Oracle::new(machine, trace.iter()), fit))),
        }
    }
}

/// A row of table 6, from the reports of all models at one rate: this quantile of latency relative to Oracle's, and Oracle's in seconds.
pub fn row_of_table_6(reports: &[Report; 7], quantile: f64) -> [f64; 7] {
    let [.., oracle] = reports;
    let oracle = oracle.latency_ns(quantile) as f64;
    let mut row = reports.each_ref().map(|report| report.latency_ns(quantile) as f64 / oracle);
    row[6] = oracle / 1e9;
    row
}

/// What Predict learns from traces.
pub fn learn<T: Borrow<Trace>>(machine: &Machine, traces: impl IntoIterator<Item = T>) -> Matrix {
    let mut training = Training::new(machine.fit.circuits());
    for trace in traces {
        trace.borrow().iter().for_each(|request| training.see(&machine.asked(&request)));
        training.end();
    }
    training.matrix()
}

/// What Predict learns from the traces of [`LESSONS`], in the reading in which it is to serve.
pub fn learn_lessons(machine: &Machine, reading: &Reading) -> Matrix {
    let new = || Training::new(machine.fit.circuits());
    let learnt = each_lesson(reading, new, |training, trace| {
        trace.iter().for_each(|request| training.see(&machine.asked(&request)));
        training.end();
    });
    learnt.iter().skip(1).fold(learnt[0].clone(), |all, training| all.and(training)).matrix()
}

/// Shows the traces of [`LESSONS`], none longer than the paper's own, to as many pupils as there are processors: each trace to one of them. What they have learnt is
/// to be put together in a way in which their order does not matter.
pub fn each_lesson<T: Send>(reading: &Reading, new: impl Fn() -> T + Sync, teach: impl Fn(&mut T, &Trace) + Sync) -> Vec<T> {
    let reading = Reading { requests: reading.requests.min(Reading::default().requests), ..*reading };
    let pupils = std::thread::available_parallelism().map_or(1, usize::from).min(LESSONS.count());
    let learn = |first: usize| {
        let mut pupil = new();
        LESSONS.skip(first).step_by(pupils).for_each(|seed| teach(&mut pupil, &generate(&reading, seed)));
        pupil
    };
    std::thread::scope(|scope| {
        let learn = &learn;
        let threads: Vec<_> = (0..pupils).map(|first| scope.spawn(move || learn(first))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a lesson")).collect()
    })
}

/// What is on the paper's sheet: table 2, two slots, 60 ms to load, 500 ns for each packet (table 5).
fn sheet() -> DeviceSheet {
    DeviceSheet::shipped("niwa2005").and_then(Result::ok).expect("a sheet that comes along, and is tested")
}

/// The paper's machine.
pub fn machine() -> Machine {
    Machine::of(&sheet(), None, "niwa2005").expect("its sheet has all software times")
}

/// What Fix5 holds: the five smallest cores of a sheet; `None` if it does not say how large they are, or has no five.
pub fn five_smallest(sheet: &DeviceSheet) -> Option<Circuits> {
    sheet.area.as_ref()?;
    let mut by_size: Vec<usize> = (0..sheet.cores.len()).collect();
    by_size.sort_by(|&a, &b| sheet.cores[a].area.total_cmp(&sheet.cores[b].area));
    Some(by_size.get(..5)?.iter().map(|&core| Circuit(core as u8)).collect())
}
