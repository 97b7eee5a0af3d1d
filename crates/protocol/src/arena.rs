//! Room in the arena: the client's own book-keeping, in its private memory, of which ranges it has lent out.

use std::sync::{Mutex, PoisonError};

/// Ranges begin at multiples of this, so that two requests never share a cache line.
pub const ARENA_ALIGN: u32 = 64;

/// First-fit allocator of the arena. The list of free ranges is short, because requests are few and short-lived.
pub struct ArenaAllocator(Mutex<Vec<(u32, u32)>>);

impl ArenaAllocator {
    /// All of an arena of this many bytes, free.
    pub fn new(bytes: u32) -> Self {
        Self(Mutex::new(vec![(0, bytes)]))
    }

    /// Takes a range of at least `len` bytes; gives its offset, or `None` where no free range is long enough.
    pub fn take(&self, len: usize) -> Option<u32> {
        let len = rounded(len)?;
        let mut free = self.lock();
        let at = free.iter().position(|&(_, have)| have >= len)?;
        let (offset, have) = free[at];
        if have == len {
            free.remove(at);
        } else {
            free[at] = (offset + len, have - len);
        }
        Some(offset)
    }

    /// Gives a range back that was taken with the same `len`.
    pub fn give_back(&self, offset: u32, len: usize) {
        let Some(len) = rounded(len) else { return };
        let mut free = self.lock();
        let at = free.partition_point(|&(start, _)| start < offset);
        free.insert(at, (offset, len));
        for left in [at, at.wrapping_sub(1)] {
            if let Some(&[(start, len), (next, more)]) =
                left.checked_add(2).and_then(|end| free.get(left..end)).and_then(|pair| pair.first_chunk())
                && start + len == next
            {
                free[left] = (start, len + more);
                free.remove(left + 1);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(u32, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Length as it is booked: an empty request still needs a range of its own.
fn rounded(len: usize) -> Option<u32> {
    u32::try_from(len.max(1)).ok()?.checked_next_multiple_of(ARENA_ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_arena_is_used_up_and_comes_back() {
        let arena = ArenaAllocator::new(4096);
        assert_eq!(arena.take(4096), Some(0));
        assert_eq!(arena.take(0), None);
        arena.give_back(0, 4096);
        assert_eq!(arena.take(4097), None);
        assert_eq!(arena.take(usize::MAX), None);
        assert_eq!(arena.take(4096), Some(0));
    }

    proptest! {
        #[test]
        fn ranges_never_overlap_and_all_come_back(steps in prop::collection::vec((any::<bool>(), 0usize..3000), 1..200)) {
            let arena = ArenaAllocator::new(16384);
            let mut held: Vec<(u32, usize)> = Vec::new();
            for (take, number) in steps {
                if take {
                    if let Some(offset) = arena.take(number) {
                        prop_assert!(offset as usize + number <= 16384);
                        for &(other, len) in &held {
                            prop_assert!(offset as usize + number.max(1) <= other as usize || other as usize + len.max(1) <= offset as usize);
                        }
                        held.push((offset, number));
                    }
                } else if !held.is_empty() {
                    let (offset, len) = held.swap_remove(number % held.len());
                    arena.give_back(offset, len);
                }
            }
            for (offset, len) in held {
                arena.give_back(offset, len);
            }
            prop_assert_eq!(arena.take(16384), Some(0));
        }
    }
}
