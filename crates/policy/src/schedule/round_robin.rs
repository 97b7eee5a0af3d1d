//! Sessions in turn, a quantum of the module's time each.
//!
//! A session keeps its turn while it has something waiting and has not used up its quantum; changes of session count as time. An operation that
//! has begun is finished, so a turn may take one operation longer than the quantum.
//!
//! *Work-conserving*: whose queue is empty loses its turn at once. *Starvation bound*: with n sessions in which something waits, the oldest request of each is
//! begun after at most n - 1 turns of others.

use super::{Choice, Discipline, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;
use std::collections::VecDeque;

/// A turn's time if nothing else is said: 2 ms.
pub const QUANTUM_NS: u64 = 2_000_000;

/// Sessions in turn. See the [module](self).
pub struct RoundRobin {
    quantum_ns: f64,
    turn: Option<Owner>,
    used_ns: f64,
    /// Who is next, without whose turn it is; some may have nothing waiting any more.
    ring: VecDeque<Owner>,
}

impl RoundRobin {
    /// With this quantum.
    pub fn new(quantum_ns: u64) -> Self {
        Self { quantum_ns: quantum_ns as f64, turn: None, used_ns: 0.0, ring: VecDeque::new() }
    }
}

impl Discipline for RoundRobin {
    fn reason(&self, _chosen: Owner, _module: &Module) -> Reason {
        Reason::Turn
    }

    fn tell(&mut self, _now: Time, news: News<'_>, _module: &Module) {
        match news {
            News::Arrived(request) => {
                let owner = Owner::of(request);
                if self.turn != Some(owner) && !self.ring.contains(&owner) {
                    self.ring.push_back(owner);
                }
            }
            News::Begun { owner, expected_ns, .. } if self.turn == Some(owner) => self.used_ns += expected_ns,
            News::Ended { owner, more_ns } if self.turn == Some(owner) => self.used_ns += more_ns,
            _ => {}
        }
    }

    fn choose(&mut self, _now: Time, module: &Module) -> Choice {
        if let Some(turn) = self.turn.filter(|&turn| module.head(turn).is_some()) {
            if self.used_ns < self.quantum_ns {
                return Choice::Serve(turn);
            }
            self.ring.push_back(turn);
        }
        self.used_ns = 0.0;
        self.turn = std::iter::from_fn(|| self.ring.pop_front()).find(|&owner| module.head(owner).is_some());
        self.turn.map_or(Choice::Nothing, Choice::Serve)
    }
}
