//! The trace ring: in-place requests of a client, for a recording. Lossy: the client never waits; what the broker misses, it counts.

use crate::region::Region;
use bywash_core::{Algorithm, Direction};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::fence;

/// An in-place request. Times are of [`monotonic_ns`](crate::monotonic_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When it was asked for.
    pub arrival_ns: u64,
    /// When the engine began.
    pub start_ns: u64,
    /// When it was done.
    pub done_ns: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// The client's own number for the session.
    pub session: u32,
    /// What was asked.
    pub algorithm: Algorithm,
    /// Which way.
    pub direction: Direction,
    /// In how many calls of its program the bytes came.
    pub calls: u32,
}

impl TraceEntry {
    fn to_words(self) -> [u64; 6] {
        let what = u64::from(self.session) << 32 | u64::from(self.algorithm.number()) << 16 | self.direction as u64;
        [self.arrival_ns, self.start_ns, self.done_ns, self.bytes, what, u64::from(self.calls)]
    }

    fn from_words([arrival_ns, start_ns, done_ns, bytes, what, calls]: [u64; 6]) -> Option<Self> {
        let algorithm = Algorithm::from_number((what >> 16) as u16)?;
        let direction = Direction::from_number(u8::try_from(what & 0xffff).ok()?)?;
        let calls = u32::try_from(calls).ok()?.max(1);
        Some(Self { arrival_ns, start_ns, done_ns, bytes, session: (what >> 32) as u32, algorithm, direction, calls })
    }
}

/// At most so many entries are waited for that their clients' threads have begun and not finished; of more, the rest count as lost.
const UNFINISHED_MAX: usize = 64;

/// The broker's position in a client's trace ring.
#[derive(Clone, Debug, Default)]
pub struct TraceCursor {
    next: u64,
    /// Tickets before `next` whose entries were not finished yet: a thread that has lost its processor in the midst of one finishes it later.
    unfinished: Vec<u64>,
}

impl TraceCursor {
    /// Waits no longer for entries that were never finished; returns how many those are.
    pub fn give_up(&mut self) -> u64 {
        core::mem::take(&mut self.unfinished).len() as u64
    }
}

/// The sequence of a cell that is being written.
const BUSY: u64 = u64::MAX;

/// What a cell has of a ticket's entry.
enum Cell {
    Entry(TraceEntry),
    Unfinished,
    Unreadable,
}

impl Region {
    /// Client: remembers an in-place request, overwriting the oldest if the broker has not kept up.
    pub fn trace(&self, entry: TraceEntry) {
        let ticket = self.map.u64_at(self.geometry.trace_tail()).fetch_add(1, Relaxed);
        let at = self.geometry.trace_cell(ticket);
        let sequence = self.map.u64_at(at);
        // One whole ring apart, two threads have the same cell: both writing there would leave something of each.
        if sequence.swap(BUSY, Acquire) == BUSY {
            return;
        }
        fence(Release);
        for (index, word) in entry.to_words().into_iter().enumerate() {
            self.map.u64_at(at + 8 + index * 8).store(word, Relaxed);
        }
        sequence.store(ticket.wrapping_add(1), Release);
    }

    /// Broker: a cursor that skips what was there before a recording began.
    pub fn trace_now(&self) -> TraceCursor {
        TraceCursor { next: self.map.u64_at(self.geometry.trace_tail()).load(Acquire), unfinished: Vec::new() }
    }

    /// Broker: hands out what is new, and what was not finished the last time and is now, and moves the cursor; returns how many entries were
    /// lost, unreadable ones included. Does at most one ring's worth of work, whatever the client writes.
    pub fn drain_trace(&self, cursor: &mut TraceCursor, mut each: impl FnMut(TraceEntry)) -> u64 {
        let tail = self.map.u64_at(self.geometry.trace_tail()).load(Acquire);
        let new = tail.wrapping_sub(cursor.next);
        if new > u64::MAX / 2 {
            // The client has turned its counter back; nothing before this point can be told apart.
            cursor.next = tail;
            return 1 + cursor.give_up();
        }
        let cells = u64::from(self.geometry.trace_cells);
        let readable = new.min(cells);
        let mut lost = new - readable;
        let waiting = core::mem::take(&mut cursor.unfinished);
        let first = tail.wrapping_sub(readable);
        for ticket in waiting.into_iter().chain((0..readable).map(|index| first.wrapping_add(index))) {
            match self.read_trace(ticket) {
                _ if tail.wrapping_sub(ticket) > cells => lost += 1,
                Cell::Entry(entry) => each(entry),
                Cell::Unfinished if cursor.unfinished.len() < UNFINISHED_MAX => cursor.unfinished.push(ticket),
                Cell::Unfinished | Cell::Unreadable => lost += 1,
            }
        }
        cursor.next = tail;
        lost
    }

    fn read_trace(&self, ticket: u64) -> Cell {
        let at = self.geometry.trace_cell(ticket);
        let sequence = self.map.u64_at(at);
        if sequence.load(Acquire) != ticket.wrapping_add(1) {
            return Cell::Unfinished;
        }
        let words = core::array::from_fn(|index| self.map.u64_at(at + 8 + index * 8).load(Relaxed));
        fence(Acquire);
        if sequence.load(Relaxed) != ticket.wrapping_add(1) {
            return Cell::Unfinished;
        }
        TraceEntry::from_words(words).map_or(Cell::Unreadable, Cell::Entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Geometry;

    fn entry(number: u64) -> TraceEntry {
        TraceEntry {
            arrival_ns: number,
            start_ns: number + 1,
            done_ns: number + 2,
            bytes: 64,
            session: 9,
            algorithm: Algorithm::Aes256Gcm,
            direction: Direction::Decrypt,
            calls: 3,
        }
    }

    fn region() -> Region {
        Region::create(Geometry { slots: 8, arena_bytes: 4096, trace_cells: 64 }).unwrap().0
    }

    #[test]
    fn entries_arrive_in_order_and_overruns_are_counted() {
        let region = region();
        let mut cursor = region.trace_now();
        let mut seen = Vec::new();
        (0..10).for_each(|number| region.trace(entry(number)));
        assert_eq!(region.drain_trace(&mut cursor, |entry| seen.push(entry)), 0);
        assert_eq!(seen, (0..10).map(entry).collect::<Vec<_>>());
        seen.clear();
        (0..100).for_each(|number| region.trace(entry(number)));
        assert_eq!(region.drain_trace(&mut cursor, |entry| seen.push(entry)), 36);
        assert_eq!(seen, (36..100).map(entry).collect::<Vec<_>>());
    }

    /// Takes a ticket and leaves its entry unfinished, as a thread does that loses its processor there.
    fn begun(region: &Region) -> u64 {
        let ticket = region.map.u64_at(region.geometry.trace_tail()).fetch_add(1, Relaxed);
        region.map.u64_at(region.geometry.trace_cell(ticket)).store(BUSY, Relaxed);
        ticket
    }

    fn finish(region: &Region, ticket: u64, entry: TraceEntry) {
        let at = region.geometry.trace_cell(ticket);
        entry.to_words().into_iter().enumerate().for_each(|(index, word)| region.map.u64_at(at + 8 + index * 8).store(word, Relaxed));
        region.map.u64_at(at).store(ticket + 1, Release);
    }

    #[test]
    fn an_entry_that_is_being_written_is_waited_for() {
        let region = region();
        let mut cursor = region.trace_now();
        let mut seen = Vec::new();
        region.trace(entry(0));
        let (second, fourth) = (begun(&region), {
            region.trace(entry(2));
            begun(&region)
        });
        assert_eq!(region.drain_trace(&mut cursor, |entry| seen.push(entry.arrival_ns)), 0);
        finish(&region, second, entry(1));
        region.trace(entry(4));
        assert_eq!(region.drain_trace(&mut cursor, |entry| seen.push(entry.arrival_ns)), 0);
        assert_eq!(seen, [0, 2, 1, 4]);
        // Nobody finishes the last one: given up at the end, or when its place was taken.
        assert_eq!(cursor.clone().give_up(), 1);
        finish(&region, fourth, entry(3));
        assert_eq!(region.drain_trace(&mut cursor, |entry| seen.push(entry.arrival_ns)), 0);
        assert_eq!((seen.last(), cursor.give_up()), (Some(&3), 0));
        let late = begun(&region);
        assert_eq!(region.drain_trace(&mut cursor, |_| ()), 0);
        (0..64).for_each(|number| region.trace(entry(number)));
        let mut read = 0;
        // Whoever came to its cell meanwhile has left it alone; what it says in the end is too old to be taken for anything.
        finish(&region, late, entry(5));
        assert_eq!((region.drain_trace(&mut cursor, |_| read += 1), read, cursor.give_up()), (1, 63, 1));
    }

    #[test]
    fn only_so_many_are_waited_for() {
        let region = Region::create(Geometry { slots: 8, arena_bytes: 4096, trace_cells: 256 }).unwrap().0;
        let mut cursor = region.trace_now();
        for _ in 0..200 {
            begun(&region);
        }
        assert_eq!(region.drain_trace(&mut cursor, |_| ()), 200 - UNFINISHED_MAX as u64);
        assert_eq!(region.drain_trace(&mut cursor, |_| ()), 0);
        assert_eq!(cursor.give_up(), UNFINISHED_MAX as u64);
    }

    #[test]
    fn a_lying_tail_costs_bounded_work() {
        let region = region();
        let mut cursor = region.trace_now();
        for lie in [u64::MAX / 3, 5, u64::MAX, 0] {
            region.map.u64_at(region.geometry.trace_tail()).store(lie, Relaxed);
            let mut read = 0;
            region.drain_trace(&mut cursor, |_| read += 1);
            assert!(read <= 64 && cursor.unfinished.len() <= UNFINISHED_MAX, "{read} entries out of 64 cells");
        }
    }
}
