//! The latest nonces, whatever they are.

/// How many are remembered.
pub(super) const REMEMBERED: usize = 256;

/// The nonces that were accepted last. In columns, so that a number is looked for in all of them at once.
#[derive(Default)]
pub(super) struct Latest {
    sessions: Vec<u32>,
    highs: Vec<u32>,
    lows: Vec<u32>,
    /// The oldest, once there are as many as there may be.
    oldest: usize,
}

fn halves(suffix: u64) -> (u32, u32) {
    ((suffix >> 32) as u32, suffix as u32)
}

/// Without a branch for each, so that the compiler takes several at a time: this is what messages of random numbers wait for.
fn has(column: &[u32], number: u32) -> bool {
    column.iter().fold(false, |has, other| has | (*other == number))
}

impl Latest {
    /// Remembers a nonce; the session of the one that is forgotten for it.
    pub(super) fn put(&mut self, session: u32, suffix: u64) -> Option<u32> {
        let (high, low) = halves(suffix);
        if self.sessions.len() < REMEMBERED {
            self.sessions.push(session);
            self.highs.push(high);
            self.lows.push(low);
            return None;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % REMEMBERED;
        (self.highs[at], self.lows[at]) = (high, low);
        Some(core::mem::replace(&mut self.sessions[at], session))
    }

    /// Whether there may be the same suffix, or one that was counted shortly before or after it. However it counts, such a neighbour's one half is the same unless 2^32 lies between, so that
    /// of random numbers hardly any has one.
    pub(super) fn may_have_neighbours(&self, suffix: u64) -> bool {
        let (high, low) = halves(suffix);
        has(&self.highs, high) | has(&self.lows, low)
    }

    pub(super) fn has(&self, session: u32, suffix: u64) -> bool {
        self.of(session).any(|other| other == suffix)
    }

    pub(super) fn has_session(&self, session: u32) -> bool {
        has(&self.sessions, session)
    }

    /// The suffixes of a session.
    pub(super) fn of(&self, session: u32) -> impl Iterator<Item = u64> + Clone {
        let suffixes = self.highs.iter().zip(&self.lows).map(|(high, low)| u64::from(*high) << 32 | u64::from(*low));
        self.sessions.iter().zip(suffixes).filter(move |(other, _)| **other == session).map(|(_, suffix)| suffix)
    }

    /// How many are remembered now.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }
}
