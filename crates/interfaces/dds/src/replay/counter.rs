//! A session whose numbers count.

/// Of how many numbers up to the latest it is known which have come. A sender counts what it sends to others too, so that not each comes to us.
pub(super) const WINDOW: u64 = 1024;
/// How far from the latest a number is at most that its sender has counted. Of two senders in one session, each of which begins anywhere, one in 2^31 pairs is so near.
const FAR: u64 = 1 << 32;
/// How far from another a number is less than that shows that they were counted. Of random numbers that are looked at in three ways, one in 2^45 pairs is so near.
const NEAR: u64 = 1 << 16;

/// Who reads suffixes as numbers that go up.
#[derive(Clone, Copy)]
enum Reading {
    /// As they are.
    BigEndian,
    /// With the second half in front.
    HalvesSwapped,
    /// From the last byte.
    LittleEndian,
}

const READINGS: [Reading; 3] = [Reading::BigEndian, Reading::HalvesSwapped, Reading::LittleEndian];

impl Reading {
    fn count(self, suffix: u64) -> u64 {
        match self {
            Self::BigEndian => suffix,
            Self::HalvesSwapped => suffix.rotate_left(32),
            Self::LittleEndian => suffix.swap_bytes(),
        }
    }
}

/// What has come of one that counts.
pub(super) struct Counter {
    session: u32,
    reading: Reading,
    latest: u64,
    /// A bit for each of the numbers up to the latest, at its place modulo their number.
    come: [u64; WINDOW as usize / 64],
}

impl Counter {
    /// One that has counted this suffix and some of these others of its session.
    pub(super) fn learnt(session: u32, suffix: u64, others: impl Iterator<Item = u64> + Clone) -> Option<Self> {
        READINGS.into_iter().find_map(|reading| {
            let count = reading.count(suffix);
            let offset = |other: u64| reading.count(other).wrapping_sub(count) as i64;
            let near = others.clone().map(offset).filter(|offset| offset.unsigned_abs() < NEAR);
            let latest = count.wrapping_add_signed(near.clone().max()?.max(0));
            let mut counter = Self { session, reading, latest, come: [0; WINDOW as usize / 64] };
            near.chain([0]).for_each(|offset| {
                let count = count.wrapping_add_signed(offset);
                if latest.wrapping_sub(count) < WINDOW {
                    counter.mark(count);
                }
            });
            Some(counter)
        })
    }

    /// Whether this number has not come yet, which it has now; none if it is somebody else's. What is too old to know is taken for a copy.
    pub(super) fn take(&mut self, session: u32, suffix: u64) -> Option<bool> {
        if session != self.session {
            return None;
        }
        let count = self.reading.count(suffix);
        let ahead = count.wrapping_sub(self.latest);
        if (1..FAR).contains(&ahead) {
            // Those between have not come, and what had their places is too old now.
            if ahead < WINDOW {
                (0..ahead).for_each(|back| self.clear(count.wrapping_sub(back)));
            } else {
                self.come.fill(0);
            }
            self.latest = count;
            self.mark(count);
            return Some(true);
        }
        match self.latest.wrapping_sub(count) {
            0..WINDOW => Some(self.mark(count)),
            WINDOW..FAR => Some(false),
            _ => None,
        }
    }

    fn bit(&mut self, count: u64) -> (&mut u64, u64) {
        let place = count % WINDOW;
        (&mut self.come[place as usize / 64], 1 << (place % 64))
    }

    fn clear(&mut self, count: u64) {
        let (word, bit) = self.bit(count);
        *word &= !bit;
    }

    /// Whether it was not marked.
    fn mark(&mut self, count: u64) -> bool {
        let (word, bit) = self.bit(count);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
