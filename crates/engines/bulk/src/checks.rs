//! What GCM asks of its callers on every path, and how tags are compared.

use crate::Error;
use crate::text::{BLOCK, Text};

/// Text under one IV: 2^32 - 2 blocks (SP 800-38D s5.2.1.1).
pub(crate) const TEXT_MAX: u64 = (1 << 36) - 32;
/// Associated data, and IVs.
pub(crate) const AAD_MAX: u64 = (1 << 61) - 1;

pub(crate) fn check(iv: &[u8], aad: &[u8], text: &Text<'_>, tag: &[u8]) -> Result<(), Error> {
    check_iv(iv)?;
    if tag.is_empty() || tag.len() > BLOCK {
        return Err(Error::TagLength(tag.len()));
    }
    if text.len() as u64 > TEXT_MAX {
        return Err(Error::TextLength(text.len() as u64));
    }
    if aad.len() as u64 > AAD_MAX { Err(Error::AadLength(aad.len() as u64)) } else { Ok(()) }
}

#[inline]
pub(crate) fn check_iv(iv: &[u8]) -> Result<(), Error> {
    if iv.is_empty() || iv.len() as u64 > AAD_MAX { Err(Error::IvLength(iv.len())) } else { Ok(()) }
}

/// The length of a message's associated data with a further piece.
#[inline]
pub(crate) fn aad_with(aad_len: u64, text_len: u64, piece: &[u8]) -> Result<u64, Error> {
    if text_len > 0 {
        return Err(Error::AadAfterText);
    }
    let len = aad_len.saturating_add(piece.len() as u64);
    if len > AAD_MAX { Err(Error::AadLength(len)) } else { Ok(len) }
}

/// The length of a message's text with a further piece.
#[inline]
pub(crate) fn text_with(text_len: u64, piece: &Text<'_>) -> Result<u64, Error> {
    let len = text_len.saturating_add(piece.len() as u64);
    if len > TEXT_MAX { Err(Error::TextLength(len)) } else { Ok(len) }
}

/// Whether two tags are the same. All bytes are looked at, whatever the first says.
pub(crate) fn are_equal(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && core::hint::black_box(difference) == 0
}
