//! What GCM asks of its callers on every path, and how tags are compared.

use crate::Error;
use crate::text::{BLOCK, Text};
use crate::wipe;

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

/// Whether a tag is the message's, or as much of it as was agreed. All bytes are looked at, whatever the first says; then the message's is overwritten, which of a forgery is what the
/// forger wants to know.
#[inline]
pub(crate) fn is_tag(own: &mut [u8], tag: &[u8]) -> bool {
    let difference = own.iter().zip(tag).fold(0, |sum, (a, b)| sum | (a ^ b));
    let is_equal = tag.len() <= own.len() && core::hint::black_box(difference) == 0;
    wipe(own);
    is_equal
}

#[cfg(test)]
mod tests {
    use super::is_tag;

    #[test]
    fn a_tag_is_compared_whole_and_nothing_is_left_of_the_right_one() {
        let tag: [u8; 16] = core::array::from_fn(|i| i as u8 + 1);
        for given in [&tag[..], &tag[..4], &[tag[..15].to_vec(), vec![0]].concat(), &[tag.to_vec(), vec![0]].concat()] {
            let mut own = tag;
            assert_eq!(is_tag(&mut own, given), tag.starts_with(given), "{given:?}");
            assert_eq!(own, [0; 16]);
        }
    }
}
