//! CryptoTransform (DDS Security 1.1 s8.5.1.9): messages on their way out and in.

use crate::abi::{
    Boolean, Category, DATAREADER_SUBMESSAGE, DATAWRITER_SUBMESSAGE, Exception, FALSE, Handle, Handles, Octets, TRUE, Transform,
};
use crate::fault::{Fault, Outcome};
use crate::host::Block;
use crate::objects::{Matched, Protection};
use crate::plugin::{Plugin, plugin};
use crate::read::{bytes, elements};
use crate::registry::Objects;
use bywash_dds::wire::{
    Form, RECEIVER, Sealed, is_of_its_sender, is_one_submessage, prefix_key, split_message, split_payload, split_submessage,
};
use bywash_dds::{Accepted, Opener, Refusal, Sender, Specific, add_receiver, payload_len, protect, protected_len, seal_payload};
use std::sync::Arc;

pub(crate) const TABLE: Transform = Transform {
    encode_serialized_payload,
    encode_datawriter_submessage,
    encode_datareader_submessage,
    encode_rtps_message,
    decode_rtps_message,
    preprocess_secure_submsg,
    decode_datawriter_submessage,
    decode_datareader_submessage,
    decode_serialized_payload,
};

/// A protected message, and how much of its block it fills: behind it is room for tags.
struct Encoded {
    block: Block,
    len: usize,
}

impl Plugin {
    fn encode_payload(&self, writer: Handle, text: &[u8]) -> Outcome<Encoded> {
        let sender = self.registry.read().endpoint(writer, true)?.payload_sender.clone();
        let Some(sender) = sender else {
            // Nothing is asked for: the host wants a copy.
            let mut block = self.host.block(text.len())?;
            block.bytes().copy_from_slice(text);
            return Ok(Encoded { block, len: text.len() });
        };
        let len = payload_len(&sender, text.len());
        let mut block = self.host.block(len)?;
        seal_payload(&sender, text, block.bytes())?;
        Ok(Encoded { block, len })
    }

    /// A protected submessage or message without tags, with room for so many.
    fn encode(&self, sender: &Sender, form: Form, plain: &[u8], tags: usize) -> Outcome<Encoded> {
        let len = protected_len(sender, form, plain.len());
        let mut block = self.host.block(len + tags * RECEIVER)?;
        protect(sender, form, plain, &mut block.bytes()[..len])?;
        Ok(Encoded { block, len })
    }

    fn decode_message(&self, local: Handle, remote: Handle, encoded: &[u8]) -> Outcome<Block> {
        let sealed = split_message(encoded)?;
        let (opener, protection) = {
            let objects = self.registry.read();
            let pair = objects.shared(remote, local)?;
            (pair.opener.clone().ok_or(Refusal::Key(sealed.header.key_id))?, pair.protection)
        };
        expect(protection, &sealed)?;
        let untold = Refusal::Receiver("its sender has told us of no key for it");
        let tags = protection.has_origin.then(|| opener.specific().ok_or(untold)).transpose()?;
        let tag = tags.map(|tags| tags.check(&sealed)).transpose()?;
        let front = encoded.len().min(bywash_dds::wire::MESSAGE_HEADER);
        let mut block = self.host.block(front + sealed.text.len())?;
        let (header, text) = block.bytes().split_at_mut(front);
        header.copy_from_slice(&encoded[..front]);
        opener.open_once(&sealed, text)?;
        if !is_of_its_sender(header, text) {
            return Err(Refusal::Malformed("its text names another sender than its header").into());
        }
        // Before it has proved to be new it may be a recording.
        if let Some(tag) = tag {
            tag.keep();
        }
        Ok(block)
    }

    fn decode_submessage(&self, local: Handle, remote: Handle, is_writer: bool, encoded: &[u8]) -> Outcome<Block> {
        let sealed = split_submessage(encoded)?;
        let Way { opener, apart, tags } = self.way(local, remote, is_writer, &sealed)?;
        let tags = tags.as_ref().map(|tags| tags.specific().ok_or(Refusal::Receiver("it has none"))).transpose()?;
        let tag = tags.map(|tags| tags.check(&sealed)).transpose()?;
        let mut block = self.host.block(sealed.text.len())?;
        opener.open_once_among(apart.as_ref().unwrap_or_else(|| opener.accepted()), &sealed, block.bytes())?;
        // The host would take what follows for somebody else's, though the message that it is in may be protected as well.
        if !is_one_submessage(block.bytes()) {
            return Err(Refusal::Malformed("what was protected as a submessage is none, or names a sender").into());
        }
        if let Some(tag) = tag {
            tag.keep();
        }
        Ok(block)
    }

    /// What a submessage is opened with, if it is what the governance asks for and not our own.
    fn way(&self, local: Handle, remote: Handle, is_writer: bool, sealed: &Sealed<'_>) -> Outcome<Way> {
        let objects = self.registry.read();
        let matched = objects.matched_with(remote, local, is_writer)?;
        let opener = opener(&objects, matched, sealed)?.clone();
        let (protection, key) = (matched.asked.submessages, sealed.header.key_id);
        expect(protection, sealed)?;
        if matched.asked.carries_keys {
            if objects.shared(matched.participant, matched.local_participant)?.is_ours(&sealed.header) {
                return Err(Refusal::Reflected.into());
            }
            return Ok(Way { opener, apart: None, tags: None });
        }
        let participant = objects.remote(matched.participant)?;
        let mut tags = None;
        if protection.has_origin {
            // The tag may be for another of our endpoints: the sender sent it to that one, and the key tells us no more than who sent it.
            let mine = sealed.footer.receivers().find_map(|(id, _)| participant.tags_of(id, opener.material()));
            tags = Some(mine.ok_or(Refusal::Receiver("it has none"))?);
        }
        let apart = if participant.is_between(key, remote, local) { None } else { Some(matched.apart.clone()) };
        Ok(Way { opener, apart, tags })
    }

    /// Payloads may come again: a sender protects each once, and may send it often.
    fn decode_payload(&self, reader: Handle, writer: Handle, encoded: &[u8]) -> Outcome<Block> {
        let sealed = split_payload(encoded)?;
        let opener = {
            let objects = self.registry.read();
            let matched = objects.matched_with(writer, reader, true)?;
            let opener = opener(&objects, matched, &sealed)?.clone();
            expect(matched.asked.payloads, &sealed)?;
            opener
        };
        let mut block = self.host.block(sealed.text.len())?;
        opener.open(&sealed, block.bytes())?;
        Ok(block)
    }

    /// What protects submessages of an endpoint of ours, on their way to the first of its receivers, and how.
    fn submessage_sender(&self, endpoint: Handle, is_writer: bool, receivers: &[Handle]) -> Outcome<(Arc<Sender>, Protection)> {
        let objects = self.registry.read();
        let ours = objects.endpoint(endpoint, is_writer)?;
        let sender = if ours.asked.carries_keys {
            let [receiver] = receivers else { return Err(Fault::argument("Invalid argument: keys are sent to one receiver at a time")) };
            let matched = objects.matched_with(*receiver, endpoint, !is_writer)?;
            Some(objects.shared(matched.participant, matched.local_participant)?.sender(is_writer))
        } else {
            ours.sender.as_ref()
        };
        let sender = sender.ok_or_else(|| Fault::argument("Invalid argument: the governance does not protect these submessages"))?;
        Ok((sender.clone(), ours.asked.submessages))
    }

    /// What makes the tags of a receiver elsewhere, if it has any.
    fn specific(&self, receiver: Handle, is_writer: bool) -> Outcome<Option<Arc<Specific>>> {
        Ok(self.registry.read().matched(receiver, is_writer)?.specific.clone())
    }

    /// What makes the tags of a participant elsewhere.
    fn specific_of(&self, local: Handle, remote: Handle) -> Outcome<Arc<Specific>> {
        self.registry.read().shared(remote, local)?.specific.clone().ok_or_else(Fault::handle)
    }
}

/// What opens a submessage.
struct Way {
    opener: Arc<Opener>,
    /// Among which it must be new, if not among those of its key.
    apart: Option<Arc<Accepted>>,
    /// Who checks the tag that is for us, if there must be one.
    tags: Option<Arc<Opener>>,
}

/// What opens what a match has sent.
fn opener<'a>(objects: &'a Objects, matched: &'a Matched, sealed: &Sealed<'_>) -> Outcome<&'a Arc<Opener>> {
    let key = sealed.header.key_id;
    let opener = if matched.asked.carries_keys {
        objects.shared(matched.participant, matched.local_participant)?.exchange(key)
    } else {
        matched.opener(key)
    };
    Ok(opener.ok_or(Refusal::Key(key))?)
}

/// What the governance asks for has to be what came: else text in the clear could be sent where it must be encrypted.
fn expect(protection: Protection, sealed: &Sealed<'_>) -> Outcome<()> {
    let kind = sealed.header.kind;
    if protection.encrypts == Some(kind.encrypts()) { Ok(()) } else { Err(Refusal::Kind(kind as u32).into()) }
}

impl Encoded {
    /// Adds a tag, for which there is room.
    fn tag(&mut self, form: Form, specific: &Specific) -> Outcome<()> {
        let len = self.len + RECEIVER;
        let message = self.block.bytes().get_mut(..len).ok_or_else(Fault::allocation)?;
        add_receiver(form, message, specific)?;
        self.len = len;
        Ok(())
    }

    /// Leaves it to the host.
    ///
    /// # Safety
    /// `place` is the host's, for this.
    unsafe fn give(mut self, place: *mut Octets) -> Outcome<Boolean> {
        let (length, maximum) = (self.len, self.block.bytes().len());
        let (Ok(length), Ok(maximum)) = (u32::try_from(length), u32::try_from(maximum)) else {
            return Err(Fault::argument("Invalid argument: more than 4 GiB"));
        };
        // SAFETY: as the caller says.
        let Some(place) = (unsafe { place.as_mut() }) else { return Err(Fault::argument("Invalid argument: no place for the result")) };
        *place = Octets { maximum, length, buffer: self.block.into_raw() };
        Ok(TRUE)
    }
}

/// Leaves a whole block to the host.
///
/// # Safety
/// That of [`Encoded::give`].
unsafe fn give(mut block: Block, place: *mut Octets) -> Outcome<Boolean> {
    let len = block.bytes().len();
    // SAFETY: as the caller says.
    unsafe { Encoded { block, len }.give(place) }
}

/// Adds a tag to what an earlier call has made: in place, or in more room.
///
/// # Safety
/// `place` is the host's, with what we gave.
unsafe fn tag_again(plugin: &Plugin, place: *mut Octets, form: Form, specific: &Specific) -> Outcome<()> {
    // SAFETY: as the caller says.
    let place = unsafe { place.as_mut() }.filter(|place| !place.buffer.is_null() && place.length <= place.maximum);
    let Some(place) = place else { return Err(Fault::argument("Invalid argument: nothing is encoded yet")) };
    let len = place.length as usize;
    let longer = u32::try_from(len + RECEIVER).map_err(|_| Fault::argument("Invalid argument: more than 4 GiB"))?;
    if place.maximum < longer {
        // SAFETY: the block is the host's, of at least that length; nobody else has it.
        place.buffer = unsafe { plugin.host.grown(place.buffer, len, RECEIVER) }?;
        place.maximum = longer;
    }
    // SAFETY: so much room there is, all of it written before.
    let message = unsafe { core::slice::from_raw_parts_mut(place.buffer, longer as usize) };
    add_receiver(form, message, specific)?;
    place.length = longer;
    Ok(())
}

/// The receiver whose turn it is, and the place where the host counts them.
///
/// # Safety
/// `index` is null or the host's.
unsafe fn turn<'a>(receivers: &[Handle], index: *mut i32) -> Outcome<(&'a mut i32, Option<Handle>)> {
    // SAFETY: as the caller says.
    let Some(index) = (unsafe { index.as_mut() }) else { return Err(Fault::argument("Invalid argument: no index")) };
    let receiver = usize::try_from(*index).ok().and_then(|at| receivers.get(at)).copied();
    if *index == 0 || receiver.is_some() { Ok((index, receiver)) } else { Err(Fault::argument("Invalid argument: no such receiver")) }
}

unsafe extern "C" fn encode_serialized_payload(
    instance: *mut Transform,
    encoded: *mut Octets,
    _inline_qos: *mut Octets,
    plain: *const Octets,
    writer: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: the host calls us with the table that it got from us, and with pointers that hold for the call.
    unsafe {
        plugin(instance)
            .run("encode_serialized_payload", exception, FALSE, |plugin| plugin.encode_payload(writer, bytes(plain)?)?.give(encoded))
    }
}

unsafe extern "C" fn encode_datawriter_submessage(
    instance: *mut Transform,
    encoded: *mut Octets,
    plain: *const Octets,
    writer: Handle,
    readers: *const Handles,
    index: *mut i32,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance).run("encode_datawriter_submessage", exception, FALSE, |plugin| {
            let readers = elements(readers);
            let (index, reader) = turn(readers, index)?;
            if *index > 0 {
                let reader = reader.ok_or_else(Fault::handle)?;
                let specific = plugin.specific(reader, false)?.ok_or_else(Fault::handle)?;
                tag_again(plugin, encoded, Form::Submessage, &specific)?;
                *index += 1;
                return Ok(TRUE);
            }
            let (sender, protection) = plugin.submessage_sender(writer, true, readers)?;
            let tags = if protection.has_origin { readers.len() } else { 0 };
            let mut made = plugin.encode(&sender, Form::Submessage, bytes(plain)?, tags)?;
            let mut next = readers.len() as i32;
            if let (true, Some(reader)) = (protection.has_origin, reader) {
                // What carries keys has no tags: only the one receiver has its key.
                if let Some(specific) = plugin.specific(reader, false)? {
                    made.tag(Form::Submessage, &specific)?;
                    next = 1;
                }
            }
            made.give(encoded)?;
            *index = next;
            Ok(TRUE)
        })
    }
}

unsafe extern "C" fn encode_datareader_submessage(
    instance: *mut Transform,
    encoded: *mut Octets,
    plain: *const Octets,
    reader: Handle,
    writers: *const Handles,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance).run("encode_datareader_submessage", exception, FALSE, |plugin| {
            let writers = elements(writers);
            let (sender, protection) = plugin.submessage_sender(reader, false, writers)?;
            let tagged: &[Handle] = if protection.has_origin { writers } else { &[] };
            let mut made = plugin.encode(&sender, Form::Submessage, bytes(plain)?, tagged.len())?;
            for writer in tagged {
                if let Some(specific) = plugin.specific(*writer, true)? {
                    made.tag(Form::Submessage, &specific)?;
                }
            }
            made.give(encoded)
        })
    }
}

unsafe extern "C" fn encode_rtps_message(
    instance: *mut Transform,
    encoded: *mut Octets,
    plain: *const Octets,
    local: Handle,
    remotes: *const Handles,
    index: *mut i32,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance).run("encode_rtps_message", exception, FALSE, |plugin| {
            let remotes = elements(remotes);
            let (index, remote) = turn(remotes, index)?;
            if *index > 0 {
                let remote = remote.ok_or_else(Fault::handle)?;
                tag_again(plugin, encoded, Form::Message, &*plugin.specific_of(local, remote)?)?;
                *index += 1;
                return Ok(TRUE);
            }
            let (sender, protection) = {
                let objects = plugin.registry.read();
                let ours = objects.local(local)?;
                (ours.sender.clone(), ours.protection)
            };
            let sender = sender.ok_or_else(|| Fault::argument("Invalid argument: the governance does not protect messages"))?;
            let tags = if protection.has_origin { remotes.len() } else { 0 };
            let mut made = plugin.encode(&sender, Form::Message, bytes(plain)?, tags)?;
            let mut next = remotes.len() as i32;
            if let (true, Some(remote)) = (protection.has_origin, remote) {
                made.tag(Form::Message, &*plugin.specific_of(local, remote)?)?;
                next = 1;
            }
            made.give(encoded)?;
            *index = next;
            Ok(TRUE)
        })
    }
}

unsafe extern "C" fn decode_rtps_message(
    instance: *mut Transform,
    plain: *mut Octets,
    encoded: *const Octets,
    local: Handle,
    remote: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance)
            .run("decode_rtps_message", exception, FALSE, |plugin| give(plugin.decode_message(local, remote, bytes(encoded)?)?, plain))
    }
}

unsafe extern "C" fn preprocess_secure_submsg(
    instance: *mut Transform,
    writer: *mut Handle,
    reader: *mut Handle,
    category: *mut Category,
    encoded: *const Octets,
    local: Handle,
    remote: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance).run("preprocess_secure_submsg", exception, FALSE, |plugin| {
            let key = prefix_key(bytes(encoded)?)?;
            let objects = plugin.registry.read();
            // The one key that is between two participants: of ours it is known by its reader.
            let key_reader = if key == 0 && local != 0 { objects.local(local)?.key_reader } else { 0 };
            let relation = objects.remote(remote)?.relation((key, key_reader)).ok_or(Refusal::Key(key))?;
            let (Some(writer), Some(reader), Some(category)) = (writer.as_mut(), reader.as_mut(), category.as_mut()) else {
                return Err(Fault::argument("Invalid argument: no place for the result"));
            };
            (*writer, *reader, *category) = if relation.is_writer {
                (relation.remote, relation.local, DATAWRITER_SUBMESSAGE)
            } else {
                (relation.local, relation.remote, DATAREADER_SUBMESSAGE)
            };
            Ok(TRUE)
        })
    }
}

unsafe extern "C" fn decode_datawriter_submessage(
    instance: *mut Transform,
    plain: *mut Octets,
    encoded: *const Octets,
    reader: Handle,
    writer: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance).run("decode_datawriter_submessage", exception, FALSE, |plugin| {
            give(plugin.decode_submessage(reader, writer, true, bytes(encoded)?)?, plain)
        })
    }
}

unsafe extern "C" fn decode_datareader_submessage(
    instance: *mut Transform,
    plain: *mut Octets,
    encoded: *const Octets,
    writer: Handle,
    reader: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance).run("decode_datareader_submessage", exception, FALSE, |plugin| {
            give(plugin.decode_submessage(writer, reader, false, bytes(encoded)?)?, plain)
        })
    }
}

unsafe extern "C" fn decode_serialized_payload(
    instance: *mut Transform,
    plain: *mut Octets,
    encoded: *const Octets,
    _inline_qos: *const Octets,
    reader: Handle,
    writer: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `encode_serialized_payload`.
    unsafe {
        plugin(instance).run("decode_serialized_payload", exception, FALSE, |plugin| {
            give(plugin.decode_payload(reader, writer, bytes(encoded)?)?, plain)
        })
    }
}
