//! CryptoHeader and CryptoFooter (s9.5.2.3, s9.5.2.5).

use super::{array, number, take};
use crate::keyed::{IV, TAG};
use crate::kind::Kind;
use crate::refusal::{Refusal, Result};

/// Bytes of a CryptoHeader.
pub const HEADER: usize = 20;
/// Bytes of one receiver-specific tag with the id of its key.
pub const RECEIVER: usize = 4 + TAG;

/// A CryptoHeader: with which key a text is protected, and the rest of its nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What was done with the text.
    pub kind: Kind,
    /// The id of the sender's master key.
    pub key_id: u32,
    /// The session under that key.
    pub session: u32,
    /// The number of the message in it.
    pub suffix: u64,
}

impl Header {
    /// From the front of the input.
    ///
    /// # Errors
    /// [`Refusal::Malformed`], [`Refusal::Kind`].
    pub fn parse(input: &mut &[u8]) -> Result<Self> {
        let kind = number(input)?;
        let (key_id, session, suffix) = (number(input)?, number(input)?, u64::from_be_bytes(array(input)?));
        Ok(Self { kind: Kind::from_number(kind).ok_or(Refusal::Kind(kind))?, key_id, session, suffix })
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.kind.to_bytes());
        bytes[4..8].copy_from_slice(&self.key_id.to_be_bytes());
        bytes[8..].copy_from_slice(&self.iv());
        bytes
    }

    /// The nonce: session id and suffix.
    pub fn iv(&self) -> [u8; IV] {
        let mut iv = [0; IV];
        iv[..4].copy_from_slice(&self.session.to_be_bytes());
        iv[4..].copy_from_slice(&self.suffix.to_be_bytes());
        iv
    }
}

/// A CryptoFooter: the tag, and those for single receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer<'a> {
    /// The tag that everybody with the sender's key can check.
    pub tag: [u8; TAG],
    receivers: &'a [[u8; RECEIVER]],
}

impl<'a> Footer<'a> {
    /// From the front of the input.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn parse(input: &mut &'a [u8]) -> Result<Self> {
        let (tag, count) = (array(input)?, number(input)? as usize);
        let bytes = count.checked_mul(RECEIVER).ok_or(Refusal::Malformed("more receivers than bytes"))?;
        let (receivers, _) = take(input, bytes)?.as_chunks();
        Ok(Self { tag, receivers })
    }

    /// How many tags for single receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.receivers.len()
    }

    /// The tags for single receivers, with the ids of their keys.
    pub fn receivers(&self) -> impl Iterator<Item = (u32, &'a [u8; TAG])> {
        self.receivers.iter().filter_map(|entry| {
            let (id, tag) = entry.split_first_chunk()?;
            Some((u32::from_be_bytes(*id), tag.first_chunk()?))
        })
    }
}
