//! What a run came to, in figures.

use crate::Report;
use crate::optimum::Least;

/// One run. Times are seconds.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Served.
    pub requests: f64,
    /// All requests without a pause between them, the loading included.
    pub total: f64,
    /// That over what is known to be no more than the least possible.
    pub over_bound: f64,
    /// Whether that is the least possible itself.
    pub knows_optimum: bool,
    /// Of latency.
    pub mean: f64,
    /// The median of latency.
    pub p50: f64,
    /// Its 90 % quantile.
    pub p90: f64,
    /// Its 99 % quantile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// The share of the elapsed time that the processor spent on requests.
    pub load: f64,
    /// How often circuits were loaded.
    pub loads: f64,
    /// The share of requests that ran on circuits.
    pub on_circuits: f64,
    /// Seconds that the processor spent.
    pub processor: f64,
    /// From the first arrival to the end of the last service.
    pub elapsed: f64,
}

impl Figures {
    /// Of a run; `total` is the nanoseconds that the same requests take without a pause between them.
    pub fn of(report: &Report, on_circuits: u64, total: f64, least: Least) -> Self {
        let at = |q| report.latency_ns(q) as f64 / 1e9;
        Self {
            requests: report.requests as f64,
            total: total / 1e9,
            over_bound: total / least.ns as f64,
            knows_optimum: least.is_exact,
            mean: report.latency.mean() / 1e9,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: report.latency.max() as f64 / 1e9,
            load: report.load_factor(),
            loads: report.loads as f64,
            on_circuits: on_circuits as f64 / report.requests as f64,
            processor: report.software_ns as f64 / 1e9,
            elapsed: report.elapsed_ns as f64 / 1e9,
        }
    }

    /// Requests a second that are served if there is always one waiting.
    pub fn capacity(&self) -> f64 {
        self.requests / self.total
    }
}

/// Each figure: its name, with its unit, and how it is had.
pub type Figure = (&'static str, fn(&Figures) -> f64);

/// What is told of a run to programs.
pub const FIGURES: [Figure; 14] = [
    ("total_s", |run| run.total),
    ("capacity_per_s", |run| run.capacity()),
    ("over_optimum", |run| if run.knows_optimum { run.over_bound } else { f64::NAN }),
    ("over_bound", |run| run.over_bound),
    ("mean_s", |run| run.mean),
    ("p50_s", |run| run.p50),
    ("p90_s", |run| run.p90),
    ("p99_s", |run| run.p99),
    ("max_s", |run| run.max),
    ("load_factor", |run| run.load),
    ("loads", |run| run.loads),
    ("on_circuits", |run| run.on_circuits),
    ("processor_s", |run| run.processor),
    ("elapsed_s", |run| run.elapsed),
];
