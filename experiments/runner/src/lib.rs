//! The papers' experiments, run again: real servers from the distribution, real clients, tables and plots.
//!
//! `bywash reproduce` is the door to this crate. An experiment with servers drives programs and nothing else: the `bywash` command, `tls-load`, `openssl`,
//! servers that it starts itself on free ports of 127.0.0.1 and ends by their own process. What it writes (CSV, SVG) lies
//! beside the README that discusses it, in `experiments/NAME`.
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

use std::fmt;
use std::path::{Path, PathBuf};

/// An experiment that can be run.
pub struct Experiment {
    /// The paper's key.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    run: fn(&Options, &mut dyn FnMut(Progress)) -> Result<Outcome>,
}

/// All of them.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "kido",
        title: "DDS Security: the estimate with an FPGA, modelled, and its break-even; latency of Fast DDS and Cyclone DDS through our doors, live",
        run: kido::run,
    },
    Experiment {
        name: "munetoh",
        title: "public-key accelerators behind TLS servers: table 1, figures 3 and 4, and what the paper left open",
        run: munetoh::run,
    },
    Experiment {
        name: "niwa2005",
        title: "an FPGA for ten ciphers: table 2, one core of today beside it; tables 6 to 8, figures 3 to 5 and 7, modelled",
        run: niwa2005::run,
    },
    Experiment {
        name: "niwa2005-live",
        title: "that FPGA as a modelled engine behind a real broker, and the simulator held against it",
        run: niwa2005_live::run,
    },
    Experiment {
        name: "ohgama2008",
        title: "one crypto module for many processes: figures 6 to 8, modelled, and every scheduler beside the paper's",
        run: ohgama2008::run,
    },
    Experiment {
        name: "takeda",
        title: "a GPU beside the processor: figure 2 and table 1, live on what is here, simulated on GPUs that are not",
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

/// What came out; the files lie in [`Options::out`].
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The main figures, for people.
    pub text: String,
    /// Every table that was written, by the name of its file without `.csv`.
    pub tables: serde_json::Value,
}

/// How far an experiment has come.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A part begins, of so many steps.
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
    /// Runs it.
    ///
    /// # Errors
    /// [`Error`], naming the program or file.
    pub fn run(&self, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Outcome> {
        std::fs::create_dir_all(&options.out).map_err(|error| io_error("make", &options.out, &error))?;
        (self.run)(options, progress)
    }
}

/// Checks the names of the parts asked for.
pub(crate) fn parts(options: &Options, names: &[&str]) -> Result<()> {
    match options.parts.iter().find(|part| !names.contains(&part.as_str())) {
        Some(unknown) => Err(Error(format!("no part '{unknown}'; there are {}", names.join(", ")))),
        None => Ok(()),
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
