//! The parts of a protected payload, submessage or RTPS message (s9.5.3.3.4).

use super::submessage::{INFO_SRC, SEC_BODY, SEC_POSTFIX, SEC_PREFIX, SRTPS_POSTFIX, SRTPS_PREFIX, Submessage};
use super::{Footer, Header, number, take};
use crate::refusal::{Refusal, Result};

/// Bytes of an RTPS message before its first submessage.
pub const MESSAGE_HEADER: usize = 20;

/// What is protected as submessages: one of them, or all of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One submessage.
    Submessage,
    /// A whole RTPS message; its header stays in front, in the clear.
    Message,
}

impl Form {
    pub(crate) fn prefix(self) -> u8 {
        if self == Self::Submessage { SEC_PREFIX } else { SRTPS_PREFIX }
    }

    pub(crate) fn postfix(self) -> u8 {
        if self == Self::Submessage { SEC_POSTFIX } else { SRTPS_POSTFIX }
    }

    /// Bytes in front that are not protected.
    pub(crate) fn front(self) -> usize {
        if self == Self::Submessage { 0 } else { MESSAGE_HEADER }
    }
}

/// A protected text between its header and its footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// How it is protected.
    pub header: Header,
    /// The text: encrypted, or in the clear.
    pub text: &'a [u8],
    /// Its tags.
    pub footer: Footer<'a>,
}

/// The parts of a protected payload.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Kind`].
pub fn split_payload(mut input: &[u8]) -> Result<Sealed<'_>> {
    let header = Header::parse(&mut input)?;
    let length = if header.kind.encrypts() {
        number(&mut input)? as usize
    } else {
        // Nothing but the footer tells where text in the clear ends, and a payload's footer has no receivers.
        input.len().checked_sub(FOOTER).ok_or(Refusal::Malformed("a payload without a footer"))?
    };
    let (text, footer) = (take(&mut input, length)?, Footer::parse(&mut input)?);
    match footer.receiver_count() {
        0 => Ok(Sealed { header, text, footer }),
        _ => Err(Refusal::Malformed("a payload with tags for single receivers")),
    }
}

/// Bytes of a footer without receivers.
pub(crate) const FOOTER: usize = 20;

/// The parts of a protected submessage.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Kind`].
pub fn split_submessage(mut input: &[u8]) -> Result<Sealed<'_>> {
    let header = header(&mut input, Form::Submessage)?;
    let text = if header.kind.encrypts() {
        body(&mut input)?
    } else {
        let from = input;
        Submessage::parse(&mut input)?;
        &from[..from.len() - input.len()]
    };
    Ok(Sealed { header, text, footer: footer(&mut input, Form::Submessage)? })
}

/// The parts of a protected RTPS message.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Kind`].
pub fn split_message(mut input: &[u8]) -> Result<Sealed<'_>> {
    take(&mut input, MESSAGE_HEADER)?;
    let header = header(&mut input, Form::Message)?;
    let text = if header.kind.encrypts() { body(&mut input)? } else { clear(&mut input)? };
    Ok(Sealed { header, text, footer: footer(&mut input, Form::Message)? })
}

/// Whether a message's text was sent by whom the header in front names, from its first submessage to its last. Whose key opens it goes by that header, and whoever receives the text goes by what
/// is in it: who has a key of his own could else send in the name of anybody (s9.5.3.3.4). Cyclone DDS 0.10 has turned the header's words into its machine's order before it has it decoded.
pub fn is_of_its_sender(message: &[u8], mut text: &[u8]) -> bool {
    let Some((named, _)) = message.get(PREFIX..MESSAGE_HEADER).and_then(<[u8]>::split_first_chunk::<PREFIX_LEN>) else { return false };
    let mut turned = *named;
    turned.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    let is_sender = |source: Submessage<'_>| {
        source.content.get(PREFIX..).is_some_and(|prefix| prefix.starts_with(named) || prefix.starts_with(&turned))
    };
    let mut is_first = true;
    while let Ok(submessage) = Submessage::parse(&mut text) {
        if (is_first || submessage.id == INFO_SRC) && !(submessage.id == INFO_SRC && is_sender(submessage)) {
            return false;
        }
        is_first = false;
        if submessage.id == SEC_PREFIX && !skip_protected(&submessage, &mut text) {
            return false;
        }
        if submessage.goes_on_to_the_end() {
            break;
        }
    }
    !is_first
}

/// Takes what belongs to a protected submessage's prefix off the front, and tells whether it is what any reader takes for that. Cyclone DDS 0.10 reads the lengths of all three in the order of the
/// first, and none as nothing: what could be read in two ways could hide a sender from one of both.
fn skip_protected(prefix: &Submessage<'_>, text: &mut &[u8]) -> bool {
    let (Ok(body), Ok(postfix)) = (Submessage::parse(text), Submessage::parse(text)) else { return false };
    let is_plain = |part: &Submessage<'_>| part.is_little == prefix.is_little && !part.content.is_empty();
    [prefix, &body, &postfix].into_iter().all(is_plain) && body.id != INFO_SRC && postfix.id == SEC_POSTFIX
}

/// Whether what was protected as a submessage is one, and none that says who has sent the others, or that is to be opened itself. Whoever receives it goes on through all that is in it, and the message
/// that it stands in was looked through before it was opened.
pub fn is_one_submessage(mut text: &[u8]) -> bool {
    let Ok(submessage) = Submessage::parse(&mut text) else { return false };
    let is_ordinary = !matches!(submessage.id, INFO_SRC | SEC_BODY | SEC_PREFIX | SEC_POSTFIX | SRTPS_PREFIX | SRTPS_POSTFIX);
    is_ordinary && (text.is_empty() || submessage.goes_on_to_the_end())
}

/// Where the participant stands in a message's header, behind the magic number, version and vendor; in the content of an [`INFO_SRC`] it is as far behind something unused and the same.
const PREFIX: usize = 8;
/// Bytes of a participant's name.
const PREFIX_LEN: usize = MESSAGE_HEADER - PREFIX;

/// The id of the key that a protected submessage was made with.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Kind`].
pub fn prefix_key(mut input: &[u8]) -> Result<u32> {
    Ok(header(&mut input, Form::Submessage)?.key_id)
}

fn header(input: &mut &[u8], form: Form) -> Result<Header> {
    Header::parse(&mut Submessage::expect(input, form.prefix(), "no crypto header in front")?)
}

fn footer<'a>(input: &mut &'a [u8], form: Form) -> Result<Footer<'a>> {
    Footer::parse(&mut Submessage::expect(input, form.postfix(), "no crypto footer behind")?)
}

fn body<'a>(input: &mut &'a [u8]) -> Result<&'a [u8]> {
    let mut content = Submessage::expect(input, SEC_BODY, "no encrypted body")?;
    let length = number(&mut content)? as usize;
    take(&mut content, length)
}

/// The submessages up to the footer, which stays in the input.
fn clear<'a>(input: &mut &'a [u8]) -> Result<&'a [u8]> {
    let from = *input;
    Submessage::expect(input, INFO_SRC, "a signed message without its sender in front")?;
    loop {
        let here = *input;
        if Submessage::parse(input)?.id == SRTPS_POSTFIX {
            *input = here;
            return Ok(&from[..from.len() - here.len()]);
        }
    }
}
