//! `CIOCGSESSION`: opening a session.

use crate::bounce::wipe;
use crate::cipher::{Cipher, CipherKind};
use crate::hash::{Hash, HashKind};
use crate::kinds::{linux_cipher, linux_hash, linux_name};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::Session;
use bywash_client::Client;
use bywash_cryptodev_abi::linux::{CRYPTO_CIPHER_MAX_KEY_LEN, CRYPTO_HMAC_MAX_KEY_LEN, SessionOp};

/// Makes the session that is asked for.
///
/// # Errors
/// In this order: neither cipher nor hash, an unknown one, a key that is too long, that cannot be read, that does not fit, a second key for a cipher that makes tags.
pub(crate) fn open(client: &Client, program: Program<'_>, life: u32, asked: &SessionOp) -> Result<Session, Refusal> {
    if asked.cipher == 0 && asked.mac == 0 {
        return Err(Refusal::invalid("cipher and mac are both 0; ask for at least one of them"));
    }
    let cipher = match asked.cipher {
        0 => None,
        identifier => Some(linux_cipher(identifier).ok_or_else(|| unknown("cipher", identifier))?),
    };
    let hash = match asked.mac {
        0 => None,
        identifier => Some(linux_hash(identifier).ok_or_else(|| unknown("mac", identifier))?),
    };
    // A cipher that makes tags has no use for a hash; the module forgets it.
    let hash = hash.filter(|_| !cipher.is_some_and(|kind| kind.mode.is_aead()));
    if let Some(kind) = cipher.filter(|kind| kind.mode.is_aead() && asked.mackeylen > 0) {
        return Err(two_keys(program, kind, asked));
    }
    let cipher = cipher.map(|kind| open_cipher(client, program, kind, asked)).transpose()?;
    let hash = hash.map(|kind| open_hash(client, program, kind, asked)).transpose()?;
    Ok(Session::new(cipher, hash, life))
}

fn open_cipher(client: &Client, program: Program<'_>, kind: &'static CipherKind, asked: &SessionOp) -> Result<Cipher, Refusal> {
    let length = asked.keylen as usize;
    if length > CRYPTO_CIPHER_MAX_KEY_LEN {
        return Err(Refusal::invalid(format!("keylen is {length}; a cipher's key has at most {CRYPTO_CIPHER_MAX_KEY_LEN} bytes")));
    }
    let mut key = [0; CRYPTO_CIPHER_MAX_KEY_LEN];
    let opened = program.read("key", asked.key, &mut key[..length]).and_then(|()| match Cipher::open(client, kind, &key[..length]) {
        Some(opened) => opened.map_err(Refusal::from),
        None => Err(Refusal::invalid(format!("keylen is {length}: {} takes keys of {} bytes", kind.name, kind.key_lengths()))),
    });
    wipe(&mut key);
    opened
}

fn open_hash(client: &Client, program: Program<'_>, kind: &'static HashKind, asked: &SessionOp) -> Result<Hash, Refusal> {
    let length = asked.mackeylen as usize;
    if length > CRYPTO_HMAC_MAX_KEY_LEN {
        return Err(Refusal::invalid(format!("mackeylen is {length}; a hash's key has at most {CRYPTO_HMAC_MAX_KEY_LEN} bytes")));
    }
    // A digest's key is read if there is one, and not used.
    let wanted = kind.is_keyed() || asked.mackey != 0;
    let length = if wanted { length } else { 0 };
    let mut key = [0; CRYPTO_HMAC_MAX_KEY_LEN];
    let read = program.read("mackey", asked.mackey, &mut key[..length]);
    let opened = read.and_then(|()| Hash::open(client, kind, &key[..length]).map_err(Refusal::from));
    wipe(&mut key);
    opened
}

/// Why a cipher that makes tags has no second key: the module makes one key of both, which is then too long. Both are read before that shows.
fn two_keys(program: Program<'_>, kind: &CipherKind, asked: &SessionOp) -> Refusal {
    let (length, mac_length) = (asked.keylen as usize, asked.mackeylen as usize);
    let mut keys = [0; CRYPTO_HMAC_MAX_KEY_LEN];
    let read = if length > CRYPTO_CIPHER_MAX_KEY_LEN || mac_length > CRYPTO_HMAC_MAX_KEY_LEN {
        Ok(())
    } else {
        program.read("mackey", asked.mackey, &mut keys[..mac_length]).and_then(|()| program.read("key", asked.key, &mut keys[..length]))
    };
    wipe(&mut keys);
    read.err().unwrap_or_else(|| Refusal::invalid(format!("mackeylen is {mac_length}: {} has one key; give 0", kind.name)))
}

fn unknown(field: &str, identifier: u32) -> Refusal {
    Refusal::invalid(format!("{field} is {identifier} ({}), which is not computed here; choose another", linux_name(identifier)))
}
