//! The loads and the constants of the machine: what a simulated and a live run have in common.
//!
//! The paper publishes neither constants nor, in its text, the figures' data; the one number it gives is that its scheduler is ahead from about 200 operations a
//! process on, with 20 processes (s5.3). **All constants here are hypotheses of ours**, chosen so that the model has that crossing, and plausible for an XScale of
//! 533 MHz whose kernel ticks a hundred times a second.

use bywash_core::{Algorithm, CostCurve, CostSheet, Direction};
use bywash_policy::{EngineInfo, Lanes, Tenant};
use bywash_sim::shared::{Asks, Client, Host, Load};

/// Processes of figure 6.
pub(super) const PROCESSES: u32 = 20;
/// Bytes of an operation (s5.2).
pub(super) const BYTES: u64 = 1024;
/// What the paper encrypts with (s5.2).
pub(super) const ALGORITHM: Algorithm = Algorithm::TripleDesCbc;

/// Hypothesis: the module takes so long for 1024 bytes of 3DES-CBC, in nanoseconds.
pub(super) const SERVICE_NS: u64 = 117_000;
/// Hypothesis: a process's own work before and after an operation, together, in nanoseconds.
pub(super) const WORK_NS: u64 = 100_000;
/// Hypothesis: a change of process, one way, in nanoseconds. An operation during which others run costs two.
pub(super) const CHANGE_NS: u64 = 120_000;
/// Hypothesis: from the release of the module until the next process, asleep in the opening of its session, begins, in nanoseconds: two ticks and more.
pub(super) const GRANT_NS: u64 = 22_600_000;
/// Of the switch sweep's second machine, where each process has a processor: a process's own work.
const WORK_TODAY_NS: u64 = 6_000;
/// And its waking.
const WAKE_TODAY_NS: u64 = 5_000;

/// Programs of the mixed load that keep the module busy, each with so many operations at a time.
pub(super) const BULK: (u32, u32) = (4, 16);
/// Programs of the mixed load with a goal, each asking so often, on average.
pub(super) const INTERACTIVE: (u32, u64) = (12, 20_000_000);
/// Their goal.
pub(super) const GOAL_NS: u64 = 1_000_000;

/// The module, if a change of session costs so much.
pub(super) fn module(switch_ns: u64) -> EngineInfo {
    let ns = |bytes: u64| (SERVICE_NS * bytes / BYTES) as f64;
    let curve = CostCurve { points: vec![(0, 0.0), (BYTES, ns(BYTES)), (64 * BYTES, ns(64 * BYTES))], ..CostCurve::default() };
    let algorithms = [(ALGORITHM.name().to_owned(), curve)].into();
    let costs = CostSheet { modelled: true, switch_ns: switch_ns as f64, algorithms, ..CostSheet::empty("ixp425") };
    EngineInfo { workers: 1, lanes: Lanes::same(1), costs }
}

/// The board of the paper: one processor for all processes.
pub(super) fn paper_host() -> Host {
    Host { cores: 1, change_ns: 2 * CHANGE_NS, wake_ns: 0, grant_ns: 0 }
}

/// M processes that encrypt N times each, one operation after the other.
pub(super) fn processes(count: u32, operations: u64, host: Host) -> Load {
    let work_ns = if host.cores == 0 { WORK_TODAY_NS } else { WORK_NS };
    let (before_ns, after_ns) = (work_ns / 2, work_ns / 2);
    let asks = Asks::Closed { operations, depth: 1, before_ns, after_ns, think_ns: 0 };
    Load { clients: vec![client("process", None, asks); count as usize], host, until_ns: None, seed: 1 }
}

/// A processor for each process, as on a server of today.
pub(super) fn wide_host() -> Host {
    Host { wake_ns: WAKE_TODAY_NS, ..Host::default() }
}

/// Bulk that keeps the module busy, and programs that want an answer within their goal.
pub(super) fn mixed(seconds: f64, seed: u64) -> Load {
    let (before_ns, after_ns) = (WORK_TODAY_NS / 2, WORK_TODAY_NS / 2);
    let bulk = Asks::Closed { operations: u64::MAX, depth: BULK.1, before_ns, after_ns, think_ns: 0 };
    let mut clients = vec![client("bulk", None, bulk); BULK.0 as usize];
    let interactive = client("interactive", Some(GOAL_NS), Asks::Open { every_ns: INTERACTIVE.1 });
    clients.extend(vec![interactive; INTERACTIVE.0 as usize]);
    Load { clients, host: wide_host(), until_ns: Some((seconds * 1e9) as u64), seed }
}

fn client(group: &'static str, goal_ns: Option<u64>, asks: Asks) -> Client {
    let tenant = Tenant { weight: 1, goal_ns };
    Client { group, tenant, algorithm: ALGORITHM, direction: Direction::Encrypt, bytes: BYTES, start_ns: 0, asks }
}
