//! A bounded table of what is dear to make, found by secret names.

use bywash_core::secret::constant_time_eq;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// The longest name: a master key of 32 bytes, and `SessionReceiverKey`, a salt of 32 bytes and a session id.
pub(crate) const NAME_MAX: usize = 96;
/// Parts with a lock of their own, so that threads with different keys seldom meet.
const SHARDS: usize = 16;

/// What is in the table, by parts of up to so many names each; of a full part the least recently used goes. Names and values are wiped as they go,
/// as far as the value wipes itself when dropped.
pub(crate) struct Bounded<V> {
    hasher: RandomState,
    shards: [Mutex<Shard<V>>; SHARDS],
    per_shard: usize,
    /// How often all was forgotten.
    epoch: AtomicU64,
}

struct Shard<V> {
    entries: Vec<Entry<V>>,
    clock: u64,
}

struct Entry<V> {
    hash: u64,
    used: u64,
    name: Name,
    value: V,
}

/// A name in room of its own, wiped when dropped.
#[derive(Clone)]
pub(crate) struct Name {
    bytes: Zeroizing<[u8; NAME_MAX]>,
    len: usize,
}

impl Name {
    /// The parts one after the other, each behind its length, so that no two lists of parts are one name; none if they are too long.
    pub(crate) fn of(parts: &[&[u8]]) -> Option<Self> {
        let mut name = Self { bytes: Zeroizing::new([0; NAME_MAX]), len: 0 };
        for part in parts {
            let end = name.len + 1 + part.len();
            let room = name.bytes.get_mut(name.len..end)?;
            room[0] = u8::try_from(part.len()).ok()?;
            room[1..].copy_from_slice(part);
            name.len = end;
        }
        Some(name)
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<V: Clone> Bounded<V> {
    /// A table of at most so many values (rounded up to a multiple of 16).
    pub(crate) fn new(most: usize) -> Self {
        let shard = || Mutex::new(Shard { entries: Vec::new(), clock: 0 });
        let (shards, per_shard) = (std::array::from_fn(|_| shard()), most.div_ceil(SHARDS).max(1));
        Self { hasher: RandomState::new(), shards, per_shard, epoch: AtomicU64::new(0) }
    }

    /// The value of that name, if it is there.
    pub(crate) fn get(&self, name: &Name) -> Option<V> {
        let hash = self.hasher.hash_one(name.get());
        self.shard(hash).find(hash, name)
    }

    /// How often all was forgotten so far: what is made from now on may be put in until it is again.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Puts a value in, unless all has been forgotten since that epoch: its owner may have gone. What has to go for it is dropped without the lock.
    pub(crate) fn put(&self, name: &Name, value: V, epoch: u64) {
        let hash = self.hasher.hash_one(name.get());
        let mut shard = self.shard(hash);
        // Under the lock that `clear` takes after it has counted: what it did not find here sees that count.
        if epoch != self.epoch() {
            return;
        }
        let gone = shard.insert(self.per_shard, Entry { hash, used: 0, name: name.clone(), value });
        drop(shard);
        drop(gone);
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<V>> {
        self.shards[hash as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).entries.len()).sum()
    }

    /// Forgets all. What goes is dropped without a lock.
    pub(crate) fn clear(&self) {
        self.epoch.fetch_add(1, Relaxed);
        for shard in &self.shards {
            let gone = core::mem::take(&mut shard.lock().unwrap_or_else(PoisonError::into_inner).entries);
            drop(gone);
        }
    }
}

impl<V: Clone> Shard<V> {
    fn find(&mut self, hash: u64, name: &Name) -> Option<V> {
        self.clock += 1;
        let is_it = |entry: &&mut Entry<V>| entry.hash == hash && constant_time_eq(entry.name.get(), name.get());
        let entry = self.entries.iter_mut().find(is_it)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    /// Puts one in, and hands back what had to go for it: it is dropped without the lock.
    fn insert(&mut self, most: usize, mut entry: Entry<V>) -> Option<Entry<V>> {
        self.clock += 1;
        entry.used = self.clock;
        // Another thread may have made it too.
        if let Some(same) =
            self.entries.iter_mut().find(|other| other.hash == entry.hash && constant_time_eq(other.name.get(), entry.name.get()))
        {
            return Some(core::mem::replace(same, entry));
        }
        if self.entries.len() < most {
            // Room for all at once: growing would leave unwiped names behind.
            self.entries.reserve_exact(most - self.entries.len());
            self.entries.push(entry);
            return None;
        }
        let oldest = self.entries.iter_mut().min_by_key(|entry| entry.used)?;
        Some(core::mem::replace(oldest, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn name(number: u32) -> Name {
        Name::of(&[b"key", &number.to_be_bytes()]).unwrap()
    }

    #[test]
    fn what_was_put_is_found_again() {
        let table = Bounded::new(32);
        table.put(&name(1), 10, 0);
        assert_eq!((table.get(&name(1)), table.get(&name(2)), table.len()), (Some(10), None, 1));
        table.put(&name(1), 11, 0);
        assert_eq!((table.get(&name(1)), table.len()), (Some(11), 1), "the newer takes the older one's place");
    }

    #[test]
    fn it_is_bounded_and_the_least_used_goes() {
        let table = Bounded::new(SHARDS * 2);
        let value = Arc::new(());
        for number in 0..1000 {
            table.put(&name(number), value.clone(), table.epoch());
            // One that is used all the time stays.
            assert!(table.get(&name(0)).is_some());
        }
        assert!(table.len() <= SHARDS * 2, "{}", table.len());
        table.clear();
        assert_eq!((table.len(), Arc::strong_count(&value)), (0, 1));
    }

    #[test]
    fn what_was_made_before_all_was_forgotten_does_not_come_back() {
        let table = Bounded::new(32);
        let before = table.epoch();
        table.clear();
        table.put(&name(1), 10, before);
        assert_eq!(table.len(), 0);
        table.put(&name(1), 10, table.epoch());
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn no_two_lists_of_parts_are_one_name() {
        let (one, other) = (Name::of(&[b"ab", b"c"]).unwrap(), Name::of(&[b"a", b"bc"]).unwrap());
        assert_ne!(one.get(), other.get());
        assert!(Name::of(&[&[0; 95]]).is_some() && Name::of(&[&[0; 96]]).is_none());
    }
}
