//! What happened between two pictures of a broker, per second.

use super::totals::{holds, troubles};
use bywash_broker::{ClientStats, EngineStats, Stats, TenantStats};
use bywash_core::Algorithm;
use std::collections::BTreeMap;

/// What the screen shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) policy: String,
    pub(crate) draining: bool,
    pub(crate) sessions: u64,
    pub(crate) in_flight: u64,
    pub(crate) engines: Vec<Busy>,
    pub(crate) uses: Vec<Use>,
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) clients: Vec<Client>,
}

/// An engine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Busy {
    pub(crate) name: String,
    pub(crate) modelled: bool,
    pub(crate) up: bool,
    /// Batches that it works on.
    pub(crate) busy: u64,
    /// A second.
    pub(crate) operations: u64,
    /// What went wrong with it, if anything did, and what it holds, for a reconfigurable one.
    pub(crate) remarks: String,
}

/// An algorithm in one place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Use {
    pub(crate) algorithm: String,
    pub(crate) public_key: bool,
    /// `here`, or an engine's name.
    pub(crate) place: String,
    /// A second.
    pub(crate) operations: u64,
    /// A second.
    pub(crate) bytes: u64,
    /// Operations since the broker's start.
    pub(crate) total: u64,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    /// Of each of its processes.
    pub(crate) weight: u32,
    /// Processes connected.
    pub(crate) clients: u64,
    /// A second.
    pub(crate) requests: u64,
    /// Of the engines' time since the picture before, in percent.
    pub(crate) share: f64,
    /// By weight, in percent.
    pub(crate) due: f64,
    /// Since the broker's start, in microseconds.
    pub(crate) wait_p99_us: f64,
    /// Deadlines missed since the picture before.
    pub(crate) missed: u64,
}

/// A client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Client {
    pub(crate) command: String,
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    pub(crate) sessions: u32,
    /// A second, in its own place and at the broker.
    pub(crate) operations: u64,
    /// A second.
    pub(crate) bytes: u64,
}

/// Operations and bytes by algorithm and place.
type Work<'a> = BTreeMap<(&'a str, &'a str), (u64, u64)>;

/// What all clients' work amounts to, that of ended ones included.
pub(super) fn work(stats: &Stats) -> Work<'_> {
    let mut all = Work::new();
    for each in stats.runs.iter().flat_map(|run| &run.work) {
        let sum = all.entry((&each.algorithm, &each.engine)).or_default();
        sum.0 += each.operations;
        sum.1 += each.bytes;
    }
    all
}

fn remarks(engine: &EngineStats) -> String {
    let both = [troubles(engine), engine.device.as_ref().map(holds).unwrap_or_default()];
    both.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join("; ")
}

/// An engine's name, or `here`; a modelled engine is said to be one.
pub(super) fn place(stats: &Stats, engine: &str) -> String {
    let modelled = stats.engines.iter().any(|each| each.name == engine && each.modelled);
    if modelled { format!("{engine} (modelled)") } else { engine.to_owned() }
}

/// Whether bytes say nothing about this algorithm.
pub(super) fn is_public_key(algorithm: &str) -> bool {
    algorithm.parse().is_ok_and(Algorithm::is_public_key)
}

impl Rates {
    /// The difference of two pictures taken so many seconds apart.
    pub(crate) fn between(before: &Stats, now: &Stats, seconds: f64) -> Self {
        let per_second = |now: u64, before: u64| (now.saturating_sub(before) as f64 / seconds.max(1e-3)).round() as u64;
        let (then, uses) = (work(before), work(now));
        let of_engine = |work: &Work<'_>, name: &str| work.iter().filter(|((_, engine), _)| *engine == name).map(|(_, sums)| sums.0).sum();
        let engine = |engine: &EngineStats| Busy {
            name: engine.name.clone(),
            modelled: engine.modelled,
            up: engine.up,
            busy: engine.busy,
            operations: per_second(of_engine(&uses, &engine.name), of_engine(&then, &engine.name)),
            remarks: remarks(engine),
        };
        let each = |(key, sums): (&(&str, &str), &(u64, u64))| {
            let earlier = then.get(key).copied().unwrap_or_default();
            Use {
                algorithm: key.0.to_owned(),
                public_key: is_public_key(key.0),
                place: place(now, key.1),
                operations: per_second(sums.0, earlier.0),
                bytes: per_second(sums.1, earlier.1),
                total: sums.0,
            }
        };
        Self {
            policy: now.policy.clone(),
            draining: now.draining,
            sessions: now.sessions,
            in_flight: now.queue_depth,
            engines: now.engines.iter().map(engine).collect(),
            uses: uses.iter().map(each).collect(),
            tenants: tenants(before, now, per_second),
            clients: clients(before, now, per_second),
        }
    }
}

fn tenants(before: &Stats, now: &Stats, per_second: impl Fn(u64, u64) -> u64) -> Vec<Tenant> {
    let earlier = |name: &str| before.tenants.iter().find(|tenant| tenant.tenant == name).cloned().unwrap_or_default();
    let service = |tenant: &TenantStats| (tenant.service_s - earlier(&tenant.tenant).service_s).max(0.0);
    let all: f64 = now.tenants.iter().map(service).sum();
    let each = |tenant: &TenantStats| {
        let earlier = earlier(&tenant.tenant);
        Tenant {
            name: tenant.tenant.clone(),
            weight: tenant.weight,
            clients: tenant.clients,
            requests: per_second(tenant.requests, earlier.requests),
            share: if all > 0.0 { 100.0 * service(tenant) / all } else { 0.0 },
            due: 100.0 * tenant.due,
            wait_p99_us: tenant.wait_p99_us,
            missed: tenant.missed.saturating_sub(earlier.missed),
        }
    };
    now.tenants.iter().map(each).collect()
}

/// The busiest first.
fn clients(before: &Stats, now: &Stats, per_second: impl Fn(u64, u64) -> u64) -> Vec<Client> {
    let sums = |client: &ClientStats| client.work.iter().fold((0, 0), |sum, each| (sum.0 + each.operations, sum.1 + each.bytes));
    let known: BTreeMap<u32, (u64, u64)> = before.clients.iter().map(|client| (client.client, sums(client))).collect();
    let each = |client: &ClientStats| {
        let (earlier, work) = (known.get(&client.client).copied().unwrap_or_default(), sums(client));
        Client {
            command: client.comm.clone(),
            pid: client.pid,
            uid: client.uid,
            sessions: client.sessions,
            operations: per_second(work.0, earlier.0),
            bytes: per_second(work.1, earlier.1),
        }
    };
    let mut clients: Vec<Client> = now.clients.iter().map(each).collect();
    clients.sort_by_key(|client| core::cmp::Reverse((client.operations, client.bytes)));
    clients
}

#[cfg(test)]
mod tests {
    use super::super::{screen, totals::totals};
    use super::*;
    use bywash_broker::{DeviceStats, EngineStats, RunStats, WorkStats};

    fn stats(operations: u64) -> Stats {
        let work = vec![WorkStats {
            algorithm: "AES-256-GCM".into(),
            engine: "cpu".into(),
            operations,
            bytes: operations * 1000,
            ..WorkStats::default()
        }];
        let client =
            ClientStats { client: 3, comm: "nginx".into(), pid: 4242, uid: 33, sessions: 2, work: work.clone(), ..Default::default() };
        let engine = EngineStats { name: "cpu".into(), up: true, ..Default::default() };
        let run = RunStats { run: "r".into(), processes: 1, work, ..RunStats::default() };
        Stats { policy: "placement".into(), engines: vec![engine], runs: vec![run], clients: vec![client], ..Default::default() }
    }

    #[test]
    fn rates_are_differences_by_time() {
        let rates = Rates::between(&stats(100), &stats(300), 2.0);
        assert_eq!((rates.uses[0].operations, rates.uses[0].bytes, rates.uses[0].total), (100, 100_000, 300));
        assert_eq!((rates.engines[0].operations, rates.clients[0].operations), (100, 100));
        let restarted = Rates::between(&stats(300), &stats(100), 2.0);
        assert_eq!(restarted.uses[0].operations, 0, "a broker that began anew counts from nothing");
    }

    #[test]
    fn a_tenants_share_is_of_the_time_between_the_pictures() {
        let tenant =
            |name: &str, service_s, missed| TenantStats { tenant: name.into(), weight: 2, service_s, missed, ..Default::default() };
        let (mut before, mut now) = (stats(0), stats(1));
        before.tenants = vec![tenant("uid:7", 10.0, 3)];
        now.tenants = vec![tenant("uid:7", 11.0, 4), tenant("others", 3.0, 0)];
        let rates = Rates::between(&before, &now, 1.0);
        assert_eq!(rates.tenants.iter().map(|tenant| (tenant.share, tenant.missed)).collect::<Vec<_>>(), [(25.0, 1), (75.0, 0)]);
        let screen = screen::as_text(&rates, 100);
        assert!(screen.contains("uid:7") && screen.contains("25.0 %"), "{screen}");
        assert!(totals(&now).contains("tenant uid:7: weight 2"), "{}", totals(&now));
    }

    #[test]
    fn the_screen_shows_all_of_it() {
        let text = screen::as_text(&Rates::between(&stats(0), &stats(2000), 1.0), 100);
        for part in ["policy placement", "cpu", "AES-256-GCM", "2,000", "2.0 MB/s", "nginx", "4242"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("quits"), "nobody presses keys before text:\n{text}");
    }

    #[test]
    fn what_a_modelled_device_holds_is_shown_as_such() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let device = DeviceStats {
            loaded: names(&["DES-ECB", "RC6-128-ECB"]),
            loading: names(&["AES-128-ECB"]),
            reconfigurations: 12,
            failed_reconfigurations: 1,
            meanwhile: 1234,
            saved_s: 3.5,
        };
        let mut now = stats(1);
        let fpga = EngineStats { name: "niwa2005".into(), modelled: true, device: Some(device), ..Default::default() };
        now.engines.push(EngineStats { faults: 3, stuck: 1, late: Some(1500), ..fpga });
        let work = WorkStats { algorithm: "DES-ECB".into(), engine: "niwa2005".into(), operations: 7, ..Default::default() };
        now.runs[0].work.push(work);
        let line = "holds DES-ECB, RC6-128-ECB, loading AES-128-ECB; 12 reconfigurations (1 failed), 1,234 requests elsewhere meanwhile, 3.500 s saved";
        for said in [
            &format!("{line}, modelled"),
            "engine niwa2005: down, modelled, 3 faults, 1 stuck, 1,500 answers later than modelled,",
            "DES-ECB              niwa2005 (modelled) ",
        ] {
            assert!(totals(&now).contains(said), "{}", totals(&now));
        }
        for width in [80, 100, 200] {
            let screen = screen::as_text(&Rates::between(&stats(0), &now, 1.0), width);
            let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
            let last = line.rsplit(' ').next().unwrap_or_default();
            assert!(words.contains("niwa2005 (modelled)") && words.contains("meanwhile,") && words.contains(last), "{screen}");
            assert!(screen.lines().all(|line| line.chars().count() <= width.into()), "{screen}");
            assert!(["AES-256-GCM", "DES-ECB", "nginx", "kB/s"].iter().all(|cell| words.contains(cell)), "{screen}");
        }
        now.engines.iter_mut().filter_map(|engine| engine.device.as_mut()).for_each(|device| device.saved_s = -4.5);
        assert!(totals(&now).contains(" meanwhile, 4.500 s slower than elsewhere, modelled"), "{}", totals(&now));
    }

    #[test]
    fn totals_show_what_has_been_computed() {
        let text = totals(&stats(2000));
        assert!(text.contains("AES-256-GCM") && text.contains("2,000 operations") && text.contains("2.0 MB"), "{text}");
        assert!(totals(&stats(0)).contains("AES-256-GCM"));
        assert!(totals(&Stats::default()).contains("nothing has been computed yet"));
    }
}
