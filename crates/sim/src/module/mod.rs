//! One module and traffic that was recorded, or made up in the same form: any [`Policy`], the very object that a broker asks, and what each tenant had of the module.
//!
//! [`shared`](crate::shared) has programs and the machine on which they run. Here requests are what is known: who [asked](crate::asked) for what, and when.
//!
//! | module | what it is |
//! |---|---|
//! | [`traffic`] | requests: recorded, or of programs that are described |
//! | [`shares`] | what each client had while others wanted the module too, beside what it was due |

pub mod shares;
pub mod traffic;

pub use shares::Share;
pub use traffic::{Client, Traffic};

use crate::asked::{Asked, Followers, When};
use crate::keys::Keys;
use crate::presence::Presence;
use bywash_core::Time;
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Estimate, Event, Policy, Request, RequestId};
use shares::Shares;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const MODULE: EngineId = EngineId(0);

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// When it was asked for.
    pub arrived: Time,
    /// When the module began it.
    pub begun: Time,
    /// When it was done.
    pub done: Time,
}

impl Fate {
    /// Nanoseconds that it waited to be begun.
    pub fn wait_ns(&self) -> u64 {
        self.begun.since_ns(self.arrived)
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Of each request, in the traffic's order.
    pub fates: Vec<Fate>,
    /// Of each client, in the traffic's order.
    pub shares: Vec<Share>,
    /// When the last request was done.
    pub makespan_ns: u64,
    /// Nanoseconds that the module computed or changed its session, of all that it does at the same time.
    pub busy_ns: u64,
    /// How often it changed its session.
    pub switches: u64,
    /// Requests that wanted a deadline that could not be promised.
    pub demoted: u64,
}

/// What happens at some time. Ends come before arrivals of the same moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A batch that began then is done; the last is the session that its worker holds now.
    Done(Time, Vec<RequestId>, (u32, u32)),
    Arrives(u32),
}

struct Run<'a> {
    policy: &'a mut dyn Policy,
    traffic: &'a Traffic,
    takes: Estimate,
    switch_ns: u64,
    presence: Presence,
    followers: Followers,
    keys: Keys,
    now: Time,
    wake: Option<Time>,
    to_come: BinaryHeap<Reverse<(Time, Happening)>>,
    shares: Shares,
    outcome: Outcome,
}

/// Serves traffic on a module that a policy for this one engine decides about. A run depends on its inputs alone.
///
/// # Panics
/// If the policy leaves a request waiting for ever, or a request comes after one behind it.
pub fn run(policy: &mut dyn Policy, module: &EngineInfo, traffic: &Traffic) -> Outcome {
    let count = traffic.requests.len();
    let mut to_come = BinaryHeap::new();
    for (number, asked) in (0u32..).zip(&traffic.requests) {
        if let When::At(at) = asked.when {
            to_come.push(Reverse((at, Happening::Arrives(number))));
        }
    }
    let mut run = Run {
        policy,
        traffic,
        takes: Estimate::of(module),
        switch_ns: module.costs.switch_ns as u64,
        presence: Presence::of(traffic.requests.iter().map(Asked::owner)).with(traffic.clients.iter().map(|client| client.tenant)),
        followers: Followers::of(traffic.requests.iter().map(|asked| asked.when)),
        keys: Keys::of(module.workers.max(1)),
        now: Time::ZERO,
        wake: None,
        to_come,
        shares: Shares::of(traffic),
        outcome: Outcome { fates: vec![Fate::default(); count], ..Outcome::default() },
    };
    run.all();
    let Run { policy, shares, mut outcome, .. } = run;
    outcome.demoted = policy.demoted();
    outcome.shares = shares.end();
    outcome
}

impl Run<'_> {
    fn all(&mut self) {
        let mut left = self.traffic.requests.len();
        while left > 0 {
            let next = self.to_come.peek().map(|Reverse((at, _))| *at);
            let at = [next, self.wake].into_iter().flatten().min();
            self.now = at.unwrap_or_else(|| panic!("{} left {left} requests waiting", self.policy.name()));
            self.shares.pass(self.now);
            while self.to_come.peek().is_some_and(|Reverse((at, _))| *at == self.now) {
                let Some(Reverse((_, happening))) = self.to_come.pop() else { break };
                match happening {
                    Happening::Arrives(number) => self.arrives(number),
                    Happening::Done(begun, batch, held) => {
                        left -= batch.len();
                        self.done(begun, &batch, held);
                    }
                }
            }
            self.settle();
        }
    }

    fn arrives(&mut self, number: u32) {
        let Asked { client, session, algorithm, direction, bytes, .. } = self.traffic.requests[number as usize];
        self.outcome.fates[number as usize].arrived = self.now;
        self.presence.arrives((client, session), self.now, self.policy);
        self.shares.wants(client);
        let (id, engines) = (RequestId(number.into()), EngineSet::default().with(MODULE));
        let request = Request { id, client, session, algorithm, direction, bytes, engines, deadline: None };
        self.policy.event(self.now, Event::Arrived(request));
    }

    fn done(&mut self, begun: Time, batch: &[RequestId], held: (u32, u32)) {
        self.keys.give(held);
        self.outcome.busy_ns += self.now.since_ns(begun);
        self.outcome.makespan_ns = self.now.0;
        for id in batch {
            let number = id.0 as usize;
            self.outcome.fates[number].done = self.now;
            self.shares.ends(self.traffic.requests[number].client, batch.len());
            self.shares.has(self.traffic.requests[number].client);
            for follower in self.followers.after(number as u32) {
                let When::After { think_ns, .. } = self.traffic.requests[follower as usize].when else { continue };
                self.to_come.push(Reverse((self.now + think_ns, Happening::Arrives(follower))));
            }
        }
        let service_ns = Some(self.now.since_ns(begun));
        self.policy.event(self.now, Event::Finished { engine: MODULE, batch, service_ns });
        for id in batch {
            self.presence.ends(self.traffic.requests[id.0 as usize].owner(), self.now, self.policy);
        }
    }

    fn settle(&mut self) {
        self.wake = None;
        while !self.keys.are_taken() {
            let mut batch = Vec::new();
            match self.policy.decide(self.now, &mut batch) {
                Decision::Dispatch(_) => self.begin(batch),
                Decision::WaitUntil(at) => return self.wake = Some(at.max(self.now + 1)),
                _ => return,
            }
        }
    }

    fn begin(&mut self, batch: Vec<RequestId>) {
        let traffic = self.traffic;
        let requests = batch.iter().map(|id| &traffic.requests[id.0 as usize]);
        for (id, request) in batch.iter().zip(requests.clone()) {
            self.outcome.fates[id.0 as usize].begun = self.now;
            self.shares.begins(request.client, batch.len());
        }
        let bytes: u64 = requests.clone().map(|request| request.bytes).sum();
        let switches = self.keys.take(requests.map(Asked::owner));
        self.outcome.switches += switches;
        let [first, last] = [0, batch.len() - 1].map(|place| traffic.requests[batch[place].0 as usize]);
        let ns = self.takes.batch_ns(first.algorithm, bytes / batch.len() as u64, batch.len()) as u64;
        let end = self.now + ns + switches * self.switch_ns;
        self.to_come.push(Reverse((end, Happening::Done(self.now, batch, last.owner()))));
    }
}
