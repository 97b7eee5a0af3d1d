//! The requests of a recording, and whose they are.

use super::report::{Report, Served, Tenants};
use super::{Module, Recording, Source};
use crate::failure::Failure;
use crate::simulate::text::seconds;
use crate::simulate::traffic;
use crate::terminal::{counted, thousands};
use crate::texts;
use bywash_broker::TenantRule;
use bywash_core::Time;
use bywash_core::trace::Record;
use bywash_policy::Tenant;
use bywash_sim::asked;
use bywash_sim::log::{self, Foreign, Requests};
use bywash_sim::module::{Client, Traffic};
use std::collections::BTreeMap;

pub(super) fn source(recording: &Recording<'_>, module: &Module, rules: Option<&[TenantRule]>) -> Result<Source, Failure> {
    let Recording { path, waits } = *recording;
    let (lines, place) = texts::trace(path)?;
    let Requests { mut records, missing, .. } = log::recording(lines, &place)?;
    let all = records.len();
    if all == 0 {
        return Err(Failure::config(format!("{place}: there is no request in it; `bywash record` makes one of a program's or a broker's")));
    }
    let others = Foreign::of(&records, |algorithm| !module.computes(algorithm));
    records.retain(|record| module.computes(record.algorithm));
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Err(Failure::config(format!(
            "{place}: none of its {all} requests is one that '{}' computes: they ask for {others}; its sheet says what it does",
            module.name
        )));
    };
    let span = last.arrival.since_ns(first.arrival) as f64 / 1e9;
    let mut tenants = Tenants::of(rules);
    let mut clients: Vec<Client> = Vec::new();
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let asked = asked::recorded(&records, &place, waits, |record| {
        *numbers.entry(record.client).or_insert_with(|| {
            let (group, tenant) = tenants.find(record.whose.as_deref(), Tenant::default());
            clients.push(Client { tenant, group });
            (clients.len() - 1) as u32
        })
    })?;
    let traffic = Traffic { clients, requests: asked.requests };
    let mut told = vec![format!(
        "{}: {} of {} over {}; {}",
        texts::name(path, &place),
        counted(records.len() as u64, "request"),
        counted(traffic.clients.len() as u64, "program"),
        seconds(span),
        if waits { "who waited for a result waits here (--as-recorded: not)" } else { "they come when they came" }
    )];
    if others.total() > 0 {
        told.push(format!("{} left out, which '{}' does not compute: {others}", counted(others.total(), "request"), module.name));
    }
    if asked.in_calls > 0 {
        let (messages, calls) = (thousands(asked.in_calls), thousands(traffic.requests.len() as u64));
        told.push(format!("{messages} came in several calls, one after the other: {calls} calls in all, which are requests below"));
    }
    told.extend(traffic::missing(&missing));
    if records.iter().all(|record| record.whose.is_none()) {
        told.push("recorded by an older release: whose requests they are is not known, and no tenant's rule can speak of them".to_owned());
    }
    let live = live(&records, module, &traffic, &tenants);
    Ok(Source { traffic, tenants, told, live })
}

/// What the recording says, if it is of this very module.
fn live(records: &[Record], module: &Module, traffic: &Traffic, tenants: &Tenants) -> Option<Report> {
    // What a program passed in several calls was not served by a module: there would be a request for each.
    let begin = records.first().filter(|_| records.len() == traffic.requests.len())?.arrival;
    let since = |time: Time| Time(time.since_ns(begin));
    let served = |record: &Record| {
        let known = record.served.as_ref().filter(|_| record.engine == module.name)?;
        Some(Served { arrived: since(record.arrival), begun: since(known.dispatched), done: since(record.done), switched: known.switched })
    };
    let all: Vec<Served> = records.iter().map(served).collect::<Option<_>>()?;
    Some(Report::of_live(&all, records, traffic, tenants))
}
