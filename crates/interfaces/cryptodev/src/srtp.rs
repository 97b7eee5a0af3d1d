//! SRTP through `CIOCAUTHCRYPT` (RFC 3711 s3.3): a stream cipher, then a MAC over header and ciphertext.
//!
//! A packet is read once, as a whole: what was authenticated is what is deciphered, whoever else writes to the program's memory meanwhile.

use crate::auth::{Work, check_tag_len, unmapped};
use crate::bounce::with_all;
use crate::cipher::{Cipher, Mode};
use crate::errno::Errno;
use crate::hash::{Digest, Hash};
use crate::refusal::Refusal;
use bywash_core::Direction;
use bywash_core::secret::constant_time_eq;
use bywash_cryptodev_abi::linux::CryptAuthOp;

/// How far behind the beginning of what is authenticated the enciphered part begins at most: a header's length.
const HEADER_MAX: u64 = 256;
/// Longest packet: none is longer in UDP.
const PACKET_MAX: usize = 1 << 16;

/// Enciphers in place and writes the tag, or checks the tag and deciphers.
///
/// # Errors
/// In this order: a cipher that is not SRTP's, no data, ranges that do not lie in each other, a packet or a tag that is too long, data out of reach
/// (`EINVAL`), a tag that cannot be read or written (`EFAULT`), that does not verify (`EBADMSG`).
pub(crate) fn run(work: &mut Work<'_>, cipher: &Cipher, asked: &mut CryptAuthOp) -> Result<(), Refusal> {
    let kind = cipher.kind;
    if !matches!(kind.mode, Mode::Ctr | Mode::Null) {
        return Err(Refusal::invalid(format!("{} is no cipher of SRTP, which takes ctr(aes)", kind.name)));
    }
    let header = check_ranges(asked, work.way)?;
    let longest = work.session.hash.as_ref().map_or(0, Hash::length);
    let tag_len = check_tag_len(asked, longest)?;
    if work.way == Direction::Decrypt && tag_len > asked.len as usize {
        return Err(Refusal::invalid(format!("tag_len is {tag_len}, more than the {} bytes of data", asked.len)));
    }
    with_all(asked.auth_len as usize, |packet| {
        work.program.read("auth_src", asked.auth_src, packet).map_err(unmapped)?;
        let payload = header..header + asked.len as usize;
        if let (Direction::Decrypt, Some(hash)) = (work.way, &work.session.hash) {
            let mut given = [0; 64];
            work.program.read("tag", asked.tag, &mut given[..tag_len])?;
            let right = mac(work, hash, packet)?;
            if !constant_time_eq(&given[..tag_len], &right.bytes()[..tag_len]) {
                return Err(Refusal::new(Errno::EBADMSG, "the tag is not that of these data under this key"));
            }
        }
        cipher.run(work.way, &mut work.state.iv, &mut packet[payload.clone()])?;
        work.program.write("dst", asked.dst, &packet[payload]).map_err(unmapped)?;
        match (work.way, &work.session.hash) {
            (Direction::Encrypt, Some(hash)) => {
                let tag = mac(work, hash, packet)?;
                work.program.write("tag", asked.tag, &tag.bytes()[..tag_len])
            }
            _ => Ok(()),
        }
    })
}

/// Looks at where things lie; how far behind the packet's beginning its payload does.
fn check_ranges(asked: &CryptAuthOp, way: Direction) -> Result<usize, Refusal> {
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
    if asked.auth_len as usize > PACKET_MAX {
        return Err(Refusal::invalid(format!("auth_len is {}; a packet has at most {PACKET_MAX} bytes", asked.auth_len)));
    }
    Ok(header as usize)
}

fn mac(work: &mut Work<'_>, hash: &Hash, packet: &[u8]) -> Result<Digest, Refusal> {
    work.state.message.update(hash, packet)?;
    Ok(work.state.message.finish(hash)?)
}
