//! Objects by handle.

use crate::abi::{Foreign, Handle};
use crate::fault::{Fault, Outcome};
use crate::objects::{Endpoint, Local, Matched, Object, Pair, Remote};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// All objects of a plug-in, and the one lock that they have: a message takes it once, for as long as it looks up what it is protected with; whoever comes or goes takes it for writing.
/// What messages themselves change has locks of its own within.
pub(crate) struct Registry {
    objects: RwLock<Objects>,
    key_ids: AtomicU32,
}

/// Slots, and which of them are free. A handle is a slot and how often that was used before: what is gone is never taken for what came in its place.
#[derive(Default)]
pub(crate) struct Objects {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

struct Slot {
    uses: u32,
    object: Option<Object>,
}

/// The slot and the use that a handle names. Handles are positive, and none is 0.
fn split(handle: Handle) -> (usize, u32) {
    ((handle & 0xffff_ffff) as usize, (handle >> 32) as u32)
}

fn joined(slot: usize, uses: u32) -> Handle {
    (Handle::from(uses) << 32) | slot as Handle
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self { objects: RwLock::default(), key_ids: AtomicU32::new(1) }
    }

    /// An id for a new key: not 0, which is the key between two participants.
    pub(crate) fn key_id(&self) -> u32 {
        match self.key_ids.fetch_add(1, Relaxed) {
            0 => self.key_id(),
            id => id,
        }
    }

    /// All objects. A thread that has them must not ask again: it would wait for a writer that waits for it.
    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Objects> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// All objects, to change them; nothing dear is to be done meanwhile, for messages wait. What has to go is dropped afterwards.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Objects> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Objects {
    pub(crate) fn add(&mut self, object: Object) -> Outcome<Handle> {
        let at = self.free.pop().unwrap_or(self.slots.len());
        if u32::try_from(at).is_err() {
            return Err(Fault::allocation());
        }
        if at == self.slots.len() {
            self.slots.push(Slot { uses: 0, object: None });
        }
        let slot = &mut self.slots[at];
        slot.uses += 1;
        slot.object = Some(object);
        Ok(joined(at, slot.uses))
    }

    /// Takes an object out.
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<Object> {
        let (at, uses) = split(handle);
        let slot = self.slots.get_mut(at).filter(|slot| slot.uses == uses)?;
        let object = slot.object.take()?;
        // A use's number stays below 2^31, so that handles stay positive.
        if uses < i32::MAX as u32 {
            self.free.push(at);
        }
        Some(object)
    }

    /// A participant of this process.
    #[inline]
    pub(crate) fn local(&self, handle: Handle) -> Outcome<&Local> {
        if let Some(Object::Local(local)) = self.find(handle) { Ok(local) } else { Err(Fault::handle()) }
    }

    /// A participant elsewhere.
    #[inline]
    pub(crate) fn remote(&self, handle: Handle) -> Outcome<&Remote> {
        if let Some(Object::Remote(remote)) = self.find(handle) { Ok(remote) } else { Err(Fault::handle()) }
    }

    /// What a participant elsewhere and one of ours share.
    #[inline]
    pub(crate) fn shared(&self, remote: Handle, local: Handle) -> Outcome<&Pair> {
        self.remote(remote)?.pair(local)
    }

    pub(crate) fn local_mut(&mut self, handle: Handle) -> Outcome<&mut Local> {
        if let Some(Object::Local(local)) = self.find_mut(handle) { Ok(local) } else { Err(Fault::handle()) }
    }

    pub(crate) fn remote_mut(&mut self, handle: Handle) -> Outcome<&mut Remote> {
        if let Some(Object::Remote(remote)) = self.find_mut(handle) { Ok(remote) } else { Err(Fault::handle()) }
    }

    /// A writer or reader of this process.
    #[inline]
    pub(crate) fn endpoint(&self, handle: Handle, is_writer: bool) -> Outcome<&Endpoint> {
        match self.find(handle) {
            Some(Object::Endpoint(endpoint)) if endpoint.is_writer == is_writer => Ok(endpoint),
            _ => Err(Fault::handle()),
        }
    }

    /// A writer or reader elsewhere.
    #[inline]
    pub(crate) fn matched(&self, handle: Handle, is_writer: bool) -> Outcome<&Matched> {
        match self.find(handle) {
            Some(Object::Matched(matched)) if matched.is_writer == is_writer => Ok(matched),
            _ => Err(Fault::handle()),
        }
    }

    pub(crate) fn matched_mut(&mut self, handle: Handle) -> Outcome<&mut Matched> {
        if let Some(Object::Matched(matched)) = self.find_mut(handle) { Ok(matched) } else { Err(Fault::handle()) }
    }

    /// As [`matched`](Self::matched), which has to match that one of ours.
    #[inline]
    pub(crate) fn matched_with(&self, handle: Handle, local: Handle, is_writer: bool) -> Outcome<&Matched> {
        let matched = self.matched(handle, is_writer)?;
        if matched.local == local { Ok(matched) } else { Err(Fault::handle()) }
    }

    /// Forgets what leads to a matched endpoint: its participant has it, if that is still there.
    pub(crate) fn forget(&mut self, handle: Handle) {
        let Some(Object::Matched(matched)) = self.find(handle) else { return };
        let (participant, key, tags) = (matched.participant, matched.relation_key(), matched.tags());
        if let Ok(participant) = self.remote_mut(participant) {
            participant.forget(handle, key, tags);
        }
    }

    /// Any object.
    #[inline]
    pub(crate) fn find(&self, handle: Handle) -> Option<&Object> {
        let (at, uses) = split(handle);
        self.slots.get(at).filter(|slot| slot.uses == uses)?.object.as_ref()
    }

    fn find_mut(&mut self, handle: Handle) -> Option<&mut Object> {
        let (at, uses) = split(handle);
        self.slots.get_mut(at).filter(|slot| slot.uses == uses)?.object.as_mut()
    }

    /// The participant elsewhere with that identity, if one of ours has met it.
    pub(crate) fn remote_of(&self, identity: Foreign) -> Option<Handle> {
        self.slots.iter().enumerate().find_map(|(at, slot)| match &slot.object {
            Some(Object::Remote(remote)) if remote.identity == identity => Some(joined(at, slot.uses)),
            _ => None,
        })
    }

    /// Every participant elsewhere.
    pub(crate) fn remotes_mut(&mut self) -> impl Iterator<Item = &mut Remote> {
        self.slots
            .iter_mut()
            .filter_map(|slot| if let Some(Object::Remote(remote)) = &mut slot.object { Some(&mut **remote) } else { None })
    }
}
