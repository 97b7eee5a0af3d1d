//! What a scheduler made of the traffic, by tenant: in figures, as JSON and as CSV.

use super::{Module, Source, advice};
use bywash_broker::{TenantRule, jain};
use bywash_core::Time;
use bywash_core::trace::{Record, Whose};
use bywash_policy::Tenant;
use bywash_sim::module::{Outcome, Traffic};
use serde::Serialize;
use serde_json::{Value, json};

/// Who is promised what, as a tenants' file has it; without one each program is a tenant.
pub(super) struct Tenants {
    rules: Option<Vec<TenantRule>>,
    known: Vec<(String, Tenant)>,
}

impl Tenants {
    pub(super) fn of(rules: Option<&[TenantRule]>) -> Self {
        Self { rules: rules.map(<[TenantRule]>::to_vec), known: Vec::new() }
    }

    /// Of which tenant a process is, and what it is promised; what it is promised `otherwise` if no rule speaks of it.
    pub(super) fn find(&mut self, whose: Option<&Whose>, otherwise: Tenant) -> (usize, Tenant) {
        let rule = whose.and_then(|whose| TenantRule::of(self.rules.as_deref()?, whose));
        let found = match (rule, whose) {
            (Some(rule), _) => (rule.matches.to_string(), rule.tenant),
            (None, Some(whose)) if self.rules.is_none() => (format!("program:{}", whose.program), otherwise),
            _ => ("others".to_owned(), otherwise),
        };
        let place = self.known.iter().position(|known| *known == found).unwrap_or_else(|| {
            self.known.push(found.clone());
            self.known.len() - 1
        });
        (place, found.1)
    }
}

/// What a recording says of a request.
pub(super) struct Served {
    pub(super) arrived: Time,
    pub(super) begun: Time,
    pub(super) done: Time,
    pub(super) switched: bool,
}

/// What came of one scheduler. Names are those of `bywash stats --json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) scheduler: String,
    pub(super) makespan_s: f64,
    /// The part of that in which the module computed.
    pub(super) busy: f64,
    pub(super) switches: u64,
    /// Jain's index of what programs without a goal had over what they were due while others wanted the module too; none where that never was.
    pub(super) jain: Option<f64>,
    /// Requests whose goal could not be promised.
    pub(super) demoted: u64,
    pub(super) tenants: Vec<Part>,
}

/// A tenant's part.
#[derive(Debug, Serialize)]
pub(super) struct Part {
    pub(super) tenant: String,
    pub(super) weight: u32,
    pub(super) goal_us: Option<f64>,
    pub(super) clients: usize,
    pub(super) requests: usize,
    /// Its part of the module's time while several programs wanted it, 0 to 1.
    pub(super) share: Option<f64>,
    /// What it was due of that by weight.
    pub(super) due: Option<f64>,
    /// How evenly its own programs were served, of what each was due.
    pub(super) jain: Option<f64>,
    pub(super) wait_p50_us: f64,
    pub(super) wait_p99_us: f64,
    pub(super) wait_max_us: f64,
    pub(super) deadlines: usize,
    pub(super) missed: usize,
    /// All waits, ascending, to be drawn.
    #[serde(skip)]
    pub(super) waits_us: Vec<f64>,
}

impl Report {
    pub(super) fn of(scheduler: &str, outcome: &Outcome, traffic: &Traffic, tenants: &Tenants) -> Self {
        let fates = outcome.fates.iter().map(|fate| (fate.arrived, fate.begun, fate.done));
        let mut parts = parts(fates, traffic, tenants);
        let (had, due) = outcome.shares.iter().fold((0.0, 0.0), |(had, due), share| (had + share.had_ns, due + share.due_ns));
        let index = |wanted: &dyn Fn(usize) -> bool| {
            let ratios: Vec<f64> =
                (0..traffic.clients.len()).filter(|&client| wanted(client)).filter_map(|client| outcome.shares[client].ratio()).collect();
            (!ratios.is_empty()).then(|| jain(ratios.into_iter()))
        };
        for (group, part) in parts.iter_mut().enumerate() {
            let own = || traffic.clients.iter().zip(&outcome.shares).filter(|(client, _)| client.group == group).map(|(_, share)| share);
            part.share = (had > 0.0).then(|| own().map(|share| share.had_ns).sum::<f64>() / had);
            part.due = (due > 0.0).then(|| own().map(|share| share.due_ns).sum::<f64>() / due);
            part.jain = index(&|client| traffic.clients[client].group == group);
        }
        Self {
            scheduler: scheduler.to_owned(),
            makespan_s: outcome.makespan_ns as f64 / 1e9,
            busy: outcome.busy_ns as f64 / outcome.makespan_ns.max(1) as f64,
            switches: outcome.switches,
            jain: index(&|client| traffic.clients[client].tenant.goal_ns.is_none()),
            demoted: outcome.demoted,
            tenants: parts,
        }
    }

    /// What was recorded of the same requests on the same module.
    pub(super) fn of_live(served: &[Served], records: &[Record], traffic: &Traffic, tenants: &Tenants) -> Self {
        let makespan_ns = served.iter().map(|served| served.done.0).max().unwrap_or(0);
        let busy_ns: u64 = records.iter().map(|record| record.done.since_ns(record.start)).sum();
        Self {
            scheduler: "(recorded)".to_owned(),
            makespan_s: makespan_ns as f64 / 1e9,
            busy: busy_ns as f64 / makespan_ns.max(1) as f64,
            switches: served.iter().filter(|served| served.switched).count() as u64,
            jain: None,
            demoted: 0,
            tenants: parts(served.iter().map(|served| (served.arrived, served.begun, served.done)), traffic, tenants),
        }
    }

    /// The part of all deadlines that was missed, 0 to 1; none where there are no goals.
    pub(super) fn missed(&self) -> Option<f64> {
        let (deadlines, missed) = self.tenants.iter().fold((0, 0), |(all, missed), part| (all + part.deadlines, missed + part.missed));
        (deadlines > 0).then(|| missed as f64 / deadlines as f64)
    }

    pub(super) fn wait_max_us(&self) -> f64 {
        self.tenants.iter().map(|part| part.wait_max_us).fold(0.0, f64::max)
    }
}

/// Waits and deadlines of each tenant; `fates` are when requests came, were begun and done.
fn parts(fates: impl Iterator<Item = (Time, Time, Time)>, traffic: &Traffic, tenants: &Tenants) -> Vec<Part> {
    let part = |(group, (name, tenant)): (usize, &(String, Tenant))| Part {
        tenant: name.clone(),
        weight: tenant.weight,
        goal_us: tenant.goal_ns.map(|ns| ns as f64 / 1e3),
        clients: traffic.clients.iter().filter(|client| client.group == group).count(),
        requests: 0,
        share: None,
        due: None,
        jain: None,
        wait_p50_us: 0.0,
        wait_p99_us: 0.0,
        wait_max_us: 0.0,
        deadlines: 0,
        missed: 0,
        waits_us: Vec::new(),
    };
    let mut parts: Vec<Part> = tenants.known.iter().enumerate().map(part).collect();
    for (asked, (arrived, begun, done)) in traffic.requests.iter().zip(fates) {
        let client = traffic.clients[asked.client as usize];
        let part = &mut parts[client.group];
        part.waits_us.push(begun.since_ns(arrived) as f64 / 1e3);
        if let Some(goal_ns) = client.tenant.goal_ns {
            part.deadlines += 1;
            part.missed += usize::from(done.since_ns(arrived) > goal_ns);
        }
    }
    for part in &mut parts {
        part.waits_us.sort_by(f64::total_cmp);
        part.requests = part.waits_us.len();
        let at = |share: f64| part.waits_us.get(((part.requests.max(1) - 1) as f64 * share).round() as usize).copied().unwrap_or(0.0);
        (part.wait_p50_us, part.wait_p99_us, part.wait_max_us) = (at(0.5), at(0.99), at(1.0));
    }
    parts
}

/// One object: the module, who is promised what, and what each scheduler made of it.
pub(super) fn as_json(module: &Module, source: &Source, reports: &[Report]) -> Value {
    let costs = &module.info.costs;
    let advised =
        |best: &Report| json!({ "scheduler": best.scheduler, "meets_goals": advice::meets_goals(best), "why": advice::why(best, reports) });
    json!({
        "modelled": true,
        "module": { "name": module.name, "lanes": module.info.workers, "switch_us": costs.switch_ns / 1e3 },
        "requests": source.told,
        "recorded": source.live,
        "schedulers": reports,
        "advice": advice::best(reports).map(advised),
    })
}

/// A line for each scheduler and tenant.
pub(super) fn as_csv(module: &Module, reports: &[Report]) -> String {
    let head = "module,modelled,scheduler,makespan_s,busy,switches,jain_of_all,tenant,weight,goal_us,clients,requests,share,due,jain,\
                wait_p50_us,wait_p99_us,wait_max_us,deadlines,missed\n";
    let known = |figure: Option<f64>| figure.map(|figure| figure.to_string()).unwrap_or_default();
    let line = |report: &Report, part: &Part| {
        let whole = format!(
            "{},true,{},{},{},{},{}",
            quoted(&module.name),
            quoted(&report.scheduler),
            report.makespan_s,
            report.busy,
            report.switches,
            known(report.jain)
        );
        let promised = format!("{},{},{},{},{}", quoted(&part.tenant), part.weight, known(part.goal_us), part.clients, part.requests);
        let had = [part.share, part.due, part.jain].map(known).join(",");
        format!(
            "{whole},{promised},{had},{},{},{},{},{}\n",
            part.wait_p50_us, part.wait_p99_us, part.wait_max_us, part.deadlines, part.missed
        )
    };
    reports
        .iter()
        .flat_map(|report| report.tenants.iter().map(move |part| line(report, part)))
        .fold(head.to_owned(), |text, line| text + &line)
}

/// RFC 4180: parameters of a scheduler have commas between them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
