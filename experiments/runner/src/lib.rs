//! The papers' experiments, run again: real servers from the distribution, real clients, tables and plots.
//!
//! `bywash reproduce` is the door to this crate. An experiment with servers drives programs and nothing else: the `bywash` command, `tls-load`, `openssl`,
//! servers that it starts itself on free ports of 127.0.0.1 and ends by their own process. What it writes (CSV, SVG) lies
//! beside the README that discusses it, in `experiments/NAME`; `run.json` says of each part when, where and beside what it was run.
//!
//! # How it measures
//!
//! Server on core 0, client and broker on core 1. Rivals are loaded in turn, in interleaved rounds, so that a noisy moment hits all alike; a
//! figure is the median of its rounds. Where the machine is shared, trust ratios and processor seconds, not connections per second.
//!
//! # Adding one
//!
//! A module with a function `run`, and a line in [`EXPERIMENTS`].
#![forbid(unsafe_code)]

mod ciphers;
mod circumstances;
mod kido;
mod load;
mod munetoh;
mod niwa2005;
mod niwa2005_live;
mod ohgama2008;
mod process;
mod rivals;
mod sample;
mod servers;
mod stage;
mod takeda;

use bywash_measure::noise::Watch;
use std::fmt;
use std::path::{Path, PathBuf};

/// An experiment that can be run.
#[derive(Debug)]
pub struct Experiment {
    /// The paper's key.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Its parts, in the order in which they run.
    pub parts: &'static [&'static str],
    run: fn(&Options, &mut Tell<'_>) -> Result<Outcome>,
}

/// All of them.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "kido",
        title: "DDS Security: the estimate with an FPGA, modelled, and its break-even; latency of Fast DDS and Cyclone DDS through our doors, live",
        parts: kido::PARTS,
        run: kido::run,
    },
    Experiment {
        name: "munetoh",
        title: "public-key accelerators behind TLS servers: table 1, figures 3 and 4, and what the paper left open",
        parts: munetoh::PARTS,
        run: munetoh::run,
    },
    Experiment {
        name: "niwa2005",
        title: "an FPGA for ten ciphers: table 2, one core of today beside it; tables 6 to 8, figures 3 to 5 and 7, modelled",
        parts: niwa2005::PARTS,
        run: niwa2005::run,
    },
    Experiment {
        name: "niwa2005-live",
        title: "that FPGA as a modelled engine behind a real broker, and the simulator held against it",
        parts: niwa2005_live::PARTS,
        run: niwa2005_live::run,
    },
    Experiment {
        name: "ohgama2008",
        title: "one crypto module for many processes: figures 6 to 8, modelled, and every scheduler beside the paper's",
        parts: ohgama2008::PARTS,
        run: ohgama2008::run,
    },
    Experiment {
        name: "takeda",
        title: "a GPU beside the processor: figure 2 and table 1, live on what is here, simulated on GPUs that are not",
        parts: takeda::PARTS,
        run: takeda::run,
    },
];

/// What an experiment is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// A look whether all works, in seconds instead of minutes; its figures mean nothing.
    pub quick: bool,
    /// Rounds of each measurement, if not the experiment's own.
    pub rounds: Option<usize>,
    /// The parts to run; all if empty.
    pub parts: Vec<String>,
    /// The `bywash` command.
    pub bywash: PathBuf,
    /// The `tls-load` command, which experiments with servers need.
    pub tls_load: PathBuf,
    /// Where tables and plots go.
    pub out: PathBuf,
}

impl Options {
    /// Whether a part is to run.
    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|name| name == part)
    }
}

/// What came out; the files lie in [`Options::out`].
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The main figures, for people.
    pub text: String,
    /// Every table that was written, by the name of its file without `.csv`.
    pub tables: serde_json::Value,
    /// Parts that failed, and why; the others' figures are there.
    pub failed: Vec<(&'static str, Error)>,
}

/// What runs a part.
type Part<T> = fn(&Options, &mut Outcome, &mut Tell<'_>) -> Result<T>;

impl Outcome {
    /// Runs those of the parts that are wanted, each by its own function; gives what they give.
    fn run_parts<T>(&mut self, options: &Options, parts: &[&'static str], run: &[Part<T>], progress: &mut Tell<'_>) -> Vec<T> {
        let mut given = Vec::new();
        for (name, part) in parts.iter().zip(run).filter(|(name, _)| options.wants(name)) {
            let result = progress(Progress::Begin).and_then(|()| part(options, self, progress));
            given.extend(self.took(name, result));
        }
        given
    }

    /// What a part has given; if it failed that is kept, and the parts after it go on.
    fn took<T>(&mut self, part: &'static str, given: Result<T>) -> Option<T> {
        given.map_err(|error| self.failed.push((part, error))).ok()
    }
}

/// Told how far an experiment has come. Its error, once the user has had enough, ends the part that is under way, and each one after it
/// before it has begun: servers are stopped, and the figures of parts that had ended stay.
pub type Tell<'a> = dyn FnMut(Progress) -> Result<()> + 'a;

/// How far an experiment has come.
#[derive(Clone, Debug)]
pub enum Progress {
    /// One of [`Experiment::parts`] is next, and has done nothing yet.
    Begin,
    /// What is measured now, in so many steps.
    Part(String, u64),
    /// One step is done.
    Step,
    /// Something is worth saying.
    Note(String),
}

/// What went wrong, in words that end with the way out where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<bywash_core::Error> for Error {
    fn from(error: bywash_core::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<bywash_measure::plot::Error> for Error {
    fn from(error: bywash_measure::plot::Error) -> Self {
        Self(error.to_string())
    }
}

/// `core::result::Result` with this crate's [`Error`].
pub type Result<T> = core::result::Result<T, Error>;

impl Experiment {
    /// Checks the names of the parts asked for.
    ///
    /// # Errors
    /// [`Error`], naming the first that there is not, and those that there are.
    pub fn check(&self, options: &Options) -> Result<()> {
        match options.parts.iter().find(|part| !self.parts.contains(&part.as_str())) {
            Some(unknown) => Err(Error(format!("no part '{unknown}' of {}; there are {}", self.name, self.parts.join(", ")))),
            None => Ok(()),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// As [`check`](Self::check); what none of its parts can do without, naming the program or file. What one part lacks is in [`Outcome::failed`].
    pub fn run(&self, options: &Options, progress: &mut Tell<'_>) -> Result<Outcome> {
        self.check(options)?;
        std::fs::create_dir_all(&options.out).map_err(|error| io_error("make", &options.out, &error))?;
        let watch = Watch::begin();
        let outcome = (self.run)(options, progress)?;
        let done = |part: &&&str| options.wants(part) && outcome.failed.iter().all(|(failed, _)| *failed != **part);
        let parts: Vec<&str> = self.parts.iter().filter(done).copied().collect();
        circumstances::note(options, &parts, &watch.end())?;
        Ok(outcome)
    }
}

/// Writes a table as NAME.csv, and keeps it.
pub(crate) fn write_table(options: &Options, outcome: &mut Outcome, name: &str, csv: &str, rows: &impl serde::Serialize) -> Result<()> {
    let path = options.out.join(format!("{name}.csv"));
    outcome.tables[name] = serde_json::to_value(rows).unwrap_or_default();
    std::fs::write(&path, csv).map_err(|error| io_error("write", &path, &error))
}

pub(crate) fn io_error(verb: &str, path: &Path, error: &std::io::Error) -> Error {
    Error(format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_is_told_of_and_the_others_figures_stay() {
        let mut outcome = Outcome { text: "figures\n".into(), ..Outcome::default() };
        assert_eq!(outcome.took("live", Err::<u8, _>(Error("no answer".into()))), None);
        assert_eq!(outcome.took("mixed", Ok(3)), Some(3));
        assert_eq!((outcome.text.as_str(), outcome.failed), ("figures\n", vec![("live", Error("no answer".into()))]));
    }

    #[test]
    fn every_experiment_knows_its_parts() {
        for experiment in EXPERIMENTS {
            let asked = |parts: &[&str]| Options {
                quick: true,
                rounds: None,
                parts: parts.iter().map(|&part| part.to_owned()).collect(),
                bywash: PathBuf::new(),
                tls_load: PathBuf::new(),
                out: PathBuf::new(),
            };
            assert_eq!(experiment.check(&asked(experiment.parts)), Ok(()));
            let error = experiment.check(&asked(&[experiment.parts[0], "nope"])).unwrap_err().to_string();
            assert!(error.contains("'nope'") && error.contains(experiment.parts[0]), "{error}");
            assert!(asked(&[]).wants("any") && asked(&["a"]).wants("a") && !asked(&["a"]).wants("b"));
        }
    }
}
