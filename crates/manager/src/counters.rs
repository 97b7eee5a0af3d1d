//! Counters: what ran where.

use bywash_core::Algorithm;
use bywash_policy::{EngineId, Held};

/// What one engine has done of one algorithm since the manager was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The engine.
    pub engine: EngineId,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Requests done.
    pub ops: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Nanoseconds that a worker was busy with them.
    pub busy_ns: u64,
}

/// A picture of the manager at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// Per engine and algorithm, where there is anything to tell.
    pub usage: Vec<Usage>,
    /// Per engine, in the order of the list.
    pub engines: Vec<EngineStatus>,
    /// Sessions open.
    pub sessions: usize,
    /// Requests waiting or running.
    pub in_flight: usize,
    /// Threads that the manager has started and that live.
    pub threads: usize,
}

/// An engine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStatus {
    /// Its name.
    pub name: String,
    /// Whether it is used; one that failed repeatedly is down until its probation.
    pub up: bool,
    /// Batches it works on or is about to.
    pub busy: usize,
    /// Batches and loads in which it failed or stalled, since the manager was made.
    pub faults: u64,
    /// Batches and loads it was given up on and has not come back from.
    pub stuck: usize,
    /// What it holds, for a reconfigurable one.
    pub held: Option<Held>,
}

pub(crate) struct Counters(Vec<[Figures; Algorithm::COUNT]>);

#[derive(Clone, Copy, Default)]
struct Figures {
    ops: u64,
    bytes: u64,
    busy_ns: u64,
}

impl Counters {
    pub(crate) fn new(engines: usize) -> Self {
        Self(vec![[Figures::default(); Algorithm::COUNT]; engines])
    }

    pub(crate) fn add(&mut self, engine: EngineId, algorithm: Algorithm, bytes: u64, busy_ns: u64) {
        let figures = &mut self.0[usize::from(engine.0)][usize::from(algorithm.number())];
        figures.ops += 1;
        figures.bytes += bytes;
        figures.busy_ns += busy_ns;
    }

    pub(crate) fn usage(&self) -> Vec<Usage> {
        let cells = self.0.iter().enumerate().flat_map(|(engine, row)| row.iter().zip(Algorithm::ALL).map(move |cell| (engine, cell)));
        let used = cells.filter(|(_, (figures, _))| figures.ops > 0);
        used.map(|(engine, (&Figures { ops, bytes, busy_ns }, &algorithm))| Usage {
            engine: EngineId(engine as u8),
            algorithm,
            ops,
            bytes,
            busy_ns,
        })
        .collect()
    }
}
