//! Requests for a module: [recorded](crate::asked::recorded) ones, and those of programs that are described.

use crate::asked::{Asked, When};
use bywash_core::Time;
use bywash_policy::Tenant;

/// Requests and whose they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// The programs; a client's number is its place.
    pub clients: Vec<Client>,
    /// What they ask for, by whose place among the programs; nothing comes after the end of a request behind it.
    pub requests: Vec<Asked>,
}

/// A program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// What it was promised.
    pub tenant: Tenant,
    /// The place of its tenant in a list of the caller's.
    pub group: usize,
}

impl Traffic {
    /// A program that has `depth` operations under way until it has had so many, each `think_ns` after the end of another, from a time on.
    pub fn closed(&mut self, client: Client, asked: Asked, operations: u32, depth: u32, think_ns: u64) {
        let (number, first) = (self.clients.len() as u32, self.requests.len() as u32);
        self.clients.push(client);
        let after = |place: u32| if place < depth { asked.when } else { When::After { request: first + place - depth, think_ns } };
        self.requests.extend((0..operations).map(|place| Asked { when: after(place), client: number, ..asked }));
    }

    /// A program that asks whether or not it has had its results, at random (exponentially distributed) intervals, from a time on and until another.
    pub fn open(&mut self, client: Client, asked: Asked, every_ns: u64, until: Time, seed: u64) {
        let number = self.clients.len() as u32;
        self.clients.push(client);
        let (When::At(mut at), mut random) = (asked.when, fastrand::Rng::with_seed(seed)) else { return };
        loop {
            at = at + (-libm::log(1.0 - random.f64()) * every_ns as f64) as u64;
            if at >= until {
                return;
            }
            self.requests.push(Asked { when: When::At(at), client: number, ..asked });
        }
    }
}
