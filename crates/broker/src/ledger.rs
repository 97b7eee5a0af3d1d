//! What tenants have had of the engines, and whether what they were promised was kept. Counters without locks, but for finding a client's own.

use crate::latency::Latency;
use crate::tenants::TenantRule;
use bywash_core::trace::Whose;
use bywash_manager::{Observation, Tenant};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// The account of clients that no rule names.
const OTHERS: &str = "others";

/// One tenant's account: of all its processes, those that have ended included.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) tenant: Tenant,
    service_ns: AtomicU64,
    failures: AtomicU64,
    switches: AtomicU64,
    deadlines: AtomicU64,
    missed: AtomicU64,
    wait: Latency,
}

/// A client's own part of it.
pub(crate) struct Meter {
    pub(crate) account: Arc<Account>,
    pub(crate) whose: Arc<Whose>,
    service_ns: AtomicU64,
    requests: AtomicU64,
}

/// What a tenant has had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantStats {
    /// The rule's `match`, or `others`.
    pub tenant: String,
    /// Of each of its processes.
    pub weight: u32,
    /// What its requests are to be done within, if it was promised that, in microseconds.
    pub goal_us: Option<f64>,
    /// Processes connected.
    pub clients: u64,
    /// Requests that have ended.
    pub requests: u64,
    /// How many of them failed.
    pub failures: u64,
    /// Seconds of the engines' time.
    pub service_s: f64,
    /// Its part of all engines' time since the broker began, 0 to 1.
    pub share: f64,
    /// The part that it is due by weight while all processes that are connected have work, 0 to 1.
    pub due: f64,
    /// From arrival to dispatch: half waited no longer, in microseconds, to a quarter of an octave.
    pub wait_p50_us: f64,
    /// 99 in 100 waited no longer.
    pub wait_p99_us: f64,
    /// How evenly its connected processes have been served: Jain's index of their service times, 1 where all have had the same.
    pub jain: f64,
    /// Changes of session that an engine made for it.
    pub switches: u64,
    /// Requests with a deadline.
    pub deadlines: u64,
    /// How many of them ended later, or failed.
    pub missed: u64,
}

/// Jain's index of fairness: the square of the sum by the number times the sum of squares; 1 where all are equal, 1/n where one has all. 1 for nothing.
pub fn jain(parts: impl Iterator<Item = f64>) -> f64 {
    let (count, sum, squares) = parts.fold((0.0, 0.0, 0.0), |(n, sum, squares), part| (n + 1.0, sum + part, squares + part * part));
    if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 }
}

/// All accounts.
pub(crate) struct Ledger {
    rules: Vec<TenantRule>,
    /// One for each rule, and one for others.
    accounts: Vec<Arc<Account>>,
    clients: RwLock<HashMap<u32, Arc<Meter>>>,
    /// Of requests that come from no client of the broker's.
    nobody: Arc<Meter>,
}

impl Ledger {
    pub(crate) fn new(rules: Vec<TenantRule>) -> Self {
        let account = |name: String, tenant| Arc::new(Account { name, tenant, ..Account::default() });
        let mut accounts: Vec<_> = rules.iter().map(|rule| account(rule.matches.to_string(), rule.tenant)).collect();
        accounts.push(account(OTHERS.to_owned(), Tenant::default()));
        let nobody = meter(&accounts, &rules, None, Arc::default());
        Self { rules, accounts, clients: RwLock::default(), nobody }
    }

    /// A client is there; what it is promised.
    pub(crate) fn join(&self, client: u32, whose: Arc<Whose>) -> Tenant {
        let rule = TenantRule::of(&self.rules, &whose);
        let meter = meter(&self.accounts, &self.rules, rule, whose);
        let tenant = meter.account.tenant;
        self.clients.write().unwrap_or_else(PoisonError::into_inner).insert(client, meter);
        tenant
    }

    pub(crate) fn leave(&self, client: u32) {
        self.clients.write().unwrap_or_else(PoisonError::into_inner).remove(&client);
    }

    /// Books a request's end; gives whose it was.
    pub(crate) fn book(&self, seen: &Observation<'_>) -> Arc<Meter> {
        let found = self.clients.read().unwrap_or_else(PoisonError::into_inner).get(&seen.request.client).cloned();
        let meter = found.unwrap_or_else(|| self.nobody.clone());
        let service_ns = seen.done.since_ns(seen.start);
        meter.service_ns.fetch_add(service_ns, Relaxed);
        meter.requests.fetch_add(1, Relaxed);
        let account = &meter.account;
        account.service_ns.fetch_add(service_ns, Relaxed);
        account.failures.fetch_add(u64::from(seen.outcome.is_err()), Relaxed);
        account.switches.fetch_add(u64::from(seen.switched), Relaxed);
        account.wait.add(seen.dispatched.since_ns(seen.arrival), 0, false);
        if let Some(deadline) = seen.request.deadline {
            account.deadlines.fetch_add(1, Relaxed);
            account.missed.fetch_add(u64::from(seen.done > deadline || seen.outcome.is_err()), Relaxed);
        }
        meter
    }

    /// A picture of all that have had anything, or that are there.
    pub(crate) fn view(&self) -> Vec<TenantStats> {
        let clients: Vec<Arc<Meter>> = self.clients.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let total: u64 = self.accounts.iter().map(|account| account.service_ns.load(Relaxed)).sum();
        let weights: u64 = clients.iter().map(|meter| u64::from(meter.account.tenant.weight)).sum();
        let of = |account: &Arc<Account>| account.view(clients.iter().filter(|meter| Arc::ptr_eq(&meter.account, account)), total, weights);
        self.accounts.iter().map(of).filter(|stats| stats.clients + stats.requests > 0).collect()
    }
}

fn meter(accounts: &[Arc<Account>], rules: &[TenantRule], rule: Option<&TenantRule>, whose: Arc<Whose>) -> Arc<Meter> {
    let place = rule.and_then(|rule| rules.iter().position(|other| other == rule)).unwrap_or(rules.len());
    let (service_ns, requests) = Default::default();
    Arc::new(Meter { account: accounts[place].clone(), whose, service_ns, requests })
}

impl Account {
    fn view<'a>(&self, clients: impl Iterator<Item = &'a Arc<Meter>> + Clone, total_ns: u64, weights: u64) -> TenantStats {
        let part = |of: u64, all: u64| if all == 0 { 0.0 } else { of as f64 / all as f64 };
        let (wait, service_ns, here) = (self.wait.view(), self.service_ns.load(Relaxed), clients.clone().count() as u64);
        let served = clients.filter(|meter| meter.requests.load(Relaxed) > 0);
        TenantStats {
            tenant: self.name.clone(),
            weight: self.tenant.weight,
            goal_us: self.tenant.goal_ns.map(|ns| ns as f64 / 1e3),
            clients: here,
            requests: wait.requests,
            failures: self.failures.load(Relaxed),
            service_s: service_ns as f64 / 1e9,
            share: part(service_ns, total_ns),
            due: part(here * u64::from(self.tenant.weight), weights),
            wait_p50_us: wait.quantile_ns(0.5) as f64 / 1e3,
            wait_p99_us: wait.quantile_ns(0.99) as f64 / 1e3,
            jain: jain(served.map(|meter| meter.service_ns.load(Relaxed) as f64)),
            switches: self.switches.load(Relaxed),
            deadlines: self.deadlines.load(Relaxed),
            missed: self.missed.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_one_in_n_for_one_who_has_all() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), 1.0);
        assert_eq!(jain([1.0, 0.0, 0.0, 0.0].into_iter()), 0.25);
        assert_eq!(jain(std::iter::empty()), 1.0);
    }

    #[test]
    fn who_comes_is_promised_what_its_rule_says_and_counted_there() {
        let tenant = Tenant { weight: 3, goal_ns: Some(1_000_000) };
        let ledger = Ledger::new(vec![TenantRule { matches: "uid:7".parse().unwrap(), tenant }]);
        let whose = |uid, program: &str| Arc::new(Whose { uid, program: program.to_owned(), ..Whose::default() });
        assert_eq!(ledger.join(1, whose(7, "a")), tenant);
        assert_eq!(ledger.join(2, whose(8, "b")), Tenant::default());
        let view = ledger.view();
        assert_eq!(
            view.iter().map(|stats| (stats.tenant.as_str(), stats.clients, stats.due)).collect::<Vec<_>>(),
            [("uid:7", 1, 0.75), ("others", 1, 0.25)]
        );
        ledger.leave(1);
        assert_eq!(ledger.view().len(), 1, "nobody of theirs was served");
    }
}
