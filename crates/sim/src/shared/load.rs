//! Who wants what of the module, and on what machine: the description that a simulated and a live run have in common.

use bywash_core::{Algorithm, Direction};
use bywash_policy::Tenant;

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The programs; a client's number is its place.
    pub clients: Vec<Client>,
    /// The machine on which they run.
    pub host: Host,
    /// When to stop and look, in nanoseconds; `None`: when all have done what they came for.
    pub until_ns: Option<u64>,
    /// Of the arrivals of open clients.
    pub seed: u64,
}

/// A program with one session.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// What it is one of: `bulk`, `interactive`.
    pub group: &'static str,
    /// What it was promised. A goal is also what its misses are counted by.
    pub tenant: Tenant,
    /// What it asks for.
    pub algorithm: Algorithm,
    /// Which way.
    pub direction: Direction,
    /// Bytes of each operation.
    pub bytes: u64,
    /// When it starts, in nanoseconds.
    pub start_ns: u64,
    /// How it asks.
    pub asks: Asks,
}

/// How a program asks for operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Waits for a result before it asks for the next operation.
    Closed {
        /// So many operations in all.
        operations: u64,
        /// So many at a time.
        depth: u32,
        /// The program's own work before each operation, in nanoseconds of a processor.
        before_ns: u64,
        /// And after each.
        after_ns: u64,
        /// What it sleeps between the two, in nanoseconds.
        think_ns: u64,
    },
    /// Asks whether or not results have come, at random (exponentially distributed) intervals; its own work is nothing.
    Open {
        /// The mean interval in nanoseconds.
        every_ns: u64,
    },
}

/// The machine on which the programs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Processors that the programs share; 0: each has its own.
    pub cores: usize,
    /// What it costs a processor to turn to another program, there and back, in nanoseconds.
    pub change_ns: u64,
    /// From an operation's end until its program can go on, in nanoseconds.
    pub wake_ns: u64,
    /// From the decision to begin a program's first operation until it begins, in nanoseconds, in which the module is idle: where a program sleeps until
    /// it is granted the module.
    pub grant_ns: u64,
}
