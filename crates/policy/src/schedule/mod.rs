//! Schedulers for a module that many share: who is next.
//!
//! An engine that serves one request at a time, or a few, and that pays for turning from one session to another, is the case of ohgama2008: programs
//! wait for it in the kernel, and in which order they are served decides both how long all of them take and who starves. A [`Discipline`] decides that order for one
//! module. Disciplines compose: a class of deadlines lies over another discipline, anticipation lies over another discipline. [`Modules`] makes a
//! [`Policy`](crate::Policy) of them, with one discipline for each engine and a [`Route`] that says which engine a request waits for.
//!
//! Within a session requests are begun in the order in which they came, at each engine; one that serves one at a time ends them in that order too. With several workers, or another engine
//! to go to, a later one may be done before an earlier one: who has one continue the other (an IV that is carried on) waits for the first.
//!
//! # What there is
//!
//! | name | in short | idles while something waits | nobody waits longer than |
//! |---|---|---|---|
//! | [`exclusive`] | a session holds the module until it is closed | at most the lease, for its holder | no bound: as long as the holder goes on |
//! | [`rr`](round_robin) | sessions in turn, a quantum of time each | never | a round: for each other session a quantum, an operation and a switch |
//! | [`drr`](deficit) | tenants in turn, a quantum of time times weight each | never | a round, as above, by tenant and weight |
//! | [`wfq`](weighted) | the tenant with the least time for its weight | never | its share of time: see there |
//! | [`sjf`](shortest) | the shortest expected operation | never | those that were there when its `age` was reached |
//! | [`edf`](deadline) | earliest deadline, as far as can be met, over `wfq` | never | its deadline; the others `wfq`'s bound with 1 - `share` of the module |
//! | [`anticipatory`] | stays with a session, waits a little for it, over oldest first | a switch's time for each operation, a quantum in all | a quantum and an operation for each other session |
//! | [`default`](deadline) | `edf` over `anticipatory` over `wfq` | as `anticipatory` | as `edf` |
//! | [`split`] | each size where it is done soonest, oldest first there | never, each engine for itself | by younger ones, ever |
//! | [`failover`] | the first engine that works, oldest first there | never, each engine for itself | by younger ones, ever |
//!
//! All count *time*, changes of session included, as the engine's clock saw it: an operation of 64 KiB is not one of 16 bytes. `fifo` is
//! [`Fifo`](crate::Fifo). Where an engine has lanes, requests of one session that follow each other go together.
//!
//! A decision looks at the oldest request of each session in which something waits. What is remembered of a client or a session is forgotten when the driver says that
//! it is gone.
//!
//! A request waits for one engine, chosen when it comes: [`soonest`] unless the name says otherwise. It goes to another only when that engine goes down.
//!
//! Names with parameters, such as `exclusive:lease=20ms`, are read by [`parse`] and listed by [`help`]. The properties are
//! checked in `tests/schedule.rs`, for each by name.

pub mod anticipatory;
pub mod deadline;
pub mod deficit;
pub mod exclusive;
pub mod failover;
mod line;
mod module;
mod modules;
pub mod names;
pub mod oldest;
pub mod round_robin;
pub mod shortest;
pub mod soonest;
pub mod split;
mod tenants;
pub mod weighted;

pub use module::{Head, Module};
pub use modules::{Modules, Route};
pub(crate) use names::nanoseconds;
pub use names::{Chosen, NAMES, help, parse};

use crate::{Reason, Request, RequestId, Tenant};
use bywash_core::Time;

/// Whose a request is: sessions are numbered by each client for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Which client.
    pub client: u32,
    /// The client's session.
    pub session: u32,
}

impl Owner {
    /// Of a request.
    pub const fn of(request: &Request) -> Self {
        Self { client: request.client, session: request.session }
    }
}

/// What a discipline is told.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// A client is there.
    Joined(u32, Tenant),
    /// A client is gone.
    Left(u32),
    /// No further request comes of this session.
    Closed(Owner),
    /// A request waits; the module's line has it already.
    Arrived(&'a Request),
    /// A request waits no more, and was not served: cancelled, or sent elsewhere.
    Gone(&'a Request),
    /// What was chosen is being computed.
    Begun {
        /// Whose.
        owner: Owner,
        /// The requests, of which the first was chosen.
        batch: &'a [RequestId],
        /// How long they are expected to take, a change of session included.
        expected_ns: f64,
    },
    /// It has ended.
    Ended {
        /// Whose.
        owner: Owner,
        /// How much longer than expected it took; below 0 for less.
        more_ns: f64,
    },
    /// The module has stood idle for a session while others waited: its tenant has had that time too.
    Held {
        /// Whose.
        owner: Owner,
        /// For how long.
        ns: f64,
    },
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// The oldest request of this session, in which something waits.
    Serve(Owner),
    /// Nobody's before this time, unless something happens.
    WaitUntil(Time),
    /// Nobody's until something happens: nothing waits, or none of it before what is being computed has ended.
    Nothing,
}

impl From<Option<Head<'_>>> for Choice {
    fn from(head: Option<Head<'_>>) -> Self {
        head.map_or(Self::Nothing, |head| Self::Serve(head.owner()))
    }
}

/// Who is next at one module. See the [module](self).
pub trait Discipline: Send {
    /// Something happened. Whoever lies over another tells it everything too.
    fn tell(&mut self, now: Time, news: News<'_>, module: &Module);

    /// Whose turn it is; asked while a worker is free and something waits. What it answers with is begun.
    fn choose(&mut self, now: Time, module: &Module) -> Choice;

    /// Why it chose this session, of several: asked before the choice is begun.
    fn reason(&self, chosen: Owner, module: &Module) -> Reason;

    /// How many requests wanted a deadline that could not be promised.
    fn demoted(&self) -> u64 {
        0
    }
}
