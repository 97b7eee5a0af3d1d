//! Messages that come twice.

/// How many messages are remembered. Of a sender that counts, the last so many; of one that draws its nonces, about so many.
const REMEMBERED: usize = 256;
/// How far behind another a nonce is at most that was counted before it. Of two that were drawn, one in four thousand million pairs is so near.
const BEHIND_MAX: u64 = 1 << 32;

/// The nonces of the latest messages that were accepted under one key. Of a sender that counts, an older message does not take a newer one's place: whoever has recorded both
/// could otherwise send them in turn for ever. From nonces that are drawn at random no age can be told; there exact copies are known, and what is older is a matter of
/// RTPS, whose readers take no sequence number twice.
pub(crate) struct Seen {
    nonces: Box<[Option<(u32, u64)>]>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self { nonces: vec![None; REMEMBERED].into() }
    }

    /// Notes a message; whether it is new.
    pub(crate) fn note(&mut self, session: u32, suffix: u64) -> bool {
        let slot = &mut self.nonces[suffix as usize % REMEMBERED];
        if let Some((latest_session, latest)) = *slot {
            // Suffixes go on from session to session.
            let behind = latest.wrapping_sub(suffix);
            if (latest_session, latest) == (session, suffix) || (1..BEHIND_MAX).contains(&behind) {
                return false;
            }
        }
        *slot = Some((session, suffix));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_known_and_others_are_new() {
        let mut seen = Seen::new();
        for suffix in 0..2 * REMEMBERED as u64 {
            assert!(seen.note(0, suffix));
            assert!(!seen.note(0, suffix));
        }
        for suffix in REMEMBERED as u64..2 * REMEMBERED as u64 {
            assert!(!seen.note(0, suffix), "{suffix}");
        }
        assert!(seen.note(1, 511));
    }

    #[test]
    fn two_old_copies_do_not_make_way_for_each_other() {
        let mut seen = Seen::new();
        let first = u64::MAX - 300; // Counting goes on past the end.
        assert!((0..1000).all(|count| seen.note(7, first.wrapping_add(count))));
        for _ in 0..3 {
            assert!(!seen.note(7, first.wrapping_add(743)) && !seen.note(7, first.wrapping_add(999)));
        }
        assert!(seen.note(8, first.wrapping_add(1000)), "the next session goes on");
        assert!(seen.note(7, first.wrapping_sub(BEHIND_MAX)), "so far away it was drawn");
    }
}
