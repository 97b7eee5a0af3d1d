//! Routes: for an algorithm and a size class, *here*, *queue* or *together*. One look-up, no lock, no allocation.

use crate::algorithm::Algorithm;
use core::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// Where an operation is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Place {
    /// In the calling thread, on the CPU engine of its own process. The answer wherever nothing is known to be better.
    Here = 0,
    /// In the manager's queue, in this process or in the broker's, where the policy decides further.
    Queue = 1,
    /// In the broker's queue, to share lanes with other processes' operations; but in the calling process if it has company for it there: threads that combine,
    /// or connections whose operations gather.
    Together = 2,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Place::Here => "here",
            Place::Queue => "queue",
            Place::Together => "together",
        })
    }
}

/// Sizes in octaves: class `c` holds `2^c..2^(c+1)` bytes, class 0 also the empty input, the last class everything above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeClass(u8);

impl SizeClass {
    /// How many classes there are; the last begins at 16 MiB.
    pub const COUNT: usize = 25;

    /// The class of an operation of `bytes` of input. Public-key operations are all of class 0.
    pub const fn of(algorithm: Algorithm, bytes: usize) -> Self {
        if algorithm.is_public_key() || bytes == 0 {
            return Self(0);
        }
        let octave = bytes.ilog2();
        Self(if octave as usize >= Self::COUNT { Self::COUNT as u8 - 1 } else { octave as u8 })
    }

    /// Every class, smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// Its number, `0..COUNT`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The smallest size in it, in bytes.
    pub const fn bytes_min(self) -> usize {
        1 << self.0
    }
}

/// How many entries a routing table has.
pub const ROUTES: usize = Algorithm::COUNT * SizeClass::COUNT;

/// The index of an operation's entry in a routing table.
#[inline]
pub const fn route_index(algorithm: Algorithm, bytes: usize) -> usize {
    algorithm.number() as usize * SizeClass::COUNT + SizeClass::of(algorithm, bytes).index()
}

/// Reads a routing table that may lie in memory shared with another process; anything unknown reads as *here*.
#[inline]
pub fn look_up(table: &[AtomicU8], algorithm: Algorithm, bytes: usize) -> Place {
    const QUEUE: u8 = Place::Queue as u8;
    const TOGETHER: u8 = Place::Together as u8;
    match table.get(route_index(algorithm, bytes)).map(|entry| entry.load(Ordering::Relaxed)) {
        Some(QUEUE) => Place::Queue,
        Some(TOGETHER) => Place::Together,
        _ => Place::Here,
    }
}

/// Whether such a table keeps operations of this algorithm in place whatever their size.
#[inline]
pub fn keeps(table: &[AtomicU8], algorithm: Algorithm) -> bool {
    let row = algorithm.number() as usize * SizeClass::COUNT;
    let row = table.get(row..row + SizeClass::COUNT).unwrap_or_default();
    row.iter().all(|entry| entry.load(Ordering::Relaxed) != Place::Queue as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_octaves() {
        let class = |bytes| SizeClass::of(Algorithm::Aes128Gcm, bytes).index();
        assert_eq!((class(0), class(1), class(2), class(3), class(4)), (0, 0, 1, 1, 2));
        assert_eq!(class(1023), 9);
        assert_eq!(class(1024), 10);
        assert_eq!(class(usize::MAX), SizeClass::COUNT - 1);
        assert_eq!(SizeClass::of(Algorithm::Rsa2048Private, 256).index(), 0);
    }

    #[test]
    fn an_unknown_entry_means_here() {
        let table: Vec<AtomicU8> = (0..ROUTES).map(|_| AtomicU8::new(77)).collect();
        assert_eq!(look_up(&table, Algorithm::Aes128Gcm, 64), Place::Here);
        table[route_index(Algorithm::Aes128Gcm, 64)].store(Place::Queue as u8, Ordering::Relaxed);
        assert_eq!(look_up(&table, Algorithm::Aes128Gcm, 127), Place::Queue);
        assert_eq!(look_up(&table[..3], Algorithm::X25519, 32), Place::Here);
        assert!(!keeps(&table, Algorithm::Aes128Gcm) && keeps(&table, Algorithm::Aes256Gcm) && keeps(&table[..3], Algorithm::X25519));
        table[route_index(Algorithm::X25519, 32)].store(Place::Together as u8, Ordering::Relaxed);
        assert_eq!(look_up(&table, Algorithm::X25519, 32), Place::Together);
    }
}
