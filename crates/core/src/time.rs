//! Virtual or real time, as policies and cost sheets see it.

use core::fmt;
use core::ops::{Add, Sub};

/// A point in time: nanoseconds since an origin that the clock's owner chose (start of the manager, start of the simulation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);

    /// Nanoseconds from `earlier` to here; 0 if `earlier` is later.
    pub const fn since_ns(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Time {
    type Output = Time;
    /// Adds nanoseconds, stopping at the end of time instead of wrapping.
    fn add(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }
}

impl Sub<u64> for Time {
    type Output = Time;
    fn sub(self, ns: u64) -> Time {
        Time(self.0.saturating_sub(ns))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} ms", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
