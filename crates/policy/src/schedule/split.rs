//! Each size where it is done soonest: small operations on one engine, large ones on the other, from a learnt size on.
//!
//! An engine with a small hand-over and slow bytes and one with a dear hand-over and fast bytes meet at some size, by algorithm. Here nobody has to know
//! it: each engine's [`Estimate`](crate::Estimate) says what an operation of this size takes there, learns from every operation, and the request waits for the one where it takes less:
//! the size where the estimates cross is the threshold, and moves as they do. What waits is not looked at, which is the point: a small operation never queues behind large ones. Nor does
//! it when its engine is busy and the other is not; [`soonest`](super::soonest) is for that. An engine that is given nothing of a size learns nothing of it, and is
//! [believed](crate::estimate) more and more to be as its sheet says, if it was slower, until it is tried again.

use super::{Module, Route};
use crate::{EngineId, EngineSet, Request};
use bywash_core::Time;

/// By size. See the [module](self).
pub struct Split;

impl Route for Split {
    fn route(&mut self, _now: Time, request: &Request, up: EngineSet, modules: &[&Module]) -> Option<EngineId> {
        let takes = |engine: &EngineId| modules[usize::from(engine.0)].service_ns(request);
        up.iter().min_by(|a, b| takes(a).total_cmp(&takes(b)))
    }
}
