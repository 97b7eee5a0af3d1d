//! The requests that wait for one module, a queue for each session.

use super::Owner;
use crate::waiting::{Entry, Waiting};
use crate::{Request, RequestId};
use bywash_core::Time;
use std::collections::BTreeMap;

/// Sessions with something waiting, each first in, first out: operations of one session may continue each other.
#[derive(Default)]
pub(crate) struct Line {
    waiting: Waiting,
    /// The queue of each session in which something waits.
    queues: BTreeMap<Owner, usize>,
    /// Queues of `waiting` that are nobody's at the moment.
    spare: Vec<usize>,
    len: usize,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn len_of(&self, owner: Owner) -> usize {
        self.queues.get(&owner).map_or(0, |&queue| self.waiting.len(queue))
    }

    /// Appends a request that came at that time; not one that waits here already.
    pub(crate) fn push(&mut self, request: Request, arrived: Time) -> bool {
        if self.waiting.contains(request.id) {
            return false;
        }
        let (waiting, spare) = (&mut self.waiting, &mut self.spare);
        let queue = *self.queues.entry(Owner::of(&request)).or_insert_with(|| spare.pop().unwrap_or_else(|| waiting.add_queue()));
        self.waiting.push(queue, request, arrived);
        self.len += 1;
        true
    }

    /// Takes the oldest of a session.
    pub(crate) fn pop(&mut self, owner: Owner) -> Option<Entry> {
        let id = self.front(owner)?.request.id;
        self.remove(id)
    }

    /// Takes a request out, wherever it waits.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Entry> {
        let (queue, entry) = self.waiting.cancel(id)?;
        self.len -= 1;
        if self.waiting.len(queue) == 0 {
            self.queues.remove(&Owner::of(&entry.request));
            self.spare.push(queue);
        }
        Some(entry)
    }

    /// The oldest of a session.
    pub(crate) fn front(&self, owner: Owner) -> Option<&Entry> {
        self.waiting.front(*self.queues.get(&owner)?)
    }

    /// The oldest of every session in which something waits.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = &Entry> {
        self.queues.values().filter_map(|&queue| self.waiting.front(queue))
    }

    /// The oldest of every session of a client.
    pub(crate) fn fronts_of(&self, client: u32) -> impl Iterator<Item = &Entry> {
        let (first, last) = (Owner { client, session: 0 }, Owner { client, session: u32::MAX });
        self.queues.range(first..=last).filter_map(|(_, &queue)| self.waiting.front(queue))
    }

    /// Takes everything out, oldest first.
    pub(crate) fn drain(&mut self) -> Vec<Entry> {
        let owners: Vec<Owner> = self.queues.keys().copied().collect();
        let mut all: Vec<Entry> = Vec::with_capacity(self.len);
        for owner in owners {
            while let Some(entry) = self.pop(owner) {
                all.push(entry);
            }
        }
        all.sort_by_key(|entry| entry.order);
        all
    }
}
