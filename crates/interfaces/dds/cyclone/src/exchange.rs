//! CryptoKeyExchange (DDS Security 1.1 s8.5.1.8): what participants tell each other of their keys.

use crate::abi::{BinaryProperty, Boolean, Exception, Exchange, FALSE, Handle, Octets, Sequence, TRUE, Token, Tokens, code};
use crate::fault::{Fault, Outcome};
use crate::host::Host;
use crate::objects::{ALL_ENDPOINTS, Asked, Matched, Protection, Relation};
use crate::plugin::{Plugin, plugin};
use crate::read::{elements, text};
use bywash_dds::KeyMaterial;
use core::{mem, ptr};
use zeroize::Zeroize;

/// The class of a token, and the name of its one property (s9.5.2.1).
const CLASS: &str = "DDS:Crypto:AES_GCM_GMAC";
const PROPERTY: &str = "dds.cryp.keymat";
/// A writer tells of one key for submessages and one for payloads.
pub(crate) const TOKENS_MAX: usize = 2;

pub(crate) const TABLE: Exchange = Exchange {
    create_local_participant_crypto_tokens,
    set_remote_participant_crypto_tokens,
    create_local_datawriter_crypto_tokens,
    set_remote_datawriter_crypto_tokens,
    create_local_datareader_crypto_tokens,
    set_remote_datareader_crypto_tokens,
    return_crypto_tokens,
};

impl Plugin {
    fn hear_of_participant(&self, local: Handle, remote: Handle, told: &[Option<KeyMaterial>]) -> Outcome<()> {
        let mut objects = self.registry.write();
        let participant = objects.remote_mut(remote)?;
        let pair = participant.pair(local)?;
        let [material] = told else { return if told.is_empty() { Ok(()) } else { Err(invalid("more than one key of a participant")) } };
        check(pair.protection, material)?;
        let tags = pair.tags();
        participant.forget_tags(local, tags);
        let opener = material.clone().map(|material| participant.opener(local, material));
        opener.iter().for_each(|opener| participant.expect_tags(local, opener));
        let before = mem::replace(&mut participant.pair_mut(local)?.opener, opener);
        drop(objects);
        // Wiped when nobody waits for it.
        drop(before);
        Ok(())
    }

    fn hear_of_endpoint(&self, local: Handle, remote: Handle, told: &[Option<KeyMaterial>], is_writer: bool) -> Outcome<()> {
        let mut objects = self.registry.write();
        let matched = objects.matched_with(remote, local, is_writer)?;
        if matched.asked.carries_keys {
            // Its key is the pair's, from the handshake; nobody changes it by a token.
            return Err(invalid("a key for an endpoint that carries keys"));
        }
        let most = if is_writer { TOKENS_MAX } else { 1 };
        if told.len() > most {
            return Err(invalid("more keys than an endpoint has"));
        }
        if let Some(first) = told.first() {
            check(asked(matched), first)?;
        }
        let participant = matched.participant;
        // Before those go that they replace: what had come under the same keys is known to them.
        let keeper = objects.remote_mut(participant)?;
        let openers: Vec<_> = told.iter().flatten().map(|material| keeper.opener(ALL_ENDPOINTS, material.clone())).collect();
        objects.forget(remote);
        let keeper = objects.remote_mut(participant)?;
        if let Some(first) = openers.first() {
            keeper.relate((first.material().sender_id, 0), Relation { remote, local, is_writer });
            keeper.expect_tags(remote, first);
        }
        let before = mem::replace(&mut objects.matched_mut(remote)?.openers, openers);
        drop(objects);
        // Wiped when nobody waits for it.
        drop(before);
        Ok(())
    }
}

/// The keys that tokens tell of.
///
/// # Safety
/// Null or the host's tokens, which hold for the call.
unsafe fn heard(protection: Protection, tokens: *const Tokens) -> Outcome<Vec<Option<KeyMaterial>>> {
    // SAFETY: as the caller says.
    let tokens = unsafe { elements(tokens) };
    // Where nothing is protected the host may come without a token.
    if tokens.is_empty() && protection.encrypts.is_some() {
        return Err(invalid("there is none"));
    }
    // SAFETY: likewise.
    let parsed = |token: &Token| KeyMaterial::parse(unsafe { key_bytes(token) }?).map_err(|refusal| invalid(refusal.to_string()));
    if tokens.len() > TOKENS_MAX {
        return Err(invalid("more than two"));
    }
    // Room for all at once: growing would leave keys behind.
    let mut heard = Vec::with_capacity(TOKENS_MAX);
    for token in tokens {
        heard.push(parsed(token)?);
    }
    Ok(heard)
}

/// What an endpoint elsewhere must tell a key for: readers send submessages, writers payloads too.
fn asked(matched: &Matched) -> Protection {
    let Asked { submessages, payloads, .. } = matched.asked;
    if matched.is_writer { submessages.or(payloads) } else { submessages }
}

fn invalid(why: impl std::fmt::Display) -> Fault {
    Fault::new(code::TOKEN, format!("Invalid Crypto token: {why}"))
}

/// No key where there must be one is refused: the other side's governance protects less.
fn check(protection: Protection, material: &Option<KeyMaterial>) -> Outcome<()> {
    match (material, protection.encrypts) {
        (None, Some(_)) => Err(invalid("it says that nothing is protected, but the governance says otherwise")),
        _ => Ok(()),
    }
}

/// The bytes of a token's one property.
///
/// # Safety
/// A token of the host, which holds for the call.
unsafe fn key_bytes(token: &Token) -> Outcome<&[u8]> {
    // SAFETY: as the caller says.
    unsafe {
        let is_ours = text(token.class_id) == Some(CLASS);
        match elements(&token.binary_properties) {
            [property] if is_ours && text(property.name) == Some(PROPERTY) => Ok(elements(&property.value)),
            _ => Err(invalid("it is not of this plug-in's class")),
        }
    }
}

/// Writes tokens where the host wants them.
///
/// # Safety
/// `tokens` is null or the host's place for them.
unsafe fn put(host: &Host, tokens: *mut Tokens, contents: &[&[u8]]) -> Outcome<Boolean> {
    // SAFETY: as the caller says.
    let Some(tokens) = (unsafe { tokens.as_mut() }) else { return Err(Fault::argument("Invalid argument: no place for tokens")) };
    *tokens = Sequence { maximum: 0, length: 0, buffer: ptr::null_mut() };
    if contents.is_empty() {
        return Ok(TRUE);
    }
    let buffer = host.zeroed(size_of::<Token>() * contents.len())?.into_raw().cast::<Token>();
    let count = contents.len() as u32;
    *tokens = Sequence { maximum: count, length: count, buffer };
    for (at, content) in contents.iter().enumerate() {
        // SAFETY: the block has room for so many, and zeros are a token of nothing.
        if let Err(fault) = unsafe { fill(host, &mut *buffer.add(at), content) } {
            // SAFETY: what was filled so far is of the host's memory.
            unsafe { free(host, tokens) };
            return Err(fault);
        }
    }
    Ok(TRUE)
}

/// Fills a token of zeros, so that what there is of it can be freed whenever this fails.
fn fill(host: &Host, token: &mut Token, content: &[u8]) -> Outcome<()> {
    token.class_id = host.text(CLASS)?;
    let property = host.zeroed(size_of::<BinaryProperty>())?.into_raw().cast::<BinaryProperty>();
    token.binary_properties = Sequence { maximum: 1, length: 1, buffer: property };
    // SAFETY: the block is of that size, and zeros are a property of nothing.
    let property = unsafe { &mut *property };
    property.name = host.text(PROPERTY)?;
    let mut bytes = host.block(content.len())?;
    bytes.bytes().copy_from_slice(content);
    let length = content.len() as u32;
    property.value = Octets { maximum: length, length, buffer: bytes.into_raw() };
    property.propagate = TRUE;
    Ok(())
}

/// Frees tokens, and wipes the keys in them.
///
/// # Safety
/// They are null, or whole and of the host's memory, and nobody else frees them.
unsafe fn free(host: &Host, tokens: &mut Tokens) {
    // SAFETY: as the caller says, for each part.
    unsafe {
        for token in elements_mut(tokens) {
            for property in elements_mut(&mut token.binary_properties) {
                elements_mut(&mut property.value).zeroize();
                host.free(property.value.buffer);
                host.free(property.name);
            }
            for property in elements_mut(&mut token.properties) {
                host.free(property.name);
                host.free(property.value);
            }
            host.free(token.binary_properties.buffer);
            host.free(token.properties.buffer);
            host.free(token.class_id);
        }
        host.free(tokens.buffer);
    }
    *tokens = Sequence { maximum: 0, length: 0, buffer: ptr::null_mut() };
}

/// # Safety
/// That of [`elements`], for writing.
unsafe fn elements_mut<T>(sequence: &mut Sequence<T>) -> &mut [T] {
    if sequence.buffer.is_null() || sequence.length == 0 {
        return &mut [];
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts_mut(sequence.buffer, sequence.length as usize) }
}

unsafe extern "C" fn create_local_participant_crypto_tokens(
    instance: *mut Exchange,
    tokens: *mut Tokens,
    local: Handle,
    remote: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: the host calls us with the table that it got from us, and with pointers that hold for the call.
    unsafe {
        plugin(instance).run("create_local_participant_crypto_tokens", exception, FALSE, |plugin| {
            let objects = plugin.registry.read();
            match &objects.shared(remote, local)?.told {
                Some(material) => put(&plugin.host, tokens, &[&material.to_bytes()]),
                None => put(&plugin.host, tokens, &[&KeyMaterial::none()]),
            }
        })
    }
}

unsafe extern "C" fn set_remote_participant_crypto_tokens(
    instance: *mut Exchange,
    local: Handle,
    remote: Handle,
    tokens: *const Tokens,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `create_local_participant_crypto_tokens`.
    unsafe {
        plugin(instance).run("set_remote_participant_crypto_tokens", exception, FALSE, |plugin| {
            let protection = plugin.registry.read().shared(remote, local)?.protection;
            let heard = heard(protection, tokens)?;
            plugin.hear_of_participant(local, remote, &heard).map(|()| TRUE)
        })
    }
}

/// # Safety
/// That of [`create_local_participant_crypto_tokens`].
unsafe fn create(
    is_writer: bool,
    instance: *mut Exchange,
    tokens: *mut Tokens,
    local: Handle,
    remote: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as the caller says.
    unsafe {
        plugin(instance).run("create_local_endpoint_crypto_tokens", exception, FALSE, |plugin| {
            if local == 0 || remote == 0 {
                return Err(Fault::argument("Invalid argument: a handle is 0"));
            }
            let objects = plugin.registry.read();
            // Our writer's keys are for a reader elsewhere.
            let matched = objects.matched_with(remote, local, !is_writer)?;
            if !is_writer && matched.told.is_empty() && matched.asked.payloads.encrypts.is_some() {
                // A reader has no key where payloads alone are protected. Fast DDS waits for a token that says so.
                return put(&plugin.host, tokens, &[&KeyMaterial::none()]);
            }
            let bytes: Vec<_> = matched.told.iter().map(KeyMaterial::to_bytes).collect();
            put(&plugin.host, tokens, &bytes.iter().map(|bytes| bytes.as_slice()).collect::<Vec<_>>())
        })
    }
}

/// # Safety
/// That of [`create_local_participant_crypto_tokens`].
unsafe fn set(
    is_writer: bool,
    instance: *mut Exchange,
    local: Handle,
    remote: Handle,
    tokens: *const Tokens,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as the caller says.
    unsafe {
        plugin(instance).run("set_remote_endpoint_crypto_tokens", exception, FALSE, |plugin| {
            let protection = asked(plugin.registry.read().matched_with(remote, local, is_writer)?);
            let heard = heard(protection, tokens)?;
            plugin.hear_of_endpoint(local, remote, &heard, is_writer).map(|()| TRUE)
        })
    }
}

unsafe extern "C" fn create_local_datawriter_crypto_tokens(
    instance: *mut Exchange,
    tokens: *mut Tokens,
    writer: Handle,
    reader: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `create_local_participant_crypto_tokens`.
    unsafe { create(true, instance, tokens, writer, reader, exception) }
}

unsafe extern "C" fn set_remote_datawriter_crypto_tokens(
    instance: *mut Exchange,
    reader: Handle,
    writer: Handle,
    tokens: *const Tokens,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `create_local_participant_crypto_tokens`.
    unsafe { set(true, instance, reader, writer, tokens, exception) }
}

unsafe extern "C" fn create_local_datareader_crypto_tokens(
    instance: *mut Exchange,
    tokens: *mut Tokens,
    reader: Handle,
    writer: Handle,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `create_local_participant_crypto_tokens`.
    unsafe { create(false, instance, tokens, reader, writer, exception) }
}

unsafe extern "C" fn set_remote_datareader_crypto_tokens(
    instance: *mut Exchange,
    writer: Handle,
    reader: Handle,
    tokens: *const Tokens,
    exception: *mut Exception,
) -> Boolean {
    // SAFETY: as in `create_local_participant_crypto_tokens`.
    unsafe { set(false, instance, writer, reader, tokens, exception) }
}

unsafe extern "C" fn return_crypto_tokens(instance: *mut Exchange, tokens: *mut Tokens, exception: *mut Exception) -> Boolean {
    // SAFETY: as in `create_local_participant_crypto_tokens`; these are tokens that we made, or copies by the host.
    unsafe {
        plugin(instance).run("return_crypto_tokens", exception, FALSE, |plugin| {
            let Some(tokens) = tokens.as_mut() else { return Err(Fault::argument("Invalid argument: no tokens")) };
            free(&plugin.host, tokens);
            Ok(TRUE)
        })
    }
}
