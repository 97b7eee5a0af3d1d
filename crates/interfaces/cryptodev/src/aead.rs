//! GCM and CCM through `CIOCAUTHCRYPT`: the tag lies behind the text.

use crate::auth::{Work, check_auth_len, check_dst, check_tag_len, unmapped};
use crate::bounce::{Wiped, with_read};
use crate::cipher::{Cipher, Mode};
use crate::crypt::offset;
use crate::errno::Errno;
use crate::refusal::Refusal;
use crate::session::State;
use bywash_client::{Client, Session};
use bywash_core::{Data, Direction, Operation};
use bywash_cryptodev_abi::linux::CryptAuthOp;

/// Longest tag in bytes.
pub(crate) const TAG_MAX: usize = 16;
/// Longest message in bytes: its text is given away only when its tag is right, so it is held whole.
pub(crate) const MESSAGE_MAX: usize = 64 << 20;

/// Enciphers and appends the tag, or checks the tag and deciphers.
///
/// # Errors
/// In this order: associated data too long, data out of reach (`EINVAL`, as pages that cannot be mapped), associated data that cannot be read (`EFAULT`), a
/// tag of a length that the mode does not have, a message shorter than its tag, a nonce that CCM does not take; `EBADMSG`.
pub(crate) fn run(work: &mut Work<'_>, cipher: &Cipher, asked: &mut CryptAuthOp) -> Result<(), Refusal> {
    let aad_len = check_auth_len(asked)?;
    check_dst(asked)?;
    let length = asked.len as usize;
    check_message(length)?;
    let program = work.program;
    program.probe("src", asked.src, length).map_err(unmapped)?;
    let src = asked.src;
    let read = |at: usize, piece: &mut [u8]| program.read("src", offset(src, at), piece).map_err(unmapped);
    with_read(length, TAG_MAX, read, |buffer| {
        let mut aad = Wiped::zeroed(aad_len)?;
        work.program.read("auth_src", asked.auth_src, &mut aad)?;
        let tag_len = check_tag_len(asked, TAG_MAX)?;
        let session = session(cipher, work.state, work.client, tag_len)?;
        let iv = work.state.iv;
        let nonce = nonce(cipher.kind.mode, &iv)?;
        let text_len = match work.way {
            Direction::Decrypt => length.checked_sub(tag_len).ok_or_else(|| shorter_than_tag(length, tag_len))?,
            _ => length,
        };
        let (text, rest) = buffer.split_at_mut(text_len);
        transform(&session, work.way, nonce, &aad, text, &mut rest[..tag_len])?;
        let written = if work.way == Direction::Decrypt { text_len } else { text_len + tag_len };
        work.program.write("dst", asked.dst, &buffer[..written]).map_err(unmapped)?;
        asked.len = written as u32;
        asked.tag = asked.dst.wrapping_add(text_len as u64);
        Ok(())
    })
}

/// The session at the client for tags of this length.
pub(crate) fn session(cipher: &Cipher, state: &mut State, client: &Client, tag_len: usize) -> Result<Session, Refusal> {
    let full = cipher.keyed().ok_or_else(|| Refusal::invalid("the cipher that changes nothing makes no tag"))?;
    if tag_len == TAG_MAX {
        return Ok(full.clone());
    }
    if let Some((_, session)) = state.truncated.iter().find(|(length, _)| *length == tag_len) {
        return Ok(session.clone());
    }
    let session = client.session(full.params().clone().with_tag_len(tag_len)?)?;
    state.truncated.push((tag_len, session.clone()));
    Ok(session)
}

/// Enciphers or deciphers in place, and writes or checks the tag.
pub(crate) fn transform(
    session: &Session,
    direction: Direction,
    iv: &[u8],
    aad: &[u8],
    text: &mut [u8],
    tag: &mut [u8],
) -> Result<(), Refusal> {
    let data = Data::InPlace(text);
    session.run(&mut Operation { direction, iv, aad, data, tag })?;
    Ok(())
}

/// Refuses a message that is too long to be held.
pub(crate) fn check_message(length: usize) -> Result<(), Refusal> {
    if length > MESSAGE_MAX {
        let why = format!("len is {length}: a message with a tag has at most {MESSAGE_MAX} bytes here; send it as several");
        return Err(Refusal::new(Errno::ENOMEM, why));
    }
    Ok(())
}

fn shorter_than_tag(length: usize, tag_len: usize) -> Refusal {
    Refusal::invalid(format!("len is {length}, less than the tag of {tag_len} bytes; len counts the tag when deciphering"))
}

/// The nonce in what the program gave: of GCM all twelve bytes; of CCM what its first byte, the length of the counter less one, leaves of sixteen
/// (RFC 3610 s2.3).
fn nonce(mode: Mode, iv: &[u8; 16]) -> Result<&[u8], Refusal> {
    match (mode, iv[0]) {
        (Mode::Ccm, width @ 1..=7) => Ok(&iv[1..15 - usize::from(width)]),
        (Mode::Ccm, width) => Err(Refusal::invalid(format!(
            "iv begins with {width}: that of ccm(aes) has 16 bytes, first 14 less the length of the nonce (1 to 7), then the nonce, then zeros"
        ))),
        _ => Ok(&iv[..12]),
    }
}
