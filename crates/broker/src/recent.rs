//! The latest requests that the broker has served: what became of each, and why it went where it went. Bounded; the oldest are forgotten.

use crate::ledger::Meter;
use bywash_core::trace::Record;
use bywash_core::{Algorithm, Time};
use bywash_manager::{Observation, Reason};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that are remembered.
const KEPT: usize = 4096;

/// A request that has ended.
struct Ended {
    id: u64,
    whose: Arc<Meter>,
    client: u32,
    session: u32,
    algorithm: Algorithm,
    bytes: u64,
    engine: Option<u8>,
    arrival: Time,
    dispatched: Time,
    start: Time,
    done: Time,
    deadline: Option<Time>,
    switched: bool,
    failed: bool,
    reason: Option<Reason>,
}

/// The ring of them. Nothing is allocated before the first.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Ended>>);

/// A request that a broker has served, as it is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestStats {
    /// The manager's number for it, by which `bywash explain` knows it.
    pub id: u64,
    /// The client's number in traces.
    pub client: u32,
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its command, by its own word.
    pub comm: String,
    /// The rule that says what it was promised, or `others`; empty where that was not recorded.
    pub tenant: String,
    /// The manager's number of its session.
    pub session: u32,
    /// Which algorithm.
    pub algorithm: String,
    /// Bytes of input.
    pub bytes: u64,
    /// Where; empty for one that no engine ran.
    pub engine: String,
    /// Microseconds from the manager's beginning to its arrival.
    pub arrived_us: f64,
    /// Microseconds from its arrival until it was given to its engine.
    pub waited_us: f64,
    /// Microseconds from there until the engine began.
    pub reach_us: f64,
    /// Microseconds that the engine took.
    pub service_us: f64,
    /// Microseconds from its arrival until it was wanted, if its tenant has a goal.
    pub deadline_us: Option<f64>,
    /// Whether its engine had to change to its session.
    pub switched: bool,
    /// Whether it ended with an error.
    pub failed: bool,
    /// Why it came before what else waited, if the policy can say.
    pub reason: Option<String>,
}

impl RequestStats {
    /// Of a request that was recorded; `None` for one that no broker served.
    pub fn of(record: &Record) -> Option<Self> {
        let us = |from: Time, to: Time| to.since_ns(from) as f64 / 1e3;
        let (served, whose) = (record.served.as_ref()?, record.whose.as_deref());
        Some(Self {
            id: served.request,
            client: record.client,
            pid: whose.map_or(0, |whose| whose.pid),
            uid: whose.map_or(0, |whose| whose.uid),
            comm: whose.map_or_else(String::new, |whose| whose.program.clone()),
            tenant: String::new(),
            session: record.session,
            algorithm: record.algorithm.name().to_owned(),
            bytes: record.bytes,
            engine: record.engine.clone(),
            arrived_us: us(Time::ZERO, record.arrival),
            waited_us: us(record.arrival, served.dispatched),
            reach_us: us(served.dispatched, record.start),
            service_us: us(record.start, record.done),
            deadline_us: served.deadline.map(|deadline| us(record.arrival, deadline)),
            switched: served.switched,
            failed: served.failed,
            reason: Reason::of_word(&served.reason).map(|reason| reason.to_string()),
        })
    }

    /// Microseconds from its arrival to its end.
    pub fn took_us(&self) -> f64 {
        self.waited_us + self.reach_us + self.service_us
    }

    /// Whether it was promised to be done earlier than it was.
    pub fn is_late(&self) -> bool {
        self.deadline_us.is_some_and(|deadline| self.failed || self.took_us() > deadline)
    }
}

impl Recent {
    pub(crate) fn note(&self, seen: &Observation<'_>, engine: Option<u8>, whose: Arc<Meter>) {
        let request = &seen.request;
        let ended = Ended {
            id: request.id.0,
            whose,
            client: request.client,
            session: request.session,
            algorithm: request.algorithm,
            bytes: request.bytes,
            engine,
            arrival: seen.arrival,
            dispatched: seen.dispatched,
            start: seen.start,
            done: seen.done,
            deadline: request.deadline,
            switched: seen.switched,
            failed: seen.outcome.is_err(),
            reason: seen.reason,
        };
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = if ring.len() >= KEPT { ring.pop_front() } else { None };
        ring.push_back(ended);
        drop(ring);
        // The last hold on a client that has ended is given up without the lock.
        drop(forgotten);
    }

    /// All that are remembered, those that ended last first; `engines` are their names.
    pub(crate) fn view(&self, engines: &[String]) -> Vec<RequestStats> {
        let us = |from: Time, to: Time| to.since_ns(from) as f64 / 1e3;
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = |ended: &Ended| RequestStats {
            id: ended.id,
            client: ended.client,
            pid: ended.whose.whose.pid,
            uid: ended.whose.whose.uid,
            comm: ended.whose.whose.program.clone(),
            tenant: ended.whose.account.name.clone(),
            session: ended.session,
            algorithm: ended.algorithm.name().to_owned(),
            bytes: ended.bytes,
            engine: ended.engine.and_then(|engine| engines.get(usize::from(engine))).cloned().unwrap_or_default(),
            arrived_us: us(Time::ZERO, ended.arrival),
            waited_us: us(ended.arrival, ended.dispatched),
            reach_us: us(ended.dispatched, ended.start),
            service_us: us(ended.start, ended.done),
            deadline_us: ended.deadline.map(|deadline| us(ended.arrival, deadline)),
            switched: ended.switched,
            failed: ended.failed,
            reason: ended.reason.map(|reason| reason.to_string()),
        };
        ring.iter().rev().map(each).collect()
    }
}
