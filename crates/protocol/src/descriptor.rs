//! One request as the client describes it, as the broker has checked it, and its answer.

use bywash_core::session::Shape;
use bywash_core::{Algorithm, Direction, Error, Result};

/// What an honest client never does; the broker disconnects whoever does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Corrupt {
    /// A slot number that does not exist.
    #[error("the ring names slot {slot} of {slots}")]
    Slot {
        /// As it was read.
        slot: u32,
        /// How many there are.
        slots: u32,
    },
    /// A slot submitted that is not in the submitted state, or already running.
    #[error("slot {slot} was submitted in state {state:#x}")]
    State {
        /// Which slot.
        slot: u32,
        /// Its state word as it was read.
        state: u32,
    },
    /// A range that leaves the arena.
    #[error("the {what} lies outside of the arena")]
    Range {
        /// Which part of the request.
        what: &'static str,
    },
    /// A length beyond what any algorithm takes.
    #[error("the {what} is longer than any algorithm takes")]
    Length {
        /// Which part of the request.
        what: &'static str,
    },
    /// A direction that does not exist.
    #[error("direction {0} does not exist")]
    Direction(u32),
    /// Impossible sizes in a region's header.
    #[error("impossible sizes in the region's header")]
    Geometry,
    /// Woken again and again with nothing in the ring.
    #[error("the doorbell rang {0} times for nothing")]
    Doorbell(u32),
}

/// Bytes of the longest IV, GCM's.
pub const IV_BYTES_MAX: u32 = 128;
/// Bytes of the longest tag, an ECDSA signature's.
pub const TAG_BYTES_MAX: u32 = 64;
/// What the error of [`Verdict::KeyRate`] says.
pub const KEY_RATE: &str =
    "work so often with this key: its rate limit is reached; the vault's owner can raise it with `bywash key policy --rate`";
/// What the error of [`Verdict::KeyUse`] says.
pub const KEY_USE: &str = "do this with this key: its policy does not allow it (a signature with PSS needs a salt no longer than the digest, \
     as TLS has it: rsa_pss_saltlen:digest); the vault's owner can change that with `bywash key policy --allow`";
/// 32-bit words of a descriptor.
pub const DESCRIPTOR_WORDS: usize = 16;

/// A request as it stands in a slot: claims, not yet checked. Offsets are from the start of the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The session, by the number that the broker gave it.
    pub session: u32,
    /// [`Direction`] as a number.
    pub direction: u32,
    /// Where the IV lies, and its length.
    pub iv: (u32, u32),
    /// Associated data.
    pub aad: (u32, u32),
    /// Input.
    pub input: (u32, u32),
    /// Room for output; may be the input's own place.
    pub output: (u32, u32),
    /// Tag or signature.
    pub tag: (u32, u32),
}

impl Descriptor {
    /// As it stands in shared memory.
    pub fn to_words(&self) -> [u32; DESCRIPTOR_WORDS] {
        let Self { session, direction, iv, aad, input, output, tag } = *self;
        [session, direction, iv.0, iv.1, aad.0, aad.1, input.0, input.1, output.0, output.1, tag.0, tag.1, 0, 0, 0, 0]
    }

    /// From a copy of shared memory.
    pub fn from_words(words: &[u32; DESCRIPTOR_WORDS]) -> Self {
        let pair = |at: usize| (words[at], words[at + 1]);
        Self { session: words[0], direction: words[1], iv: pair(2), aad: pair(4), input: pair(6), output: pair(8), tag: pair(10) }
    }

    /// Checks everything that can be checked without knowing the session.
    ///
    /// # Errors
    /// [`Corrupt`]: no honest client describes a request so.
    pub fn validate(&self, arena_bytes: u32) -> core::result::Result<Job, Corrupt> {
        let number = u8::try_from(self.direction).map_err(|_| Corrupt::Direction(self.direction))?;
        if self.iv.1 > IV_BYTES_MAX {
            return Err(Corrupt::Length { what: "IV" });
        }
        if self.tag.1 > TAG_BYTES_MAX {
            return Err(Corrupt::Length { what: "tag" });
        }
        Ok(Job {
            session: self.session,
            direction: Direction::from_number(number).ok_or(Corrupt::Direction(self.direction))?,
            iv: Span::new(self.iv, arena_bytes, "IV")?,
            aad: Span::new(self.aad, arena_bytes, "associated data")?,
            input: Span::new(self.input, arena_bytes, "input")?,
            output: Span::new(self.output, arena_bytes, "output")?,
            tag: Span::new(self.tag, arena_bytes, "tag")?,
        })
    }
}

/// A range that was checked to lie inside the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    offset: u32,
    len: u32,
}

impl Span {
    pub(crate) fn new((offset, len): (u32, u32), arena_bytes: u32, what: &'static str) -> core::result::Result<Self, Corrupt> {
        match offset.checked_add(len) {
            Some(end) if end <= arena_bytes => Ok(Self { offset, len }),
            _ => Err(Corrupt::Range { what }),
        }
    }

    /// Offset from the start of the arena.
    pub fn offset(self) -> usize {
        self.offset as usize
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// A request whose ranges and direction are checked; whether they fit the session is [`Job::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The session it names; whether it exists and is this client's is the broker's to know.
    pub session: u32,
    /// Which way.
    pub direction: Direction,
    /// IV.
    pub iv: Span,
    /// Associated data.
    pub aad: Span,
    /// Input.
    pub input: Span,
    /// Room for output.
    pub output: Span,
    /// Tag or signature.
    pub tag: Span,
}

impl Job {
    /// Checks the lengths against the session that it names.
    ///
    /// # Errors
    /// As [`Shape::check`]; also an output much longer than is needed, which would only make the broker allocate.
    pub fn check(&self, algorithm: Algorithm, tag_len: usize) -> Result<()> {
        let shape = Shape {
            direction: self.direction,
            iv: self.iv.len(),
            aad: self.aad.len(),
            input: self.input.len(),
            output: self.output.len(),
            tag: self.tag.len(),
        };
        shape.check(algorithm, tag_len)
    }
}

/// How a request ended, as it stands in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// Done.
    Done = 0,
    /// [`Error::Authentication`].
    Authentication = 1,
    /// [`Error::InputRange`].
    InputRange = 2,
    /// [`Error::NoSession`].
    NoSession = 3,
    /// The lengths do not fit the session; the client, which knows them, can tell how.
    Shape = 4,
    /// [`Error::EngineFailed`] on every engine that could do it.
    EngineFailed = 5,
    /// [`Error::Timeout`].
    Timeout = 6,
    /// The broker is shutting down or has dropped this client; run it elsewhere.
    Unavailable = 7,
    /// [`Error::Quota`] on requests in flight.
    Quota = 8,
    /// The key's policy lets it be used only so often.
    KeyRate = 9,
    /// The key's policy does not allow this use.
    KeyUse = 10,
}

impl Verdict {
    const ALL: [Self; 11] = [
        Self::Done,
        Self::Authentication,
        Self::InputRange,
        Self::NoSession,
        Self::Shape,
        Self::EngineFailed,
        Self::Timeout,
        Self::Unavailable,
        Self::Quota,
        Self::KeyRate,
        Self::KeyUse,
    ];
}

/// The answer to a request: how it ended, and bytes of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// Bytes of output written, the tag not counted; 0 unless done.
    pub written: u32,
}

impl Outcome {
    /// An answer without output.
    pub const fn failed(verdict: Verdict) -> Self {
        Self { verdict, written: 0 }
    }

    /// The answer that stands for a result.
    pub fn of(result: &Result<usize>) -> Self {
        let verdict = match result {
            Ok(written) => return Self { verdict: Verdict::Done, written: u32::try_from(*written).unwrap_or(u32::MAX) },
            Err(Error::Authentication) => Verdict::Authentication,
            Err(Error::InputRange { .. }) => Verdict::InputRange,
            Err(Error::NoSession { .. }) => Verdict::NoSession,
            Err(Error::EngineFailed { .. } | Error::Unsupported { .. }) => Verdict::EngineFailed,
            Err(Error::Timeout { .. }) => Verdict::Timeout,
            Err(Error::Unavailable { .. } | Error::NotRun) => Verdict::Unavailable,
            Err(Error::Quota { .. }) => Verdict::Quota,
            Err(Error::WrongOperation { what: KEY_RATE, .. }) => Verdict::KeyRate,
            Err(Error::WrongOperation { what: KEY_USE, .. }) => Verdict::KeyUse,
            Err(_) => Verdict::Shape,
        };
        Self::failed(verdict)
    }

    /// From two words of shared memory; an unknown verdict is an unavailable broker.
    pub fn from_words(verdict: u32, written: u32) -> Self {
        let verdict = Verdict::ALL.get(verdict as usize).copied().unwrap_or(Verdict::Unavailable);
        Self { verdict, written: if verdict == Verdict::Done { written } else { 0 } }
    }

    /// The result that it stands for.
    ///
    /// # Errors
    /// The error of the verdict. [`Error::Unavailable`] alone means that running it elsewhere may succeed.
    pub fn into_result(self, algorithm: Algorithm, session: u32) -> Result<usize> {
        let broker = || "the broker".to_owned();
        Err(match self.verdict {
            Verdict::Done => return Ok(self.written as usize),
            Verdict::Authentication => Error::Authentication,
            Verdict::InputRange => Error::InputRange { algorithm },
            Verdict::NoSession => Error::NoSession { id: session },
            Verdict::Shape => Error::WrongOperation { algorithm, what: "take these lengths (the broker refuses them)" },
            Verdict::EngineFailed => Error::EngineFailed { engine: broker(), reason: "every engine that does it failed".into() },
            Verdict::Timeout => Error::Timeout { from: broker(), waited_ms: 0 },
            Verdict::Unavailable => Error::Unavailable { what: "the broker is shutting down or has dropped this client".into() },
            Verdict::Quota => Error::Quota { what: "requests in flight", limit: 0, setting: "in_flight_max" },
            Verdict::KeyRate => Error::WrongOperation { algorithm, what: KEY_RATE },
            Verdict::KeyUse => Error::WrongOperation { algorithm, what: KEY_USE },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_edge_of_the_arena_is_the_edge() {
        let at = |input| Descriptor { input, ..Descriptor::default() }.validate(4096);
        assert!(at((4096, 0)).is_ok());
        assert!(at((0, 4096)).is_ok());
        assert_eq!(at((1, 4096)), Err(Corrupt::Range { what: "input" }));
        assert_eq!(at((u32::MAX, 2)), Err(Corrupt::Range { what: "input" }), "no wrap-around");
        assert!(Descriptor { direction: 3, ..Descriptor::default() }.validate(4096).is_err());
        assert!(Descriptor { iv: (0, 129), ..Descriptor::default() }.validate(4096).is_err());
        assert!(Descriptor { tag: (0, 65), ..Descriptor::default() }.validate(4096).is_err());
    }

    #[test]
    fn answers_survive_the_ring() {
        for (number, verdict) in Verdict::ALL.into_iter().enumerate() {
            assert_eq!(verdict as usize, number);
            let outcome = Outcome::from_words(verdict as u32, 7);
            let result = outcome.into_result(Algorithm::Aes128Gcm, 3);
            assert_eq!(Outcome::of(&result).verdict, verdict, "{result:?}");
        }
        assert_eq!(Outcome::from_words(999, 7), Outcome::failed(Verdict::Unavailable));
    }

    proptest! {
        #[test]
        fn what_validates_lies_inside(words in any::<[u32; DESCRIPTOR_WORDS]>(), arena in 0u32..=1 << 30, small in any::<bool>()) {
            let words = if small { words.map(|word| word & 0x3f) } else { words };
            let descriptor = Descriptor::from_words(&words);
            if let Ok(job) = descriptor.validate(arena) {
                for span in [job.iv, job.aad, job.input, job.output, job.tag] {
                    prop_assert!(span.offset() + span.len() <= arena as usize);
                }
                prop_assert!(job.iv.len() <= IV_BYTES_MAX as usize && job.tag.len() <= TAG_BYTES_MAX as usize);
            }
        }
    }
}
