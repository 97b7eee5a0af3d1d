//! A broker over the modelled module, the loads at it, and the same loads simulated.

use super::super::loads::{ALGORITHM, BULK, BYTES, GOAL_NS, INTERACTIVE, SERVICE_NS};
use super::late::{self, Late};
use super::programs::{Programs, Report, Way, few_elsewhere, run};
use super::stalls;
use crate::{Error, Options, Result};
use bywash_broker::{Broker, BrokerConfig, BrokerHandle, TenantRule, jain};
use bywash_core::{CostCurve, CostSheet, Direction, Engine, Time};
use bywash_engine_board::{Board, Waiting};
use bywash_manager::{Costs, Manager, ManagerConfig, Observation, Tenant};
use bywash_measure::statistics::median;
use bywash_policy::{EngineInfo, Lanes, by_name};
use bywash_sim::shared::{self, Asks, Client, Host, Load};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the broker is asked whether the module's thread goes first.
const LOOK: Duration = Duration::from_millis(100);

/// Where the programs are, and how many brokers there have been.
pub(super) struct Live {
    programs: Programs,
}

/// A request as the broker's manager saw it.
pub(super) struct Seen {
    pub(super) client: u32,
    pub(super) arrival: Time,
    pub(super) dispatched: Time,
    pub(super) start: Time,
    pub(super) done: Time,
    pub(super) deadline: Option<Time>,
}

/// What came of processes that had so much to do each.
pub(super) struct Processes {
    pub(super) makespan_s: f64,
    pub(super) mean_end_s: f64,
    pub(super) worst_first_s: f64,
    pub(super) switches: u64,
    /// The median operation, in microseconds.
    pub(super) took_us: f64,
}

/// What came of a mixed load.
pub(super) struct Mixed {
    pub(super) bulk_per_s: f64,
    pub(super) jain: f64,
    /// From the request's arrival at the broker to its end there.
    pub(super) missed_percent: f64,
    /// From the moment at which the program wanted it until it had it.
    pub(super) too_long_percent: f64,
    pub(super) wait_us: [f64; 2],
    pub(super) first: First,
}

/// What came of it while the processors were [watched](stalls::during).
#[derive(Clone, Copy, Default)]
pub(super) struct Watched {
    /// Requests with a goal.
    pub(super) asked: usize,
    /// Late at the broker.
    pub(super) missed: usize,
    /// Of those, late by no more than a processor was away.
    pub(super) excused: usize,
    pub(super) late: Late,
}

impl Watched {
    /// Both together.
    pub(super) fn plus(mut self, other: Self) -> Self {
        self.late += other.late;
        Self { asked: self.asked + other.asked, missed: self.missed + other.missed, excused: self.excused + other.excused, ..self }
    }
}

/// A run: what its programs say, what its broker saw, how often the module changed its session.
struct Run {
    reports: Vec<Report>,
    seen: Vec<Seen>,
    /// When the manager's clock began, on the monotonic one.
    origin_ns: u64,
    switches: u64,
    first: First,
}

impl Live {
    pub(super) fn new(options: &Options) -> Result<Self> {
        Ok(Self { programs: Programs::new(&options.bywash)? })
    }

    /// Why programs cannot come by a way here, if they cannot.
    pub(super) fn lacks(&self, way: Way) -> Option<String> {
        self.programs.lacks(way)
    }

    fn run(
        &self,
        way: Way,
        scheduler: &str,
        sigma: f64,
        count: u32,
        command: impl Fn(&Programs, &std::path::Path, u32) -> Command,
    ) -> Result<Run> {
        let board: Arc<dyn Engine> = Arc::new(Board::new(sheet(SERVICE_NS as f64, sigma * SERVICE_NS as f64), Waiting::FixedSleep)?);
        let config =
            ManagerConfig { policy: scheduler.parse()?, costs: Costs::Given(Vec::new()), ..ManagerConfig::new(vec![board.clone()]) };
        let manager = Manager::new(config)?;
        let socket = self.programs.folder().join("broker.sock");
        let mut config = BrokerConfig::new(socket.clone(), manager.clone());
        let tenant = Tenant { weight: 1, goal_ns: Some(GOAL_NS) };
        config.tenants = vec![TenantRule { matches: "program:ocf-soon".parse()?, tenant }];
        let broker = Broker::bind(config)?;
        let (handle, served) = (broker.handle(), broker.spawn()?);
        let seen = watch(&manager);
        let origin_ns = late::now_ns() - manager.now().0;
        let commands = (0..count).map(|place| command(&self.programs, &socket, place)).collect();
        let (reports, first) = First::during(&handle, || run(way, commands));
        handle.shutdown();
        let _ = served.join();
        let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        let reports = reports?;
        let asked: u64 = reports.iter().map(|report| report.operations).sum();
        few_elsewhere(asked.saturating_sub(seen.len() as u64), asked)?;
        Ok(Run { reports, seen, origin_ns, switches: board.switches().unwrap_or_default(), first })
    }

    /// Processes with so many operations each.
    pub(super) fn processes(&self, way: Way, scheduler: &str, sigma: f64, count: u32, operations: u64) -> Result<Processes> {
        let run = self.run(way, scheduler, sigma, count, |programs, socket, _| {
            let mut command = programs.command(way, "ocf-bulk", socket);
            command.arg("--operations").arg(operations.to_string());
            command
        })?;
        let ends = || run.reports.iter().map(|report| report.end_us / 1e6);
        Ok(Processes {
            makespan_s: ends().fold(0.0, f64::max),
            mean_end_s: ends().sum::<f64>() / f64::from(count),
            worst_first_s: run.reports.iter().filter_map(|report| report.first_us).fold(0.0, f64::max) / 1e6,
            switches: run.switches,
            took_us: median(&run.reports.iter().flat_map(|report| report.took_us.iter().copied()).collect::<Vec<_>>()),
        })
    }

    /// Programs that ask again at once, and programs that ask now and then and have a goal.
    fn run_mixed(&self, scheduler: &str, seconds: f64) -> Result<Run> {
        self.run(Way::Direct, scheduler, 0.0, BULK.0 + INTERACTIVE.0, |programs, socket, place| {
            let mut command = programs.command(Way::Direct, if place < BULK.0 { "ocf-bulk" } else { "ocf-soon" }, socket);
            command.arg("--seconds").arg(seconds.to_string());
            if place >= BULK.0 {
                command.arg("--every-us").arg((INTERACTIVE.1 / 1000).to_string()).arg("--seed").arg((7 * place + 1).to_string());
            }
            command
        })
    }

    /// The same with the processors watched; `None` where they cannot be.
    pub(super) fn watched(&self, scheduler: &str, seconds: f64) -> Result<Option<Watched>> {
        let (run, stalls) = stalls::during(|| self.run_mixed(scheduler, seconds));
        let (run, Some(stalls)) = (run?, stalls) else { return Ok(None) };
        let late = Late::of(&run.reports[BULK.0 as usize..], &run.seen, run.origin_ns, &stalls);
        let mut watched = Watched { late, ..Watched::default() };
        for (seen, deadline) in run.seen.iter().filter_map(|seen| Some((seen, seen.deadline?))) {
            watched.asked += 1;
            if seen.done > deadline {
                let [arrival, done] = [seen.arrival, seen.done].map(|time| run.origin_ns + time.0);
                watched.missed += 1;
                watched.excused += usize::from(stalls.excuse(arrival, done, seen.done.since_ns(deadline)));
            }
        }
        Ok(Some(watched))
    }

    /// What the broker and the programs make of it.
    pub(super) fn mixed(&self, scheduler: &str, seconds: f64) -> Result<Mixed> {
        let run = self.run_mixed(scheduler, seconds)?;
        let mut bulk: BTreeMap<u32, u64> = BTreeMap::new();
        for seen in run.seen.iter().filter(|seen| seen.deadline.is_none()) {
            *bulk.entry(seen.client).or_default() += seen.done.since_ns(seen.start);
        }
        let soon = || run.seen.iter().filter_map(|seen| Some((seen, seen.deadline?)));
        let mut waits: Vec<f64> = soon().map(|(seen, _)| seen.dispatched.since_ns(seen.arrival) as f64 / 1e3).collect();
        if waits.is_empty() {
            return Err(Error("no program with a goal was served: the broker did not know them by their names".into()));
        }
        waits.sort_by(f64::total_cmp);
        let missed = soon().filter(|(seen, deadline)| seen.done > *deadline).count();
        let wanted = || run.reports.iter().skip(BULK.0 as usize).flat_map(|report| &report.took_us);
        let too_long = wanted().filter(|&&us| us * 1e3 > GOAL_NS as f64).count();
        let operations: u64 = run.reports.iter().take(BULK.0 as usize).map(|report| report.operations).sum();
        Ok(Mixed {
            bulk_per_s: operations as f64 / seconds,
            jain: jain(bulk.values().map(|&ns| ns as f64)),
            missed_percent: 100.0 * missed as f64 / waits.len() as f64,
            too_long_percent: 100.0 * too_long as f64 / wanted().count().max(1) as f64,
            first: run.first,
            wait_us: [0.5, 0.99].map(|part| bywash_measure::statistics::quantile(&waits, part)),
        })
    }
}

/// How often the module's thread went before other programs when the broker was asked, and how often it was asked while the module had a thread.
#[derive(Clone, Copy, Default)]
pub(super) struct First {
    pub(super) yes: usize,
    pub(super) asked: usize,
}

impl First {
    /// Asks every [`LOOK`] while some work is done.
    fn during<T>(handle: &BrokerHandle, work: impl FnOnce() -> T) -> (T, Self) {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut first = Self::default();
                while !over.load(Ordering::Relaxed) {
                    let answer = handle.stats().engines.iter().find_map(|engine| engine.first);
                    first += Self { yes: usize::from(answer == Some(true)), asked: usize::from(answer.is_some()) };
                    thread::sleep(LOOK);
                }
                first
            });
            let done = work();
            over.store(true, Ordering::Relaxed);
            (done, watcher.join().unwrap_or_default())
        })
    }
}

impl AddAssign for First {
    fn add_assign(&mut self, other: Self) {
        self.yes += other.yes;
        self.asked += other.asked;
    }
}

/// What this machine needs, hand-overs included.
pub(super) struct Calibrated {
    /// An operation behind another.
    pub(super) service_ns: f64,
    /// Of a lone program, from a result to its next request.
    pub(super) between_ns: f64,
}

/// A rehearsal: as many programs as keep the module busy, and then one alone.
pub(super) fn calibrate(live: &Live, quick: bool) -> Result<Calibrated> {
    let operations = if quick { 100 } else { 2000 };
    let rehearse = |count| {
        live.run(Way::Direct, "fifo", 0.0, count, |programs, socket, _| {
            let mut command = programs.command(Way::Direct, "ocf-bulk", socket);
            command.arg("--operations").arg(operations.to_string());
            command
        })
    };
    // Between ends, as the module sees them, while nobody has ended.
    let cycle = |run: &Run| {
        let mut ends: Vec<u64> = run.seen.iter().map(|seen| seen.done.0).collect();
        ends.sort_unstable();
        let middle = &ends[ends.len() / 10..ends.len() - ends.len() / 10];
        (middle[middle.len() - 1] - middle[0]) as f64 / (middle.len() - 1).max(1) as f64
    };
    let (busy, alone) = (rehearse(BULK.0)?, rehearse(1)?);
    let service_ns = cycle(&busy);
    Ok(Calibrated { service_ns, between_ns: (cycle(&alone) - service_ns).max(0.0) })
}

impl Calibrated {
    fn simulate(&self, scheduler: &str, sigma: f64, clients: Vec<Client>, until_ns: Option<u64>) -> shared::Outcome {
        let module = EngineInfo { workers: 1, lanes: Lanes::same(1), costs: sheet(self.service_ns, sigma * SERVICE_NS as f64) };
        let host = Host { wake_ns: self.between_ns as u64, ..Host::default() };
        let mut policy = by_name(scheduler, std::slice::from_ref(&module)).expect("a name of the list");
        shared::run(&mut *policy, &module, &Load { clients, host, until_ns, seed: 1 })
    }

    /// As [`Live::processes`].
    pub(super) fn processes(&self, scheduler: &str, sigma: f64, count: u32, operations: u64) -> shared::Outcome {
        self.simulate(scheduler, sigma, vec![client("", None, closed(operations)); count as usize], None)
    }

    /// As [`Live::mixed`].
    pub(super) fn mixed(&self, scheduler: &str, seconds: f64) -> shared::Outcome {
        let mut clients = vec![client("bulk", None, closed(u64::MAX)); BULK.0 as usize];
        let soon = client("interactive", Some(GOAL_NS), Asks::Open { every_ns: INTERACTIVE.1 });
        clients.extend(vec![soon; INTERACTIVE.0 as usize]);
        self.simulate(scheduler, 0.0, clients, Some((seconds * 1e9) as u64))
    }
}

fn closed(operations: u64) -> Asks {
    Asks::Closed { operations, depth: 1, before_ns: 0, after_ns: 0, think_ns: 0 }
}

fn client(group: &'static str, goal_ns: Option<u64>, asks: Asks) -> Client {
    let tenant = Tenant { weight: 1, goal_ns };
    Client { group, tenant, algorithm: ALGORITHM, direction: Direction::Encrypt, bytes: BYTES, start_ns: 0, asks }
}

/// The module, of which only this load's operation matters.
fn sheet(service_ns: f64, switch_ns: f64) -> CostSheet {
    let curve = CostCurve { points: vec![(0, service_ns)], ..CostCurve::default() };
    CostSheet { modelled: true, switch_ns, algorithms: [(ALGORITHM.name().to_owned(), curve)].into(), ..CostSheet::empty("ixp425") }
}

/// Notes what a manager serves from now on.
fn watch(manager: &Manager) -> Arc<Mutex<Vec<Seen>>> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let notes = all.clone();
    manager.observe(Arc::new(move |end: &Observation<'_>| {
        let Observation { arrival, dispatched, start, done, .. } = *end;
        let seen = Seen { client: end.request.client, arrival, dispatched, start, done, deadline: end.request.deadline };
        notes.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }));
    all
}
