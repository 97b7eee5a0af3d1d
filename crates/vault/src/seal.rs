//! Encryption at rest: AES-256-GCM under a key that scrypt makes of the owner's passphrase.

use crate::folder::{Encoded, read_own, where_damaged, write_whole};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use bywash_core::{Error, Result, SecretBytes};
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// scrypt's cost: 2^17 blocks of 1 KiB are 128 MiB and some tenths of a second, once for each start of a broker.
const LOG_N: u8 = 17;
const R: u32 = 8;
const P: u32 = 1;
/// What the check seals.
const CHECK: &[u8] = b"bywash vault 1";

/// What the check binds: who lacks the passphrase cannot take [`Header::all_sealed`] away.
fn bound(all_sealed: bool) -> &'static [u8] {
    if all_sealed { b"all sealed" } else { b"" }
}

/// The file beside the keys that says how the passphrase becomes a key.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    kdf: String,
    log_n: u8,
    r: u32,
    p: u32,
    salt: Encoded,
    /// Opens only under the right passphrase.
    check: Sealed,
    /// No key of the folder is in plain any more: one that is was put there by somebody else. Left out of files from before that was so.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    all_sealed: bool,
}

/// Something encrypted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    nonce: Encoded,
    /// Ciphertext and tag.
    text: Encoded,
}

/// The key under which a folder's keys are encrypted.
pub struct Seal {
    key: LessSafeKey,
    header: Header,
}

fn path(folder: &Path) -> PathBuf {
    folder.join("seal.json")
}

impl Seal {
    /// Whether this folder's keys are encrypted.
    pub fn is_in(folder: &Path) -> bool {
        path(folder).exists()
    }

    /// The seal of a folder, made anew where there is none.
    ///
    /// # Errors
    /// [`Error::Config`], naming the file: damaged, or another passphrase than the folder's.
    pub fn of(folder: &Path, passphrase: &[u8]) -> Result<Self> {
        let fail = |reason: String| Error::Config { place: path(folder).display().to_string(), reason };
        if passphrase.is_empty() {
            return Err(fail("the passphrase is empty".into()));
        }
        if !Self::is_in(folder) {
            return Self::new(folder, passphrase);
        }
        let text = read_own(&path(folder), 0o022, "others may write it; `chmod 600` it")?;
        let header: Header = serde_json::from_slice(&text).map_err(|error| fail(where_damaged(&error)))?;
        // A header that asks for more than we ever write would only eat memory.
        if header.kdf != "scrypt" || header.log_n > LOG_N || header.r > R || header.p > P {
            return Err(fail("asks for another key derivation than this release does".into()));
        }
        let key = derive(passphrase, &header.salt.0, header.log_n, header.r, header.p).ok_or_else(|| fail("is damaged".into()))?;
        let fits = |all_sealed| open(&key, &header.check, bound(all_sealed)).is_some_and(|check| *check == *CHECK);
        if !fits(header.all_sealed) {
            let changed = fits(!header.all_sealed);
            let why = if changed { "was changed by someone without the passphrase" } else { "the passphrase is not this folder's" };
            return Err(fail(why.into()));
        }
        Ok(Self { key, header })
    }

    fn new(folder: &Path, passphrase: &[u8]) -> Result<Self> {
        let fail = |reason: &str| Error::Config { place: path(folder).display().to_string(), reason: reason.into() };
        let mut salt = vec![0; 32];
        random(&mut salt).ok_or_else(|| fail("no random numbers"))?;
        let key = derive(passphrase, &salt, LOG_N, R, P).ok_or_else(|| fail("no memory to derive a key"))?;
        let check = seal(&key, CHECK, bound(false)).ok_or_else(|| fail("no random numbers"))?;
        let header = Header { kdf: "scrypt".into(), log_n: LOG_N, r: R, p: P, salt: Encoded(salt.into()), check, all_sealed: false };
        let made = Self { key, header };
        made.write(folder)?;
        Ok(made)
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let fail = |error: serde_json::Error| Error::Config { place: path(folder).display().to_string(), reason: error.to_string() };
        write_whole(&path(folder), &serde_json::to_vec_pretty(&self.header).map_err(fail)?)
    }

    /// Whether the folder has no key in plain.
    pub fn is_of_all(&self) -> bool {
        self.header.all_sealed
    }

    /// Notes that the folder has no key in plain, and is to have none.
    ///
    /// # Errors
    /// [`Error::Config`] if it cannot be written.
    pub fn set_of_all(&mut self, folder: &Path) -> Result<()> {
        if self.header.all_sealed {
            return Ok(());
        }
        let no_random = || Error::Config { place: path(folder).display().to_string(), reason: "no random numbers".into() };
        self.header.check = seal(&self.key, CHECK, bound(true)).ok_or_else(no_random)?;
        self.header.all_sealed = true;
        self.write(folder)
    }

    /// Encrypts, binding `context` to it.
    pub fn seal(&self, plain: &[u8], context: &[u8]) -> Option<Sealed> {
        seal(&self.key, plain, context)
    }

    /// Decrypts what was sealed with this context; none if it is not that.
    pub fn open(&self, sealed: &Sealed, context: &[u8]) -> Option<SecretBytes> {
        open(&self.key, sealed, context)
    }
}

fn seal(key: &LessSafeKey, plain: &[u8], context: &[u8]) -> Option<Sealed> {
    let mut nonce = [0; NONCE_LEN];
    random(&mut nonce)?;
    // With room for the tag: a vector that grows leaves a copy of the key behind.
    let mut text = Zeroizing::new(Vec::with_capacity(plain.len() + AES_256_GCM.tag_len()));
    text.extend_from_slice(plain);
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut *text).ok()?;
    Some(Sealed { nonce: Encoded(nonce.to_vec().into()), text: Encoded(text) })
}

fn open(key: &LessSafeKey, sealed: &Sealed, context: &[u8]) -> Option<SecretBytes> {
    let nonce: [u8; NONCE_LEN] = sealed.nonce.0[..].try_into().ok()?;
    let mut text = Zeroizing::new(sealed.text.0.to_vec());
    let plain = key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut text).ok()?;
    Some(SecretBytes::from(&*plain))
}

fn derive(passphrase: &[u8], salt: &[u8], log_n: u8, r: u32, p: u32) -> Option<LessSafeKey> {
    let params = scrypt::Params::new(log_n, r, p).ok()?;
    let mut key = Zeroizing::new([0; 32]);
    scrypt::scrypt(passphrase, salt, &params, &mut *key).ok()?;
    Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &*key).ok()?))
}

/// Salts and nonces come from the kernel and not from the library's generator, which two copies of a running machine would both go on with: one nonce must
/// never serve two texts.
fn random(mut into: &mut [u8]) -> Option<()> {
    while !into.is_empty() {
        let got = retry_on_intr(|| getrandom(&mut *into, GetRandomFlags::empty())).ok()?;
        into = &mut into[got..];
    }
    Some(())
}
