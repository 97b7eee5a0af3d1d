//! A small bounded table of secrets, for one thread.

/// Places in which a value can be: by its hash one set, and in that any of these.
const WAYS: usize = 4;

/// What is found by a keyed hash.
pub(crate) trait Hashed {
    fn hash(&self) -> u64;
}

/// A table of at most four values for each of some sets. Of a full set the longest unused goes; whatever goes is dropped, which wipes it.
pub(crate) struct Table<T> {
    /// None until the first value: a thread that needs no table has none.
    sets: Vec<[Option<Entry<T>>; WAYS]>,
    clock: u64,
}

struct Entry<T> {
    used: u64,
    value: T,
}

impl<T: Hashed> Table<T> {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self { sets: Vec::new(), clock: 0 }
    }

    fn set(&mut self, hash: u64) -> Option<&mut [Option<Entry<T>>; WAYS]> {
        let sets = self.sets.len();
        if sets == 0 { None } else { Some(&mut self.sets[hash as usize % sets]) }
    }

    /// The value of that hash that is the one.
    pub(crate) fn get(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        self.clock += 1;
        let clock = self.clock;
        let entry = self.set(hash)?.iter_mut().flatten().find(|entry| entry.value.hash() == hash && is_it(&entry.value))?;
        entry.used = clock;
        Some(&entry.value)
    }

    /// Takes that value out.
    pub(crate) fn take(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let is_its = |entry: &Entry<T>| entry.value.hash() == hash && is_it(&entry.value);
        let place = self.set(hash)?.iter_mut().find(|place| place.as_ref().is_some_and(is_its))?;
        place.take().map(|entry| entry.value)
    }

    /// Puts a value in, where there may be so many, which is the same number each time. Two of the same name may be there: contexts of one key that were in use at once.
    pub(crate) fn put(&mut self, value: T, most: usize) {
        self.clock += 1;
        let (used, hash) = (self.clock, value.hash());
        if self.sets.is_empty() {
            // All at once: growing would leave unwiped copies behind.
            self.sets.resize_with((most / WAYS).max(most.min(1)), || [const { None }; WAYS]);
        }
        if let Some(set) = self.set(hash)
            && let Some(place) = set.iter_mut().take(most).min_by_key(|place| place.as_ref().map_or(0, |entry| entry.used))
        {
            *place = Some(Entry { used, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Number(u64, u32);

    /// One set.
    const MOST: usize = WAYS;

    impl Hashed for Number {
        fn hash(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn what_was_put_is_found_by_hash_and_name() {
        let mut table = Table::new();
        assert_eq!(table.take(1, |_| true), None);
        table.put(Number(1, 10), MOST);
        table.put(Number(1, 11), MOST);
        table.put(Number(5, 12), MOST);
        assert_eq!(table.get(1, |number| number.1 == 11), Some(&Number(1, 11)));
        assert_eq!(table.get(5, |number| number.1 == 11), None);
        assert_eq!(table.take(1, |number| number.1 == 10), Some(Number(1, 10)));
        assert_eq!(table.take(1, |number| number.1 == 10), None);
        assert_eq!(table.get(5, |_| true), Some(&Number(5, 12)));
    }

    #[test]
    fn of_a_full_set_the_longest_unused_goes() {
        let mut table = Table::new();
        for number in 0..100 {
            table.put(Number(number, 0), MOST);
            // One that is used all the time stays.
            assert!(table.get(0, |_| true).is_some());
        }
        let kept: Vec<u64> = (0..100).filter(|&number| table.get(number, |_| true).is_some()).collect();
        assert_eq!(kept, [0, 97, 98, 99]);
    }

    #[test]
    fn there_are_never_more_than_there_may_be() {
        for most in 0..20 {
            let mut table = Table::new();
            for hash in 0..100 {
                table.put(Number(hash, 0), most);
            }
            let count = (0..100).filter(|&hash| table.get(hash, |_| true).is_some()).count();
            assert!(count <= most && count + WAYS > most, "{count} of {most}");
        }
    }
}
