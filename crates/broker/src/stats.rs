//! A picture of the broker, for people and programs.

use crate::accounts::{Claimed, NO_RUN, Served, Total};
use crate::broker::Shared;
use crate::ledger::TenantStats;
use bywash_core::Algorithm;
use bywash_manager::Held;
use bywash_protocol::Quota;
use bywash_protocol::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

/// A picture of the broker at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// The broker's process.
    pub pid: u32,
    /// Seconds since it began.
    pub uptime_s: f64,
    /// The policy's name.
    pub policy: String,
    /// Whether it is shutting down.
    pub draining: bool,
    /// Whether it is recording.
    pub recording: bool,
    /// Requests waiting or running.
    pub queue_depth: u64,
    /// Sessions open, of all clients.
    pub sessions: u64,
    /// Threads that the manager has started and that live.
    pub workers: u64,
    /// Refusals, by the name of the quota's setting.
    pub quotas_hit: BTreeMap<String, u64>,
    /// Connections refused for want of permission.
    pub denied: u64,
    /// Clients disconnected because they broke the rules.
    pub corrupt: u64,
    /// The engines.
    pub engines: Vec<EngineStats>,
    /// Latencies by engine and algorithm.
    pub latencies: Vec<LatencyStats>,
    /// What tenants have had, and what they were promised.
    pub tenants: Vec<TenantStats>,
    /// Clients connected.
    pub clients: Vec<ClientStats>,
    /// Totals by run, ended processes included.
    pub runs: Vec<RunStats>,
}

/// An engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineStats {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// Whether its times come from a model and not from the thing itself.
    pub modelled: bool,
    /// Whether it is in use.
    pub up: bool,
    /// Batches it works on.
    pub busy: u64,
    /// Batches and loads in which it failed or stalled.
    pub faults: u64,
    /// Batches and loads that it was given up on and has not come back from.
    pub stuck: u64,
    /// Of a modelled engine: answers that came later than its model says, for their bytes took the processor longer. Not counted where absent.
    pub late: Option<u64>,
    /// Of one that computes for one session at a time: how often it changed from one to another. Not told apart where absent.
    pub switches: Option<u64>,
    /// Of one that computes for one session at a time: whether its thread goes before other programs' on the processor now. Absent while it has none.
    pub first: Option<bool>,
    /// What it holds, for a reconfigurable one.
    pub device: Option<DeviceStats>,
}

/// What a reconfigurable engine holds, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceStats {
    /// What it computes.
    pub loaded: Vec<String>,
    /// What is being loaded, or will be once others have made room.
    pub loading: Vec<String>,
    /// How often circuits were loaded.
    pub reconfigurations: u64,
    /// How often that failed.
    pub failed_reconfigurations: u64,
    /// Requests that the other engines began while circuits were loaded.
    pub meanwhile: u64,
    /// Seconds of service that its requests took less than the other engines are expected to have taken; below 0 where they took more, as on circuits that are
    /// slower and help because the others are busy.
    pub saved_s: f64,
}

impl DeviceStats {
    fn of(held: &Held) -> Self {
        let names = |algorithms: &[Algorithm]| algorithms.iter().map(|algorithm| algorithm.name().to_owned()).collect();
        let (loaded, loading) = (names(&held.loaded), names(&held.loading));
        Self {
            loaded,
            loading,
            reconfigurations: held.loads,
            failed_reconfigurations: held.failed_loads,
            meanwhile: held.meanwhile,
            saved_s: held.saved_ns as f64 / 1e9,
        }
    }
}

/// How long requests took, from their arrival at the manager to their end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyStats {
    /// Which engine; empty for requests that no engine ran.
    pub engine: String,
    /// Whether the times come from a model.
    pub modelled: bool,
    /// Which algorithm.
    pub algorithm: String,
    /// How many.
    pub requests: u64,
    /// How many of them failed.
    pub failures: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Half took no longer, to a quarter of an octave.
    pub p50_us: f64,
    /// 99 in 100 took no longer, to a quarter of an octave.
    pub p99_us: f64,
    /// Octaves: upper edge in seconds, requests in it.
    pub octaves: Vec<(f64, u64)>,
}

/// Work of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkStats {
    /// Which algorithm.
    pub algorithm: String,
    /// Where: an engine's name, or `here` for the client's own place (its claim, not the broker's knowledge).
    pub engine: String,
    /// Operations.
    pub operations: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Batches in which a client's own place computed operations side by side.
    pub batches: u64,
    /// Operations in them.
    pub batched: u64,
}

/// A client connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientStats {
    /// Its number in traces.
    pub client: u32,
    /// Its process, by the kernel's word.
    pub pid: u32,
    /// Its user, by the kernel's word.
    pub uid: u32,
    /// Its command, by its own word.
    pub comm: String,
    /// Its run, by its own word.
    pub run: Option<String>,
    /// Sessions open.
    pub sessions: u32,
    /// Requests taken and not yet answered.
    pub in_flight: u32,
    /// What was computed for it, and what it claims to have computed itself.
    pub work: Vec<WorkStats>,
}

/// All processes of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStats {
    /// Its id; empty for processes without one.
    pub run: String,
    /// Processes seen, ended ones included.
    pub processes: u64,
    /// Their users.
    pub uids: BTreeSet<u32>,
    /// What was computed for them, and what they claim to have computed themselves.
    pub work: Vec<WorkStats>,
}

impl Stats {
    /// Leaves out whatever is of other users: who they are and what they do is the operator's to know.
    pub(crate) fn keep_to(&mut self, uid: u32) {
        self.clients.retain(|client| client.uid == uid);
        // Tenants are the operator's affair, but for a user's own.
        let own = format!("uid:{uid}");
        self.tenants.retain(|tenant| tenant.tenant == own);
        // The account of no run is everybody's.
        self.runs.retain(|run| run.run != NO_RUN && run.uids.contains(&uid));
        self.runs.iter_mut().for_each(|run| run.uids = [uid].into());
    }

    /// Leaves out who there is, for readers of whom nothing is known: no clients, no runs.
    pub(crate) fn without_people(self) -> Self {
        Self { clients: Vec::new(), runs: Vec::new(), ..self }
    }

    pub(crate) fn of(shared: &Shared) -> Self {
        let manager = &shared.config.manager;
        let snapshot = manager.snapshot();
        let engines = manager.engines().iter().zip(&snapshot.engines).enumerate().map(|(place, (engine, status))| EngineStats {
            name: engine.name().to_owned(),
            description: engine.describe(),
            modelled: engine.is_modelled(),
            up: status.up,
            busy: status.busy as u64,
            faults: status.faults,
            stuck: status.stuck as u64,
            late: engine.late(),
            switches: engine.switches(),
            first: shared.precedence.of(place),
            device: status.held.as_ref().map(DeviceStats::of),
        });
        let engines = engines.collect::<Vec<_>>();
        let (clients, runs) = people(shared, &engines);
        Self {
            pid: std::process::id(),
            uptime_s: shared.begun.elapsed().as_secs_f64(),
            policy: manager.policy().to_owned(),
            draining: shared.draining.load(Relaxed),
            recording: shared.telemetry.recorder.is_active(),
            queue_depth: snapshot.in_flight as u64,
            sessions: snapshot.sessions as u64,
            workers: snapshot.threads as u64,
            quotas_hit: Quota::ALL.iter().map(|quota| (quota.setting().to_owned(), shared.telemetry.refusals(*quota))).collect(),
            denied: shared.telemetry.denied.load(Relaxed),
            corrupt: shared.telemetry.corrupt.load(Relaxed),
            latencies: latencies(shared, &engines),
            tenants: shared.telemetry.ledger.view(),
            engines,
            clients,
            runs,
        }
    }
}

fn latencies(shared: &Shared, engines: &[EngineStats]) -> Vec<LatencyStats> {
    let used = shared.telemetry.latencies.used();
    used.map(|(engine, algorithm, view)| LatencyStats {
        engine: engines.get(engine).map_or(String::new(), |engine| engine.name.clone()),
        modelled: engines.get(engine).is_some_and(|engine| engine.modelled),
        algorithm: algorithm.name().to_owned(),
        requests: view.requests,
        failures: view.failures,
        bytes: view.bytes,
        mean_us: if view.requests == 0 { 0.0 } else { view.sum_ns as f64 / view.requests as f64 / 1e3 },
        p50_us: view.quantile_ns(0.5) as f64 / 1e3,
        p99_us: view.quantile_ns(0.99) as f64 / 1e3,
        octaves: view.octaves(),
    })
    .collect()
}

fn people(shared: &Shared, engines: &[EngineStats]) -> (Vec<ClientStats>, Vec<RunStats>) {
    // Under the clients' lock, so that a client that ends just now is counted once: here, or among the ended.
    let clients = shared.clients();
    let mut totals: BTreeMap<String, (u64, Total)> =
        shared.telemetry.runs().view().into_iter().map(|(run, total)| (run, (total.ended, total))).collect();
    let mut list = Vec::new();
    for client in clients.values() {
        let (served, claimed) = client.work();
        let (processes, total) = totals.entry(client.run().unwrap_or(NO_RUN).to_owned()).or_default();
        *processes += 1;
        total.add(client.whose.uid, &served, &claimed);
        list.push(client.stats(work(&served, &claimed, engines)));
    }
    let run = |(run, (processes, total)): (String, (u64, Total))| {
        let work = work(&total.served, &total.claimed, engines);
        RunStats { run, processes, uids: total.uids, work }
    };
    (list, totals.into_iter().map(run).collect())
}

fn work(served: &Served, claimed: &Claimed, engines: &[EngineStats]) -> Vec<WorkStats> {
    let line = |algorithm: Algorithm, engine: &str, usage: &Usage| WorkStats {
        algorithm: algorithm.name().to_owned(),
        engine: engine.to_owned(),
        operations: usage.operations,
        bytes: usage.bytes,
        batches: usage.batches,
        batched: usage.batched,
    };
    let name = |engine: u8| engines.get(usize::from(engine)).map_or("", |engine| engine.name.as_str());
    let by_broker = served.iter().map(|(&(engine, algorithm), usage)| line(algorithm, name(engine), usage));
    by_broker.chain(claimed.iter().map(|(&algorithm, usage)| line(algorithm, "here", usage))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_shown_nothing_of_others() {
        let client = |uid| ClientStats { uid, ..ClientStats::default() };
        let run = |name: &str, uids: &[u32]| RunStats { run: name.into(), uids: uids.iter().copied().collect(), ..RunStats::default() };
        let runs = vec![run("", &[1, 2]), run("one's", &[1]), run("two's", &[2]), run("both's", &[1, 2])];
        let mut stats = Stats { clients: vec![client(1), client(2)], runs, ..Stats::default() };
        stats.keep_to(1);
        assert_eq!(stats.clients, [client(1)]);
        assert_eq!(stats.runs, [run("one's", &[1]), run("both's", &[1])]);
    }
}
