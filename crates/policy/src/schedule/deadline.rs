//! Earliest deadline first, as far as deadlines can be met, over another discipline for all else.
//!
//! A request has a deadline if it says so, or if its tenant has a goal. Such a request is admitted to the class of deadlines if, as things are expected to go, it and all that
//! were admitted before it are done in time; an operation that is under way is waited for, and each one is reckoned with a change of session.
//! A request behind one of its own session that was not admitted is not either, as it is served after that. Whoever is *refused is demoted*: it
//! waits among the others, where the discipline below decides, and is counted ([`Policy::demoted`](crate::Policy::demoted)). Its result comes late, not never.
//!
//! So that the class does not starve the rest, it may use a *share* of the module's time and no more, in the long run; a class that was quiet may use [`BURST_NS`] at
//! once. Beyond that its requests are demoted too.
//!
//! *Work-conserving* if the discipline below is. *Promise*: what is admitted is done in time, if no operation takes longer than was expected of it and the
//! module stays up. *Starvation bound* for the others: that of the discipline below, on a module slower by the share.

use super::tenants::Tenants;
use super::{Choice, Discipline, Module, News, Owner};
use crate::{Reason, Request, RequestId};
use bywash_core::Time;
use std::collections::BTreeMap;

/// The share of the module's time that the class of deadlines may use if nothing else is said, in percent.
pub const SHARE_PERCENT: u64 = 80;
/// The module's time that it may use at once after a quiet while: 50 ms.
pub const BURST_NS: f64 = 50e6;

/// Deadlines over another discipline. See the [module](self).
pub struct Deadlines {
    below: Box<dyn Discipline>,
    tenants: Tenants,
    /// What was admitted and is not begun, earliest first, with what it is expected to take.
    admitted: BTreeMap<(Time, RequestId), (Owner, f64)>,
    due: BTreeMap<RequestId, Time>,
    share: f64,
    allowance_ns: f64,
    allowance_at: Time,
    demoted: u64,
}

impl Deadlines {
    /// Over this discipline, with this share of the time in percent.
    pub fn over(below: Box<dyn Discipline>, share_percent: u64) -> Self {
        Self {
            below,
            tenants: Tenants::default(),
            admitted: BTreeMap::new(),
            due: BTreeMap::new(),
            share: share_percent.clamp(1, 100) as f64 / 100.0,
            allowance_ns: BURST_NS,
            allowance_at: Time::ZERO,
            demoted: 0,
        }
    }

    fn arrived(&mut self, now: Time, request: &Request, module: &Module) {
        let goal = self.tenants.get(request.client).goal_ns.map(|goal| now + goal);
        let Some(due) = request.deadline.or(goal) else { return };
        let cost_ns = module.service_ns(request) + module.switch_ns();
        self.allowance_ns = BURST_NS.min(self.allowance_ns + now.since_ns(self.allowance_at) as f64 * self.share);
        self.allowance_at = now;
        let (key, owner) = ((due, request.id), Owner::of(request));
        let promised = self.admitted.values().filter(|(other, _)| *other == owner).count();
        self.admitted.insert(key, (owner, cost_ns));
        let all_before_it_promised = module.waiting_of(owner) <= promised + 1;
        if all_before_it_promised && cost_ns <= self.allowance_ns && self.all_in_time(now, key, module) {
            self.allowance_ns -= cost_ns;
            self.due.insert(request.id, due);
        } else {
            self.admitted.remove(&key);
            self.demoted += 1;
        }
    }

    /// Whether the new one, and those admitted whom it would be served before, are expected to be done in time.
    fn all_in_time(&self, now: Time, new: (Time, RequestId), module: &Module) -> bool {
        let mut done = now.0 as f64 + module.busy_ns(now);
        self.admitted.iter().all(|(key, (_, cost_ns))| {
            done += cost_ns;
            *key < new || done <= key.0.0 as f64
        })
    }

    /// One that was admitted waits no more; what it was expected to take, or nothing for any other.
    fn forget(&mut self, id: RequestId) -> f64 {
        let key = self.due.remove(&id).map(|due| (due, id));
        key.and_then(|key| self.admitted.remove(&key)).map_or(0.0, |(_, cost_ns)| cost_ns)
    }
}

impl Discipline for Deadlines {
    fn reason(&self, chosen: Owner, module: &Module) -> Reason {
        match self.admitted.first_key_value() {
            Some(_) => Reason::Deadline,
            None => self.below.reason(chosen, module),
        }
    }

    fn tell(&mut self, now: Time, news: News<'_>, module: &Module) {
        self.tenants.tell(news);
        match news {
            News::Arrived(request) => self.arrived(now, request, module),
            // The module's time that it was promised it never had.
            News::Gone(request) => self.allowance_ns = BURST_NS.min(self.allowance_ns + self.forget(request.id)),
            News::Begun { batch, .. } => batch.iter().for_each(|&id| _ = self.forget(id)),
            _ => {}
        }
        self.below.tell(now, news, module);
    }

    /// The session of the earliest deadline: if older requests of the same session are before it, those go first.
    fn choose(&mut self, now: Time, module: &Module) -> Choice {
        match self.admitted.first_key_value() {
            Some((_, &(owner, _))) => Choice::Serve(owner),
            None => self.below.choose(now, module),
        }
    }

    fn demoted(&self) -> u64 {
        self.demoted + self.below.demoted()
    }
}
