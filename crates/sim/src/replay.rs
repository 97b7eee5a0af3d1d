//! A whole machine on the virtual clock: any [`Policy`], the very object that a manager asks, over engines that cost what their sheets say.
//!
//! This is what a recording of a live run is held against: the same requests, at the same times, decided by the same policy. An engine has as many
//! workers as it says, a batch takes a worker for the time of the sheet, and a reconfigurable one is loaded as long as its device sheet says. To that comes
//! what the machine needs to hand work over, as it was measured, and what the sheet says that a change of session costs.
//!
//! A processor that others use too, or any engine that is slower than its sheet for a while, has a [`Pace`], of which the policy is told nothing. A request that the policy
//! [cuts](Policy::cut) is served as its parts, and done when they are.
//!
//! Who waits for a result [asks again after it](When::After), whenever that is there.
//!
//! The policy is told of clients and sessions: they come with their first request, and go when their last one has ended.

use crate::asked::{Asked, Followers, When};
use crate::keys::Keys;
use crate::presence::{Owner, Presence};
use bywash_core::{Algorithm, Time};
use bywash_policy::estimate::Estimate;
use bywash_policy::reconfigure::Fabric;
use bywash_policy::reload::Circuits;
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Event, Policy, Request, RequestId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A request as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// What is asked, and when; of those with times of their own that come at the same time the first goes first.
    pub asked: Asked,
    /// The engines that can do it.
    pub engines: EngineSet,
}

/// What the machine takes beside its engine's own time, once per batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handover {
    /// Nanoseconds from the policy's decision until a thread of the engine begins.
    pub reach_ns: u64,
    /// Nanoseconds from the end of the engine's time until that thread has noticed.
    pub return_ns: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When it was asked for.
    pub arrived: Time,
    /// Where it ran.
    pub engine: EngineId,
    /// When it began there.
    pub start: Time,
    /// When it was done.
    pub done: Time,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Of each request, in their order; `None` for one that the policy left waiting for ever, or that comes after such a one.
    pub served: Vec<Option<Served>>,
    /// How often circuits were loaded.
    pub loads: u64,
    /// Requests that were cut into parts.
    pub cuts: u64,
    /// What each engine did, in their order.
    pub work: Vec<Work>,
}

/// What an engine did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Batches.
    pub batches: u64,
    /// Requests, or parts of them.
    pub requests: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Nanoseconds that its workers were busy.
    pub busy_ns: u64,
    /// Nanoseconds of the host's processor for its batches, if it is not that processor itself.
    pub host_ns: f64,
}

/// How much longer than their sheets say engines take for what begins at some time.
#[derive(Clone, Copy)]
pub struct Pace<'a> {
    /// So many times as long, because others compute beside it: 1 where nothing else uses it.
    pub times: &'a dyn Fn(EngineId, Time) -> f64,
    /// And so many nanoseconds more, whatever it computes, in which its thread is kept from running: asked once for each batch.
    pub kept_ns: &'a dyn Fn(EngineId, Time) -> f64,
}

impl<'a> Pace<'a> {
    /// As their sheets say.
    pub const LISTED: Pace<'static> = Pace { times: &|_, _| 1.0, kept_ns: &|_, _| 0.0 };

    /// So many times as long.
    pub const fn times(times: &'a dyn Fn(EngineId, Time) -> f64) -> Self {
        Self { times, kept_ns: &|_, _| 0.0 }
    }
}

/// What happens at some time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The last is whose key the worker holds now.
    Finished(EngineId, Time, Vec<RequestId>, Owner),
    Loaded(EngineId),
}

struct Machine<'a> {
    policy: &'a mut dyn Policy,
    costs: Vec<Estimate>,
    keys: Vec<Keys>,
    presence: Presence,
    engines: &'a [EngineInfo],
    arrivals: &'a [Arrival],
    /// Those whose time is known, with their places.
    arriving: BinaryHeap<Reverse<(Time, usize)>>,
    followers: Followers,
    /// When each came.
    arrived: Vec<Time>,
    handovers: Vec<Cycle<'a>>,
    pace: Pace<'a>,
    /// Of which arrival each request of the policy is, by its number: all of it, or a part.
    arrivals_of: Vec<usize>,
    /// What is left to do of arrivals that were cut.
    cuts: BTreeMap<usize, usize>,
    device: Option<Fabric>,
    loaded: Circuits,
    now: Time,
    wake: Option<Time>,
    to_come: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    happenings: u64,
    outcome: Outcome,
    waiting: BTreeMap<RequestId, Asked>,
}

/// Samples, taken in their order, again and again.
struct Cycle<'a>(std::iter::Cycle<std::slice::Iter<'a, Handover>>);

impl Cycle<'_> {
    fn next(&mut self) -> Handover {
        self.0.next().copied().unwrap_or_default()
    }
}

/// Serves these requests on these engines, of which one may be a reconfigurable device that holds nothing at the start. `handovers` has what
/// was measured of each engine, one for each of its batches in their order, and is gone through again and again; no sample, or no list, is no time.
///
/// # Panics
/// If the policy dispatches what does not wait, or decides without end; if a request comes after one behind it.
pub fn run(
    policy: &mut dyn Policy,
    engines: &[EngineInfo],
    handovers: &[Vec<Handover>],
    device: Option<Fabric>,
    arrivals: &[Arrival],
) -> Outcome {
    serve(policy, engines, handovers, device, Pace::LISTED, arrivals)
}

/// The same on engines that take as much longer than their sheets as `pace` says, of which one is the processor (`cpu`): what takes that so many times as long makes the host's part
/// of others' batches longer too.
///
/// # Panics
/// As [`run`].
pub fn run_at_pace(policy: &mut dyn Policy, engines: &[EngineInfo], pace: Pace<'_>, arrivals: &[Arrival]) -> Outcome {
    serve(policy, engines, &[], None, pace, arrivals)
}

fn serve(
    policy: &mut dyn Policy,
    engines: &[EngineInfo],
    handovers: &[Vec<Handover>],
    device: Option<Fabric>,
    pace: Pace<'_>,
    arrivals: &[Arrival],
) -> Outcome {
    let measured = |engine: usize| handovers.get(engine).map_or(&[][..], Vec::as_slice);
    let mut machine = Machine {
        policy,
        costs: engines.iter().map(Estimate::of).collect(),
        keys: engines.iter().map(|engine| Keys::of(engine.workers)).collect(),
        engines,
        pace,
        arrivals_of: Vec::new(),
        cuts: BTreeMap::new(),
        arrivals,
        arriving: arrivals.iter().enumerate().filter_map(|(place, arrival)| at(arrival).map(|at| Reverse((at, place)))).collect(),
        followers: Followers::of(arrivals.iter().map(|arrival| arrival.asked.when)),
        arrived: vec![Time::ZERO; arrivals.len()],
        presence: Presence::of(arrivals.iter().map(|arrival| arrival.asked.owner())),
        handovers: (0..engines.len()).map(|engine| Cycle(measured(engine).iter().cycle())).collect(),
        device,
        loaded: Circuits::NONE,
        now: Time::ZERO,
        wake: None,
        to_come: BinaryHeap::new(),
        happenings: 0,
        outcome: Outcome { served: vec![None; arrivals.len()], work: vec![Work::default(); engines.len()], ..Outcome::default() },
        waiting: BTreeMap::new(),
    };
    machine.settle();
    while machine.go_on() {
        machine.settle();
    }
    machine.outcome
}

/// When it arrives, if that is known before the run.
fn at(arrival: &Arrival) -> Option<Time> {
    match arrival.asked.when {
        When::At(at) => Some(at),
        When::After { .. } => None,
    }
}

impl Machine<'_> {
    /// Lets happen what comes next, or has the policy look again at the time that it asked for; false if nothing is to come. Of the same moment what happens on engines comes first, a
    /// request last.
    fn go_on(&mut self) -> bool {
        let arrival = self.arriving.peek().map(|Reverse((at, _))| *at);
        let happening = self.to_come.peek().map(|Reverse((at, ..))| *at);
        let is_first = |at: Time, others: &[Option<Time>]| others.iter().flatten().all(|&other| at <= other);
        match (happening, self.wake, arrival) {
            (Some(at), wake, arrival) if is_first(at, &[wake, arrival]) => {
                self.now = at;
                let happening = self.to_come.pop().map(|Reverse((.., happening))| happening);
                happening.into_iter().for_each(|happening| self.happen(happening));
            }
            (_, Some(wake), arrival) if is_first(wake, &[arrival]) => self.now = self.now.max(wake),
            (_, _, Some(at)) => {
                self.now = at;
                let place = self.arriving.pop().map(|Reverse((_, place))| place);
                place.into_iter().for_each(|place| self.arrive(place));
            }
            (_, _, None) => return false,
        }
        true
    }

    fn arrive(&mut self, place: usize) {
        let arrival = self.arrivals[place];
        let Arrival { asked: Asked { algorithm, direction, bytes, client, session, .. }, engines } = arrival;
        self.arrived[place] = self.now;
        self.presence.arrives(arrival.asked.owner(), self.now, self.policy);
        let id = self.next_id();
        let request = Request { id, client, session, algorithm, direction, bytes, engines, deadline: None };
        let mut parts = Vec::new();
        self.policy.cut(self.now, &request, &mut parts);
        if parts.is_empty() {
            self.enter(place, arrival.asked);
            return self.policy.event(self.now, Event::Arrived(request));
        }
        assert_eq!(parts.iter().map(|(_, bytes)| bytes).sum::<u64>(), bytes, "parts that are not the whole");
        self.outcome.cuts += 1;
        self.cuts.insert(place, parts.len());
        for (engine, bytes) in parts {
            let id = self.next_id();
            self.enter(place, Asked { bytes, ..arrival.asked });
            self.policy.event(self.now, Event::PartArrived(Request { id, bytes, ..request }, engine));
        }
    }

    fn next_id(&self) -> RequestId {
        RequestId(self.arrivals_of.len() as u64)
    }

    fn enter(&mut self, place: usize, asked: Asked) {
        self.waiting.insert(self.next_id(), asked);
        self.arrivals_of.push(place);
    }

    /// A request of the policy has ended; the arrival that it is of, if that has.
    fn end(&mut self, id: RequestId, engine: EngineId, start: Time) {
        let arrival = self.arrivals_of[id.0 as usize];
        let (served, arrived) = (&mut self.outcome.served[arrival], self.arrived[arrival]);
        let before = served.unwrap_or(Served { arrived, engine, start, done: Time::ZERO });
        *served = Some(Served { arrived, engine, start: before.start.min(start), done: before.done.max(self.now) });
        if let Some(left) = self.cuts.get_mut(&arrival) {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.cuts.remove(&arrival);
        }
        self.presence.ends(self.arrivals[arrival].asked.owner(), self.now, self.policy);
        for follower in self.followers.after(arrival as u32) {
            if let When::After { think_ns, .. } = self.arrivals[follower as usize].asked.when {
                self.arriving.push(Reverse((self.now + think_ns, follower as usize)));
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Loaded(engine) => self.policy.event(self.now, Event::Loaded(engine)),
            Happening::Finished(engine, start, batch, held) => {
                self.keys[usize::from(engine.0)].give(held);
                let service_ns = Some(self.now.since_ns(start));
                self.policy.event(self.now, Event::Finished { engine, batch: &batch, service_ns });
                self.outcome.work[usize::from(engine.0)].busy_ns += self.now.since_ns(start);
                for id in batch {
                    self.end(id, engine, start);
                }
            }
        }
    }

    fn put(&mut self, at: Time, happening: Happening) {
        self.happenings += 1;
        self.to_come.push(Reverse((at, self.happenings, happening)));
    }

    fn settle(&mut self) {
        self.wake = None;
        for _ in 0..1_000_000 {
            let mut batch = Vec::new();
            match self.policy.decide(self.now, &mut batch) {
                Decision::Dispatch(engine) => {
                    let requests: Vec<Asked> = batch.iter().map(|id| self.waiting.remove(id).expect("a request that waits")).collect();
                    let (count, bytes) = (requests.len(), requests.iter().map(|request| request.bytes).sum::<u64>());
                    let ns = self.batch_ns(engine, requests[0].algorithm, bytes, count);
                    let Handover { reach_ns, return_ns } = self.handovers[usize::from(engine.0)].next();
                    let switches = self.keys[usize::from(engine.0)].take(requests.iter().map(Asked::owner));
                    let switches_ns = switches * self.engines[usize::from(engine.0)].costs.switch_ns as u64;
                    let (start, held) = (self.now + reach_ns, requests[count - 1].owner());
                    self.put(start + switches_ns + ns as u64 + return_ns, Happening::Finished(engine, start, batch, held));
                }
                Decision::Load(engine, algorithms) => {
                    let there = self.load(&algorithms);
                    self.put(there, Happening::Loaded(engine));
                }
                Decision::WaitUntil(at) => return self.wake = Some(at.max(self.now + 1)),
                _ => return,
            }
        }
        panic!("{} decides without end", self.policy.name());
    }

    /// What a batch takes that begins now; booked as the engine's work.
    fn batch_ns(&mut self, engine: EngineId, algorithm: Algorithm, bytes: u64, count: usize) -> f64 {
        let place = usize::from(engine.0);
        let listed = self.costs[place].batch_ns(algorithm, bytes / count as u64, count);
        let costs = &self.engines[place].costs;
        let host = costs.host_ns + costs.host_ns_per_byte * bytes as f64;
        let processor = self.engines.iter().position(|engine| engine.costs.is_processor()).filter(|&other| other != place);
        let host_times = processor.map_or(1.0, |other| (self.pace.times)(EngineId(other as u8), self.now));
        let work = &mut self.outcome.work[place];
        (work.batches, work.requests, work.bytes, work.host_ns) =
            (work.batches + 1, work.requests + count as u64, work.bytes + bytes, work.host_ns + host);
        // The copies of one launch go on while another computes; the driver's part does not.
        listed * (self.pace.times)(engine, self.now) + (self.pace.kept_ns)(engine, self.now) + costs.host_ns * (host_times - 1.0)
    }

    fn load(&mut self, algorithms: &[Algorithm]) -> Time {
        let Some(device) = &self.device else { return self.now };
        let wanted = device.set(algorithms).expect("circuits of the device");
        let ns = device.loading_ns(device.kept(self.loaded, wanted), wanted);
        self.loaded = wanted;
        self.outcome.loads += 1;
        self.now + ns
    }
}
