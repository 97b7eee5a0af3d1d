//! Deficit round robin (Shreedhar and Varghese 1995), by tenant and in time.
//!
//! Tenants with something waiting take turns. With each turn a tenant is given a quantum of time times its weight, and is served while what it has been given covers
//! the expected cost of its oldest request, a change of session included; what is left it keeps as long as it has something waiting. What an operation took
//! longer or less than expected is settled when it ends.
//!
//! *Work-conserving*. *Fairness*: two tenants that both have work differ, in time over weight, by at most a quantum and the longest operation of each. *Starvation
//! bound*: a round of quanta times weights, as many rounds as the dearest request takes quanta.

use super::tenants::Tenants;
use super::{Choice, Discipline, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;
use std::collections::{BTreeMap, VecDeque};

/// A turn's time at weight 1 if nothing else is said: 2 ms.
pub const QUANTUM_NS: u64 = 2_000_000;

/// Tenants in turn, by weight. See the [module](self).
pub struct Deficit {
    quantum_ns: f64,
    tenants: Tenants,
    ring: VecDeque<u32>,
    /// What each tenant of the ring has been given and not used.
    credit_ns: BTreeMap<u32, f64>,
    /// Whether the first of the ring has been given its quantum for this turn.
    given: bool,
}

impl Deficit {
    /// With this quantum.
    pub fn new(quantum_ns: u64) -> Self {
        let (tenants, ring, credit_ns) = (Tenants::default(), VecDeque::new(), BTreeMap::new());
        Self { quantum_ns: quantum_ns.max(1) as f64, tenants, ring, credit_ns, given: false }
    }

    fn use_up(&mut self, client: u32, ns: f64) {
        if let Some(credit) = self.credit_ns.get_mut(&client) {
            *credit -= ns;
        }
    }

    /// Gives everybody as many quanta as the first one to be served needs: rounds in which nobody is served take no time.
    fn give_rounds(&mut self, module: &Module) {
        let heads = self.ring.iter().filter_map(|&client| Some((client, module.oldest_of(client)?)));
        let missing = heads.map(|(client, head)| {
            let credit_ns = self.credit_ns.get(&client).copied().unwrap_or(0.0);
            (module.cost_ns(head.request) - credit_ns) / (self.quantum_ns * self.tenants.weight(client))
        });
        let rounds = (missing.fold(f64::INFINITY, f64::min).ceil() - 1.0).max(0.0);
        for (&client, credit_ns) in &mut self.credit_ns {
            *credit_ns += rounds * self.quantum_ns * self.tenants.weight(client);
        }
    }
}

impl Discipline for Deficit {
    fn reason(&self, _chosen: Owner, _module: &Module) -> Reason {
        Reason::Share
    }

    fn tell(&mut self, _now: Time, news: News<'_>, _module: &Module) {
        self.tenants.tell(news);
        match news {
            News::Arrived(request) if !self.credit_ns.contains_key(&request.client) => {
                self.credit_ns.insert(request.client, 0.0);
                self.ring.push_back(request.client);
            }
            News::Begun { owner, expected_ns, .. } => self.use_up(owner.client, expected_ns),
            News::Ended { owner, more_ns: ns } | News::Held { owner, ns } => self.use_up(owner.client, ns),
            _ => {}
        }
    }

    fn choose(&mut self, _now: Time, module: &Module) -> Choice {
        let mut in_vain = 0;
        while let Some(&client) = self.ring.front() {
            let Some(head) = module.oldest_of(client) else {
                self.ring.pop_front();
                self.credit_ns.remove(&client);
                self.given = false;
                continue;
            };
            if in_vain >= self.ring.len() {
                self.give_rounds(module);
                in_vain = 0;
            }
            if !std::mem::replace(&mut self.given, true) {
                self.use_up(client, -self.quantum_ns * self.tenants.weight(client));
            }
            if self.credit_ns[&client] >= module.cost_ns(head.request) {
                return Choice::Serve(head.owner());
            }
            self.ring.rotate_left(1);
            self.given = false;
            in_vain += 1;
        }
        Choice::Nothing
    }
}
