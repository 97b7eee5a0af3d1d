//! Policies: pure state machines that are told events and a time, and answer with decisions.
//!
//! The very same objects run live, in the manager's threads, and in the simulator. So nothing here reads a clock, a file, a
//! socket or a random source, nothing depends on hash order, and a run is reproduced by its events alone.
//!
//! # The contract
//!
//! The driver (a manager, a simulator) calls [`Policy::event`] for everything that happens, then [`Policy::decide`] until the answer is
//! [`Decision::WaitUntil`] or [`Decision::Idle`]. Time never runs backwards. In return a policy promises:
//!
//! - every request that arrived is dispatched exactly once, unless it is cancelled first;
//! - only to an engine of its [`EngineSet`], and only while that engine is up and has a free worker;
//! - it is work-conserving where its docs say so: no decision to wait while a request could run on a free worker.
//!
//! A request whose engine failed arrives anew, under its old id, with that engine taken out of its set. Every batch dispatched ends
//! with one [`Event::Finished`], failed or not; until then its worker is taken, even across [`Event::EngineDown`] and
//! [`Event::EngineUp`]. Every load ends with one [`Event::Loaded`] or [`Event::LoadFailed`]; a policy does not ask for the next at the same time. What failed for want of an answer may come back after all: [`Event::LoadReturned`]. A request none of whose engines is up simply waits: telling its owner is the driver's affair.
//!
//! Clients and sessions are told of for those policies that look at whose a request is. A driver may leave that out: an unknown client is a
//! [`Tenant::default`], an unknown session one that was opened when its first request came.
//!
//! # What is here
//!
//! | module | what it is | work-conserving | no request is overtaken |
//! |---|---|---|---|
//! | [`fifo`] | oldest first, first free engine | yes | ever, by another with the same engines |
//! | [`placement`] | shortest expected completion, from cost sheets | unless waiting is expected to be sooner | after [`placement::PATIENCE_NS`] |
//! | [`routing`] | the routing table: *here* or *queue* for each algorithm and size class | | |
//! | [`firing`] | when an event-driven thread computes what its connections have gathered | yes | by its own kind |
//! | [`sharing`] | whether operations that processes compute alone come together at the broker | | |
//! | [`yielding`] | whether a blocking thread offers the processor to others that may join it | | |
//! | [`reconfigure`] | placement beside an engine whose circuits a [`reload`] policy has loaded | unless waiting is expected to be sooner | by its own circuit's |
//! | [`mediator`] | a GPU beside the processor: small requests packed, large ones cut, the threshold learnt | as placement; else no longer than it is told | as placement |
//! | [`reload`] | what a reconfigurable engine should hold, and where a request runs meanwhile | | |
//! | [`schedule`] | schedulers for a module that many share: fair, by deadline, exclusive and more | see there | see there |
//! | [`estimate`] | a cost sheet that learns from what it sees | | |
//!
//! The properties are checked in `tests/model.rs` by a driver that makes up arrivals, engines, failures and cancellations, those of [`schedule`] in `tests/schedule.rs`, those of [`reconfigure`] in
//! `tests/reconfigure.rs`; `benches/policy.rs` measures what a request costs.
//!
//! # Adding a policy
//!
//! One file, one struct that implements [`Policy`], one line in [`by_name`] and in [`NAMES`]: the model test then runs it too.
//! What waits and what is free is kept for all policies alike in `waiting.rs` and `workers.rs`.
#![forbid(unsafe_code)]

use bywash_core::{Algorithm, Direction, Time};

mod by_id;
pub mod estimate;
pub mod fifo;
pub mod firing;
pub mod mediator;
pub mod placement;
mod reason;
pub mod reconfigure;
pub mod reload;
pub mod routing;
pub mod schedule;
pub mod sharing;
mod waiting;
mod workers;
pub mod yielding;

pub use by_id::{ById, IdHasher};
pub use estimate::Estimate;
pub use fifo::Fifo;
pub use mediator::Mediator;
pub use placement::Placement;
pub use reason::Reason;
pub use reconfigure::Reconfigure;

/// The names that [`by_name`] knows: three that look at operations alone, and those of [`schedule`].
pub const NAMES: &[&str] = &{
    let mut names = [""; 3 + schedule::NAMES.len()];
    (names[0], names[1], names[2]) = ("fifo", "placement", mediator::NAME);
    let mut place = 0;
    while place < schedule::NAMES.len() {
        names[3 + place] = schedule::NAMES[place];
        place += 1;
    }
    names
};

/// A policy by its name, for these engines; `None` for a name not in [`NAMES`]. Schedulers and the mediator may have parameters, `rr:quantum=2ms`, `mediator:prefer=cpu-free`; what is
/// wrong with one that is not understood [`schedule::parse`] and [`mediator::Setting`] say.
///
/// # Panics
/// With more than [`ENGINES_MAX`] engines.
pub fn by_name(name: &str, engines: &[EngineInfo]) -> Option<Box<dyn Policy>> {
    match name {
        "fifo" => Some(Box::new(Fifo::new(engines))),
        "placement" => Some(Box::new(Placement::new(engines))),
        _ => match name.parse::<mediator::Setting>() {
            Ok(setting) => Some(Box::new(Mediator::new(engines, setting))),
            Err(_) => schedule::parse(name).ok().map(|chosen| chosen.policy(engines)),
        },
    }
}

/// The most engines a driver's list may have: as many as an [`EngineSet`] holds.
pub const ENGINES_MAX: usize = 64;

/// A request, by the driver's running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An engine, by its place in the driver's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineId(pub u8);

/// A set of engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineSet(pub u64);

impl EngineSet {
    /// The set with one more engine.
    #[must_use]
    pub const fn with(self, engine: EngineId) -> Self {
        Self(self.0 | 1 << engine.0)
    }

    /// The set without an engine.
    #[must_use]
    pub const fn without(self, engine: EngineId) -> Self {
        Self(self.0 & !(1 << engine.0))
    }

    /// The engines of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there is no engine in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The engine listed first, if there is one.
    pub const fn first(self) -> Option<EngineId> {
        if self.0 == 0 { None } else { Some(EngineId(self.0.trailing_zeros() as u8)) }
    }

    /// The engines, in the driver's order.
    pub fn iter(self) -> impl Iterator<Item = EngineId> {
        std::iter::successors(self.first().map(|engine| (engine, self)), |&(engine, set)| {
            let rest = set.without(engine);
            rest.first().map(|next| (next, rest))
        })
        .map(|(engine, _)| engine)
    }

    /// Whether the engine is in the set.
    pub const fn contains(self, engine: EngineId) -> bool {
        self.0 >> engine.0 & 1 == 1
    }
}

/// What a policy knows of a request: never its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// Whose it is.
    pub client: u32,
    /// The client's session.
    pub session: u32,
    /// What is asked.
    pub algorithm: Algorithm,
    /// Which way.
    pub direction: Direction,
    /// Bytes of input.
    pub bytes: u64,
    /// The engines that can do it.
    pub engines: EngineSet,
    /// When it should be done, if it matters.
    pub deadline: Option<Time>,
}

/// What a client was promised by whoever runs the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its share of an engine's time beside the shares of the others that have work; 0 counts as 1.
    pub weight: u32,
    /// For a client of the deadline class: nanoseconds from a request's arrival until it should be done.
    pub goal_ns: Option<u64>,
}

impl Default for Tenant {
    /// Weight 1, no goal: what a client is of which nothing is known.
    fn default() -> Self {
        Self { weight: 1, goal_ns: None }
    }
}

/// What happens to a policy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request waits to be dispatched.
    Arrived(Request),
    /// A part of a request that [`Policy::cut`] has cut, meant for this engine. Only a policy that cuts is told of any.
    PartArrived(Request, EngineId),
    /// Whoever handed over the request that arrived last, whole and at this time, computes it at once if it goes to the processor alone and takes less than to wake a thread, and is believed to
    /// hand over so many more without a pause. Only a driver that can tells so.
    Burst(u32),
    /// A request that was not yet dispatched is withdrawn.
    Cancelled(RequestId),
    /// A batch has ended and its worker is free again.
    Finished {
        /// On which engine.
        engine: EngineId,
        /// The requests of the batch.
        batch: &'a [RequestId],
        /// How long the engine took for the whole batch; `None` if the engine failed any of it, or if nothing of it went well, for such a time says nothing of
        /// the next. A message with a wrong tag among others that went well was computed as they were.
        service_ns: Option<u64>,
    },
    /// A client is there. Its requests, if any came before, were those of a [`Tenant::default`].
    ClientJoined {
        /// Which.
        client: u32,
        /// What it was promised.
        tenant: Tenant,
    },
    /// A client is gone, and with it its sessions; of its requests those that were dispatched still finish, and the driver cancels the others.
    ClientLeft(u32),
    /// A client has opened a session.
    SessionOpened {
        /// Whose.
        client: u32,
        /// The client's number for it.
        session: u32,
    },
    /// A client has closed a session: no further request comes of it.
    SessionClosed {
        /// Whose.
        client: u32,
        /// The client's number for it.
        session: u32,
    },
    /// An engine can be used (again). Every engine of the driver's list is up at the start.
    EngineUp(EngineId),
    /// An engine cannot be used; what was dispatched to it and fails will arrive anew.
    EngineDown(EngineId),
    /// An engine has the circuits that a [`Decision::Load`] asked for.
    Loaded(EngineId),
    /// An engine could not load them, or not in time; it holds none of them, nor what had to go for them.
    LoadFailed(EngineId),
    /// Loading that had failed for want of an answer has come back, well after all: the engine holds these circuits and no others.
    LoadReturned(EngineId, &'a [Algorithm]),
}

/// What a policy answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Give the batch to this engine now.
    Dispatch(EngineId),
    /// Nothing now; ask again at this time, or when something happens.
    WaitUntil(Time),
    /// Nothing until something happens.
    Idle,
    /// Make these the circuits loaded in this engine.
    Load(EngineId, Vec<Algorithm>),
}

/// What a policy is told of an engine at the start.
#[derive(Clone, Debug)]
pub struct EngineInfo {
    /// Batches it can run at the same time.
    pub workers: usize,
    /// Operations that take less time in one batch.
    pub lanes: Lanes,
    /// What it costs.
    pub costs: bywash_core::CostSheet,
}

/// How many operations of each algorithm, each way, gain from going together in one batch: 1 where nothing does.
#[derive(Clone, Debug)]
pub struct Lanes(Box<[[usize; WAYS]; Algorithm::COUNT]>);

/// Directions that there are.
const WAYS: usize = 3;

impl Lanes {
    /// The same for every algorithm.
    pub fn same(lanes: usize) -> Self {
        Self::by(|_, _| lanes)
    }

    /// What the function says of each algorithm and direction; 0 counts as 1.
    pub fn by(lanes: impl Fn(Algorithm, Direction) -> usize) -> Self {
        let mut all = Box::new([[1; WAYS]; Algorithm::COUNT]);
        for &algorithm in Algorithm::ALL {
            for direction in [Direction::Encrypt, Direction::Decrypt, Direction::Compute] {
                all[usize::from(algorithm.number())][direction as usize] = lanes(algorithm, direction).max(1);
            }
        }
        Self(all)
    }

    /// Those for one algorithm, one way.
    pub fn of(&self, algorithm: Algorithm, direction: Direction) -> usize {
        self.0[usize::from(algorithm.number())][direction as usize]
    }
}

/// A policy: events and a time in, decisions out.
pub trait Policy: Send {
    /// The name by which it is chosen: `fifo`, `placement`; `tuned` and so on for one that sees to a reconfigurable engine.
    fn name(&self) -> &'static str;

    /// Something happened.
    fn event(&mut self, now: Time, event: Event<'_>);

    /// What is to be done. `batch` comes empty; for [`Decision::Dispatch`] it is filled with the requests, at least one.
    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision;

    /// Asked before a request arrives that can be [divided](bywash_core::divide): into which parts it is to be cut, in their order, each with the engine that it is meant for
    /// and its bytes. None, the default, leaves it whole. Parts have all its bytes between them, and all but the last are multiples of the grain. Each then arrives by
    /// [`Event::PartArrived`] as a request of its own, and the whole has ended when its parts have.
    fn cut(&mut self, now: Time, request: &Request, parts: &mut Vec<(EngineId, u64)>) {
        let _ = (now, request, parts);
    }

    /// Asked before a request arrives that its caller could compute in place, on one of several engines: which of them would take it if it came now, with nothing put off. None, the
    /// default, where that is not known; the request is then copied, so that any of them can. One that is named gets the request by an [`Event::Arrived`] that names no other.
    fn at_once(&mut self, now: Time, request: &Request) -> Option<EngineId> {
        let _ = (now, request);
        None
    }

    /// How many requests wanted to be done by a time that could not be promised, and went on without that promise.
    fn demoted(&self) -> u64 {
        0
    }

    /// Why the batch of the last [`Decision::Dispatch`] came before what else waited, for a policy that can say. Asked right after the dispatch, if at all.
    fn reason(&self) -> Option<Reason> {
        None
    }

    /// What the reconfigurable engine holds, for a policy that sees to one.
    fn held(&self) -> Option<Held> {
        None
    }
}

/// What a reconfigurable engine holds, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which engine.
    pub engine: EngineId,
    /// What it computes.
    pub loaded: Vec<Algorithm>,
    /// What is being loaded, or will be once others have made room.
    pub loading: Vec<Algorithm>,
    /// How often circuits were loaded, or should have been.
    pub loads: u64,
    /// How often that failed.
    pub failed_loads: u64,
    /// Requests that the other engines began while circuits were loaded.
    pub meanwhile: u64,
    /// Nanoseconds that its requests took less than the other engines would have, as far as those are known: service on the real clock against expected service.
    /// Below 0 where circuits are slower than the others and help because those are busy, or where a loaded machine wakes the engine's threads late: a wait for others that is
    /// spared is not counted.
    pub saved_ns: i64,
}
