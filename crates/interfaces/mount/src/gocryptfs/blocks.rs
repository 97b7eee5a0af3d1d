//! The ciphers of a volume's contents, one block or value at a time: `nonce || ciphertext || tag`, or for AES-SIV `nonce || tag || ciphertext`, with the block's number
//! and the file's identity as associated data.

use aes_siv::siv::Aes256Siv;
use bywash_client::{Client, Session};
use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, SecretBytes, SessionParams};
use bywash_files::nonce::random;
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use std::io;

/// Bytes of a file's identity.
pub(super) const ID_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const NONCE_BYTES_MAX: usize = 24;

/// A cipher of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// AES-256-GCM with nonces of 16 bytes: gocryptfs's default.
    Gcm,
    /// XChaCha20-Poly1305.
    XChaCha,
    /// AES-SIV with two AES-256 keys (RFC 5297).
    Siv,
}

impl Kind {
    /// What HKDF is told for its key.
    pub(super) fn purpose(self) -> &'static str {
        match self {
            Self::Gcm => "AES-GCM file content encryption",
            Self::XChaCha => "XChaCha20-Poly1305 file content encryption",
            Self::Siv => "AES-SIV file content encryption",
        }
    }

    /// As people know it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gcm => "aes-256-gcm",
            Self::XChaCha => "xchacha20-poly1305",
            Self::Siv => "aes-256-siv",
        }
    }

    pub(super) fn key_len(self) -> usize {
        if self == Self::Siv { 64 } else { 32 }
    }

    fn nonce_len(self) -> usize {
        if self == Self::XChaCha { NONCE_BYTES_MAX } else { 16 }
    }
}

/// A cipher with its key. Shared by threads.
pub(super) struct BlockCipher {
    keyed: Keyed,
    nonce_len: usize,
}

enum Keyed {
    Gcm(Session),
    XChaCha(Box<XChaCha20Poly1305>),
    /// The cipher is keyed for each block, since it changes while it runs.
    Siv(SecretBytes),
}

impl BlockCipher {
    pub(super) fn new(client: &Client, kind: Kind, key: &SecretBytes) -> Result<Self, Error> {
        Self::with_nonce_len(client, kind, key, kind.nonce_len())
    }

    /// With nonces of another length, which GCM alone takes.
    pub(super) fn with_nonce_len(client: &Client, kind: Kind, key: &SecretBytes, nonce_len: usize) -> Result<Self, Error> {
        let keyed = match kind {
            Kind::Gcm => Keyed::Gcm(client.session(SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric(key.clone()))?)?),
            Kind::XChaCha => Keyed::XChaCha(Box::new(XChaCha20Poly1305::new_from_slice(key).map_err(|_| wrong_key(key))?)),
            Kind::Siv if key.len() == kind.key_len() => Keyed::Siv(key.clone()),
            Kind::Siv => return Err(wrong_key(key)),
        };
        Ok(Self { keyed, nonce_len })
    }

    /// What a sealed block is longer than its text.
    pub(super) fn overhead(&self) -> usize {
        self.nonce_len + TAG_BYTES
    }

    /// Seals a text into `sealed`, which is as much longer as [`overhead`](Self::overhead). `file` is none for what belongs to no file.
    pub(super) fn seal(&self, number: u64, file: Option<&[u8; ID_BYTES]>, text: &[u8], sealed: &mut [u8]) -> io::Result<()> {
        debug_assert_eq!(sealed.len(), text.len() + self.overhead());
        let (nonce, rest) = sealed.split_at_mut(self.nonce_len);
        random(nonce).map_err(io::Error::other)?;
        let about = About::new(number, file);
        match &self.keyed {
            Keyed::Gcm(session) => {
                let (output, tag) = rest.split_at_mut(text.len());
                let data = Data::Copy { input: text, output };
                let mut operation = Operation { direction: Direction::Encrypt, iv: nonce, aad: about.bytes(), data, tag };
                session.run(&mut operation).map(|_| ()).map_err(io::Error::other)
            }
            Keyed::XChaCha(cipher) => {
                let (output, tag) = rest.split_at_mut(text.len());
                output.copy_from_slice(text);
                let made = cipher.encrypt_inout_detached((&*nonce).try_into().map_err(io::Error::other)?, about.bytes(), output.into());
                tag.copy_from_slice(&made.map_err(io::Error::other)?);
                Ok(())
            }
            Keyed::Siv(key) => {
                let (tag, output) = rest.split_at_mut(TAG_BYTES);
                output.copy_from_slice(text);
                let made = siv(key)?.encrypt_inout_detached([about.bytes(), &*nonce], output.into());
                tag.copy_from_slice(&made.map_err(io::Error::other)?);
                Ok(())
            }
        }
    }

    /// Opens what [`seal`](Self::seal) made; `false`, and no text, if it is not authentic.
    pub(super) fn open(&self, number: u64, file: Option<&[u8; ID_BYTES]>, sealed: &[u8], text: &mut [u8]) -> Result<bool, Error> {
        debug_assert_eq!(sealed.len(), text.len() + self.overhead());
        let (nonce, rest) = sealed.split_at(self.nonce_len);
        // gocryptfs refuses these, which file systems with errors make.
        if nonce.iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        let about = About::new(number, file);
        let is_authentic = match &self.keyed {
            Keyed::Gcm(session) => {
                let (input, tag) = rest.split_at(text.len());
                let (mut tag, data) = ([tag].concat(), Data::Copy { input, output: text });
                let mut operation = Operation { direction: Direction::Decrypt, iv: nonce, aad: about.bytes(), data, tag: &mut tag };
                return match session.run(&mut operation) {
                    Ok(_) => Ok(true),
                    Err(Error::Authentication) => Ok(false),
                    Err(error) => Err(error),
                };
            }
            Keyed::XChaCha(cipher) => {
                let (input, tag) = rest.split_at(text.len());
                text.copy_from_slice(input);
                let (Ok(nonce), Ok(tag)) = (nonce.try_into(), tag.try_into()) else { return Ok(false) };
                cipher.decrypt_inout_detached(nonce, about.bytes(), (&mut *text).into(), tag).is_ok()
            }
            Keyed::Siv(key) => {
                let (tag, input) = rest.split_at(TAG_BYTES);
                text.copy_from_slice(input);
                let (Ok(mut cipher), Ok(tag)) = (siv(key), tag.try_into()) else { return Ok(false) };
                cipher.decrypt_inout_detached([about.bytes(), nonce], (&mut *text).into(), tag).is_ok()
            }
        };
        if !is_authentic {
            text.fill(0);
        }
        Ok(is_authentic)
    }
}

fn wrong_key(key: &SecretBytes) -> Error {
    Error::KeyLength { algorithm: Algorithm::Aes256Gcm, expected: 32, given: key.len() }
}

fn siv(key: &SecretBytes) -> io::Result<Aes256Siv> {
    Aes256Siv::new_from_slice(key).map_err(io::Error::other)
}

/// Number and file of a block, as its associated data has them.
struct About {
    bytes: [u8; 8 + ID_BYTES],
    len: usize,
}

impl About {
    fn new(number: u64, file: Option<&[u8; ID_BYTES]>) -> Self {
        let mut bytes = [0; 8 + ID_BYTES];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..].copy_from_slice(file.unwrap_or(&[0; ID_BYTES]));
        Self { bytes, len: if file.is_some() { 8 + ID_BYTES } else { 8 } }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_client::Config;

    #[test]
    fn every_cipher_opens_what_it_sealed_and_nothing_else() {
        let client = Client::new(Config::default());
        for kind in [Kind::Gcm, Kind::XChaCha, Kind::Siv] {
            let cipher = BlockCipher::new(&client, kind, &SecretBytes::from(&vec![7; kind.key_len()][..])).unwrap();
            for len in [1, 15, 16, 17, 4095, 4096] {
                let text: Vec<u8> = (1..=len).map(|at| at as u8).collect();
                let mut sealed = vec![0; len + cipher.overhead()];
                cipher.seal(3, Some(&[1; 16]), &text, &mut sealed).unwrap();
                let mut opened = vec![0; len];
                let mut open = |number, file: Option<&[u8; 16]>, sealed: &[u8]| {
                    let is_authentic = cipher.open(number, file, sealed, &mut opened).unwrap();
                    assert_eq!(opened == text, is_authentic && len > 0, "{kind:?} {len}");
                    is_authentic
                };
                assert!(open(3, Some(&[1; 16]), &sealed));
                assert!(!open(4, Some(&[1; 16]), &sealed) && !open(3, Some(&[2; 16]), &sealed) && !open(3, None, &sealed));
                for at in 0..sealed.len().min(80) {
                    sealed[at] ^= 1;
                    assert!(!open(3, Some(&[1; 16]), &sealed), "{kind:?} {len} {at}");
                    sealed[at] ^= 1;
                }
            }
        }
    }
}
