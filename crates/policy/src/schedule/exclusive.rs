//! A session holds the module until it is closed: the sched list of ohgama2008 s4.2.
//!
//! There a process that opens a session while another's is open sleeps until that is closed. Here a session takes hold with its first request, since
//! programs open sessions long before they use them, and whoever has waited longest is next. What the paper does not have, because it trusts its
//! programs: a holder that asks for nothing for the time of the *lease* loses its hold, and so does one whose client has gone. And a *hold* may be said: one that has had the module for so
//! long gives way when others wait, and queues anew.
//!
//! *Bounded idleness*: while others wait, the module is idle for at most one lease at a time, when its holder pauses. *Starvation*: none of the others is served as
//! long as the holder goes on asking: there is no bound unless a hold is said, and then it is a hold, an operation and a lease for each other session. That is what the paper
//! wants, and why this is not the default.

use super::{Choice, Discipline, Module, News, Owner};
use crate::Reason;
use bywash_core::Time;

/// How long a holder may pause if nothing else is said: 20 ms.
pub const LEASE_NS: u64 = 20_000_000;

/// One session at a time. See the [module](self).
pub struct Exclusive {
    lease_ns: u64,
    hold_ns: Option<u64>,
    holder: Option<Holder>,
}

struct Holder {
    owner: Owner,
    since: Time,
    /// Since when nothing was heard of it.
    quiet: Time,
    closed: bool,
}

impl Exclusive {
    /// With this lease, and this hold if it is to have an end.
    pub fn new(lease_ns: u64, hold_ns: Option<u64>) -> Self {
        Self { lease_ns, hold_ns, holder: None }
    }
}

impl Discipline for Exclusive {
    fn reason(&self, _chosen: Owner, _module: &Module) -> Reason {
        Reason::Holder
    }

    fn tell(&mut self, now: Time, news: News<'_>, _module: &Module) {
        let Some(holder) = &mut self.holder else { return };
        match news {
            News::Left(client) if client == holder.owner.client => self.holder = None,
            News::Closed(owner) if owner == holder.owner => holder.closed = true,
            News::Begun { owner, .. } | News::Ended { owner, .. } if owner == holder.owner => holder.quiet = now,
            _ => {}
        }
    }

    fn choose(&mut self, now: Time, module: &Module) -> Choice {
        let has_had_it =
            |holder: &Holder| self.hold_ns.is_some_and(|hold| now.since_ns(holder.since) >= hold) && module.others_wait(holder.owner);
        if let Some(holder) = self.holder.as_ref().filter(|holder| !has_had_it(holder)) {
            let (owner, lease_ends) = (holder.owner, holder.quiet + self.lease_ns);
            if module.head(owner).is_some() {
                return Choice::Serve(owner);
            }
            if module.serves(owner) {
                // Its lease begins with the end of that, which is told.
                return self.hold_ns.map_or(Choice::Nothing, |hold| Choice::WaitUntil(holder.since + hold));
            }
            if !holder.closed && now < lease_ends {
                return Choice::WaitUntil(lease_ends);
            }
        }
        let former = self.holder.take().map(|holder| holder.owner);
        let next = module.heads().filter(|head| Some(head.owner()) != former).min_by_key(|head| head.order).or_else(|| module.oldest());
        self.holder = next.map(|head| Holder { owner: head.owner(), since: now, quiet: now, closed: false });
        next.into()
    }
}
