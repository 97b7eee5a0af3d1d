//! SRTP through `CIOCAUTHCRYPT` (RFC 3711 s3.3): a stream cipher, then a MAC over header and ciphertext.

use crate::auth::{Work, check_tag_len, unmapped};
use crate::bounce::with_piece;
use crate::cipher::Cipher;
use crate::crypt::offset;
use crate::errno::Errno;
use crate::hash::Hash;
use crate::refusal::Refusal;
use bywash_core::Direction;
use bywash_core::secret::constant_time_eq;
use bywash_cryptodev_abi::linux::CryptAuthOp;

/// How far behind the beginning of what is authenticated the enciphered part begins at most: a header's length.
const HEADER_MAX: u64 = 256;

/// Enciphers in place and writes the tag, or checks the tag and deciphers.
///
/// # Errors
/// In this order: a cipher with padding or tags of its own, no data, ranges that do not lie in each other, data out of reach (`EINVAL`), a tag that is too
/// long, that cannot be read or written (`EFAULT`), that does not verify (`EBADMSG`).
pub(crate) fn run(work: &mut Work<'_>, cipher: &Cipher, asked: &mut CryptAuthOp) -> Result<(), Refusal> {
    let kind = cipher.kind;
    if !kind.mode.is_stream() || kind.mode.is_aead() {
        return Err(Refusal::invalid(format!("{} is no stream cipher; SRTP takes ctr(aes)", kind.name)));
    }
    check_ranges(asked, work.way)?;
    let longest = work.session.hash.as_ref().map_or(0, Hash::length);
    let tag_len = check_tag_len(asked, longest)?;
    match (work.way, &work.session.hash) {
        (Direction::Decrypt, Some(hash)) => {
            if tag_len > asked.len as usize {
                return Err(Refusal::invalid(format!("tag_len is {tag_len}, more than the {} bytes of data", asked.len)));
            }
            let mut given = [0; 64];
            work.program.read("tag", asked.tag, &mut given[..tag_len])?;
            let right = mac(work, hash, asked)?;
            if !constant_time_eq(&given[..tag_len], &right.bytes()[..tag_len]) {
                return Err(Refusal::new(Errno::EBADMSG, "the tag is not that of these data under this key"));
            }
            encipher(work, cipher, asked)
        }
        (_, hash) => {
            encipher(work, cipher, asked)?;
            let Some(hash) = hash else { return Ok(()) };
            let tag = mac(work, hash, asked)?;
            work.program.write("tag", asked.tag, &tag.bytes()[..tag_len])
        }
    }
}

fn check_ranges(asked: &CryptAuthOp, way: Direction) -> Result<(), Refusal> {
    if asked.dst == 0 || asked.auth_src == 0 {
        return Err(Refusal::invalid("dst or auth_src is null; SRTP takes the packet and, in it, its payload"));
    }
    let result = u64::from(asked.len) + if way == Direction::Encrypt { u64::from(asked.tag_len) } else { 0 };
    if result == 0 || asked.auth_len == 0 {
        return Err(Refusal::invalid("len or auth_len is 0; SRTP takes a packet with a header"));
    }
    let header = asked.src.checked_sub(asked.auth_src).filter(|header| *header <= HEADER_MAX);
    let Some(header) = header else {
        let why = format!("src is not 0 to {HEADER_MAX} bytes behind auth_src; both lie in one packet");
        return Err(Refusal::invalid(why));
    };
    if header + u64::from(asked.len) > u64::from(asked.auth_len) {
        let why = format!("the payload, {} bytes from byte {header} on, ends behind the {} bytes of auth_len", asked.len, asked.auth_len);
        return Err(Refusal::invalid(why));
    }
    Ok(())
}

fn encipher(work: &mut Work<'_>, cipher: &Cipher, asked: &CryptAuthOp) -> Result<(), Refusal> {
    let length = asked.len as usize;
    with_piece(length, |buffer| {
        for at in (0..length).step_by(buffer.len().max(1)) {
            let now = buffer.len().min(length - at);
            let text = &mut buffer[..now];
            work.program.read("src", offset(asked.src, at), text).map_err(unmapped)?;
            cipher.run(work.way, &mut work.state.iv, text)?;
            work.program.write("dst", offset(asked.dst, at), text).map_err(unmapped)?;
        }
        Ok(())
    })
}

fn mac(work: &mut Work<'_>, hash: &Hash, asked: &CryptAuthOp) -> Result<crate::hash::Digest, Refusal> {
    let length = asked.auth_len as usize;
    with_piece(length, |buffer| {
        for at in (0..length).step_by(buffer.len().max(1)) {
            let now = buffer.len().min(length - at);
            work.program.read("auth_src", offset(asked.auth_src, at), &mut buffer[..now]).map_err(unmapped)?;
            work.state.message.update(hash, &buffer[..now])?;
        }
        Ok(work.state.message.finish(hash)?)
    })
}
