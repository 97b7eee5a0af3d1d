//! Objects by handle.

use crate::abi::{Foreign, Handle};
use crate::fault::{Fault, Outcome};
use crate::objects::{Endpoint, Local, Matched, Object, Remote};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// All objects of a plug-in. A handle is a slot and how often that was used before: what is gone is never taken for what came in its place.
pub(crate) struct Registry {
    slots: RwLock<Vec<Slot>>,
    key_ids: AtomicU32,
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
        Self { slots: RwLock::new(Vec::new()), key_ids: AtomicU32::new(1) }
    }

    /// An id for a new key: not 0, which is the key between two participants.
    pub(crate) fn key_id(&self) -> u32 {
        match self.key_ids.fetch_add(1, Relaxed) {
            0 => self.key_id(),
            id => id,
        }
    }

    pub(crate) fn add(&self, object: Object) -> Outcome<Handle> {
        self.add_with(|_| object)
    }

    /// Adds an object that is made with its handle known.
    pub(crate) fn add_with(&self, object: impl FnOnce(Handle) -> Object) -> Outcome<Handle> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        // A use's number stays below 2^31, so that handles stay positive.
        let free = slots.iter().position(|slot| slot.object.is_none() && slot.uses < i32::MAX as u32);
        let at = free.unwrap_or(slots.len());
        if at == slots.len() {
            slots.push(Slot { uses: 0, object: None });
        }
        if u32::try_from(at).is_err() {
            return Err(Fault::allocation());
        }
        let slot = &mut slots[at];
        slot.uses += 1;
        let handle = joined(at, slot.uses);
        slot.object = Some(object(handle));
        Ok(handle)
    }

    /// Takes an object out. It lives on while somebody works with it.
    pub(crate) fn remove(&self, handle: Handle) -> Option<Object> {
        let (at, uses) = split(handle);
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.get_mut(at).filter(|slot| slot.uses == uses)?.object.take()
    }

    pub(crate) fn local(&self, handle: Handle) -> Outcome<Arc<Local>> {
        self.find(handle, |object| if let Object::Local(local) = object { Some(local.clone()) } else { None })
    }

    pub(crate) fn remote(&self, handle: Handle) -> Outcome<Arc<Remote>> {
        self.find(handle, |object| if let Object::Remote(remote) = object { Some(remote.clone()) } else { None })
    }

    /// A writer or reader of this process.
    pub(crate) fn endpoint(&self, handle: Handle, is_writer: bool) -> Outcome<Arc<Endpoint>> {
        self.find(handle, |object| match object {
            Object::Endpoint(endpoint) if endpoint.is_writer == is_writer => Some(endpoint.clone()),
            _ => None,
        })
    }

    /// A writer or reader elsewhere.
    pub(crate) fn matched(&self, handle: Handle, is_writer: bool) -> Outcome<Arc<Matched>> {
        self.find(handle, |object| match object {
            Object::Matched(matched) if matched.is_writer == is_writer => Some(matched.clone()),
            _ => None,
        })
    }

    /// The same, which has to match that one of ours.
    pub(crate) fn matched_with(&self, handle: Handle, local: Handle, is_writer: bool) -> Outcome<Arc<Matched>> {
        let matched = self.matched(handle, is_writer)?;
        if matched.local == local { Ok(matched) } else { Err(Fault::handle()) }
    }

    pub(crate) fn any(&self, handle: Handle) -> Outcome<Object> {
        self.find(handle, |object| Some(object.clone()))
    }

    /// The participant elsewhere with that identity, if one of ours has met it.
    pub(crate) fn remote_of(&self, identity: Foreign) -> Option<(Handle, Arc<Remote>)> {
        self.slots().iter().enumerate().find_map(|(at, slot)| match &slot.object {
            Some(Object::Remote(remote)) if remote.identity == identity => Some((joined(at, slot.uses), remote.clone())),
            _ => None,
        })
    }

    /// Every participant elsewhere.
    pub(crate) fn remotes(&self) -> Vec<Arc<Remote>> {
        let remote = |slot: &Slot| if let Some(Object::Remote(remote)) = &slot.object { Some(remote.clone()) } else { None };
        self.slots().iter().filter_map(remote).collect()
    }

    fn slots(&self) -> RwLockReadGuard<'_, Vec<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn find<T>(&self, handle: Handle, pick: impl FnOnce(&Object) -> Option<T>) -> Outcome<T> {
        let (at, uses) = split(handle);
        let slots = self.slots();
        let object = slots.get(at).filter(|slot| slot.uses == uses).and_then(|slot| slot.object.as_ref());
        object.and_then(pick).ok_or_else(Fault::handle)
    }
}
