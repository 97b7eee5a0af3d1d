//! How much of what DDS Security asks for was ready: counts that the processes of a run add up in one file.

use serde::Serialize;

/// What was asked for, one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Made {
    /// It was there.
    pub ready: u64,
    /// It was made here.
    pub anew: u64,
    /// libcrypto made it.
    pub libcrypto: u64,
}

impl Made {
    /// How often it was asked for.
    pub fn total(&self) -> u64 {
        self.ready.saturating_add(self.anew).saturating_add(self.libcrypto)
    }
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reuse {
    /// Processes whose Fast DDS was reached.
    pub processes: u64,
    /// Keys that are derived.
    pub keys: Made,
    /// Cipher contexts.
    pub contexts: Made,
    /// Draws of random bytes.
    pub randoms: Made,
}

impl Reuse {
    /// The numbers in a file of counts: processes, and for each kind what was ready, made anew, made by libcrypto. In the machine's own byte order, each added to by itself.
    pub const NUMBERS: usize = 1 + 3 * 3;
    /// Bytes of the file.
    pub const BYTES: usize = Self::NUMBERS * size_of::<u64>();

    /// Reads a file of counts; none if it has not their length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let (numbers, _) = bytes.as_chunks();
        let number = |at: usize| u64::from_ne_bytes(numbers[at]);
        let made = |kind: usize| Made { ready: number(1 + 3 * kind), anew: number(2 + 3 * kind), libcrypto: number(3 + 3 * kind) };
        Some(Self { processes: number(0), keys: made(0), contexts: made(1), randoms: made(2) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_counts_is_read() {
        let bytes: Vec<u8> = (1..=Reuse::NUMBERS as u64).flat_map(u64::to_ne_bytes).collect();
        let made = |ready| Made { ready, anew: ready + 1, libcrypto: ready + 2 };
        let expected = Reuse { processes: 1, keys: made(2), contexts: made(5), randoms: made(8) };
        assert_eq!(Reuse::from_bytes(&bytes), Some(expected));
        assert_eq!(expected.randoms.total(), 27);
        assert_eq!(Reuse::from_bytes(&bytes[1..]), None);
    }
}
