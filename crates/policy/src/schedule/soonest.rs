//! The engine on which a request is expected to be done soonest, were all that waits there like it.

use super::{Module, Route};
use crate::{EngineId, EngineSet, Request};
use bywash_core::Time;

/// Where it is done soonest; the first in the driver's order among equals.
pub struct Soonest;

impl Route for Soonest {
    fn route(&mut self, now: Time, request: &Request, up: EngineSet, modules: &[&Module]) -> Option<EngineId> {
        let outlook = |engine: &EngineId| modules[usize::from(engine.0)].outlook_ns(now, request);
        up.iter().min_by(|a, b| outlook(a).total_cmp(&outlook(b)))
    }
}
