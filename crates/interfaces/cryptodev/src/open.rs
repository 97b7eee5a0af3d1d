//! `CIOCGSESSION`: opening a session.

use crate::bounce::wipe;
use crate::cipher::{Cipher, CipherKind};
use crate::kinds::{linux_cipher, linux_name};
use crate::memory::Program;
use crate::refusal::Refusal;
use crate::session::Session;
use bywash_client::Client;
use bywash_cryptodev_abi::linux::{CRYPTO_CIPHER_MAX_KEY_LEN, SessionOp};

/// Makes the session that is asked for.
///
/// # Errors
/// In this order: neither cipher nor hash, an unknown one, a key that is too long, that cannot be read, that does not fit.
pub(crate) fn open(client: &Client, program: Program<'_>, life: u32, asked: &SessionOp) -> Result<Session, Refusal> {
    if asked.cipher == 0 && asked.mac == 0 {
        return Err(Refusal::invalid("cipher and mac are both 0; ask for at least one of them"));
    }
    let cipher = match asked.cipher {
        0 => None,
        identifier => Some(linux_cipher(identifier).ok_or_else(|| unknown("cipher", identifier))?),
    };
    if asked.mac != 0 {
        return Err(unknown("mac", asked.mac));
    }
    let cipher = cipher.map(|kind| open_cipher(client, program, kind, asked)).transpose()?;
    Ok(Session::new(cipher, life))
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

fn unknown(field: &str, identifier: u32) -> Refusal {
    Refusal::invalid(format!("{field} is {identifier} ({}), which is not computed here; choose another", linux_name(identifier)))
}
