//! RTPS submessages, as far as security sees them.

use super::{array, take};
use crate::refusal::{Refusal, Result};

/// Bytes before a submessage's content.
pub const SUBMESSAGE_HEADER: usize = 4;
/// Nothing, up to the next one.
const PAD: u8 = 0x01;
/// What a reader answers a writer: which numbers came.
pub(crate) const ACKNACK: u8 = 0x06;
/// Likewise, of fragments.
pub(crate) const NACK_FRAG: u8 = 0x12;
/// When what follows was sent.
const INFO_TS: u8 = 0x09;
/// An original message's sender; it begins the text of a protected RTPS message.
pub const INFO_SRC: u8 = 0x0c;
/// An encrypted text.
pub const SEC_BODY: u8 = 0x30;
/// A CryptoHeader before a submessage.
pub const SEC_PREFIX: u8 = 0x31;
/// A CryptoFooter behind a submessage.
pub const SEC_POSTFIX: u8 = 0x32;
/// A CryptoHeader before all submessages of a message.
pub const SRTPS_PREFIX: u8 = 0x33;
/// A CryptoFooter behind them.
pub const SRTPS_POSTFIX: u8 = 0x34;

/// The flag by which lengths are little-endian.
const LITTLE: u8 = 1;

/// A submessage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submessage<'a> {
    /// Which one it is.
    pub id: u8,
    /// Whether its numbers are little-endian.
    pub is_little: bool,
    /// What stands behind its header.
    pub content: &'a [u8],
}

impl<'a> Submessage<'a> {
    /// From the front of the input.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn parse(input: &mut &'a [u8]) -> Result<Self> {
        let [id, flags, low, high] = array(input)?;
        let is_little = flags & LITTLE != 0;
        let length = if is_little { u16::from_le_bytes([low, high]) } else { u16::from_be_bytes([low, high]) };
        Ok(Self { id, is_little, content: take(input, usize::from(length))? })
    }

    /// Whether it has no length and so goes on to the end of its message, as all but those that may be empty (DDSI-RTPS 2.2 s9.4.5.1.3).
    pub(super) fn goes_on_to_the_end(&self) -> bool {
        self.content.is_empty() && !matches!(self.id, PAD | INFO_TS)
    }

    /// The content of the submessage in front, which has to be of that id.
    pub(super) fn expect(input: &mut &'a [u8], id: u8, otherwise: &'static str) -> Result<&'a [u8]> {
        let submessage = Self::parse(input)?;
        if submessage.id == id { Ok(submessage.content) } else { Err(Refusal::Malformed(otherwise)) }
    }
}

/// A submessage's header, little-endian.
///
/// # Errors
/// [`Refusal::Unprotectable`] for more than 65535 bytes of content.
pub(crate) fn put_header(id: u8, content: usize) -> Result<[u8; SUBMESSAGE_HEADER]> {
    let length =
        u16::try_from(content).map_err(|_| Refusal::Unprotectable("more than 65535 bytes are no submessage: send smaller fragments"))?;
    let [low, high] = length.to_le_bytes();
    Ok([id, LITTLE, low, high])
}
