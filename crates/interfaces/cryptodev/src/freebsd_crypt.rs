//! FreeBSD's dialect: enciphering, hashing, and both. No request goes on where another ended.

use crate::aead::{session as aead_session, transform};
use crate::bounce::{Wiped, with_read};
use crate::cipher::{Cipher, Mode};
use crate::crypt::offset;
use crate::errno::Errno;
use crate::hash::{Digest, Hash};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::{Lengths, Session, State};
use crate::table::Table;
use bywash_client::Client;
use bywash_core::Direction;
use bywash_core::secret::constant_time_eq;
use bywash_cryptodev_abi::freebsd::{COP_DECRYPT, COP_ENCRYPT, COP_F_CIPHER_FIRST, CryptAead, CryptOp};

/// Longest data or associated data in bytes.
const DATA_MAX: usize = 256 * 1024 - 4;

/// `CIOCCRYPT`.
///
/// Without `iv` the IV lies in front of the data, and of what is at `dst` that many bytes are left as they are. Without `dst` or `mac` the one or the other is not written.
///
/// # Errors
/// In this order: the argument cannot be read, no such session, data too long (`E2BIG`), a length, flag or `mac` that the session has no use for, data that
/// cannot be read, an operation that is none, an IV that is missing or has no use; `EBADMSG`.
pub(crate) fn crypt(table: &Table, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let asked: CryptOp = program.take::<_, { size_of::<CryptOp>() }>(argument)?;
    let session = table.get(asked.ses)?;
    let lengths = lengths_of(&session)?;
    let length = data_length("len", asked.len)?;
    check(&session, length, asked.op, asked.flags)?;
    if session.cipher.as_ref().is_some_and(|cipher| cipher.kind.mode.is_aead()) {
        return Err(Refusal::invalid("the session makes tags; use CIOCCRYPTAEAD"));
    }
    if asked.mac != 0 && session.hash.is_none() {
        return Err(Refusal::invalid("mac is given and the session has no hash; leave it null"));
    }
    with_read(length, 0, reader(program, "src", asked.src), |data| {
        let way = match asked.op {
            0 if session.cipher.is_none() => Direction::Encrypt,
            op => direction(op)?,
        };
        let nonce = lengths.nonce;
        let (in_front, text) = data.split_at_mut(if asked.iv == 0 { nonce.min(length) } else { 0 });
        if session.hash.is_none() && text.is_empty() {
            return Err(Refusal::invalid(format!("len is {length}, of which {} are the IV; there is nothing to encipher", in_front.len())));
        }
        let mut iv = [0; 16];
        match asked.iv {
            0 if in_front.len() < nonce => {
                return Err(Refusal::invalid(format!("iv is null, so it lies in front of the data: {nonce} bytes, but len is {length}")));
            }
            0 => iv[..nonce].copy_from_slice(in_front),
            _ if nonce == 0 => return Err(no_use()),
            address => program.read("iv", address, &mut iv[..nonce])?,
        }
        let mut state = session.state();
        let made = match (&session.cipher, &session.hash) {
            (Some(cipher), _) => both_ways(program, &session, &mut state, cipher, way, &mut iv, &[], text, (asked.mac, lengths.mac))?,
            (None, Some(hash)) => Some(mac(&mut state, hash, &[], text)?),
            (None, None) => return Err(Refusal::invalid("the session has neither cipher nor hash")),
        };
        if asked.dst != 0 {
            program.write("dst", offset(asked.dst, in_front.len()), text)?;
        }
        match made {
            Some(digest) if asked.mac != 0 => program.write("mac", asked.mac, &digest.bytes()[..lengths.mac]),
            _ => Ok(()),
        }
    })
}

/// `CIOCCRYPTAEAD`.
///
/// # Errors
/// As [`crypt`].
pub(crate) fn aead(table: &Table, client: &Client, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let asked: CryptAead = program.take::<_, { size_of::<CryptAead>() }>(argument)?;
    let session = table.get(asked.ses)?;
    let lengths = lengths_of(&session)?;
    let (length, aad_length) = (data_length("len", asked.len)?, data_length("aadlen", asked.aadlen)?);
    check(&session, length, asked.op, asked.flags)?;
    let tag_len = lengths.mac;
    let cipher = session.cipher.as_ref().filter(|_| tag_len > 0 && asked.tag != 0);
    let cipher = cipher.ok_or_else(|| Refusal::invalid("the session makes no tag, or tag is null; open one with a mac or an AEAD"))?;
    let aad = Wiped::read(aad_length, 0, reader(program, "aad", asked.aad))?;
    with_read(length, 0, reader(program, "src", asked.src), |data| {
        let way = direction(asked.op)?;
        let mut iv = take_iv(program, lengths.nonce, cipher, &asked)?;
        let mut state = session.state();
        let mut tag = [0; 64];
        let tag = &mut tag[..tag_len];
        if cipher.kind.mode.is_aead() {
            let keyed = aead_session(cipher, &mut state, client, tag_len)?;
            if way == Direction::Decrypt {
                program.read("tag", asked.tag, tag)?;
            }
            transform(&keyed, way, &iv[..lengths.nonce], &aad, data, tag)?;
        } else if let Some(digest) = both_ways(program, &session, &mut state, cipher, way, &mut iv, &aad, data, (asked.tag, tag_len))? {
            tag.copy_from_slice(&digest.bytes()[..tag_len]);
        }
        if asked.dst != 0 {
            program.write("dst", asked.dst, data)?;
        }
        if way == Direction::Decrypt { Ok(()) } else { program.write("tag", asked.tag, tag) }
    })
}

/// Enciphers and then makes the MAC over the result, as IPsec does, or checks the MAC and deciphers. What is made is to be written behind the data.
#[allow(clippy::too_many_arguments, reason = "one way of two requests, of which each has these")]
fn both_ways(
    program: Program<'_>,
    session: &Session,
    state: &mut State,
    cipher: &Cipher,
    way: Direction,
    iv: &mut [u8; 16],
    aad: &[u8],
    data: &mut [u8],
    (mac_at, length): (u64, usize),
) -> Result<Option<Digest>, Refusal> {
    let Some(hash) = &session.hash else {
        cipher.run(way, iv, data)?;
        return Ok(None);
    };
    if way == Direction::Encrypt {
        cipher.run(way, iv, data)?;
        return mac(state, hash, aad, data).map(Some);
    }
    let mut given = [0; 64];
    program.read("mac", mac_at, &mut given[..length])?;
    let right = mac(state, hash, aad, data)?;
    if !constant_time_eq(&given[..length], &right.bytes()[..length]) {
        return Err(Refusal::new(Errno::EBADMSG, "the mac is not that of these data under this key"));
    }
    cipher.run(way, iv, data)?;
    Ok(None)
}

fn mac(state: &mut State, hash: &Hash, aad: &[u8], data: &[u8]) -> Result<Digest, Refusal> {
    state.message.reset()?;
    state.message.update(hash, aad)?;
    state.message.update(hash, data)?;
    Ok(state.message.finish(hash)?)
}

/// A session that was opened in Linux's dialect has none: its tags would be checked to no length, and its texts begin with one and the same IV.
fn lengths_of(session: &Session) -> Result<Lengths, Refusal> {
    session.lengths.ok_or_else(|| Refusal::invalid("the session was opened by Linux's CIOCGSESSION; go on in that dialect"))
}

fn check(session: &Session, length: usize, op: u16, flags: u16) -> Result<(), Refusal> {
    if let Some(cipher) = session.cipher.as_ref().filter(|cipher| !length.is_multiple_of(cipher.kind.block)) {
        let kind = cipher.kind;
        return Err(Refusal::invalid(format!("len is {length}: {} takes a multiple of {} bytes; pad the data", kind.name, kind.block)));
    }
    if flags & COP_F_CIPHER_FIRST != 0 && op != COP_ENCRYPT {
        return Err(Refusal::invalid("flags has CIPHER_FIRST (1), which is for enciphering (op 1); leave it out"));
    }
    Ok(())
}

/// Reads pieces of what lies at an address.
fn reader<'p>(program: Program<'p>, what: &'static str, address: u64) -> impl FnMut(usize, &mut [u8]) -> Result<(), Refusal> + 'p {
    move |at, piece| program.read(what, offset(address, at), piece)
}

fn data_length(field: &str, length: u32) -> Result<usize, Refusal> {
    let length = length as usize;
    if length > DATA_MAX {
        return Err(Refusal::new(Errno::E2BIG, format!("{field} is {length}; it is at most {DATA_MAX}")));
    }
    Ok(length)
}

/// The IV that comes apart from the data; of XTS 16 bytes may be given, of which eight count.
fn take_iv(program: Program<'_>, expected: usize, cipher: &Cipher, asked: &CryptAead) -> Result<[u8; 16], Refusal> {
    let mut iv = [0; 16];
    if asked.iv == 0 {
        return Err(Refusal::invalid(format!("iv is null; {} takes one with each request", cipher.kind.name)));
    }
    if expected == 0 {
        return Err(no_use());
    }
    let length = if cipher.kind.mode == Mode::Xts && asked.ivlen == 16 { 8 } else { asked.ivlen };
    if length as usize != expected {
        return Err(Refusal::invalid(format!("ivlen is {length}; this session takes {expected}")));
    }
    program.read("iv", asked.iv, &mut iv[..expected])?;
    Ok(iv)
}

fn no_use() -> Refusal {
    Refusal::invalid("iv is given and the session has no use for one; leave it null")
}

fn direction(op: u16) -> Result<Direction, Refusal> {
    match op {
        COP_ENCRYPT => Ok(Direction::Encrypt),
        COP_DECRYPT => Ok(Direction::Decrypt),
        other => Err(Refusal::invalid(format!("op is {other}; it is 1 (COP_ENCRYPT) or 2 (COP_DECRYPT)"))),
    }
}
