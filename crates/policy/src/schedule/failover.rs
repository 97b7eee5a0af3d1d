//! The first engine that works, in the driver's order.
//!
//! An engine is passed over while it is down, and for [`AVOIDED_NS`] after [`FAILURES_MAX`] failures in a row: a driver that fails every operation need not be declared down to lose its
//! work. A failure is a request that came back with its engine taken out of its set; a client's wrong tag is none. After that time it is tried again, and
//! one more failure is enough to avoid it anew. If all others are worse off, an engine that is avoided gets the request nevertheless.

use super::{Module, Route};
use crate::{EngineId, EngineSet, Request};
use bywash_core::Time;

/// So many failures in a row make an engine avoided.
pub const FAILURES_MAX: u32 = 3;
/// For how long an engine is avoided: 1 s.
pub const AVOIDED_NS: u64 = 1_000_000_000;

/// In order. See the [module](self).
#[derive(Default)]
pub struct Failover {
    engines: Vec<Health>,
}

#[derive(Clone, Copy, Default)]
struct Health {
    failures: u32,
    avoided_until: Time,
}

impl Failover {
    fn health(&mut self, engine: EngineId) -> &mut Health {
        let place = usize::from(engine.0);
        if self.engines.len() <= place {
            self.engines.resize(place + 1, Health::default());
        }
        &mut self.engines[place]
    }
}

impl Route for Failover {
    fn route(&mut self, now: Time, _request: &Request, up: EngineSet, _modules: &[&Module]) -> Option<EngineId> {
        up.iter().find(|&engine| self.health(engine).avoided_until <= now).or_else(|| up.first())
    }

    fn ended(&mut self, now: Time, engine: EngineId, well: bool) {
        let health = self.health(engine);
        health.failures = if well { 0 } else { health.failures + 1 };
        if health.failures >= FAILURES_MAX {
            health.avoided_until = now + AVOIDED_NS;
        }
    }
}
