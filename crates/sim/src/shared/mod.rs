//! One module shared by many programs, on the virtual clock: any [`Policy`], the very object that a manager asks.
//!
//! Programs are closed loops that ask for the next operation when they have the last one's result, with work of their own that processors must be free for, or
//! arrive as they like ([`load`]). The module serves one operation after the other, in the time of its sheet, and pays `switch_ns` to turn to another
//! session. The policy is told what a broker tells it: who comes with what promise, sessions, requests, ends, the times that the module took.
//!
//! | module | what it is |
//! |---|---|
//! | [`load`] | who wants what, on what machine |
//! | [`outcome`] | what came of it, for each client and in all |

pub mod load;
pub mod outcome;

pub use load::{Asks, Client, Host, Load};
pub use outcome::{Fate, Outcome};

use bywash_core::Time;
use bywash_policy::{Decision, EngineId, EngineInfo, EngineSet, Estimate, Event, Policy, Request, RequestId};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const MODULE: EngineId = EngineId(0);
/// The session of every client.
const SESSION: u32 = 0;
/// Bits of a request's number that say where its notes are; the others count.
const SLOT_BITS: u32 = 24;

/// What happens at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A client comes.
    Comes(u32),
    /// A thread has its result, or has slept: it wants a processor.
    Runnable(u32),
    /// A thread's work on a processor is done.
    Worked(u32),
    /// A request of an open client.
    Asked(u32),
    /// The module is done.
    Served,
}

/// A thread of a closed client: one operation at a time.
#[derive(Clone, Copy)]
struct Thread {
    client: u32,
    core: usize,
    doing: Doing,
}

/// What a thread works on when it next has a processor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// What comes before an operation.
    Before,
    /// What comes after one, and then at once what comes before the next.
    Both,
    /// What comes after one, and then it sleeps or ends.
    After,
}

#[derive(Clone, Copy)]
struct Note {
    client: u32,
    /// None of an open client.
    thread: Option<u32>,
    bytes: u64,
    arrived: Time,
}

#[derive(Clone, Copy, Default)]
struct Core {
    busy: bool,
    last: Option<u32>,
}

/// What the module is doing.
#[derive(Default)]
struct Under {
    batch: Vec<RequestId>,
    start: Time,
}

struct Run<'a> {
    policy: &'a mut dyn Policy,
    load: &'a Load,
    takes: Estimate,
    switch_ns: u64,
    random: fastrand::Rng,
    now: Time,
    wake: Option<Time>,
    to_come: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    happenings: u64,
    threads: Vec<Thread>,
    /// Of each client: operations not yet asked for, threads that have not ended.
    left: Vec<(u64, u32)>,
    runnable: VecDeque<u32>,
    cores: Vec<Core>,
    notes: Vec<Note>,
    vacant: Vec<u32>,
    asked: u64,
    under: Under,
    /// Room for the next batch.
    spare: Vec<RequestId>,
    holds: Option<u32>,
    outcome: Outcome,
}

/// Runs a load on a module that a policy for this one engine decides about. A run depends on its inputs alone.
///
/// # Panics
/// If the policy leaves a request waiting for ever.
pub fn run(policy: &mut dyn Policy, module: &EngineInfo, load: &Load) -> Outcome {
    let fate = |client: &Client| Fate { group: client.group, weight: client.tenant.weight, ..Fate::default() };
    let mut run = Run {
        policy,
        load,
        takes: Estimate::of(module),
        switch_ns: module.costs.switch_ns as u64,
        random: fastrand::Rng::with_seed(load.seed),
        now: Time::ZERO,
        wake: None,
        to_come: BinaryHeap::new(),
        happenings: 0,
        threads: Vec::new(),
        left: vec![(0, 0); load.clients.len()],
        runnable: VecDeque::new(),
        cores: vec![Core::default(); load.host.cores],
        notes: Vec::new(),
        vacant: Vec::new(),
        asked: 0,
        under: Under::default(),
        spare: Vec::new(),
        holds: None,
        outcome: Outcome { clients: load.clients.iter().map(fate).collect(), ..Outcome::default() },
    };
    for (client, description) in load.clients.iter().enumerate() {
        run.put(Time(description.start_ns), Happening::Comes(client as u32));
    }
    run.all();
    run.outcome.demoted = run.policy.demoted();
    run.outcome
}

impl Run<'_> {
    fn all(&mut self) {
        let end = self.load.until_ns.map_or(Time(u64::MAX), Time);
        loop {
            let next = self.to_come.peek().map(|Reverse((at, ..))| *at);
            let at = [next, self.wake].into_iter().flatten().min();
            let Some(at) = at.filter(|&at| at <= end) else { break };
            self.now = at;
            while let Some(Reverse((_, _, happening))) = self.to_come.peek().copied().filter(|Reverse((at, ..))| *at == self.now) {
                self.to_come.pop();
                self.happen(happening);
            }
            self.settle();
        }
        match self.load.until_ns {
            Some(until) => self.stop(Time(until)),
            None => assert!(self.left.iter().all(|&(_, threads)| threads == 0), "{} left a request waiting", self.policy.name()),
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Comes(client) => self.comes(client),
            Happening::Runnable(thread) => self.wants_processor(thread),
            Happening::Worked(thread) => self.worked(thread),
            Happening::Asked(client) => {
                self.ask(client, None);
                self.next_of_open(client);
            }
            Happening::Served => self.served(),
        }
    }

    fn comes(&mut self, client: u32) {
        let Client { tenant, asks, .. } = self.load.clients[client as usize];
        self.policy.event(self.now, Event::ClientJoined { client, tenant });
        self.policy.event(self.now, Event::SessionOpened { client, session: SESSION });
        match asks {
            Asks::Open { .. } => self.next_of_open(client),
            Asks::Closed { operations, depth, .. } => {
                let threads = u64::from(depth).min(operations) as u32;
                self.left[client as usize] = (operations - u64::from(threads), threads);
                for _ in 0..threads {
                    let thread = self.threads.len() as u32;
                    self.threads.push(Thread { client, core: 0, doing: Doing::Before });
                    self.wants_processor(thread);
                }
            }
        }
    }

    fn next_of_open(&mut self, client: u32) {
        let Asks::Open { every_ns } = self.load.clients[client as usize].asks else { return };
        let gap = -libm::log(1.0 - self.random.f64()) * every_ns as f64;
        self.put(self.now + gap as u64, Happening::Asked(client));
    }

    fn wants_processor(&mut self, thread: u32) {
        if self.cores.is_empty() {
            let work = self.work_ns(thread);
            return self.put(self.now + work, Happening::Worked(thread));
        }
        self.runnable.push_back(thread);
        self.use_cores();
    }

    /// Idle processors take whoever has waited longest, the one that ran it last if that is idle.
    fn use_cores(&mut self) {
        while let Some(&thread) = self.runnable.front() {
            let client = self.threads[thread as usize].client;
            let idle = || self.cores.iter().enumerate().filter(|(_, core)| !core.busy);
            let core = idle().find(|(_, core)| core.last == Some(client)).or_else(|| idle().next()).map(|(place, _)| place);
            let Some(core) = core else { return };
            self.runnable.pop_front();
            let other = self.cores[core].last.replace(client).is_some_and(|last| last != client);
            self.cores[core].busy = true;
            self.threads[thread as usize].core = core;
            let change_ns = if other { self.load.host.change_ns } else { 0 };
            self.put(self.now + change_ns + self.work_ns(thread), Happening::Worked(thread));
        }
    }

    fn work_ns(&self, thread: u32) -> u64 {
        let Thread { client, doing, .. } = self.threads[thread as usize];
        match (self.load.clients[client as usize].asks, doing) {
            (Asks::Closed { before_ns, .. }, Doing::Before) => before_ns,
            (Asks::Closed { after_ns, .. }, Doing::After) => after_ns,
            (Asks::Closed { before_ns, after_ns, .. }, Doing::Both) => before_ns + after_ns,
            (Asks::Open { .. }, _) => 0,
        }
    }

    fn worked(&mut self, thread: u32) {
        let Thread { client, core, doing } = self.threads[thread as usize];
        if let Some(core) = self.cores.get_mut(core) {
            core.busy = false;
        }
        match doing {
            Doing::Before | Doing::Both => self.ask(client, Some(thread)),
            Doing::After => self.paused(client, thread),
        }
        self.use_cores();
    }

    /// A thread that has a result and has done the work after it sleeps before the next operation, or ends.
    fn paused(&mut self, client: u32, thread: u32) {
        let (to_ask, threads) = &mut self.left[client as usize];
        if *to_ask > 0 {
            *to_ask -= 1;
            self.threads[thread as usize].doing = Doing::Before;
            let Asks::Closed { think_ns, .. } = self.load.clients[client as usize].asks else { return };
            return self.put(self.now + think_ns, Happening::Runnable(thread));
        }
        *threads -= 1;
        if *threads == 0 {
            self.outcome.clients[client as usize].ended = Some(self.now);
            self.outcome.makespan_ns = self.now.0;
            self.policy.event(self.now, Event::SessionClosed { client, session: SESSION });
            self.policy.event(self.now, Event::ClientLeft(client));
        }
    }

    fn ask(&mut self, client: u32, thread: Option<u32>) {
        let Client { algorithm, direction, bytes, .. } = self.load.clients[client as usize];
        let note = Note { client, thread, bytes, arrived: self.now };
        let slot = match self.vacant.pop() {
            Some(slot) => slot,
            None => {
                self.notes.push(note);
                (self.notes.len() - 1) as u32
            }
        };
        self.notes[slot as usize] = note;
        self.asked += 1;
        let id = RequestId(self.asked << SLOT_BITS | u64::from(slot));
        let engines = EngineSet::default().with(MODULE);
        let request = Request { id, client, session: SESSION, algorithm, direction, bytes, engines, deadline: None };
        self.policy.event(self.now, Event::Arrived(request));
    }

    fn note(&self, id: RequestId) -> Note {
        self.notes[(id.0 & ((1 << SLOT_BITS) - 1)) as usize]
    }

    fn settle(&mut self) {
        self.wake = None;
        // One operation at a time: while the module is busy there is nothing to decide.
        if !self.under.batch.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.spare);
        let decision = self.policy.decide(self.now, &mut batch);
        match decision {
            Decision::Dispatch(_) => self.begin(batch),
            Decision::WaitUntil(at) => self.wake = Some(at.max(self.now + 1)),
            _ => {}
        }
    }

    fn begin(&mut self, batch: Vec<RequestId>) {
        let first = self.note(batch[0]);
        let grant = self.outcome.clients[first.client as usize].first_wait_ns.is_none();
        let (mut bytes, mut switches) = (0, 0);
        for &id in &batch {
            let note = self.note(id);
            let wait = self.now.since_ns(note.arrived);
            let fate = &mut self.outcome.clients[note.client as usize];
            fate.first_wait_ns.get_or_insert(wait);
            fate.waits_ns.push(wait);
            bytes += note.bytes;
            switches += u64::from(self.holds.replace(note.client) != Some(note.client));
        }
        self.outcome.switches += switches;
        let algorithm = self.load.clients[first.client as usize].algorithm;
        let ns = self.takes.batch_ns(algorithm, bytes / batch.len() as u64, batch.len()) as u64;
        let start = self.now + if grant { self.load.host.grant_ns } else { 0 };
        self.under = Under { batch, start };
        self.put(start + ns + switches * self.switch_ns, Happening::Served);
    }

    fn served(&mut self) {
        let Under { mut batch, start } = std::mem::take(&mut self.under);
        let service_ns = self.now.since_ns(start);
        self.outcome.busy_ns += service_ns;
        let count = batch.len() as u64;
        for &id in &batch {
            let Note { client, thread, arrived, .. } = self.note(id);
            let (description, fate) = (&self.load.clients[client as usize], &mut self.outcome.clients[client as usize]);
            fate.operations += 1;
            fate.service_ns += service_ns / count;
            if let Some(goal_ns) = description.tenant.goal_ns {
                fate.due += 1;
                fate.missed += u64::from(self.now.since_ns(arrived) > goal_ns);
            }
            if let Some(thread) = thread {
                self.has_result(client, thread);
            }
            self.vacant.push((id.0 & ((1 << SLOT_BITS) - 1)) as u32);
        }
        self.policy.event(self.now, Event::Finished { engine: MODULE, batch: &batch, service_ns: Some(service_ns) });
        batch.clear();
        self.spare = batch;
    }

    fn has_result(&mut self, client: u32, thread: u32) {
        let Asks::Closed { think_ns, .. } = self.load.clients[client as usize].asks else { return };
        let (to_ask, _) = &mut self.left[client as usize];
        let goes_on = think_ns == 0 && *to_ask > 0;
        *to_ask -= u64::from(goes_on);
        self.threads[thread as usize].doing = if goes_on { Doing::Both } else { Doing::After };
        self.put(self.now + self.load.host.wake_ns, Happening::Runnable(thread));
    }

    /// What is overdue when the run is stopped has missed its goal.
    fn stop(&mut self, end: Time) {
        self.outcome.makespan_ns = end.0;
        let vacant: std::collections::BTreeSet<u32> = self.vacant.iter().copied().collect();
        let open = (0u32..).zip(&self.notes).filter(|(slot, _)| !vacant.contains(slot));
        for (_, note) in open {
            let goal_ns = self.load.clients[note.client as usize].tenant.goal_ns;
            if goal_ns.is_some_and(|goal_ns| end.since_ns(note.arrived) > goal_ns) {
                let fate = &mut self.outcome.clients[note.client as usize];
                (fate.due, fate.missed) = (fate.due + 1, fate.missed + 1);
            }
        }
    }

    fn put(&mut self, at: Time, happening: Happening) {
        self.happenings += 1;
        self.to_come.push(Reverse((at, self.happenings, happening)));
    }
}
