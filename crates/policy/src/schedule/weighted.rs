//! Weighted fair queueing by start times (SFQ, Goyal, Vin and Cheng 1996), by tenant and in time.
//!
//! Each tenant has a tag: the time it has had of the module, changes of session included, over its weight. The tenant with the least tag is served, of its sessions
//! the one whose request is oldest. Whoever comes back from having had nothing to do starts where the one served last stands: the past gives no
//! credit. What is not known beforehand, how long an operation takes, is charged as expected and settled when it ends.
//!
//! *Work-conserving*. *Fairness*: two tenants that both have work differ, in time over weight, by at most the longest operation of each over its weight (and,
//! while estimates are wrong, by their error for one operation). *Starvation bound*: a tenant's next request is begun when each other one has
//! had as much over its weight and one operation more.

use super::tenants::Tenants;
use super::{Choice, Discipline, Head, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;
use std::collections::BTreeMap;

/// The least time for its weight. See the [module](self).
#[derive(Default)]
pub struct Weighted {
    tenants: Tenants,
    tags: BTreeMap<u32, f64>,
    /// The tag of whoever was served last, when it was chosen.
    virtual_ns: f64,
}

impl Weighted {
    fn charge(&mut self, client: u32, ns: f64) {
        let weight = self.tenants.weight(client);
        // Whoever has left in the meantime is not remembered.
        if let Some(tag) = self.tags.get_mut(&client) {
            *tag += ns / weight;
        }
    }
}

impl Discipline for Weighted {
    fn reason(&self, _chosen: Owner, _module: &Module) -> Reason {
        Reason::Share
    }

    fn tell(&mut self, _now: Time, news: News<'_>, _module: &Module) {
        self.tenants.tell(news);
        match news {
            News::Left(client) => drop(self.tags.remove(&client)),
            // Who has work stands there or before it anyway, but for an estimate's error.
            News::Arrived(request) => {
                let tag = self.tags.entry(request.client).or_insert(self.virtual_ns);
                *tag = tag.max(self.virtual_ns);
            }
            News::Begun { owner, expected_ns, .. } => self.charge(owner.client, expected_ns),
            News::Ended { owner, more_ns: ns } | News::Held { owner, ns } => self.charge(owner.client, ns),
            _ => {}
        }
    }

    fn choose(&mut self, _now: Time, module: &Module) -> Choice {
        let (mut next, mut known): (Option<(f64, Head<'_>)>, _) = (None, None);
        for head in module.heads() {
            // Heads come client by client.
            let client = head.request.client;
            let tag = match known {
                Some((same, tag)) if same == client => tag,
                _ => self.tags.get(&client).copied().unwrap_or(self.virtual_ns),
            };
            known = Some((client, tag));
            if next.is_none_or(|(least, first)| tag < least || tag == least && head.order < first.order) {
                next = Some((tag, head));
            }
        }
        let Some((tag, head)) = next else { return Choice::Nothing };
        self.virtual_ns = self.virtual_ns.max(tag);
        Choice::Serve(head.owner())
    }
}
