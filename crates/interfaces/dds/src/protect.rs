//! Protecting payloads, submessages and RTPS messages (s9.5.3.3.4): what is written around a text, into room that the caller brings.

use crate::keyed::TAG;
use crate::opener::Specific;
use crate::refusal::{Refusal, Result};
use crate::sender::Sender;
use crate::wire::{
    Form, HEADER, INFO_SRC, MESSAGE_HEADER, RECEIVER, SEC_BODY, SUBMESSAGE_HEADER, Submessage, put_header, split_message, split_submessage,
};

/// Bytes of the length before an encrypted text, and of the number of receivers.
const COUNT: usize = 4;
/// Bytes of a footer's submessage without receivers.
const POSTFIX: usize = SUBMESSAGE_HEADER + TAG + COUNT;
/// Bytes of the submessage that begins a protected message's text.
const SOURCE: usize = 24;

/// How long a payload of so many bytes is when it is protected.
pub fn payload_len(sender: &Sender, text: usize) -> usize {
    HEADER + if sender.material().kind.encrypts() { COUNT } else { 0 } + text + TAG + COUNT
}

/// Protects a payload, into room of [`payload_len`].
///
/// # Errors
/// [`Refusal::Unprotectable`] for other room, [`Refusal::Random`], [`Refusal::Engine`].
pub fn seal_payload(sender: &Sender, text: &[u8], output: &mut [u8]) -> Result<()> {
    let length = u32::try_from(text.len()).map_err(|_| Refusal::Unprotectable("a payload of more than 4 GiB"))?;
    let (header, keyed) = sender.next(text.len())?;
    let mut room = Room(output);
    room.put(&header.to_bytes())?;
    let tag = if header.kind.encrypts() {
        room.put(&length.to_be_bytes())?;
        keyed.seal(&header.iv(), &[], text, room.take(text.len())?)?
    } else {
        room.put(text)?;
        keyed.mac(&header.iv(), text)?
    };
    room.put(&tag)?;
    room.put(&[0; COUNT])?;
    room.end()
}

/// How long a submessage of so many bytes, or the message with its header, is when it is protected, without tags of single receivers.
pub fn protected_len(sender: &Sender, form: Form, plain: usize) -> usize {
    let text = match form {
        Form::Submessage => plain,
        Form::Message => (plain + SOURCE).saturating_sub(MESSAGE_HEADER),
    };
    let body = if sender.material().kind.encrypts() { SUBMESSAGE_HEADER + COUNT + text.next_multiple_of(4) } else { text };
    form.front() + SUBMESSAGE_HEADER + HEADER + body + POSTFIX
}

/// Protects a submessage, or all submessages of a message, into room of [`protected_len`].
///
/// # Errors
/// [`Refusal::Unprotectable`] for a message without a header, for what gets longer than a submessage may be, and for other room;
/// [`Refusal::Random`], [`Refusal::Engine`].
pub fn protect(sender: &Sender, form: Form, plain: &[u8], output: &mut [u8]) -> Result<()> {
    let (front, body) = plain.split_at_checked(form.front()).ok_or(Refusal::Unprotectable("an RTPS message without a header"))?;
    let (source, count) = source(front)?;
    let source = &source[..count];
    let length = source.len() + body.len();
    let encrypts = sender.material().kind.encrypts();
    // Before a number is used up: what is too long for a submessage, and what nobody could read.
    let body_header = put_header(SEC_BODY, COUNT + length.next_multiple_of(4));
    if !encrypts && !is_readable(form, body) {
        return Err(Refusal::Unprotectable("text that is not made of whole submessages"));
    }
    let body_header = if encrypts { Some(body_header?) } else { None };
    let (header, keyed) = sender.next(length)?;
    let mut room = Room(output);
    room.put(front)?;
    room.put(&put_header(form.prefix(), HEADER)?)?;
    room.put(&header.to_bytes())?;
    let tag = match body_header {
        Some(body_header) => {
            room.put(&body_header)?;
            room.put(&(length as u32).to_be_bytes())?;
            let text = room.take(length)?;
            let tag = if source.is_empty() {
                keyed.seal(&header.iv(), &[], body, text)?
            } else {
                let (first, rest) = text.split_at_mut(source.len());
                first.copy_from_slice(source);
                rest.copy_from_slice(body);
                keyed.seal_in_place(&header.iv(), &[], text)?
            };
            room.put(&[0; 4][..length.next_multiple_of(4) - length])?;
            tag
        }
        None => {
            let text = room.take(length)?;
            let (first, rest) = text.split_at_mut(source.len());
            first.copy_from_slice(source);
            rest.copy_from_slice(body);
            keyed.mac(&header.iv(), text)?
        }
    };
    room.put(&put_header(form.postfix(), TAG + COUNT)?)?;
    room.put(&tag)?;
    room.put(&[0; COUNT])?;
    room.end()
}

/// Adds a receiver's tag to a protected submessage or message, to which the caller has added [`RECEIVER`] bytes.
///
/// # Errors
/// [`Refusal::Malformed`] for what [`protect`] has not made, [`Refusal::Unprotectable`] for more receivers than a footer may have, [`Refusal::Engine`].
pub fn add_receiver(form: Form, message: &mut [u8], specific: &Specific) -> Result<()> {
    let end = message.len().checked_sub(RECEIVER).ok_or(Refusal::Malformed("no message"))?;
    let (whole, entry) = message.split_at_mut(end);
    let sealed = if form == Form::Submessage { split_submessage(whole)? } else { split_message(whole)? };
    let (header, tag, count) = (sealed.header, sealed.footer.tag, sealed.footer.receiver_count());
    let content = TAG + COUNT + count * RECEIVER;
    let footer = end.checked_sub(SUBMESSAGE_HEADER + content).ok_or(Refusal::Malformed("no footer"))?;
    let new_header = put_header(form.postfix(), content + RECEIVER)?;
    let is_there = Submessage::parse(&mut &whole[footer..]).is_ok_and(|there| there.id == form.postfix() && there.content.len() == content);
    if !is_there {
        return Err(Refusal::Malformed("its footer does not end it"));
    }
    let receiver_tag = specific.tag(&header, &tag)?;
    entry[..4].copy_from_slice(&specific.id().to_be_bytes());
    entry[4..].copy_from_slice(&receiver_tag);
    whole[footer..footer + SUBMESSAGE_HEADER].copy_from_slice(&new_header);
    let count_at = footer + SUBMESSAGE_HEADER + TAG;
    whole[count_at..count_at + COUNT].copy_from_slice(&(count as u32 + 1).to_be_bytes());
    Ok(())
}

/// What begins a message's text: who sent it, so that the header in front, which is not protected, can be held against it.
fn source(front: &[u8]) -> Result<([u8; SOURCE], usize)> {
    let mut source = [0; SOURCE];
    if front.is_empty() {
        return Ok((source, 0));
    }
    // Four bytes that mean nothing; then version, vendor and participant as in the header, behind its magic number.
    source[..SUBMESSAGE_HEADER].copy_from_slice(&put_header(INFO_SRC, SOURCE - SUBMESSAGE_HEADER)?);
    source[8..].copy_from_slice(&front[4..]);
    Ok((source, SOURCE))
}

/// Whether whoever gets text in the clear finds its end: it is parsed as submessages.
fn is_readable(form: Form, mut body: &[u8]) -> bool {
    while !body.is_empty() {
        if Submessage::parse(&mut body).is_err() {
            return false;
        }
        if form == Form::Submessage {
            return body.is_empty();
        }
    }
    form == Form::Message
}

/// Room that is filled from its beginning.
struct Room<'a>(&'a mut [u8]);

#[cold]
fn little_room() -> Refusal {
    Refusal::Unprotectable("room of the wrong length")
}

impl<'a> Room<'a> {
    fn take(&mut self, count: usize) -> Result<&'a mut [u8]> {
        let (taken, rest) = core::mem::take(&mut self.0).split_at_mut_checked(count).ok_or_else(little_room)?;
        self.0 = rest;
        Ok(taken)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.take(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(little_room()) }
    }
}
