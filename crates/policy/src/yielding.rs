//! Whether to offer the processor to others before computing: the policy of a thread that hopes for company.
//!
//! A thread that blocks has no moment of its own in which nothing more comes. It makes one by yielding the processor: threads that could run, and may be on
//! their way to the same place, come first. On an idle processor that costs nothing. Where other programs want the processor it costs a
//! time slice, and what the scheduler takes away for it: measured on Linux 6.18 beside one busy process, a yield before each operation of
//! 256 us cuts the thread's share of the processor to a third.
//!
//! So a yield is a wager. One that was over at once, or that brought company, may be made again. Each in a row that was long and brought
//! nobody doubles the number of operations until the next one.

/// A yield shorter than this cost nothing worth mentioning, in nanoseconds: nobody else wanted the processor.
const SHORT_NS: u64 = 20_000;
/// Long yields for nothing that are forgiven.
const FORGIVEN: u32 = 3;
/// At most so many doublings: one yield in 64 is made in any case, to notice that times have changed.
const DOUBLINGS_MAX: u32 = 6;

/// The policy. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Yielding {
    misses: u32,
    skipped: u32,
}

impl Yielding {
    /// Whether to yield now.
    pub fn is_worth_it(&mut self) -> bool {
        let doublings = self.misses.saturating_sub(FORGIVEN).min(DOUBLINGS_MAX);
        self.skipped += 1;
        let worth = self.skipped >= 1 << doublings;
        if worth {
            self.skipped = 0;
        }
        worth
    }

    /// What came of it: how long it took, and how many others arrived meanwhile.
    pub fn learn(&mut self, waited_ns: u64, company: u64) {
        if company > 0 {
            self.misses = 0;
        } else if waited_ns >= SHORT_NS {
            self.misses = (self.misses + 1).min(FORGIVEN + DOUBLINGS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE_NS: u64 = 3_000_000;

    fn yields(yielding: &mut Yielding, (waited_ns, company): (u64, u64)) -> usize {
        let mut tell = || {
            let worth = yielding.is_worth_it();
            if worth {
                yielding.learn(waited_ns, company);
            }
            worth
        };
        (0..640).filter(|_| tell()).count()
    }

    #[test]
    fn yields_that_cost_nothing_or_bring_company_go_on() {
        let mut yielding = Yielding::default();
        assert_eq!(yields(&mut yielding, (300, 0)), 640);
        assert_eq!(yields(&mut yielding, (SLICE_NS, 2)), 640);
    }

    #[test]
    fn a_busy_neighbour_is_given_slices_seldom_and_company_brings_them_back() {
        let mut yielding = Yielding::default();
        let seldom = yields(&mut yielding, (SLICE_NS, 0));
        assert!((10..25).contains(&seldom), "{seldom}");
        assert_eq!(yields(&mut yielding, (SLICE_NS, 0)), 10);
        let again = yields(&mut yielding, (SLICE_NS, 1));
        assert!(again > 570, "{again}");
    }
}
