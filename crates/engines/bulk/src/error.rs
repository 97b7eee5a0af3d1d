//! What can be wrong with a call.

use std::fmt;

/// Why a call was refused. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A key that is not 16, 24 or 32 bytes long; 32 or 64 for XTS.
    KeyLength(usize),
    /// An IV of no bytes, or of more than 2^61 - 1.
    IvLength(usize),
    /// A nonce of other than 7 to 13 bytes for CCM.
    NonceLength(usize),
    /// A tag of a length that the cipher does not have.
    TagLength(usize),
    /// More text than the mode allows under one IV.
    TextLength(u64),
    /// More associated data than the mode allows.
    AadLength(u64),
    /// A text that is not a whole number of blocks, in a mode that takes no other.
    PartialBlock(usize),
    /// A data unit of less than one block.
    UnitLength(usize),
    /// Associated data after text.
    AadAfterText,
    /// The tag is not the message's.
    Authentication,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyLength(given) => write!(f, "an AES key has 16, 24 or 32 bytes, or 32 or 64 for XTS, not {given}"),
            Self::IvLength(given) => write!(f, "a GCM IV has 1 to 2^61 - 1 bytes, not {given}"),
            Self::NonceLength(given) => write!(f, "a CCM nonce has 7 to 13 bytes, not {given}"),
            Self::TagLength(given) => write!(f, "the cipher has no tag of {given} bytes"),
            Self::TextLength(given) => write!(f, "{given} bytes are too many for one message: begin another with a new IV"),
            Self::AadLength(given) => write!(f, "{given} bytes of associated data are too many for one message"),
            Self::PartialBlock(given) => write!(f, "{given} bytes are not a whole number of 16-byte blocks"),
            Self::UnitLength(given) => write!(f, "a data unit has 16 bytes or more, not {given}"),
            Self::AadAfterText => f.write_str("associated data comes before the text"),
            Self::Authentication => f.write_str("the tag is not the message's"),
        }
    }
}

impl std::error::Error for Error {}
