//! Who is there, as far as a trace tells: a client and its session come with their first request and go when their last one has ended.

use bywash_core::Time;
use bywash_policy::{Event, Policy, Tenant};
use std::collections::BTreeMap;

/// Whose a request is: a client and its session.
pub(crate) type Owner = (u32, u32);

/// How many requests of each are still to come or to end.
#[derive(Default)]
pub(crate) struct Presence {
    sessions: BTreeMap<Owner, Left>,
    clients: BTreeMap<u32, Left>,
    /// What the first clients were promised; others nothing.
    tenants: Vec<Tenant>,
}

#[derive(Clone, Copy, Default)]
struct Left {
    requests: usize,
    here: bool,
}

impl Left {
    /// Whether it has only now come.
    fn comes(&mut self) -> bool {
        !std::mem::replace(&mut self.here, true)
    }

    /// Whether it goes with this request's end.
    fn goes(&mut self) -> bool {
        self.requests -= 1;
        self.requests == 0
    }
}

impl Presence {
    /// Of the owners of all requests of a run.
    pub(crate) fn of(owners: impl Iterator<Item = Owner>) -> Self {
        let mut presence = Self::default();
        for owner in owners {
            presence.sessions.entry(owner).or_default().requests += 1;
            presence.clients.entry(owner.0).or_default().requests += 1;
        }
        presence
    }

    /// With what clients were promised, in the order of their numbers from 0 on.
    #[must_use]
    pub(crate) fn with(self, tenants: impl Iterator<Item = Tenant>) -> Self {
        Self { tenants: tenants.collect(), ..self }
    }

    /// A request is about to arrive.
    pub(crate) fn arrives(&mut self, (client, session): Owner, now: Time, policy: &mut dyn Policy) {
        if self.clients.entry(client).or_default().comes() {
            let tenant = self.tenants.get(client as usize).copied().unwrap_or_default();
            policy.event(now, Event::ClientJoined { client, tenant });
        }
        if self.sessions.entry((client, session)).or_default().comes() {
            policy.event(now, Event::SessionOpened { client, session });
        }
    }

    /// A request has ended.
    pub(crate) fn ends(&mut self, (client, session): Owner, now: Time, policy: &mut dyn Policy) {
        if self.sessions.entry((client, session)).or_default().goes() {
            policy.event(now, Event::SessionClosed { client, session });
        }
        if self.clients.entry(client).or_default().goes() {
            policy.event(now, Event::ClientLeft(client));
        }
    }
}
