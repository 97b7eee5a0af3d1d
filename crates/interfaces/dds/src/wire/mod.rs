//! The wire format of DDS Security 1.1 s7.3.6 and s9.5: what is sent around a protected text. Parsers are total: whatever the bytes, they end with parts of
//! the input or with a [`Refusal`], and nothing in them is trusted but bytes that are there.

mod crypto;
mod parts;
mod submessage;

pub use crypto::{Footer, HEADER, Header, RECEIVER};
pub use parts::{
    Form, MESSAGE_HEADER, Sealed, is_of_its_sender, is_one_submessage, prefix_key, split_message, split_payload, split_submessage,
};
pub(crate) use submessage::{ACKNACK, NACK_FRAG, put_header};
pub use submessage::{INFO_SRC, SEC_BODY, SEC_POSTFIX, SEC_PREFIX, SRTPS_POSTFIX, SRTPS_PREFIX, SUBMESSAGE_HEADER, Submessage};

use crate::refusal::{Refusal, Result};

/// Out of the way of what is well-formed.
#[cold]
fn too_short() -> Refusal {
    Refusal::Malformed("it ends too early")
}

/// The next bytes of the input.
#[inline]
pub(crate) fn take<'a>(input: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(count).ok_or_else(too_short)?;
    *input = rest;
    Ok(taken)
}

/// The next `N` bytes of the input.
#[inline]
pub(crate) fn array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, rest) = input.split_first_chunk().ok_or_else(too_short)?;
    *input = rest;
    Ok(*taken)
}

/// The next big-endian number of the input.
#[inline]
pub(crate) fn number(input: &mut &[u8]) -> Result<u32> {
    array(input).map(u32::from_be_bytes)
}
