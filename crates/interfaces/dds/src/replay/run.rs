//! Sessions that count.

/// How far from the latest a session is less than that its sender has counted.
const FAR: u32 = 1 << 16;
/// How far from another a session is at most that shows that they were counted: all messages of those between are lost, or were for others.
const NEAR: u32 = 16;

/// Sessions that follow each other. A session that was left must not come back with what is forgotten of it.
#[derive(Debug)]
pub(super) struct Run {
    /// Whether the first byte is the lowest.
    is_little_endian: bool,
    latest: u32,
    /// The latest session of which a message is forgotten.
    forgotten: Option<u32>,
}

impl Run {
    /// That of two sessions of which one follows the other.
    pub(super) fn learnt(one: u32, other: u32) -> Option<Self> {
        [false, true].into_iter().find_map(|is_little_endian| {
            let run = Self { is_little_endian, latest: one, forgotten: None };
            let ahead = run.ahead(other);
            let latest = if ahead > 0 { other } else { one };
            (ahead != 0 && ahead.unsigned_abs() <= NEAR).then_some(Self { latest, ..run })
        })
    }

    /// How many sessions after the latest it is.
    fn ahead(&self, session: u32) -> i32 {
        let (session, latest) =
            if self.is_little_endian { (session.swap_bytes(), self.latest.swap_bytes()) } else { (session, self.latest) };
        session.wrapping_sub(latest) as i32
    }

    fn is_of(&self, session: u32) -> bool {
        self.ahead(session).unsigned_abs() < FAR
    }

    /// Whether the session is one of these, the latest of which it may be now.
    pub(super) fn take(&mut self, session: u32) -> bool {
        let is_of = self.is_of(session);
        if is_of && self.ahead(session) > 0 {
            self.latest = session;
        }
        is_of
    }

    /// A message of that session is no longer remembered.
    pub(super) fn forget(&mut self, session: u32) {
        if self.is_of(session) && self.forgotten.is_none_or(|forgotten| self.ahead(session) > self.ahead(forgotten)) {
            self.forgotten = Some(session);
        }
    }

    /// Whether a session of these is neither the latest nor the one before it, and anything that came since it began is forgotten; none if it is not one of these.
    pub(super) fn is_left(&self, session: u32) -> Option<bool> {
        let ahead = self.ahead(session);
        self.is_of(session).then(|| ahead < -1 && self.forgotten.is_some_and(|forgotten| ahead <= self.ahead(forgotten)))
    }
}
