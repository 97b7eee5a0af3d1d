//! Requests for a reconfigurable engine beside others: in software, on a circuit, or on one that is yet to be loaded.
//!
//! What the engine holds is decided by a [`Reload`] policy, the very object that the simulator drives: it is shown every request that the engine could do,
//! as the request arrives. Where a request runs is decided by the shortest expected completion, as niwa2005 leaves for later (s7.2): on
//! its circuit, if that is there or on its way, behind what waits for it; or on another engine, behind what the others have to do. A request goes to a circuit that nobody
//! has asked for only if no other engine can do it, or if the reload policy wants it to wait ([`Where::Hardware`], as [`lru`](crate::reload::lru) answers). What does not go to the engine is left to
//! [`Placement`].
//!
//! # While circuits are loaded
//!
//! A circuit that is to go first finishes what it was given; nothing new is given to it. Then it is loaded ([`Decision::Load`]), and the circuits that are not touched
//! work on. Requests for what is on its way wait for it where that is expected to be sooner than software.
//!
//! # Nothing is stuck
//!
//! When loading fails ([`Event::LoadFailed`]) or the engine goes down, what waits for it goes to the others. What no other engine can do now waits on, and the
//! oldest such request has its circuit loaded next. Between a failure and the next attempt lie [`RETRY_NS`], twice as long after each failure in a row, at
//! most [`RETRY_NS_MAX`]. How long loading may take before it has failed is the driver's affair; if it comes back after all ([`Event::LoadReturned`]), its circuits are
//! there, and nothing need be tried again. When the other engines go down, what waits for them and has a circuit turns to that.
//!
//! Each circuit takes one request at a time, oldest first: two requests for the same circuit never overtake each other there.

mod device;
mod fabric;
mod software;

use crate::estimate::Estimate;
use crate::placement::Placement;
use crate::reload::{Asked, Circuit, Circuits, Holds, Reload, Where};
use crate::waiting::Waiting;
use crate::{Decision, EngineId, EngineInfo, Event, Held, Policy, Request, RequestId};
use bywash_core::Time;
use device::Device;
use software::Software;

pub use fabric::Fabric;

/// How long after a failure the next loading may begin: 100 ms.
pub const RETRY_NS: u64 = 100_000_000;
/// The same after many failures in a row: a minute.
pub const RETRY_NS_MAX: u64 = 60_000_000_000;

/// The policy. See the [module](self).
pub struct Reconfigure {
    engine: EngineId,
    reload: Box<dyn Reload>,
    device: Device,
    estimate: Estimate,
    /// What waits for circuits: a queue for each.
    waiting: Waiting,
    others: Placement,
    software: Software,
    up: bool,
    saved_ns: i64,
    /// Requests that the others began while circuits were loaded.
    meanwhile: u64,
}

impl Reconfigure {
    /// For these engines, of which one is reconfigurable; it holds nothing yet and is made to hold `first`.
    ///
    /// # Panics
    /// With more than [`ENGINES_MAX`](crate::ENGINES_MAX) engines, or if there is no such engine.
    pub fn new(engines: &[EngineInfo], engine: EngineId, fabric: Fabric, first: Circuits, reload: Box<dyn Reload>) -> Self {
        let info = &engines[usize::from(engine.0)];
        let mut waiting = Waiting::default();
        for _ in 0..fabric.circuits() {
            waiting.add_queue();
        }
        let mut device = Device::new(fabric);
        if !first.is_empty() {
            device.change(first, 0);
        }
        Self {
            engine,
            reload,
            device,
            estimate: Estimate::of(info),
            waiting,
            others: Placement::new(engines),
            software: Software::beside(engine, engines),
            up: true,
            saved_ns: 0,
            meanwhile: 0,
        }
    }

    fn hardware_ns(&self, request: &Request) -> u64 {
        self.estimate.batch_ns(request.algorithm, request.bytes, 1) as u64
    }

    /// What the best of the other engines takes; `None` if none can do it now.
    fn software_ns(&self, request: &Request) -> Option<u64> {
        let engines = self.software.able(request).iter().filter_map(|id| self.others.estimate(id));
        engines.map(|estimate| estimate.batch_ns(request.algorithm, request.bytes, 1) as u64).min()
    }

    fn arrived(&mut self, now: Time, request: Request) {
        let circuit = self.device.fabric.circuit(request.algorithm).filter(|_| request.engines.contains(self.engine));
        let Some(circuit) = circuit else { return self.give_to_others(now, request) };
        let (software, hardware_ns) = (self.software_ns(&request), self.hardware_ns(&request));
        let bytes = u32::try_from(request.bytes).unwrap_or(u32::MAX);
        // What nothing else can do costs, where its circuit is missing, the loading of it.
        let loading = || hardware_ns.saturating_add(self.device.fabric.loading_ns(Circuits::NONE, Circuits::NONE.with(circuit)));
        let asked = Asked { circuit, bytes, software_ns: software.unwrap_or_else(loading), hardware_ns };
        let ready = self.up && self.device.may_change(now);
        let step = self.reload.begin(&asked, Holds { loaded: self.device.loaded(), loading: !ready });
        let waits = step.place == Where::Hardware && !self.device.loaded().contains(circuit);
        let load = step.load.filter(|&set| ready && self.device.fabric.fit().holds(set));
        let target = load.unwrap_or_else(|| self.device.target());
        let here = match software {
            None => true,
            Some(_) if !self.up => false,
            Some(_) if waits => true,
            Some(_) if !self.device.loaded().contains(circuit) && !target.contains(circuit) => false,
            Some(ns) => self.device.available(now, circuit, load) + hardware_ns <= self.software.available(now) + ns,
        };
        match software {
            Some(_) if here => self.others.pass(now, self.software.able(&request), request.algorithm, request.bytes, 1.0),
            Some(ns) if self.up => self.pass(now, circuit, &request, ns),
            _ => {}
        }
        // What runs on a circuit that is there does so before it may go; what asked for others waits for them.
        let before = here && self.device.loaded().contains(circuit);
        if before {
            self.give_to_circuit(now, circuit, request, hardware_ns);
        }
        if let Some(set) = load {
            self.device.change(set, self.waiting.next_order());
        }
        match (here, before) {
            (true, false) => self.give_to_circuit(now, circuit, request, hardware_ns),
            (true, true) => {}
            (false, _) => self.give_to_others(now, request),
        }
    }

    /// A request that its circuit could have done goes to the others, where it takes so long: the circuit is [tried again](crate::estimate) some time, and where it is missing
    /// that costs the loading of it as well.
    fn pass(&mut self, now: Time, circuit: Circuit, request: &Request, software_ns: u64) {
        let loaded = self.device.loaded();
        let loading_ns = if loaded.contains(circuit) { 0 } else { self.device.fabric.loading_ns(loaded, Circuits::NONE.with(circuit)) };
        let of_a_try = software_ns.max(1) as f64 / software_ns.max(1).saturating_add(loading_ns) as f64;
        self.estimate.pass(now, request.algorithm, request.bytes, of_a_try);
    }

    fn give_to_circuit(&mut self, now: Time, circuit: Circuit, request: Request, ns: u64) {
        self.waiting.push(usize::from(circuit.0), request, now);
        self.device.owe(circuit, ns);
    }

    fn give_to_others(&mut self, now: Time, request: Request) {
        let ns = self.software_ns(&request).unwrap_or(0);
        self.software.owe(request, ns);
        self.others.event(now, Event::Arrived(Request { engines: request.engines.without(self.engine), ..request }));
    }

    /// A request that waited for a circuit waits no more. Its time is believed otherwise by now than when it was added; an empty queue has none.
    fn waits_no_more(&mut self, circuit: Circuit, request: &Request) {
        let is_last = self.waiting.len(usize::from(circuit.0)) == 0;
        self.device.settle(circuit, if is_last { u64::MAX } else { self.hardware_ns(request) });
    }

    /// Sends what waits for these circuits to the other engines, as far as they can do it now.
    fn evict(&mut self, now: Time, from: Circuits) {
        for circuit in from.iter() {
            let mut kept = Vec::new();
            while let Some(entry) = self.waiting.pop(usize::from(circuit.0)) {
                if self.software.able(&entry.request).is_empty() {
                    kept.push(entry.request);
                } else {
                    self.give_to_others(now, entry.request);
                }
            }
            self.device.settle(circuit, u64::MAX);
            for request in kept {
                let ns = self.hardware_ns(&request);
                self.give_to_circuit(now, circuit, request, ns);
            }
        }
    }

    /// Takes back from the other engines what none of them can do now, if there is a circuit for it.
    fn take_back(&mut self, now: Time) {
        for request in self.software.stranded() {
            let circuit = self.device.fabric.circuit(request.algorithm).filter(|_| request.engines.contains(self.engine));
            if let Some(circuit) = circuit {
                self.cancelled(now, request.id);
                self.give_to_circuit(now, circuit, request, self.hardware_ns(&request));
            }
        }
    }

    /// The engine, or another, goes down or comes back: what cannot be done where it waits goes where it can.
    fn set_up(&mut self, now: Time, engine: EngineId, up: bool) {
        if engine == self.engine {
            self.up = up;
        } else {
            self.software.set_up(engine, up);
            self.others.event(now, if up { Event::EngineUp(engine) } else { Event::EngineDown(engine) });
        }
        let others_lost = (engine == self.engine) == up;
        match (others_lost, self.up) {
            (true, true) => self.take_back(now),
            (true, false) => {}
            (false, true) => self.evict(now, self.absent()),
            (false, false) => self.evict(now, self.device.fabric.all()),
        }
    }

    /// Circuits that are neither there nor on their way.
    fn absent(&self) -> Circuits {
        self.device.fabric.all().without_all(self.device.loaded()).without_all(self.device.target())
    }

    fn cancelled(&mut self, now: Time, id: RequestId) {
        match self.waiting.cancel(id) {
            Some((queue, entry)) => self.waits_no_more(Circuit(queue as u8), &entry.request),
            None => {
                self.software.settle(id);
                self.others.event(now, Event::Cancelled(id));
            }
        }
    }

    fn finished(&mut self, now: Time, batch: &[RequestId], service_ns: Option<u64>) {
        let (Some(done), Some(service_ns)) = (batch.first().and_then(|&id| self.device.finish(id)), service_ns) else { return };
        self.estimate.observe(now, done.algorithm, done.bytes, 1, service_ns);
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let saved_ns = self.software_ns(&done).map_or(0, |software| ns(software) - ns(service_ns));
        self.saved_ns = self.saved_ns.saturating_add(saved_ns);
    }

    /// The circuit with the oldest request that it can take now.
    fn runnable(&self) -> Option<Circuit> {
        let heads =
            self.device.fabric.all().iter().filter_map(|circuit| Some((self.waiting.front(usize::from(circuit.0))?.order, circuit)));
        heads.filter(|&(order, circuit)| self.device.takes(circuit, order)).min_by_key(|&(order, _)| order).map(|(_, circuit)| circuit)
    }

    fn dispatch(&mut self, now: Time, circuit: Circuit, batch: &mut Vec<RequestId>) -> Option<Decision> {
        let request = self.waiting.pop(usize::from(circuit.0))?.request;
        self.waits_no_more(circuit, &request);
        self.device.begin(circuit, request, now + self.hardware_ns(&request));
        batch.push(request.id);
        Some(Decision::Dispatch(self.engine))
    }

    /// Begins what is to be loaded, once the circuits that are to go have done what they were given.
    fn load(&mut self, now: Time) -> Option<Decision> {
        if self.device.may_change(now)
            && let Some(circuit) = self.stranded()
        {
            self.device.change(self.device.fabric.with(self.device.loaded(), circuit), self.waiting.next_order());
        }
        let barrier = self.device.draining()?;
        let owing = |circuit: Circuit| self.waiting.front(usize::from(circuit.0)).is_some_and(|head| head.order < barrier);
        let set = self.device.start(now, owing)?;
        Some(Decision::Load(self.engine, self.device.fabric.algorithms(set)))
    }

    /// The circuit of the oldest request that waits for one that is not there, with none on its way.
    fn stranded(&self) -> Option<Circuit> {
        let missing = self.device.fabric.all().without_all(self.device.loaded());
        let heads = missing.iter().filter_map(|circuit| Some((self.waiting.front(usize::from(circuit.0))?.order, circuit)));
        heads.min_by_key(|&(order, _)| order).map(|(_, circuit)| circuit)
    }
}

impl Policy for Reconfigure {
    fn name(&self) -> &'static str {
        self.reload.name()
    }

    fn event(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Arrived(request) => self.arrived(now, request),
            Event::Cancelled(id) => self.cancelled(now, id),
            Event::Finished { engine, batch, service_ns } if engine == self.engine => self.finished(now, batch, service_ns),
            Event::Finished { batch, .. } => {
                batch.iter().for_each(|&id| self.software.settle(id));
                self.others.event(now, event);
            }
            Event::Loaded(engine) if engine == self.engine => self.device.arrived(),
            Event::LoadFailed(engine) if engine == self.engine => {
                self.device.failed(now);
                self.evict(now, self.absent());
            }
            Event::LoadReturned(engine, circuits) if engine == self.engine => {
                if let Some(set) = self.device.fabric.set(circuits) {
                    self.device.returned(set);
                }
            }
            Event::EngineDown(engine) => self.set_up(now, engine, false),
            Event::EngineUp(engine) => self.set_up(now, engine, true),
            _ => self.others.event(now, event),
        }
    }

    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision {
        if self.up {
            let next = self.runnable().and_then(|circuit| self.dispatch(now, circuit, batch));
            if let Some(decision) = next.or_else(|| self.load(now)) {
                return decision;
            }
        }
        let own = self.device.wake(now).filter(|_| !self.waiting.is_empty());
        match (self.others.decide(now, batch), own) {
            (decision @ Decision::Dispatch(_), _) => {
                self.software.begin(now, batch);
                self.meanwhile += if self.device.is_loading() { batch.len() as u64 } else { 0 };
                decision
            }
            (Decision::WaitUntil(other), Some(own)) => Decision::WaitUntil(other.min(own)),
            (Decision::Idle, Some(own)) => Decision::WaitUntil(own),
            (decision, _) => decision,
        }
    }

    fn held(&self) -> Option<Held> {
        let algorithms = |set| self.device.fabric.algorithms(set);
        Some(Held {
            engine: self.engine,
            loaded: algorithms(self.device.loaded()),
            loading: algorithms(self.device.arriving()),
            loads: self.device.loads(),
            failed_loads: self.device.failed_loads(),
            meanwhile: self.meanwhile,
            saved_ns: self.saved_ns,
        })
    }
}
