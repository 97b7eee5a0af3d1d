//! The routing table that clients read, kept up to date: what cost sheets say, and whose operations come together here.

use crate::broker::Shared;
use bywash_core::route::route_index;
use bywash_core::{Algorithm, Place, Time};
use bywash_manager::combine::Formed;
use bywash_policy::sharing::{Seen, Sharing};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often the routing table is looked at again while there are clients; it is computed anew only if requests were served.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// The table and what it is made from.
pub(crate) struct Routes {
    table: Vec<Place>,
    /// Requests that had been served when it was made.
    served: u64,
    begun: Instant,
    looked: Instant,
    kinds: Vec<Kind>,
    /// What clients claim to have computed alone, by client.
    claimed: BTreeMap<(u32, Algorithm), u64>,
}

/// An algorithm whose operations may come together.
struct Kind {
    algorithm: Algorithm,
    lanes: usize,
    sharing: Sharing,
    formed: Formed,
}

impl Routes {
    /// The first table, which clients are told of.
    pub(crate) fn new(shared: &Shared) -> Self {
        let manager = &shared.config.manager;
        let table = manager.routes(None, shared.config.handover_ns);
        shared.board.set_routes(&table);
        let kind = |&algorithm: &Algorithm| {
            let lanes = manager.lanes(algorithm);
            (lanes > 1).then(|| Kind { algorithm, lanes, sharing: Sharing::new(Time::ZERO), formed: Formed::default() })
        };
        let now = Instant::now();
        let kinds = Algorithm::ALL.iter().filter_map(kind).collect();
        Self { table, served: 0, begun: now, looked: now, kinds, claimed: BTreeMap::new() }
    }

    /// How long to wait for the next look.
    pub(crate) fn until_next(&self) -> Duration {
        let now = self.now();
        let trials = self.kinds.iter().filter_map(|kind| kind.sharing.next_look());
        let first = trials.map(|look| Duration::from_nanos(look.since_ns(now))).min();
        EVERY.saturating_sub(self.looked.elapsed()).min(first.unwrap_or(EVERY))
    }

    /// Looks, and tells the clients what has changed.
    pub(crate) fn look(&mut self, shared: &Shared) {
        self.looked = Instant::now();
        let manager = &shared.config.manager;
        let served = shared.telemetry.latencies.used().map(|(_, _, view)| view.requests).sum::<u64>();
        let mut changed = self.look_at_sharing(shared);
        if served != self.served {
            self.served = served;
            self.table = manager.routes(Some(&self.table), shared.config.handover_ns);
            changed = true;
        }
        if changed {
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
    fn look_at_sharing(&mut self, shared: &Shared) -> bool {
        let Some(costs) = shared.config.manager.costs_here() else { return false };
        let now = self.now();
        let clients: Vec<_> = shared.clients().values().cloned().collect();
        let before = std::mem::take(&mut self.claimed);
        let mut changed = false;
        for Kind { algorithm, lanes, sharing, formed } in &mut self.kinds {
            let was_together = sharing.is_together();
            let Some(curve) = costs.curve(*algorithm).filter(|curve| was_together || Sharing::is_hopeful(curve, *lanes)) else { continue };
            let now_formed = shared.config.manager.formed(*algorithm);
            let (gathered, batches) = (now_formed.operations - formed.operations, now_formed.batches - formed.batches);
            let mut seen = Seen { gathered, batches, ..Seen::default() };
            for (client, ring) in clients.iter().filter_map(|client| Some((client.number, client.ring.as_ref()?))) {
                let usage = ring.region().usage(*algorithm);
                let alone = usage.operations.saturating_sub(usage.batched);
                let more = alone.saturating_sub(before.get(&(client, *algorithm)).copied().unwrap_or(0));
                seen.processes += usize::from(more > 0);
                seen.alone = seen.alone.saturating_add(more);
                self.claimed.insert((client, *algorithm), alone);
            }
            sharing.look(now, curve, seen);
            *formed = now_formed;
            if was_together || sharing.is_together() {
                tracing::debug!(algorithm = algorithm.name(), together = sharing.is_together(), ?seen, "sharing of lanes");
            }
            changed |= sharing.is_together() != was_together;
        }
        changed
    }
}
