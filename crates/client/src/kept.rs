//! Ciphers with their keys expanded, kept between one message and the next: for programs that make a cipher anew for each message under the same few keys.
//!
//! A table belongs to one thread, so there is no lock that a fork could find held, and no thread learns from its own times what keys another has. A key is found by a keyed hash
//! and compared in constant time. What goes is wiped: that for which there is no room, the least recently used first; what was not used for [`AGE_MS`], when the table is next asked;
//! and all of it when the table is dropped.

use bywash_core::{Algorithm, Solo};
use once_cell::race::OnceBox;
use std::hash::{BuildHasher, RandomState};

/// Milliseconds after which a cipher that nobody used is wiped: one that is asked for less often saves next to nothing.
pub const AGE_MS: u64 = 1000;
/// The most ciphers that a table holds, each of some 3 KiB.
pub const KEPT_MAX: usize = 256;
/// A key's 64-bit words that are hashed apart. No key has more.
const WORDS: usize = 8;

/// By what a key is found. The same in all threads of a process, and in no other process but its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u64);

impl Tag {
    /// The tag of an algorithm's key: vector multiply-shift (Dietzfelbinger, STACS 1996) under a random key, by which two keys have the same tag once in 2^63. It takes a few
    /// nanoseconds, where SipHash would take as long as half of what is saved.
    #[inline]
    pub fn of(algorithm: Algorithm, key: &[u8]) -> Self {
        let [seed, seeds @ ..] = seeds();
        let (words, rest) = key.as_chunks::<8>();
        let whole = words.iter().map(|whole| u64::from_le_bytes(*whole));
        let first = seed.wrapping_mul(u128::from(algorithm.number()) << 32 | key.len() as u128);
        let sum = whole.zip(seeds).fold(first, |sum, (word, seed)| sum.wrapping_add(seed.wrapping_mul(word.into())));
        // No cipher's key has any.
        let sum = rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u128::from(*byte)).wrapping_mul(*seed | 1));
        Self((sum >> 64) as u64)
    }
}

/// What keys are hashed under. Made without a lock: the child of a fork would wait for it for ever.
fn seeds() -> &'static [u128; WORDS + 1] {
    static SEEDS: OnceBox<[u128; WORDS + 1]> = OnceBox::new();
    SEEDS.get_or_init(|| {
        let random = RandomState::new();
        let half = |index: usize| u128::from(random.hash_one(index));
        Box::new(core::array::from_fn(|index| half(2 * index) << 64 | half(2 * index + 1)))
    })
}

/// A cipher that is kept.
struct Entry {
    algorithm: Algorithm,
    /// When it was kept: by the table's count, and by the clock.
    order: u64,
    at_ms: u64,
    solo: Box<dyn Solo>,
}

/// Ciphers of one thread.
#[derive(Default)]
pub struct Kept {
    /// One for each entry, together: all that a search looks at.
    tags: Vec<Tag>,
    entries: Vec<Entry>,
    count: u64,
    looked_ms: u64,
}

impl Kept {
    /// Without any.
    pub const fn new() -> Self {
        Self { tags: Vec::new(), entries: Vec::new(), count: 0, looked_ms: 0 }
    }

    /// A cipher with this key expanded and no message begun, if there is one. It is the caller's until it is [kept](Self::keep) again.
    #[inline]
    pub fn take(&mut self, algorithm: Algorithm, tag: Tag, key: &[u8]) -> Option<Box<dyn Solo>> {
        if self.tags.is_empty() { None } else { self.take_at(now_ms(), algorithm, tag, key) }
    }

    fn take_at(&mut self, now_ms: u64, algorithm: Algorithm, tag: Tag, key: &[u8]) -> Option<Box<dyn Solo>> {
        self.age(now_ms);
        let index = self.tags.iter().position(|kept| *kept == tag)?;
        if self.entries[index].algorithm != algorithm {
            return None;
        }
        let Entry { mut solo, .. } = self.remove(index);
        // It compares in constant time, and would expand another key that has the same tag.
        solo.set_key(key).ok().map(|()| solo)
    }

    /// Keeps a cipher that has the key of this tag, if the table may hold any. What has to go for it, of whatever algorithm, comes back with its key: to be dropped, which wipes it,
    /// or to take another key in its room.
    pub fn keep(&mut self, algorithm: Algorithm, tag: Tag, solo: Box<dyn Solo>, most: usize) -> Option<(Algorithm, Box<dyn Solo>)> {
        self.keep_at(now_ms(), algorithm, tag, solo, most)
    }

    fn keep_at(
        &mut self,
        now_ms: u64,
        algorithm: Algorithm,
        tag: Tag,
        solo: Box<dyn Solo>,
        most: usize,
    ) -> Option<(Algorithm, Box<dyn Solo>)> {
        if most == 0 {
            return Some((algorithm, solo));
        }
        self.age(now_ms);
        while self.entries.len() > most {
            self.remove(self.oldest()?);
        }
        let goes = if self.entries.len() == most { self.oldest().map(|index| self.remove(index)) } else { None };
        self.count += 1;
        self.tags.push(tag);
        self.entries.push(Entry { algorithm, order: self.count, at_ms: now_ms, solo });
        goes.map(|entry| (entry.algorithm, entry.solo))
    }

    /// Wipes all.
    pub fn clear(&mut self) {
        self.tags.clear();
        self.entries.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn oldest(&self) -> Option<usize> {
        (0..self.entries.len()).min_by_key(|&index| self.entries[index].order)
    }

    fn remove(&mut self, index: usize) -> Entry {
        self.tags.swap_remove(index);
        self.entries.swap_remove(index)
    }

    /// Wipes what nobody used for [`AGE_MS`]; looks some times in as long.
    #[inline]
    fn age(&mut self, now_ms: u64) {
        if now_ms.wrapping_sub(self.looked_ms) >= AGE_MS / 4 {
            self.wipe_old(now_ms);
        }
    }

    #[cold]
    fn wipe_old(&mut self, now_ms: u64) {
        self.looked_ms = now_ms;
        for index in (0..self.entries.len()).rev() {
            if now_ms.wrapping_sub(self.entries[index].at_ms) >= AGE_MS {
                self.remove(index);
            }
        }
    }
}

/// Keys that a thread had lately, as far as is needed to tell one that comes again: 16 bits of the tag of each, which say next to nothing about a key to whoever reads the memory. Of
/// keys that never come twice one in a thousand is taken for one that does.
#[derive(Default)]
pub struct Seen {
    ring: Vec<u16>,
    next: usize,
    /// When the first of each [`GROUP`] in the ring was noted: a clock read for each key would cost those that never come again a tenth of a short message.
    since_ms: Vec<u64>,
}

/// Keys that have one time.
const GROUP: usize = 8;

impl Seen {
    /// Without any.
    pub const fn new() -> Self {
        Self { ring: Vec::new(), next: 0, since_ms: Vec::new() }
    }

    /// Whether the key was among the last `most`, or somewhat more, and certainly not longer ago than [`AGE_MS`]; now it is. Keys that take turns in much greater number than a table holds
    /// are never found to come again, and so do not push each other out of it.
    #[inline]
    pub fn note(&mut self, tag: Tag, most: usize) -> bool {
        self.note_at(now_ms, tag, most)
    }

    #[inline]
    fn note_at(&mut self, now_ms: impl Fn() -> u64, Tag(tag): Tag, most: usize) -> bool {
        // The group that is being filled holds fewer.
        let groups = if most == 0 { 0 } else { most.div_ceil(GROUP) + 1 };
        if self.since_ms.len() != groups {
            *self = Self { ring: vec![0; groups * GROUP], next: 0, since_ms: vec![0; groups] };
        }
        // 0 is no key's.
        let tag = ((tag >> 48) as u16).max(1);
        let is_there = self.ring.iter().fold(false, |seen, &other| seen | (other == tag)) && self.is_recent(tag, &now_ms);
        let Some(group) = self.ring.as_chunks_mut::<GROUP>().0.get_mut(self.next / GROUP) else { return false };
        if self.next.is_multiple_of(GROUP) {
            // With the time of the group goes what was in it.
            *group = [0; GROUP];
            self.since_ms[self.next / GROUP] = now_ms();
        }
        group[self.next % GROUP] = tag;
        self.next = if self.next + 1 == groups * GROUP { 0 } else { self.next + 1 };
        is_there
    }

    /// Whether a key that is there was noted lately. It is taken for as old as the first of its group, whatever that was.
    #[cold]
    fn is_recent(&self, tag: u16, now_ms: &impl Fn() -> u64) -> bool {
        let now = now_ms();
        self.ring.iter().enumerate().any(|(place, other)| *other == tag && now.wrapping_sub(self.since_ms[place / GROUP]) < AGE_MS)
    }
}

/// Milliseconds of a clock that is read in a few nanoseconds and is a few milliseconds late.
fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

#[cfg(test)]
#[path = "kept/tests.rs"]
mod tests;
