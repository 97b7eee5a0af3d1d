//! What the engine holds, what is on its way, and what its circuits have to do.

use super::fabric::Fabric;
use super::{RETRY_NS, RETRY_NS_MAX};
use crate::reload::{Circuit, Circuits};
use crate::{Request, RequestId};
use bywash_core::Time;

/// A change of what is held.
#[derive(Clone, Copy)]
struct Change {
    to: Circuits,
    /// Circuits that go, or are gone while the others come.
    leaving: Circuits,
    /// Requests that came before this one are done before the circuits go.
    barrier: u64,
    /// Since when it is under way, and how long it is to take.
    loading: Option<(Time, u64)>,
}

/// The engine as the policy sees it. A circuit takes one request at a time.
pub(super) struct Device {
    pub(super) fabric: Fabric,
    /// What new requests may be given to.
    loaded: Circuits,
    change: Option<Change>,
    /// After a failure, from when on it may be tried again, and how long after a further one.
    not_before: Time,
    retry_ns: u64,
    /// What each circuit works on, with its expected end.
    running: Vec<Option<(Request, Time)>>,
    /// Expected time of all that waits for each circuit.
    owed_ns: Vec<u64>,
    loads: u64,
    failed_loads: u64,
}

impl Device {
    pub(super) fn new(fabric: Fabric) -> Self {
        let (running, owed_ns) = (vec![None; fabric.circuits()], vec![0; fabric.circuits()]);
        let (loaded, change, not_before) = (Circuits::NONE, None, Time::ZERO);
        Self { fabric, loaded, change, not_before, retry_ns: RETRY_NS, running, owed_ns, loads: 0, failed_loads: 0 }
    }

    /// What new requests may be given to at once.
    pub(super) fn loaded(&self) -> Circuits {
        self.loaded
    }

    /// What is on its way and not there.
    pub(super) fn arriving(&self) -> Circuits {
        self.change.map_or(Circuits::NONE, |change| change.to.without_all(self.loaded))
    }

    /// What there will be once nothing is on its way.
    pub(super) fn target(&self) -> Circuits {
        self.change.map_or(self.loaded, |change| change.to)
    }

    /// How often circuits were loaded.
    pub(super) fn loads(&self) -> u64 {
        self.loads
    }

    /// How often that failed.
    pub(super) fn failed_loads(&self) -> u64 {
        self.failed_loads
    }

    /// Whether circuits are being loaded.
    pub(super) fn is_loading(&self) -> bool {
        self.change.is_some_and(|change| change.loading.is_some())
    }

    /// Whether others may be asked for.
    pub(super) fn may_change(&self, now: Time) -> bool {
        self.change.is_none() && now >= self.not_before
    }

    pub(super) fn owe(&mut self, circuit: Circuit, ns: u64) {
        let owed = &mut self.owed_ns[usize::from(circuit.0)];
        *owed = owed.saturating_add(ns);
    }

    pub(super) fn settle(&mut self, circuit: Circuit, ns: u64) {
        let owed = &mut self.owed_ns[usize::from(circuit.0)];
        *owed = owed.saturating_sub(ns);
    }

    fn running(&self, circuit: Circuit) -> Option<&(Request, Time)> {
        self.running[usize::from(circuit.0)].as_ref()
    }

    /// When a circuit is expected to be done with what it was given.
    fn free(&self, now: Time, circuit: Circuit) -> Time {
        self.running(circuit).map_or(now, |&(_, end)| end.max(now)) + self.owed_ns[usize::from(circuit.0)]
    }

    /// When a circuit could begin one more request, if `load` were now asked for; the end of time if it is neither there nor on its way.
    pub(super) fn available(&self, now: Time, circuit: Circuit, load: Option<Circuits>) -> Time {
        let free = self.free(now, circuit);
        if self.loaded.contains(circuit) {
            return free;
        }
        let change = self.change.or_else(|| load.map(|to| self.planned(to, 0))).filter(|change| change.to.contains(circuit));
        match change {
            None => Time(u64::MAX),
            Some(Change { loading: Some((since, ns)), .. }) => {
                // What overruns is expected to overrun by as much again.
                let overrun_ns = now.since_ns(since + ns);
                (since + ns).max(now) + overrun_ns + free.since_ns(now)
            }
            Some(Change { leaving, to, .. }) => {
                let gone = leaving.iter().map(|circuit| self.free(now, circuit)).max().unwrap_or(now);
                gone + self.fabric.loading_ns(self.loaded.without_all(leaving), to) + free.since_ns(now)
            }
        }
    }

    fn planned(&self, to: Circuits, barrier: u64) -> Change {
        Change { to, leaving: self.loaded.without_all(self.fabric.kept(self.loaded, to)), barrier, loading: None }
    }

    /// Has these circuits held from now on; requests that came before the barrier are done first.
    pub(super) fn change(&mut self, to: Circuits, barrier: u64) {
        let change = self.planned(to, barrier);
        self.loaded = self.loaded.without_all(change.leaving);
        self.change = Some(change);
    }

    /// The barrier of a change that is not under way yet.
    pub(super) fn draining(&self) -> Option<u64> {
        self.change.filter(|change| change.loading.is_none()).map(|change| change.barrier)
    }

    /// Begins the change if the circuits that go are done; `owing` says of which something waits that comes before. What is to be loaded.
    pub(super) fn start(&mut self, now: Time, owing: impl Fn(Circuit) -> bool) -> Option<Circuits> {
        let change = self.change.as_mut()?;
        let busy = |circuit: Circuit| self.running[usize::from(circuit.0)].is_some() || owing(circuit);
        if change.leaving.iter().any(busy) {
            return None;
        }
        change.loading = Some((now, self.fabric.loading_ns(self.loaded, change.to)));
        self.loads += 1;
        Some(change.to)
    }

    /// What was loaded is there.
    pub(super) fn arrived(&mut self) {
        if let Some(change) = self.change.take() {
            self.loaded = change.to;
        }
        self.retry_ns = RETRY_NS;
    }

    /// What was loaded is not there, nor is what had to go for it.
    pub(super) fn failed(&mut self, now: Time) {
        self.change = None;
        self.failed_loads += 1;
        self.not_before = now + self.retry_ns;
        self.retry_ns = self.retry_ns.saturating_mul(2).min(RETRY_NS_MAX);
    }

    /// What was thought to have failed has come back well: the engine holds this, unless others are to take its place already.
    pub(super) fn returned(&mut self, set: Circuits) {
        if self.change.is_none() {
            self.loaded = set;
        }
        (self.not_before, self.retry_ns) = (Time::ZERO, RETRY_NS);
    }

    /// When to look again, if nothing happens before.
    pub(super) fn wake(&self, now: Time) -> Option<Time> {
        Some(self.not_before).filter(|&at| self.change.is_none() && at > now)
    }

    /// Whether a circuit can take now what came in that order.
    pub(super) fn takes(&self, circuit: Circuit, order: u64) -> bool {
        let idle = self.running(circuit).is_none();
        let last = |change: Change| change.loading.is_none() && change.leaving.contains(circuit) && order < change.barrier;
        idle && (self.loaded.contains(circuit) || self.change.is_some_and(last))
    }

    pub(super) fn begin(&mut self, circuit: Circuit, request: Request, end: Time) {
        self.running[usize::from(circuit.0)] = Some((request, end));
    }

    /// The request is done, well or not; `None` if no circuit had it.
    pub(super) fn finish(&mut self, id: RequestId) -> Option<Request> {
        let place = self.running.iter_mut().find(|running| running.is_some_and(|(request, _)| request.id == id))?;
        place.take().map(|(request, _)| request)
    }
}
