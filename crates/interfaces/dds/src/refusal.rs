//! Why something was refused.

use thiserror::Error;

/// Why a message, a token or a request was refused. It tells an attacker nothing that he does not know: what is malformed he sent himself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Bytes that are no such message.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// A transformation kind that does not exist, or not the one that the key is for.
    #[error("unexpected transformation kind {0}: the governance of both sides must agree")]
    Kind(u32),
    /// The message was made with a key that its sender has not told us of.
    #[error("no key with id {0}: its sender has not (yet) told us of it")]
    Key(u32),
    /// The tag is not the message's.
    #[error("the message cannot be authenticated: wrong tag")]
    Authentication,
    /// No receiver-specific tag that is for us, or a wrong one.
    #[error("no valid receiver-specific tag for us: {0}")]
    Receiver(&'static str),
    /// The same message came before, or one that is too old to tell.
    #[error("replayed: this message was accepted before, or is too old to tell")]
    Replayed,
    /// A message of our own, sent back to us as somebody else's.
    #[error("reflected: this message is our own")]
    Reflected,
    /// What cannot be protected.
    #[error("cannot be protected: {0}")]
    Unprotectable(&'static str),
    /// The generator of random bytes failed.
    #[error("no random bytes: {0}")]
    Random(&'static str),
    /// An engine failed.
    #[error(transparent)]
    Engine(bywash_core::Error),
}

impl From<bywash_core::Error> for Refusal {
    fn from(error: bywash_core::Error) -> Self {
        match error {
            bywash_core::Error::Authentication => Self::Authentication,
            other => Self::Engine(other),
        }
    }
}

/// What is computed, or why not.
pub type Result<T> = core::result::Result<T, Refusal>;
