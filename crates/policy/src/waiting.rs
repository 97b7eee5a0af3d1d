//! The requests that wait: any number of first-in-first-out queues over one slab, with cancellation in constant time.
//!
//! In steady state nothing is allocated: places of the slab are used again, and so are the buckets of the index.

use crate::by_id::ById;
use crate::{Request, RequestId};
use bywash_core::Time;

/// No place of the slab.
const NONE: u32 = u32::MAX;

/// A request that waits.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) request: Request,
    pub(crate) arrived: Time,
    /// Running number of arrivals: says which of two requests is older when both came at the same time.
    pub(crate) order: u64,
    queue: u32,
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
    len: usize,
}

#[derive(Default)]
pub(crate) struct Waiting {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    queues: Vec<Queue>,
    index: ById<u32>,
    arrivals: u64,
}

impl Waiting {
    /// Adds an empty queue and returns its number; numbers count up from 0.
    pub(crate) fn add_queue(&mut self) -> usize {
        self.queues.push(Queue { first: NONE, last: NONE, len: 0 });
        self.queues.len() - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// How many wait in all queues.
    pub(crate) fn count(&self) -> usize {
        self.index.len()
    }

    /// Whether this request waits.
    pub(crate) fn contains(&self, id: RequestId) -> bool {
        self.index.contains_key(&id)
    }

    pub(crate) fn len(&self, queue: usize) -> usize {
        self.queues[queue].len
    }

    /// The [order](Entry::order) of the next arrival.
    pub(crate) fn next_order(&self) -> u64 {
        self.arrivals
    }

    /// The oldest of a queue.
    pub(crate) fn front(&self, queue: usize) -> Option<&Entry> {
        self.entries.get(self.queues[queue].first as usize)
    }

    /// Appends a request. One that already waits is left where it is: it must not be dispatched twice.
    pub(crate) fn push(&mut self, queue: usize, request: Request, now: Time) {
        if self.index.contains_key(&request.id) {
            return;
        }
        let order = self.arrivals;
        self.arrivals += 1;
        self.link(Entry { request, arrived: now, order, queue: queue as u32, previous: self.queues[queue].last, next: NONE });
    }

    /// Puts one that was taken out into a queue, behind what came before it.
    pub(crate) fn put_back(&mut self, queue: usize, entry: &Entry) {
        let (mut previous, mut next) = (NONE, self.queues[queue].first);
        while let Some(older) = self.entries.get(next as usize).filter(|older| older.order < entry.order) {
            (previous, next) = (next, older.next);
        }
        self.link(Entry { queue: queue as u32, previous, next, ..*entry });
    }

    /// Puts one between those that it names.
    fn link(&mut self, entry: Entry) {
        let Entry { request, queue, previous, next, .. } = entry;
        let (queue, place) = (queue as usize, self.store(entry));
        self.index.insert(request.id, place);
        self.set_next(queue, previous, place);
        match self.entries.get_mut(next as usize) {
            Some(next) => next.previous = place,
            None => self.queues[queue].last = place,
        }
        self.queues[queue].len += 1;
    }

    /// Takes the oldest of a queue.
    pub(crate) fn pop(&mut self, queue: usize) -> Option<Entry> {
        let id = self.front(queue)?.request.id;
        self.cancel(id).map(|(_, entry)| entry)
    }

    /// Takes a request out, wherever it waits; returns its queue too. `None` if it does not wait.
    pub(crate) fn cancel(&mut self, id: RequestId) -> Option<(usize, Entry)> {
        let place = self.index.remove(&id)?;
        let entry = self.entries[place as usize];
        let queue = entry.queue as usize;
        self.set_next(queue, entry.previous, entry.next);
        match self.entries.get_mut(entry.next as usize) {
            Some(next) => next.previous = entry.previous,
            None => self.queues[queue].last = entry.previous,
        }
        self.queues[queue].len -= 1;
        self.vacant.push(place);
        Some((queue, entry))
    }

    fn store(&mut self, entry: Entry) -> u32 {
        if let Some(place) = self.vacant.pop() {
            self.entries[place as usize] = entry;
            return place;
        }
        self.entries.push(entry);
        (self.entries.len() - 1) as u32
    }

    /// Makes `next` the successor of `place`, or the first of the queue where there is no `place`.
    fn set_next(&mut self, queue: usize, place: u32, next: u32) {
        match self.entries.get_mut(place as usize) {
            Some(entry) => entry.next = next,
            None => self.queues[queue].first = next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineSet;
    use bywash_core::{Algorithm, Direction};

    fn request(id: u64) -> Request {
        let (algorithm, direction, engines) = (Algorithm::X25519, Direction::Compute, EngineSet(1));
        Request { id: RequestId(id), client: 0, session: 0, algorithm, direction, bytes: 32, engines, deadline: None }
    }

    #[test]
    fn queues_keep_order_through_cancellations() {
        let mut waiting = Waiting::default();
        let (a, b) = (waiting.add_queue(), waiting.add_queue());
        for id in 0..9 {
            waiting.push(if id % 3 == 0 { a } else { b }, request(id), Time(id));
        }
        for id in [0, 4, 8] {
            assert!(waiting.cancel(RequestId(id)).is_some());
            assert!(waiting.cancel(RequestId(id)).is_none(), "twice");
        }
        waiting.push(b, request(2), Time(9)); // already there
        let mut drain = |queue| std::iter::from_fn(|| waiting.pop(queue)).map(|entry| entry.request.id.0).collect::<Vec<_>>();
        assert_eq!(drain(a), [3, 6]);
        assert_eq!(drain(b), [1, 2, 5, 7]);
        assert!(waiting.is_empty() && waiting.len(a) == 0 && waiting.len(b) == 0);
        waiting.push(a, request(0), Time(10));
        assert_eq!(waiting.entries.len(), 9, "places are used again");
    }

    #[test]
    fn what_is_put_back_has_its_place_by_age() {
        let mut waiting = Waiting::default();
        let (a, b) = (waiting.add_queue(), waiting.add_queue());
        (0..6).for_each(|id| waiting.push(if [1, 3, 5].contains(&id) { a } else { b }, request(id), Time(id)));
        while let Some(entry) = waiting.pop(a) {
            waiting.put_back(b, &entry);
        }
        assert_eq!((waiting.len(a), waiting.len(b)), (0, 6));
        waiting.push(b, request(6), Time(6));
        let entries: Vec<Entry> = std::iter::from_fn(|| waiting.pop(b)).collect();
        assert_eq!(
            entries.iter().map(|entry| (entry.request.id.0, entry.arrived.0)).collect::<Vec<_>>(),
            (0..7).map(|n| (n, n)).collect::<Vec<_>>()
        );
        waiting.put_back(a, &entries[3]);
        assert_eq!(waiting.front(a).map(|entry| entry.request.id.0), Some(3), "into an empty one too");
    }
}
