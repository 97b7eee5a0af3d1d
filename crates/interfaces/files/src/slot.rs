//! Key slots: each wraps the file key for one way to open the file.

use crate::error::{Error, Result};
use crate::kdf::{KEY_BYTES, derive};
use crate::passphrase::{self, Argon2Cost};
use aws_lc_rs::aead;
use bywash_core::SecretBytes;

/// Bytes of a wrapped file key: the key and its tag.
pub const WRAPPED_BYTES: usize = KEY_BYTES + 16;
/// Longest body of a slot in bytes.
pub const BODY_BYTES_MAX: usize = 2048;
/// Most slots in a file.
pub const SLOTS_MAX: usize = 32;
/// Bytes of a slot without its body.
const FRAME_BYTES: usize = 4 + WRAPPED_BYTES;

/// How a slot is opened. Numbers that are not here belong to later versions, and such slots are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SlotKind {
    /// A passphrase, through Argon2id.
    Passphrase = 1,
    /// A key file: 32 bytes.
    KeyFile = 2,
    /// A recipient's X25519 key.
    X25519 = 3,
    /// A recipient's X25519 and ML-KEM-768 keys together.
    Hybrid = 4,
    /// A recipient's P-256 key, which is in a vault.
    P256 = 5,
    /// A recipient's SSH key of the kind ssh-ed25519.
    Ssh = 6,
}

impl SlotKind {
    const ALL: [Self; 6] = [Self::Passphrase, Self::KeyFile, Self::X25519, Self::Hybrid, Self::P256, Self::Ssh];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// In a word, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passphrase => "passphrase",
            Self::KeyFile => "key-file",
            Self::X25519 => "x25519",
            Self::Hybrid => "hybrid",
            Self::P256 => "p256",
            Self::Ssh => "ssh-ed25519",
        }
    }

    /// In words, for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Passphrase => "a passphrase",
            Self::KeyFile => "a key file",
            Self::X25519 => "an X25519 identity",
            Self::Hybrid => "a hybrid X25519 and ML-KEM-768 identity",
            Self::P256 => "a P-256 key in a vault (-i bywash:NAME, or its key file from before it was rotated)",
            Self::Ssh => "an SSH key (-i ~/.ssh/id_ed25519)",
        }
    }
}

/// A way to open a file, as its header has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its kind's number.
    pub(crate) number: u8,
    /// What is public of it: parameters, an ephemeral public key.
    pub(crate) body: Vec<u8>,
    wrapped: [u8; WRAPPED_BYTES],
}

impl Slot {
    /// Its kind, unless it belongs to a later version.
    pub fn kind(&self) -> Option<SlotKind> {
        SlotKind::from_number(self.number)
    }

    /// What a passphrase costs who tries one; none for other kinds, and for a slot that cannot be.
    pub fn argon2_cost(&self) -> Option<Argon2Cost> {
        (self.kind() == Some(SlotKind::Passphrase)).then(|| passphrase::cost(&self.body).ok()).flatten()
    }

    /// Wraps a file key under a key-encryption key. That one may be the same for many files: what wraps depends on the file's salt.
    pub(crate) fn wrap(kind: SlotKind, body: Vec<u8>, kek: &[u8], salt: &[u8; KEY_BYTES], file_key: &[u8]) -> Result<Self> {
        let mut wrapped = [0; WRAPPED_BYTES];
        wrapped[..KEY_BYTES].copy_from_slice(file_key);
        let (text, tag) = wrapped.split_at_mut(KEY_BYTES);
        let sealed = wrapping_key(kind as u8, &body, kek, salt)?.seal_in_place_separate_tag(nonce(), aead::Aad::empty(), text);
        tag.copy_from_slice(sealed.map_err(|_| Error::BadKey { what: "the file key cannot be wrapped".into() })?.as_ref());
        Ok(Self { number: kind as u8, body, wrapped })
    }

    /// The file key, if that is the right key-encryption key.
    pub(crate) fn unwrap(&self, kek: &[u8], salt: &[u8; KEY_BYTES]) -> Result<Option<SecretBytes>> {
        let mut text = SecretBytes::from(&self.wrapped[..]);
        let key = wrapping_key(self.number, &self.body, kek, salt)?;
        let opened = key.open_in_place(nonce(), aead::Aad::empty(), &mut text).is_ok();
        Ok(opened.then(|| SecretBytes::from(&text[..KEY_BYTES])))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.number, 0]);
        out.extend_from_slice(&(self.body.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.body);
        out.extend_from_slice(&self.wrapped);
    }

    /// Takes one from the front of `bytes`.
    pub(crate) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (frame, rest) = bytes.split_at_checked(4)?;
        let len = usize::from(u16::from_le_bytes([frame[2], frame[3]]));
        if frame[1] != 0 || len > BODY_BYTES_MAX {
            return None;
        }
        let (body, rest) = rest.split_at_checked(len)?;
        let (wrapped, rest) = rest.split_first_chunk()?;
        *bytes = rest;
        Some(Self { number: frame[0], body: body.to_vec(), wrapped: *wrapped })
    }

    pub(crate) fn encoded_len(&self) -> usize {
        FRAME_BYTES + self.body.len()
    }
}

/// The key that wraps is used once: it depends on the file's salt, on the slot's kind and on its body.
fn wrapping_key(number: u8, body: &[u8], kek: &[u8], salt: &[u8; KEY_BYTES]) -> Result<aead::LessSafeKey> {
    let key = derive(salt, kek, &[b"bywash-files/1 wrap", &[number], body], KEY_BYTES)?;
    let key = aead::UnboundKey::new(&aead::AES_256_GCM, &key);
    Ok(aead::LessSafeKey::new(key.map_err(|_| Error::BadKey { what: "AES-256-GCM is not there".into() })?))
}

fn nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; 12])
}

/// What the slots of a file are, in words.
pub(crate) fn describe(slots: &[Slot]) -> String {
    let mut words: Vec<_> = slots.iter().map(|slot| slot.kind().map_or("something of a later version", SlotKind::describe)).collect();
    words.dedup();
    words.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_opens_with_its_key_in_its_file_only() {
        let slot = Slot::wrap(SlotKind::KeyFile, vec![1, 2], &[3; 32], &[4; 32], &[5; 32]).unwrap();
        assert_eq!(slot.unwrap(&[3; 32], &[4; 32]).unwrap(), Some((&[5; 32]).into()));
        assert_eq!(slot.unwrap(&[2; 32], &[4; 32]).unwrap(), None);
        assert_eq!(slot.unwrap(&[3; 32], &[3; 32]).unwrap(), None);
        let other = Slot { body: vec![1, 3], ..slot.clone() };
        assert_eq!(other.unwrap(&[3; 32], &[4; 32]).unwrap(), None);
    }

    #[test]
    fn slots_round_trip_and_are_cut_nowhere() {
        let slot = Slot::wrap(SlotKind::X25519, vec![9; 32], &[3; 32], &[4; 32], &[5; 32]).unwrap();
        let mut bytes = Vec::new();
        slot.write(&mut bytes);
        assert_eq!(bytes.len(), slot.encoded_len());
        let mut rest = &bytes[..];
        assert_eq!(Slot::read(&mut rest), Some(slot));
        assert!(rest.is_empty());
        for len in 0..bytes.len() {
            assert_eq!(Slot::read(&mut &bytes[..len]), None);
        }
    }
}
