//! The routing table that clients read, kept up to date: what cost sheets say, and whose operations come together here.

use crate::broker::Shared;
use crate::client::Client;
use bywash_core::route::route_index;
use bywash_core::{Algorithm, Place, Time};
use bywash_manager::combine::Formed;
use bywash_policy::sharing::{EVERY_NS, Seen, Sharing};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The table and what it is made from.
pub(crate) struct Routes {
    table: Vec<Place>,
    begun: Instant,
    looked: Time,
    kinds: Vec<Kind>,
}

/// An algorithm whose operations may come together.
struct Kind {
    algorithm: Algorithm,
    lanes: usize,
    sharing: Sharing,
    formed: Formed,
    /// What clients claim to have computed alone, by client.
    claimed: BTreeMap<u32, u64>,
}

impl Routes {
    /// The first table, which clients are told of.
    pub(crate) fn new(shared: &Shared) -> Self {
        let manager = &shared.config.manager;
        let table = manager.routes(None, shared.config.reach_ns());
        shared.board.set_routes(&table);
        let kind = |&algorithm: &Algorithm| {
            let lanes = manager.lanes(algorithm);
            (lanes > 1).then(|| Kind {
                algorithm,
                lanes,
                sharing: Sharing::new(Time::ZERO),
                formed: Formed::default(),
                claimed: BTreeMap::new(),
            })
        };
        let kinds = Algorithm::ALL.iter().filter_map(kind).collect();
        Self { table, begun: Instant::now(), looked: Time::ZERO, kinds }
    }

    /// How long to wait for the next look, while there are clients.
    pub(crate) fn until_next(&self) -> Duration {
        let looks = self.kinds.iter().map(|kind| kind.sharing.next_look());
        let next = looks.chain([self.looked + EVERY_NS]).min();
        Duration::from_nanos(next.map_or(0, |next| next.since_ns(self.now())))
    }

    /// Looks, and tells the clients what has changed.
    pub(crate) fn look(&mut self, shared: &Shared) {
        self.looked = self.now();
        let changed = self.look_at_sharing(shared, self.looked);
        // Though nothing was served and no engine came or went: who is thought slow is forgiven with time.
        let table = shared.config.manager.routes(Some(&self.table), shared.config.reach_ns());
        if changed || table != self.table {
            self.table = table;
            shared.board.set_routes(&self.with_sharing());
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn with_sharing(&self) -> Vec<Place> {
        let mut table = self.table.clone();
        for kind in self.kinds.iter().filter(|kind| kind.sharing.is_together()) {
            let entry = &mut table[route_index(kind.algorithm, 0)];
            if *entry == Place::Here {
                *entry = Place::Together;
            }
        }
        table
    }

    /// Whether operations of some algorithm come together that did not, or the other way round.
    fn look_at_sharing(&mut self, shared: &Shared, now: Time) -> bool {
        let Some(costs) = shared.config.manager.costs_here() else { return false };
        let clients: Vec<_> = shared.clients().values().cloned().collect();
        let mut changed = false;
        for kind in self.kinds.iter_mut().filter(|kind| now >= kind.sharing.next_look()) {
            let was_together = kind.sharing.is_together();
            let seen = kind.see(&clients, shared.config.manager.formed(kind.algorithm));
            match costs.curve(kind.algorithm).filter(|curve| was_together || Sharing::is_hopeful(curve, kind.lanes)) {
                Some(curve) => kind.sharing.look(now, curve, seen),
                None => kind.sharing = Sharing::new(now),
            }
            if was_together || kind.sharing.is_together() {
                tracing::debug!(algorithm = kind.algorithm.name(), together = kind.sharing.is_together(), ?seen, "sharing of lanes");
            }
            changed |= kind.sharing.is_together() != was_together;
        }
        changed
    }
}

impl Kind {
    /// What happened since it was last asked.
    fn see(&mut self, clients: &[Arc<Client>], formed: Formed) -> Seen {
        let (gathered, batches) = (formed.operations - self.formed.operations, formed.batches - self.formed.batches);
        self.formed = formed;
        let before = std::mem::take(&mut self.claimed);
        let mut seen = Seen { gathered, batches, ..Seen::default() };
        let mut processes = BTreeSet::new();
        for client in clients {
            let Some(ring) = &client.ring else { continue };
            let usage = ring.region().usage(self.algorithm);
            let alone = usage.operations.saturating_sub(usage.batched);
            let more = alone.saturating_sub(before.get(&client.number).copied().unwrap_or(0));
            if more > 0 {
                processes.insert(client.whose.pid);
            }
            seen.alone = seen.alone.saturating_add(more);
            self.claimed.insert(client.number, alone);
        }
        seen.processes = processes.len();
        seen
    }
}
