//! FreeBSD's dialect: enciphering, hashing, and both. No request goes on where another ended.

use crate::aead::{session as aead_session, transform};
use crate::bounce::{Wiped, with_all};
use crate::cipher::{Cipher, Mode};
use crate::errno::Errno;
use crate::hash::{Digest, Hash};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::{Session, State};
use crate::table::Table;
use bywash_client::Client;
use bywash_core::Direction;
use bywash_core::secret::constant_time_eq;
use bywash_cryptodev_abi::freebsd::{COP_DECRYPT, COP_ENCRYPT, COP_F_CIPHER_FIRST, CryptAead, CryptOp};

/// Longest data or associated data in bytes.
const DATA_MAX: usize = 256 * 1024 - 4;

/// `CIOCCRYPT`.
///
/// # Errors
/// In this order: the argument cannot be read, no such session, data too long (`E2BIG`), a length, flag or `mac` that the session has no use for, data that
/// cannot be read, an operation that is none, no IV; `EBADMSG`.
pub(crate) fn crypt(table: &Table, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let asked: CryptOp = program.take::<_, { size_of::<CryptOp>() }>(argument)?;
    let session = table.get(asked.ses)?;
    let length = data_length("len", asked.len)?;
    check(&session, length, asked.flags)?;
    if session.cipher.as_ref().is_some_and(|cipher| cipher.kind.mode.is_aead()) {
        return Err(Refusal::invalid("the session makes tags; use CIOCCRYPTAEAD"));
    }
    if asked.mac != 0 && session.hash.is_none() {
        return Err(Refusal::invalid("mac is given and the session has no hash; leave it null"));
    }
    with_all(length, |data| {
        program.read("src", asked.src, data)?;
        let mut state = session.state();
        let Some(cipher) = &session.cipher else {
            let hash = session.hash.as_ref().ok_or_else(|| Refusal::invalid("the session has neither cipher nor hash"))?;
            let digest = mac(&mut state, hash, &[], data)?;
            return program.write("mac", asked.mac, &digest.bytes()[..session.lengths.mac]);
        };
        let way = direction(asked.op)?;
        let mut iv = take_iv(program, &session, cipher, asked.iv, session.lengths.nonce as u32)?;
        if length == 0 {
            return Err(Refusal::invalid("len is 0; there is nothing to encipher"));
        }
        both_ways(program, &session, &mut state, cipher, way, &mut iv, &[], data, asked.mac)?;
        program.write("dst", asked.dst, data)
    })
}

/// `CIOCCRYPTAEAD`.
///
/// # Errors
/// As [`crypt`].
pub(crate) fn aead(table: &Table, client: &Client, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let asked: CryptAead = program.take::<_, { size_of::<CryptAead>() }>(argument)?;
    let session = table.get(asked.ses)?;
    let (length, aad_length) = (data_length("len", asked.len)?, data_length("aadlen", asked.aadlen)?);
    check(&session, length, asked.flags)?;
    let tag_len = session.lengths.mac;
    let cipher = session.cipher.as_ref().filter(|_| tag_len > 0 && asked.tag != 0);
    let cipher = cipher.ok_or_else(|| Refusal::invalid("the session makes no tag, or tag is null; open one with a mac or an AEAD"))?;
    let mut aad = Wiped::zeroed(aad_length)?;
    program.read("aad", asked.aad, &mut aad)?;
    with_all(length, |data| {
        program.read("src", asked.src, data)?;
        let way = direction(asked.op)?;
        let mut iv = take_iv(program, &session, cipher, asked.iv, asked.ivlen)?;
        let mut state = session.state();
        if cipher.kind.mode.is_aead() {
            let keyed = aead_session(cipher, &mut state, client, tag_len)?;
            let mut tag = [0; 16];
            let tag = &mut tag[..tag_len];
            if way == Direction::Decrypt {
                program.read("tag", asked.tag, tag)?;
            }
            transform(&keyed, way, &iv[..session.lengths.nonce], &aad, data, tag)?;
            if way == Direction::Encrypt {
                program.write("tag", asked.tag, tag)?;
            }
        } else {
            both_ways(program, &session, &mut state, cipher, way, &mut iv, &aad, data, asked.tag)?;
        }
        program.write("dst", asked.dst, data)
    })
}

/// Enciphers and then makes the MAC over the result, as IPsec does, or checks the MAC and deciphers.
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
    mac_at: u64,
) -> Result<(), Refusal> {
    let length = session.lengths.mac;
    let Some(hash) = &session.hash else { return Ok(cipher.run(way, iv, data)?) };
    if way == Direction::Encrypt {
        cipher.run(way, iv, data)?;
        let digest = mac(state, hash, aad, data)?;
        return program.write("mac", mac_at, &digest.bytes()[..length]);
    }
    let mut given = [0; 64];
    program.read("mac", mac_at, &mut given[..length])?;
    let right = mac(state, hash, aad, data)?;
    if !constant_time_eq(&given[..length], &right.bytes()[..length]) {
        return Err(Refusal::new(Errno::EBADMSG, "the mac is not that of these data under this key"));
    }
    Ok(cipher.run(way, iv, data)?)
}

fn mac(state: &mut State, hash: &Hash, aad: &[u8], data: &[u8]) -> Result<Digest, Refusal> {
    state.message.reset()?;
    state.message.update(hash, aad)?;
    state.message.update(hash, data)?;
    Ok(state.message.finish(hash)?)
}

fn check(session: &Session, length: usize, flags: u16) -> Result<(), Refusal> {
    if let Some(cipher) = session.cipher.as_ref().filter(|cipher| !length.is_multiple_of(cipher.kind.block)) {
        let kind = cipher.kind;
        return Err(Refusal::invalid(format!("len is {length}: {} takes a multiple of {} bytes; pad the data", kind.name, kind.block)));
    }
    if flags & COP_F_CIPHER_FIRST != 0 && (session.cipher.is_none() || session.hash.is_none()) {
        return Err(Refusal::invalid("flags has CIPHER_FIRST (1), which is for sessions with a cipher and a hash; leave it out"));
    }
    Ok(())
}

fn data_length(field: &str, length: u32) -> Result<usize, Refusal> {
    let length = length as usize;
    if length > DATA_MAX {
        return Err(Refusal::new(Errno::E2BIG, format!("{field} is {length}; it is at most {DATA_MAX}")));
    }
    Ok(length)
}

/// The IV: of XTS eight bytes, the number of the data unit, and then zeros.
fn take_iv(program: Program<'_>, session: &Session, cipher: &Cipher, address: u64, length: u32) -> Result<[u8; 16], Refusal> {
    let (mut iv, expected) = ([0; 16], session.lengths.nonce);
    if length as usize != expected {
        return Err(Refusal::invalid(format!("ivlen is {length}; this session takes {expected}")));
    }
    if address == 0 && expected > 0 {
        return Err(Refusal::invalid(format!("iv is null; {} takes one with each request", cipher.kind.name)));
    }
    let given = if cipher.kind.mode == Mode::Xts { 8 } else { expected };
    program.read("iv", address, &mut iv[..given])?;
    Ok(iv)
}

fn direction(op: u16) -> Result<Direction, Refusal> {
    match op {
        COP_ENCRYPT => Ok(Direction::Encrypt),
        COP_DECRYPT => Ok(Direction::Decrypt),
        other => Err(Refusal::invalid(format!("op is {other}; it is 1 (COP_ENCRYPT) or 2 (COP_DECRYPT)"))),
    }
}
