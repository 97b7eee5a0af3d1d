//! The simulator: one policy on one modelled engine, and what it came to.

use crate::error::{At, Failure, Result, detached};
use crate::numbers;
use bywash_core::{CostSheet, DeviceSheet};
use bywash_policy::reload::Circuits;
use bywash_sim::generate::{Reading, generate};
use bywash_sim::niwa2005::{each_lesson, five_smallest};
use bywash_sim::optimum::least;
use bywash_sim::study::{FIGURES, Figures, Learnt, Point, Policy, Pupil, Scene, Sweep, apply, fits_clock};
use bywash_sim::watch::{Served, Watch};
use bywash_sim::{Machine, Trace, log};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Requests of a run at most: more than any machine holds.
const REQUESTS_MAX: u64 = u32::MAX as u64;

/// What is to be simulated, as Python names it.
struct Question {
    policy: String,
    engine: String,
    trace: Option<PathBuf>,
    requests: usize,
    train: f64,
    seed: u64,
    cpu: Option<PathBuf>,
    side_by_side: bool,
    changes: Vec<(String, f64)>,
}

/// What came of it.
struct Answer {
    engine: String,
    served: usize,
    learnt_from: usize,
    left_out: u64,
    figures: Figures,
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of the function that Python's users see")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    policy: String,
    engine: String,
    trace: Option<PathBuf>,
    requests: &Bound<'py, PyAny>,
    train: &Bound<'py, PyAny>,
    seed: &Bound<'py, PyAny>,
    cpu: Option<PathBuf>,
    side_by_side: bool,
    changes: Vec<(String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let requests = numbers::whole("requests", requests, 1..=REQUESTS_MAX)? as usize;
    let (train, seed) = (numbers::real("train", train)?, numbers::whole("seed", seed, 0..=u64::MAX)?);
    let changes = changes.into_iter().map(|(key, value)| numbers::real(&key, &value).map(|value| (key, value))).collect::<PyResult<_>>()?;
    let question = Question { policy, engine, trace, requests, train, seed, cpu, side_by_side, changes };
    let answer = detached(py, || question.answer())?;
    let told = PyDict::new(py);
    // So that nobody takes it for a measurement.
    told.set_item("modelled", true)?;
    told.set_item("engine", answer.engine)?;
    told.set_item("policy", &question.policy)?;
    told.set_item("seed", question.seed)?;
    told.set_item("requests", answer.served)?;
    told.set_item("learnt_from", answer.learnt_from)?;
    told.set_item("left_out", answer.left_out)?;
    for (key, value) in &question.changes {
        told.set_item(key, value)?;
    }
    for (name, figure) in FIGURES {
        // What is not known is None.
        told.set_item(name, Some(figure(&answer.figures)).filter(|figure| figure.is_finite()))?;
    }
    Ok(told)
}

fn bad(why: String) -> Failure {
    Failure::Named("BadArgument", why)
}

/// What is learnt from, what is served, and how many requests were left out.
struct Traffic {
    lesson: Option<Trace>,
    served: Trace,
    left_out: u64,
}

impl Question {
    fn answer(&self) -> Result<Answer> {
        let policy: Policy = self.policy.parse().map_err(bad)?;
        let point = self.point()?;
        let sheet = apply(&device(&self.engine)?, &point).map_err(bad)?;
        let smallest = five_smallest(&sheet);
        if self.policy == "fix5" && smallest.is_none() {
            return Err(bad(format!("fix5 needs five circuits with their areas; the sheet of '{}' has not", sheet.name)));
        }
        if self.policy == "hardware" && self.side_by_side {
            return Err(bad("hardware makes requests wait for their circuits; nothing runs side by side with that".to_owned()));
        }
        let processor = self
            .cpu
            .as_deref()
            .map(|path| Ok::<_, Failure>(CostSheet::from_toml(&read(path)?, &path.display().to_string())?))
            .transpose()?;
        let machine = Machine::of(&sheet, processor.as_ref(), &self.engine)?;
        let traffic = self.traffic(&sheet)?;
        let rate = point.iter().find(|(key, _)| key.to_string() == "rate").map(|(_, rate)| *rate);
        if rate.is_some() && traffic.served.span() == 0.0 {
            return Err(bad("what is served arrives all at once, so it cannot be stretched to a rate".to_owned()));
        }
        let stretch = rate.map_or(1.0, |rate| traffic.served.stretch_to(rate));
        if !fits_clock(&machine, &traffic.served, stretch) {
            return Err(bad(format!("'{}' could take 146 years and more for these requests, which no clock here holds", sheet.name)));
        }
        let learnt = self.learn(policy, &machine, &sheet, traffic.lesson.as_ref());
        let scene = Scene {
            machine: &machine,
            trace: &traffic.served,
            learnt: &learnt,
            smallest: smallest.unwrap_or_default(),
            seed: self.seed,
            side_by_side: self.side_by_side,
        };
        let total = scene.run(policy, 0.0, &mut ()).elapsed_ns as f64;
        let mut seen = OnCircuits(0);
        let report = scene.run(policy, stretch, &mut seen);
        let figures = Figures::of(&report, seen.0, total, least(&machine, traffic.served.iter(), self.side_by_side));
        let learnt_from = traffic.lesson.as_ref().map_or(0, Trace::len);
        Ok(Answer { engine: sheet.name, served: traffic.served.len(), learnt_from, left_out: traffic.left_out, figures })
    }

    fn point(&self) -> Result<Point> {
        let one = |(key, value): &(String, f64)| {
            let sweep: Sweep = format!("{key}={value}").parse().map_err(bad)?;
            Ok((sweep.key, *value))
        };
        self.changes.iter().map(one).collect()
    }

    fn reading(&self, sheet: &DeviceSheet) -> Reading {
        Reading { requests: self.requests, circuits: sheet.circuits.len() as u8, ..Reading::default() }
    }

    fn traffic(&self, sheet: &DeviceSheet) -> Result<Traffic> {
        let Some(path) = &self.trace else {
            return Ok(Traffic { lesson: None, served: generate(&self.reading(sheet), self.seed), left_out: 0 });
        };
        if !(0.0..1.0).contains(&self.train) {
            return Err(bad(format!("train is a share of at least 0 and below 1, not {}", self.train)));
        }
        let file = BufReader::new(File::open(path).at(path)?);
        let log = log::read(file, &path.display().to_string(), sheet)?;
        let learnt = (log.trace.len() as f64 * self.train) as usize;
        let served = log.trace.part(learnt..log.trace.len());
        if served.is_empty() {
            return Err(bad(format!("{}: {} requests, and none is left to serve", path.display(), log.trace.len())));
        }
        Ok(Traffic { lesson: Some(log.trace.part(0..learnt)), served, left_out: log.foreign.total() + log.missing.unreadable })
    }

    fn learn(&self, policy: Policy, machine: &Machine, sheet: &DeviceSheet, lesson: Option<&Trace>) -> Learnt {
        let new = || Pupil::new(machine, true);
        let pupil = match lesson {
            _ if !policy.learns() => new(),
            Some(lesson) => {
                let mut pupil = new();
                pupil.see(lesson);
                pupil
            }
            None => each_lesson(&self.reading(sheet), new, Pupil::see).iter().fold(new(), Pupil::and),
        };
        pupil.learnt()
    }
}

/// A sheet that comes along, by its name, or a file.
fn device(name: &str) -> Result<DeviceSheet> {
    match DeviceSheet::shipped(name) {
        Some(sheet) => Ok(sheet?),
        None => Ok(DeviceSheet::from_toml(&read(Path::new(name))?, name)?),
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).at(path)
}

struct OnCircuits(u64);

impl Watch for OnCircuits {
    fn served(&mut self, served: &Served) {
        self.0 += u64::from(served.on_circuit);
    }

    fn loads(&mut self, _: u64, _: u64, _: Circuits) {}
}
