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
//! A request whose engine failed arrives anew, under its old id, with that engine taken out of its set.
#![forbid(unsafe_code)]

use bywash_core::{Algorithm, Time};

/// A request, by the driver's running number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An engine, by its place in the driver's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineId(pub u8);

/// A set of engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Bytes of input.
    pub bytes: u64,
    /// The engines that can do it.
    pub engines: EngineSet,
    /// When it should be done, if it matters.
    pub deadline: Option<Time>,
}

/// What happens to a policy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request waits to be dispatched.
    Arrived(Request),
    /// A request that was not yet dispatched is withdrawn.
    Cancelled(RequestId),
    /// A batch has ended and its worker is free again.
    Finished {
        /// On which engine.
        engine: EngineId,
        /// The requests of the batch.
        batch: &'a [RequestId],
        /// How long the engine took for the whole batch.
        service_ns: u64,
    },
    /// An engine can be used (again). Every engine of the driver's list is up at the start.
    EngineUp(EngineId),
    /// An engine cannot be used; what was dispatched to it and fails will arrive anew.
    EngineDown(EngineId),
    /// An engine has the circuits that a [`Decision::Load`] asked for.
    Loaded(EngineId),
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
    /// Operations it gains from in one batch.
    pub batch_max: usize,
    /// What it costs.
    pub costs: bywash_core::CostSheet,
}

/// A policy: events and a time in, decisions out.
pub trait Policy: Send {
    /// The name by which it is chosen: `fifo`, `placement`.
    fn name(&self) -> &'static str;

    /// Something happened.
    fn event(&mut self, now: Time, event: Event<'_>);

    /// What is to be done. `batch` comes empty; for [`Decision::Dispatch`] it is filled with the requests, at least one.
    fn decide(&mut self, now: Time, batch: &mut Vec<RequestId>) -> Decision;
}
