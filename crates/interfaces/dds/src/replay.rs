//! Messages that come twice.

/// How many messages are remembered. Of a sender that counts, the last so many of each of its sessions' numbers; of one that draws its nonces, about so many.
const REMEMBERED: usize = 256;

/// The nonces of the latest messages that were accepted under one key. It knows exact copies only: neither order nor age can be told from nonces, which some
/// senders draw at random. What is older is a matter of RTPS, whose readers take no sequence number twice.
pub(crate) struct Seen {
    nonces: Box<[(u32, u64)]>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        // No slot's own number: nothing is seen yet.
        Self { nonces: (0..REMEMBERED as u64).map(|slot| (0, slot + 1)).collect() }
    }

    /// Notes a message; whether it is new.
    pub(crate) fn note(&mut self, session: u32, suffix: u64) -> bool {
        let slot = &mut self.nonces[suffix as usize % REMEMBERED];
        let is_new = *slot != (session, suffix);
        *slot = (session, suffix);
        is_new
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
}
