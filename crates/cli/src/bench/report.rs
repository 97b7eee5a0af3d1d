//! What was measured: the one structure from which tables, JSON, CSV and plots are made, and which a baseline is read back from.

use super::sites::OPENSSL;
use super::verdict::{Verdict, Yardstick};
use bywash_core::Direction;
use bywash_measure::noise::Noise;
use bywash_measure::statistics::Interval;
use serde::{Deserialize, Serialize};

/// A whole run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Whole {
    /// Of Bywash.
    pub(crate) version: String,
    pub(crate) processor: String,
    /// OpenSSL as it names itself, if it took part.
    pub(crate) openssl: Option<String>,
    pub(crate) threads: usize,
    /// Operations that go together.
    pub(crate) batch: usize,
    /// What times are read from: `wall`, or `cpu`, the thread's processor time.
    pub(crate) clock: String,
    /// Whether it was interrupted.
    pub(crate) stopped: bool,
    pub(crate) noise: Noise,
    /// What makes the figures doubtful.
    pub(crate) warnings: Vec<String>,
    pub(crate) reports: Vec<Report>,
}

/// One algorithm one way at all sizes, or a mix.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The algorithm's name, or the mix's.
    pub(crate) name: String,
    /// For people: what a mix is.
    pub(crate) title: Option<String>,
    /// `encrypt`, `decrypt` or `compute`; `mix`.
    pub(crate) direction: String,
    /// Whether an operation costs the same whatever its input.
    pub(crate) public_key: bool,
    /// The columns; a modelled one says so.
    pub(crate) places: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// One place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) modelled: bool,
    /// The engines behind it, where it may be one or another; none in what was kept before that was noted.
    #[serde(default)]
    pub(crate) engine: Option<String>,
}

/// One size.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Of an operation; of a mix's mean operation.
    pub(crate) bytes: usize,
    /// The place that the router picks, where there is one choice for the whole row.
    pub(crate) routed: Option<String>,
    /// In the order of the places.
    pub(crate) cells: Vec<Cell>,
}

/// One place at one size.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    /// It was measured.
    Measured(Box<Measured>),
    /// It could not be, and why.
    Failed {
        /// In words.
        error: String,
    },
}

/// Figures of one place at one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// As one thread sees it; the median of the rounds.
    pub(crate) ns_per_op: f64,
    /// In which the median lies with 95 % confidence; all rounds' range if they are fewer than six.
    pub(crate) ns_interval: [f64; 2],
    /// Of all threads together.
    pub(crate) ops_per_s: f64,
    /// Megabytes (10^6) of all threads together.
    pub(crate) mb_per_s: f64,
    /// Cycles of the core's own clock, not of the time stamp counter.
    pub(crate) cycles_per_byte: Option<f64>,
    /// Of what the AES unit could do if it did nothing else.
    pub(crate) share_of_limit: Option<f64>,
    /// How many times as fast as OpenSSL, each round against the same round.
    pub(crate) against_openssl: Option<Interval>,
    /// How many times as fast as the baseline, in all moments together.
    pub(crate) against_baseline: Option<Interval>,
    /// What of it was compared.
    pub(crate) compared_by: Option<Yardstick>,
    /// Whether it is slower than allowed.
    pub(crate) verdict: Option<Verdict>,
    /// Of calls timed one by one, in nanoseconds; a call may be of several operations.
    pub(crate) latency_ns: Option<Latency>,
    /// Each round's nanoseconds of an operation.
    pub(crate) rounds_ns: Vec<f64>,
}

/// How long single calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) p999: u64,
    pub(crate) max: u64,
    /// How many calls were timed.
    pub(crate) calls: u64,
    /// Operations that each call did.
    #[serde(default = "one")]
    pub(crate) operations: usize,
}

/// What was kept before calls of several were told apart says nothing of their number.
fn one() -> usize {
    1
}

impl Report {
    /// How many sizes no place could do; a rival does not count.
    pub(crate) fn rows_without_a_figure(&self) -> usize {
        let has_one =
            |row: &&Row| self.places.iter().zip(&row.cells).any(|(place, cell)| place.name != OPENSSL && cell.measured().is_some());
        self.rows.len() - self.rows.iter().filter(has_one).count()
    }
}

impl Cell {
    /// What was measured, if it was.
    pub(crate) fn measured(&self) -> Option<&Measured> {
        match self {
            Self::Measured(measured) => Some(measured),
            Self::Failed { .. } => None,
        }
    }

    pub(crate) fn ns(&self) -> Option<f64> {
        self.measured().map(|measured| measured.ns_per_op)
    }
}

/// A direction as it is called here.
pub(crate) fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Encrypt => "encrypt",
        Direction::Decrypt => "decrypt",
        Direction::Compute => "compute",
    }
}
