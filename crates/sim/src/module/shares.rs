//! What each client had of a module while others wanted it too, beside what it was due.
//!
//! In the end every client has had what it asked for, whoever decided; fairness shows only while several want the module at the same time. So of such time alone it is counted what
//! each had, and what it would have had, were every moment divided by weight among those who wanted the module then. A module that idles is nobody's.

use super::Traffic;
use bywash_core::Time;

/// A client's part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Nanoseconds of the module's time that it had while others wanted it too, changes of session included.
    pub had_ns: f64,
    /// What it was due of all such time.
    pub due_ns: f64,
}

impl Share {
    /// What it had of what it was due, 1 for all of it; `None` if it was due nothing.
    pub fn ratio(&self) -> Option<f64> {
        (self.due_ns > 0.0).then(|| self.had_ns / self.due_ns)
    }
}

/// The account of all clients, kept as a run goes on.
pub(super) struct Shares {
    clients: Vec<Wants>,
    last: Time,
    /// How many clients want the module, and their weights.
    wanting: usize,
    weights: f64,
    /// Requests under way, and batches.
    begun: u32,
    running: f64,
    /// What a client of weight 1 that always wanted it would have been due by now.
    level_ns: f64,
}

#[derive(Clone, Copy)]
struct Wants {
    weight: f64,
    requests: u32,
    /// Requests of its that are being computed, and of how many batches: each has an equal part of its own.
    begun: u32,
    running: f64,
    /// The level at which it began to want.
    since: f64,
    share: Share,
}

impl Shares {
    pub(super) fn of(traffic: &Traffic) -> Self {
        let wants = |weight: u32| Wants {
            weight: f64::from(weight.max(1)),
            requests: 0,
            begun: 0,
            running: 0.0,
            since: 0.0,
            share: Share::default(),
        };
        let clients = traffic.clients.iter().map(|client| wants(client.tenant.weight)).collect();
        Self { clients, last: Time::ZERO, wanting: 0, weights: 0.0, begun: 0, running: 0.0, level_ns: 0.0 }
    }

    /// Time has passed.
    pub(super) fn pass(&mut self, now: Time) {
        let ns = now.since_ns(self.last) as f64;
        self.last = now;
        if self.wanting > 1 && self.begun > 0 {
            self.level_ns += ns * self.running / self.weights;
            // Few run at a time: as many as the module has lanes.
            self.clients.iter_mut().filter(|client| client.begun > 0).for_each(|client| client.share.had_ns += ns * client.running);
        }
    }

    /// A client has asked for something.
    pub(super) fn wants(&mut self, client: u32) {
        let client = &mut self.clients[client as usize];
        client.requests += 1;
        if client.requests == 1 {
            client.since = self.level_ns;
            (self.wanting, self.weights) = (self.wanting + 1, self.weights + client.weight);
        }
    }

    /// It has a result.
    pub(super) fn has(&mut self, client: u32) {
        let client = &mut self.clients[client as usize];
        client.requests -= 1;
        if client.requests == 0 {
            client.share.due_ns += client.weight * (self.level_ns - client.since);
            (self.wanting, self.weights) = (self.wanting - 1, self.weights - client.weight);
        }
    }

    /// The module begins a request of a client's in a batch of so many.
    pub(super) fn begins(&mut self, client: u32, batch: usize) {
        let client = &mut self.clients[client as usize];
        (client.begun, client.running) = (client.begun + 1, client.running + 1.0 / batch as f64);
        (self.begun, self.running) = (self.begun + 1, self.running + 1.0 / batch as f64);
    }

    /// And ends it.
    pub(super) fn ends(&mut self, client: u32, batch: usize) {
        let client = &mut self.clients[client as usize];
        (client.begun, client.running) = less(client.begun, client.running, batch);
        (self.begun, self.running) = less(self.begun, self.running, batch);
    }

    pub(super) fn end(self) -> Vec<Share> {
        self.clients.into_iter().map(|client| client.share).collect()
    }
}

/// One request of a batch of so many less. Where none is left, nothing of what was rounded is.
fn less(begun: u32, running: f64, batch: usize) -> (u32, f64) {
    (begun - 1, if begun == 1 { 0.0 } else { running - 1.0 / batch as f64 })
}
