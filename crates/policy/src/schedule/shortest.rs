//! Shortest expected operation first, with ageing.
//!
//! What an operation is expected to take is learnt, and holds a change of session where it needs one: so this prefers the session that the module holds. A request
//! that has waited for the *age* is served before all that are not as old, oldest first.
//!
//! *Work-conserving*. *Starvation bound*: once a request has waited for the age, only older ones are begun before it.

use super::{Choice, Discipline, Head, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;

/// The age if nothing else is said: 20 ms.
pub const AGE_NS: u64 = 20_000_000;

/// Shortest first. See the [module](self).
pub struct Shortest {
    age_ns: u64,
}

impl Shortest {
    /// With this age.
    pub fn new(age_ns: u64) -> Self {
        Self { age_ns }
    }
}

impl Discipline for Shortest {
    fn reason(&self, chosen: Owner, module: &Module) -> Reason {
        let shorter = |head: &Head<'_>| module.head(chosen).is_some_and(|own| module.cost_ns(head.request) < module.cost_ns(own.request));
        if module.heads().any(|head| shorter(&head)) { Reason::Aged } else { Reason::Shortest }
    }

    fn tell(&mut self, _now: Time, _news: News<'_>, _module: &Module) {}

    fn choose(&mut self, now: Time, module: &Module) -> Choice {
        if let Some(aged) = module.oldest().filter(|head| now.since_ns(head.arrived) >= self.age_ns) {
            return Choice::Serve(aged.owner());
        }
        let cost = |head: &Head<'_>| module.cost_ns(head.request);
        module.heads().min_by(|a, b| cost(a).total_cmp(&cost(b)).then(a.order.cmp(&b.order))).into()
    }
}
