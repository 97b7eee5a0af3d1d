//! What the broker remembers about itself. It does not hold the manager, so the manager's observer can hold it.

use crate::accounts::Runs;
use crate::latency::Latencies;
use crate::ledger::Ledger;
use crate::recent::{Recent, RequestStats};
use crate::recorder::Recorder;
use crate::tenants::TenantRule;
use crate::throttle::Throttle;
use bywash_manager::Observation;
use bywash_protocol::Quota;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct Telemetry {
    pub(crate) latencies: Latencies,
    pub(crate) ledger: Ledger,
    recent: Recent,
    engines: Vec<String>,
    pub(crate) recorder: Recorder,
    pub(crate) denied: AtomicU64,
    pub(crate) corrupt: AtomicU64,
    denied_line: Throttle,
    corrupt_line: Throttle,
    runs: Mutex<Runs>,
    quotas: [(AtomicU64, Throttle); Quota::ALL.len()],
}

impl Telemetry {
    pub(crate) fn new(engines: Vec<String>, tenants: Vec<TenantRule>) -> Self {
        Self {
            latencies: Latencies::new(engines.clone()),
            ledger: Ledger::new(tenants),
            recent: Recent::default(),
            engines,
            recorder: Recorder::default(),
            denied: AtomicU64::new(0),
            corrupt: AtomicU64::new(0),
            denied_line: Throttle::default(),
            corrupt_line: Throttle::default(),
            runs: Mutex::default(),
            quotas: std::array::from_fn(|_| Default::default()),
        }
    }

    /// The manager's observer: every request's end.
    pub(crate) fn observe(&self, seen: &Observation<'_>) {
        let latency = self.latencies.of(seen.engine, seen.request.algorithm);
        latency.add(seen.done.since_ns(seen.arrival), seen.request.bytes, seen.outcome.is_err());
        let whose = self.ledger.book(seen);
        if self.recorder.is_active() {
            self.recorder.note_served(seen, &whose.whose);
        }
        self.recent.note(seen, self.engines.iter().position(|name| name == seen.engine).map(|place| place as u8), whose);
    }

    /// The latest requests, the last first.
    pub(crate) fn recent(&self) -> Vec<RequestStats> {
        self.recent.view(&self.engines)
    }

    pub(crate) fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn refusals(&self, quota: Quota) -> u64 {
        self.quotas[quota as usize].0.load(Relaxed)
    }

    /// A quota is used up: counted, and said at most once a second.
    pub(crate) fn refuse(&self, quota: Quota, limit: u32, pid: u32, uid: u32) {
        let (count, line) = &self.quotas[quota as usize];
        count.fetch_add(1, Relaxed);
        if let Some(unsaid) = line.pass() {
            tracing::warn!(pid, uid, limit, setting = quota.setting(), unsaid, "quota used up: {}", quota.what());
        }
    }

    /// A connection without permission.
    pub(crate) fn deny(&self, pid: u32, uid: u32, why: &str) {
        self.denied.fetch_add(1, Relaxed);
        if let Some(unsaid) = self.denied_line.pass() {
            tracing::warn!(pid, uid, unsaid, "connection refused: {why}");
        }
    }

    /// A client that breaks the rules and is disconnected.
    pub(crate) fn misdeed(&self, pid: u32, uid: u32, what: &dyn std::fmt::Display) {
        self.corrupt.fetch_add(1, Relaxed);
        if let Some(unsaid) = self.corrupt_line.pass() {
            tracing::warn!(pid, uid, unsaid, "client disconnected for breaking the rules: {what}");
        }
    }
}
