//! Which keys of a thread are looked at at all, where to look costs something and most programs' keys never come again.

/// For each key that may be kept, so many are looked at without one that comes again, before the others are passed by.
const LOOKED_AT: usize = 2;
/// Then so many times as many are passed by, before there is another look.
const PASSED_BY: usize = 7;

/// Looks at all keys while some come again, and at an eighth of them otherwise: at twice as many in a row as may be kept, so that a key that comes again after fewer others than may be
/// kept does so within one look. So it is found by its [`found_within`](Self::found_within)th key at the latest.
///
/// Which keys are looked at depends on their number alone: whoever measures times learns nothing of the keys.
#[derive(Debug, Default)]
pub struct Watch {
    /// Keys since one came again, or since the present look began.
    since: usize,
}

impl Watch {
    /// As it is at the beginning: it looks.
    pub const fn new() -> Self {
        Self { since: 0 }
    }

    /// Whether the next key is to be looked at, where so many may be kept. Where it is not, none that was kept is in use.
    #[inline]
    pub fn looks(&mut self, most: usize) -> bool {
        let look = LOOKED_AT * most;
        if self.since >= look * (1 + PASSED_BY) {
            self.since = 0;
        }
        self.since += 1;
        self.since <= look
    }

    /// The key that was looked at has come again.
    #[inline]
    pub fn found(&mut self) {
        self.since = 0;
    }

    /// The most keys that go by before one is found to come again that does so after at most `most` others.
    pub const fn found_within(most: usize) -> usize {
        LOOKED_AT * most * (1 + PASSED_BY) + 2 * most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seen, Tag};
    use bywash_core::Algorithm;

    const MOST: usize = 8;

    /// Keys that never come twice, but for one at the given turns; how many had gone by when that was found, and how many were looked at.
    fn watched(keys: usize, is_its_turn: impl Fn(usize) -> bool) -> (Option<usize>, usize) {
        let (mut watch, mut seen, mut looks) = (Watch::new(), Seen::new(), 0);
        for turn in 0..keys {
            let number = if is_its_turn(turn) { u128::MAX } else { turn as u128 };
            if watch.looks(MOST) {
                looks += 1;
                // Sixteen bits of others may be the same by chance.
                if seen.note(Tag::of(Algorithm::Aes128Gcm, &number.to_le_bytes()), MOST) && is_its_turn(turn) {
                    return (Some(turn), looks);
                }
            }
        }
        (None, looks)
    }

    #[test]
    fn a_key_that_comes_again_is_found_whenever_it_begins_to() {
        let bound = Watch::found_within(MOST);
        for period in 1..=MOST {
            for begin in 0..2 * bound {
                let (found, _) = watched(4 * bound, |turn| turn >= begin && (turn - begin).is_multiple_of(period));
                assert!(found.is_some_and(|turn| turn - begin <= bound), "every {period}th from {begin} on: {found:?}");
            }
        }
    }

    #[test]
    fn of_keys_that_never_come_again_an_eighth_is_looked_at() {
        let (found, looks) = watched(80_000, |_| false);
        assert_eq!((found, looks), (None, 10_000));
    }

    #[test]
    fn while_keys_come_again_all_are_looked_at() {
        let mut watch = Watch::new();
        assert!((0..LOOKED_AT * MOST).all(|_| watch.looks(MOST)) && !watch.looks(MOST));
        let mut watch = Watch::new();
        for _ in 0..1000 {
            assert!((0..LOOKED_AT * MOST).all(|_| watch.looks(MOST)));
            watch.found();
        }
        assert!(!Watch::new().looks(0), "none is kept");
    }
}
