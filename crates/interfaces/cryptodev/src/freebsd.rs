//! FreeBSD's dialect: opening, closing and finding.

use crate::bounce::wipe;
use crate::cipher::{Cipher, CipherKind, Mode};
use crate::errno::Errno;
use crate::hash::{Hash, HashKind};
use crate::kinds::{freebsd_cipher, freebsd_hash};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::{Lengths, Session};
use crate::table::Table;
use bywash_client::Client;
use bywash_core::Kind;
use bywash_cryptodev_abi::freebsd::{ALGORITHMS, CRYPTO_FLAG_HARDWARE, CRYPTO_FLAG_SOFTWARE, CryptFindOp, Session2Op, SessionOp};

/// The one driver there is: which engine computes a request is decided for each.
const DRIVER: u32 = 1;
const DRIVER_NAME: &[u8] = b"bywash0";
/// Longest key of a cipher or hash in bytes.
const KEY_MAX: usize = 512;

/// `CIOCGSESSION`.
pub(crate) fn open(table: &Table, client: &Client, program: Program<'_>, life: u32, argument: u64) -> Result<(), Refusal> {
    let mut asked: SessionOp = program.take::<_, { size_of::<SessionOp>() }>(argument)?;
    let SessionOp { cipher, mac, keylen, key, mackeylen, mackey, .. } = asked;
    let wider = Session2Op { cipher, mac, keylen, key, mackeylen: mackeylen as i32, mackey, ..Session2Op::default() };
    asked.ses = table.add(session(client, program, life, &wider)?)?;
    program.give::<_, { size_of::<SessionOp>() }>(argument, &asked).inspect_err(|_| table.remove(asked.ses))
}

/// `CIOCGSESSION2`.
pub(crate) fn open2(table: &Table, client: &Client, program: Program<'_>, life: u32, argument: u64) -> Result<(), Refusal> {
    let mut asked: Session2Op = program.take::<_, { size_of::<Session2Op>() }>(argument)?;
    let driver = asked.crid & !(CRYPTO_FLAG_HARDWARE | CRYPTO_FLAG_SOFTWARE);
    if driver > DRIVER {
        return Err(Refusal::invalid(format!("crid names driver {driver}; there is driver {DRIVER}, bywash0, which CIOCFINDDEV finds")));
    }
    asked.ses = table.add(session(client, program, life, &asked)?)?;
    asked.crid = DRIVER;
    program.give::<_, { size_of::<Session2Op>() }>(argument, &asked).inspect_err(|_| table.remove(asked.ses))
}

/// `CIOCFSESSION`: here an unknown session is an error.
pub(crate) fn close(table: &Table, program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let number = program.take_u32(argument)?;
    table.get(number)?;
    table.remove(number);
    Ok(())
}

/// `CIOCFINDDEV`.
pub(crate) fn find(program: Program<'_>, argument: u64) -> Result<(), Refusal> {
    let mut asked: CryptFindOp = program.take::<_, { size_of::<CryptFindOp>() }>(argument)?;
    let name = asked.name.split(|byte| *byte == 0).next().unwrap_or_default();
    match asked.crid {
        -1 if name == DRIVER_NAME => asked.crid = DRIVER as i32,
        -1 => return Err(Refusal::new(Errno::ENOENT, "name is no driver's; there is bywash0")),
        number if number == DRIVER as i32 => {
            asked.name = [0; 32];
            asked.name[..DRIVER_NAME.len()].copy_from_slice(DRIVER_NAME);
        }
        number => return Err(Refusal::new(Errno::ENOENT, format!("crid is {number}, no driver's; there is {DRIVER}"))),
    }
    program.give::<_, { size_of::<CryptFindOp>() }>(argument, &asked)
}

fn session(client: &Client, program: Program<'_>, life: u32, asked: &Session2Op) -> Result<Session, Refusal> {
    if asked.cipher == 0 && asked.mac == 0 {
        return Err(Refusal::invalid("cipher and mac are both 0; ask for at least one of them"));
    }
    let cipher = match asked.cipher {
        0 => None,
        identifier => Some(freebsd_cipher(identifier).ok_or_else(|| unknown("cipher", identifier))?),
    };
    let is_aead = cipher.is_some_and(|kind| kind.mode.is_aead());
    let hash = match asked.mac {
        0 => None,
        // The MAC that older programs name beside GCM or CCM is the AEAD's own.
        _ if is_aead => None,
        identifier => Some(freebsd_hash(identifier).ok_or_else(|| unknown("mac", identifier))?),
    };
    let lengths = lengths(cipher, hash, asked)?;
    let cipher = cipher.map(|kind| open_cipher(client, program, kind, asked)).transpose()?;
    let hash = hash.map(|kind| open_hash(client, program, kind, asked)).transpose()?;
    Ok(Session::new(cipher, hash, life).with_lengths(lengths))
}

/// What the program says of nonce and tag, or what is usual.
fn lengths(cipher: Option<&CipherKind>, hash: Option<&HashKind>, asked: &Session2Op) -> Result<Lengths, Refusal> {
    let usual = cipher.map_or(0, |kind| match kind.mode {
        mode if mode.is_aead() => 12,
        // The number of the data unit; eight zeros follow.
        Mode::Xts => 8,
        _ => kind.iv,
    });
    let nonce = if asked.ivlen == 0 { usual } else { usize::try_from(asked.ivlen).unwrap_or(usize::MAX) };
    let allowed = match cipher.and_then(|kind| kind.algorithms.first()).map(|algorithm| algorithm.kind()) {
        Some(Kind::Aead { iv: (7, 13), .. }) => 7..=13,
        _ => usual..=usual,
    };
    if !allowed.contains(&nonce) {
        return Err(Refusal::invalid(format!("ivlen is {}; this cipher takes {} to {}", asked.ivlen, allowed.start(), allowed.end())));
    }
    let longest = match (cipher, hash) {
        (_, Some(hash)) => hash.algorithm.output_len(0),
        (Some(kind), None) if kind.mode.is_aead() => 16,
        _ => 0,
    };
    let mac = if asked.maclen == 0 { longest } else { usize::try_from(asked.maclen).unwrap_or(usize::MAX) };
    if mac > longest {
        return Err(Refusal::invalid(format!("maclen is {}; this session makes at most {longest} bytes", asked.maclen)));
    }
    Ok(Lengths { nonce, mac })
}

fn open_cipher(client: &Client, program: Program<'_>, kind: &'static CipherKind, asked: &Session2Op) -> Result<Cipher, Refusal> {
    with_key(program, "key", asked.key, asked.keylen as usize, |key| {
        // The cipher that changes nothing takes any key.
        let key = if kind.algorithms.is_empty() { &[] } else { key };
        match Cipher::open(client, kind, key) {
            Some(opened) => Ok(opened?),
            None => Err(Refusal::invalid(format!("keylen is {}: {} takes keys of {} bytes", key.len(), kind.name, kind.key_lengths()))),
        }
    })
}

fn open_hash(client: &Client, program: Program<'_>, kind: &'static HashKind, asked: &Session2Op) -> Result<Hash, Refusal> {
    let length = usize::try_from(asked.mackeylen).unwrap_or(usize::MAX);
    let length = if kind.is_keyed() { length } else { 0 };
    with_key(program, "mackey", asked.mackey, length, |key| Ok(Hash::open(client, kind, key)?))
}

fn with_key<T>(
    program: Program<'_>,
    what: &str,
    address: u64,
    length: usize,
    work: impl FnOnce(&[u8]) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    if length > KEY_MAX {
        return Err(Refusal::invalid(format!("{what}len is {length}; a key has at most {KEY_MAX} bytes")));
    }
    let mut key = [0; KEY_MAX];
    let done = program.read(what, address, &mut key[..length]).and_then(|()| work(&key[..length]));
    wipe(&mut key);
    done
}

fn unknown(field: &str, identifier: u32) -> Refusal {
    let name = ALGORITHMS.iter().find(|(number, _)| *number == identifier).map_or("no identifier of /dev/crypto", |(_, name)| name);
    Refusal::invalid(format!("{field} is {identifier} ({name}), which is not computed here; choose another"))
}
