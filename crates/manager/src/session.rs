//! Sessions: a slab with generations, so that a stale number is refused instead of reaching somebody else's key.

use crate::{engines, execute};
use bywash_core::{Algorithm, Data, Direction, Engine, Error, Key, Keyed, Operation, Result, SessionParams, Time};
use bywash_policy::{EngineId, EngineSet, Request, RequestId, Tenant};
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// An open session, as the manager numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    slot: u32,
    generation: u32,
}

impl SessionId {
    /// A number for traces and messages: unique among the sessions open at one time.
    pub const fn number(self) -> u32 {
        self.slot
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// One session. Requests in flight share it, so its keys are wiped when it is closed and the last of them has ended.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) client: u32,
    pub(crate) params: SessionParams,
    /// The engines that do its algorithm.
    pub(crate) engines: EngineSet,
    /// How soon its client wants its requests done, if it was promised that.
    goal_ns: Option<u64>,
    keyed: Box<[OnceLock<Box<dyn Keyed>>]>,
    /// Of XTS: the block cipher by which tweaks are made, from when a request was first cut.
    tweaks: OnceLock<Option<Box<dyn Keyed>>>,
}

impl Session {
    /// The session as this engine holds it, opened there if it is not yet.
    pub(crate) fn keyed(&self, id: EngineId, engine: &dyn Engine) -> Result<&dyn Keyed> {
        let cell = &self.keyed[usize::from(id.0)];
        if let Some(keyed) = cell.get() {
            return Ok(&**keyed);
        }
        let opened = execute::open(engine, &self.params)?;
        Ok(&**cell.get_or_init(|| opened))
    }

    /// Whether this engine holds it already.
    pub(crate) fn is_open(&self, id: EngineId) -> bool {
        self.keyed[usize::from(id.0)].get().is_some()
    }

    /// A block enciphered or deciphered under the half of an XTS key by which tweaks are made; none for other algorithms.
    pub(crate) fn tweak(&self, direction: Direction, mut block: [u8; 16]) -> Option<[u8; 16]> {
        let keyed = self.tweaks.get_or_init(|| tweak_cipher(&self.params)).as_ref()?;
        let data = Data::InPlace(&mut block);
        keyed.run(&mut Operation { direction, iv: &[], aad: &[], data, tag: &mut [] }).ok()?;
        Some(block)
    }
}

/// By the processor, whatever engines there are: it is a block or two.
fn tweak_cipher(params: &SessionParams) -> Option<Box<dyn Keyed>> {
    let algorithm = match params.algorithm() {
        Algorithm::Aes128Xts => Algorithm::Aes128Ecb,
        Algorithm::Aes256Xts => Algorithm::Aes256Ecb,
        _ => return None,
    };
    let Key::Symmetric(key) = params.key() else { return None };
    let half = Key::Symmetric(key[key.len() / 2..].into());
    execute::open(&*engines::here(), &SessionParams::new(algorithm, half).ok()?).ok()
}

/// All sessions, by number and by client.
#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    clients: BTreeMap<u32, BTreeSet<u32>>,
    tenants: BTreeMap<u32, Tenant>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    session: Option<Arc<Session>>,
}

impl Table {
    /// A client is there, with what it was promised; its sessions from now on know it.
    pub(crate) fn join(&mut self, client: u32, tenant: Tenant) {
        self.tenants.insert(client, tenant);
    }

    /// A client is gone; what it was promised, if it had joined.
    pub(crate) fn leave(&mut self, client: u32) -> Option<Tenant> {
        self.tenants.remove(&client)
    }

    pub(crate) fn insert(&mut self, client: u32, params: SessionParams, engines: EngineSet, count: usize) -> Result<Arc<Session>> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.slots.len()).map_err(|_| Error::Unavailable { what: "no session numbers left".into() })?;
                self.slots.push(Slot::default());
                slot
            }
        };
        let place = &mut self.slots[slot as usize];
        let id = SessionId { slot, generation: place.generation };
        let keyed = (0..count).map(|_| OnceLock::new()).collect();
        let goal_ns = self.tenants.get(&client).and_then(|tenant| tenant.goal_ns);
        let session = Arc::new(Session { id, client, params, engines, goal_ns, keyed, tweaks: OnceLock::new() });
        place.session = Some(session.clone());
        self.clients.entry(client).or_default().insert(slot);
        Ok(session)
    }

    pub(crate) fn get(&self, id: SessionId) -> Result<Arc<Session>> {
        let slot = self.slots.get(id.slot as usize).filter(|slot| slot.generation == id.generation);
        slot.and_then(|slot| slot.session.clone()).ok_or(Error::NoSession { id: id.slot })
    }

    pub(crate) fn remove(&mut self, id: SessionId) -> Result<Arc<Session>> {
        let session = self.get(id)?;
        let place = &mut self.slots[id.slot as usize];
        place.session = None;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.slot);
        if let Some(of_client) = self.clients.get_mut(&session.client) {
            of_client.remove(&id.slot);
            if of_client.is_empty() {
                self.clients.remove(&session.client);
            }
        }
        Ok(session)
    }

    pub(crate) fn of_client(&self, client: u32) -> Vec<SessionId> {
        let slots = self.clients.get(&client).into_iter().flatten();
        slots.map(|&slot| SessionId { slot, generation: self.slots[slot as usize].generation }).collect()
    }

    pub(crate) fn clear(&mut self) {
        let open: Vec<u32> = self.clients.keys().copied().collect();
        for id in open.into_iter().flat_map(|client| self.of_client(client)).collect::<Vec<_>>() {
            let _ = self.remove(id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Session {
    /// A request of this session that arrives now, as policies see it.
    pub(crate) fn request(&self, id: RequestId, now: Time, direction: Direction, bytes: usize, engines: EngineSet) -> Request {
        let (client, session, algorithm) = (self.client, self.id.number(), self.params.algorithm());
        let deadline = self.goal_ns.map(|goal| now + goal);
        Request { id, client, session, algorithm, direction, bytes: bytes as u64, engines, deadline }
    }
}
