//! One error type for the whole house. Each message names the thing, the place and, where there is one, the way out.

use crate::algorithm::Algorithm;

/// `core::result::Result` with this crate's [`Error`].
pub type Result<T> = core::result::Result<T, Error>;

/// What can go wrong with a session or an operation.
///
/// The docs of each variant say who is at fault: the *caller* (mend the call), the *data* (it was forged or damaged),
/// an *engine*, or the *service* (broker, quota, time).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Caller: no algorithm of that name.
    #[error("unknown algorithm '{name}'; `bywash engines` lists the algorithms there are")]
    UnknownAlgorithm {
        /// As it was given.
        name: String,
    },
    /// Caller: the key is not of a kind that fits the algorithm.
    #[error("{algorithm} takes {expected}, not {given}")]
    WrongKeyKind {
        /// The algorithm asked for.
        algorithm: Algorithm,
        /// What it takes.
        expected: &'static str,
        /// What was given.
        given: &'static str,
    },
    /// Caller: wrong key length.
    #[error("{algorithm} takes a key of {expected} bytes, not {given}")]
    KeyLength {
        /// The algorithm asked for.
        algorithm: Algorithm,
        /// In bytes.
        expected: usize,
        /// In bytes.
        given: usize,
    },
    /// Caller: the key has the right length but may not be used.
    #[error("{algorithm}: unusable key: {reason}")]
    BadKey {
        /// The algorithm asked for.
        algorithm: Algorithm,
        /// Why; never quotes the key.
        reason: &'static str,
    },
    /// Caller: wrong IV length.
    #[error("{algorithm} takes an IV of {} bytes, not {given}", range(*.min, *.max))]
    IvLength {
        /// The session's algorithm.
        algorithm: Algorithm,
        /// Shortest, in bytes.
        min: usize,
        /// Longest, in bytes.
        max: usize,
        /// In bytes.
        given: usize,
    },
    /// Caller: wrong tag (or signature) length.
    #[error("{algorithm} session takes a tag of {expected} bytes, not {given}; a truncated tag must be agreed when the session is opened")]
    TagLength {
        /// The session's algorithm.
        algorithm: Algorithm,
        /// In bytes.
        expected: usize,
        /// In bytes.
        given: usize,
    },
    /// Caller: a tag length that the algorithm does not allow.
    #[error("{algorithm} allows tags of {allowed} bytes, not {given}")]
    TagLengthNotAllowed {
        /// The algorithm asked for.
        algorithm: Algorithm,
        /// The lengths allowed, in words.
        allowed: &'static str,
        /// In bytes.
        given: usize,
    },
    /// Caller: input of a length that the algorithm cannot take.
    #[error("{algorithm} takes input of {expected}, not {given} bytes")]
    InputLength {
        /// The session's algorithm.
        algorithm: Algorithm,
        /// The lengths it takes, in words.
        expected: String,
        /// In bytes.
        given: usize,
    },
    /// Caller: the value is out of range (an RSA input not below the modulus).
    #[error("{algorithm}: input out of range: it must be below the modulus")]
    InputRange {
        /// The session's algorithm.
        algorithm: Algorithm,
    },
    /// Caller: not enough room for the output.
    #[error("{algorithm}: the output needs {needed} bytes, the buffer has {given}")]
    OutputTooSmall {
        /// The session's algorithm.
        algorithm: Algorithm,
        /// In bytes.
        needed: usize,
        /// In bytes.
        given: usize,
    },
    /// Caller: the operation does not fit the session (decrypting with a digest, AAD for a cipher without it).
    #[error("{algorithm} does not {what}")]
    WrongOperation {
        /// The session's algorithm.
        algorithm: Algorithm,
        /// As a verb phrase.
        what: &'static str,
    },
    /// Caller: a number with which nothing can be computed, or no room for the result.
    #[error("modular exponentiation: {reason}")]
    Number {
        /// What is wrong; never quotes a number.
        reason: String,
    },
    /// Data: tag or signature does not verify, or the peer's public value is unusable. One opaque answer on purpose: which check
    /// failed would be an oracle.
    #[error("authentication failed")]
    Authentication,
    /// Engine: this engine does not do that.
    #[error("engine '{engine}' does not do {algorithm}")]
    Unsupported {
        /// The engine's name.
        engine: String,
        /// What was asked of it.
        algorithm: Algorithm,
    },
    /// Engine: it took the operation and failed.
    #[error("engine '{engine}' failed: {reason}")]
    EngineFailed {
        /// The engine's name.
        engine: String,
        /// What it said.
        reason: String,
    },
    /// Engine: it was given the operation and said nothing of it. What every [`Task`](crate::Task) says until it is run.
    #[error("the operation was not run")]
    NotRun,
    /// Service: the operation was not done within its bound.
    #[error("no answer within {waited_ms} ms from {from}")]
    Timeout {
        /// Who did not answer.
        from: String,
        /// How long was waited, in milliseconds.
        waited_ms: u64,
    },
    /// Service: a quota is used up.
    #[error("quota: at most {limit} {what} for one client; close some, or ask the operator to raise `{setting}`")]
    Quota {
        /// What there are too many of.
        what: &'static str,
        /// The limit in force.
        limit: u64,
        /// The broker's setting that raises it.
        setting: &'static str,
    },
    /// Service: no such session (closed, or never opened by this client).
    #[error("no session {id} for this client")]
    NoSession {
        /// As it was given.
        id: u32,
    },
    /// Service: the broker's vault has no such key, or does not let this client use it so.
    #[error("key bywash:{name}: {reason}")]
    VaultKey {
        /// The key's name.
        name: String,
        /// What is wrong, and the way out.
        reason: String,
    },
    /// Service: the manager or broker is shutting down, or its connection is gone.
    #[error("{what}")]
    Unavailable {
        /// What is unavailable and the way out.
        what: String,
    },
    /// Caller: a cost sheet or other configuration text that cannot be read.
    #[error("{place}: {reason}")]
    Config {
        /// File, line and key where known.
        place: String,
        /// What is wrong and what is expected.
        reason: String,
    },
}

/// A range of numbers, in words; of one number, that number.
fn range(min: usize, max: usize) -> String {
    if min == max { min.to_string() } else { format!("{min} to {max}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_length_is_no_range_of_lengths() {
        let error = |min, max| Error::IvLength { algorithm: Algorithm::Aes256Gcm, min, max, given: 13 }.to_string();
        assert_eq!(error(12, 12), "AES-256-GCM takes an IV of 12 bytes, not 13");
        assert_eq!(error(7, 12), "AES-256-GCM takes an IV of 7 to 12 bytes, not 13");
    }
}
