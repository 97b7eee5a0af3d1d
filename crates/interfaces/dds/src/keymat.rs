//! Master keys as participants tell them to each other: `KeyMaterial_AES_GCM_GMAC` (s9.5.2.1.1), big-endian CDR.

use crate::derive::{KeyBytes, Purpose};
use crate::kind::Kind;
use crate::random;
use crate::refusal::{Refusal, Result};
use crate::wire::{number, take};
use bywash_core::secret::constant_time_eq;
use zeroize::Zeroizing;

/// A sender's master key and salt, and the key of one receiver if his tags are wanted. Wiped when dropped.
#[derive(Clone)]
pub struct KeyMaterial {
    /// What the keys are for.
    pub kind: Kind,
    /// The salt of every derivation.
    pub salt: KeyBytes,
    /// The id of the sender's key.
    pub sender_id: u32,
    /// The sender's master key.
    pub sender_key: KeyBytes,
    /// The id of the receiver's key and that key; none if the receiver has no tags of his own.
    pub receiver: Option<(u32, KeyBytes)>,
}

/// Bytes of the longest token.
const TOKEN_MAX: usize = 6 * 4 + 3 * 32;

impl KeyMaterial {
    /// A new random key.
    ///
    /// # Errors
    /// [`Refusal::Random`].
    pub fn generate(kind: Kind, sender_id: u32) -> Result<Self> {
        Ok(Self { kind, salt: key(kind)?, sender_id, sender_key: key(kind)?, receiver: None })
    }

    /// The same, with a new key of a receiver's own.
    ///
    /// # Errors
    /// [`Refusal::Random`].
    pub fn with_receiver(&self, id: u32) -> Result<Self> {
        Ok(Self { receiver: Some((id, key(self.kind)?)), ..self.clone() })
    }

    /// Whether both are of one sender: his key's id and the key itself, compared in constant time. Receivers' keys may differ.
    pub fn is_of_the_sender_of(&self, other: &Self) -> bool {
        self.sender_id == other.sender_id && constant_time_eq(&*self.sender_key, &*other.sender_key)
    }

    /// The master key for that purpose, if there is one.
    pub fn master_key(&self, purpose: Purpose) -> Option<&[u8]> {
        let key = match purpose {
            Purpose::Sender => &self.sender_key,
            Purpose::Receiver => &self.receiver.as_ref()?.1,
        };
        Some(&key[..self.kind.key_len()])
    }

    /// The salt, in the kind's length.
    pub fn master_salt(&self) -> &[u8] {
        &self.salt[..self.kind.key_len()]
    }

    /// As it stands in a token.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let length = self.kind.key_len();
        // Room for all at once: growing would leave unwiped keys behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(TOKEN_MAX));
        let mut put = |number: u32, secret: &[u8]| {
            bytes.extend_from_slice(&number.to_be_bytes());
            bytes.extend_from_slice(&(secret.len() as u32).to_be_bytes());
            bytes.extend_from_slice(secret);
        };
        put(self.kind as u32, &self.salt[..length]);
        put(self.sender_id, &self.sender_key[..length]);
        match &self.receiver {
            Some((id, key)) => put(*id, &key[..length]),
            None => put(0, &[]),
        }
        bytes
    }

    /// The token of somebody without key material: nothing is protected.
    pub fn none() -> [u8; 24] {
        [0; 24]
    }

    /// From a token; none if it says that nothing is protected.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] for lengths that are not the kind's, and for keys that are all zero; [`Refusal::Kind`].
    pub fn parse(mut input: &[u8]) -> Result<Option<Self>> {
        let input = &mut input;
        let number_of_kind = number(input)?;
        if number_of_kind == 0 {
            // What else is there then differs from implementation to implementation.
            return Ok(None);
        }
        let (salt, sender_id) = (sequence(input)?, number(input)?);
        let (sender_key, receiver_id) = (sequence(input)?, number(input)?);
        // Some send nothing at all, not even a length, where there is no key.
        let receiver_key = if input.is_empty() { &[] } else { sequence(input)? };
        let kind = Kind::from_number(number_of_kind).ok_or(Refusal::Kind(number_of_kind))?;
        let secret = |bytes: &[u8]| secret(kind, bytes);
        let receiver = if receiver_id == 0 { None } else { Some((receiver_id, secret(receiver_key)?)) };
        Ok(Some(Self { kind, salt: secret(salt)?, sender_id, sender_key: secret(sender_key)?, receiver }))
    }
}

/// A sequence of bytes and what fills it up to a multiple of four.
fn sequence<'a>(input: &mut &'a [u8]) -> Result<&'a [u8]> {
    let length = number(input)? as usize;
    let bytes = take(input, length)?;
    take(input, length.next_multiple_of(4) - length)?;
    Ok(bytes)
}

fn secret(kind: Kind, bytes: &[u8]) -> Result<KeyBytes> {
    let mut secret = Zeroizing::new([0; 32]);
    if bytes.len() != kind.key_len() {
        return Err(Refusal::Malformed("a key that is not of its kind's length"));
    }
    secret[..bytes.len()].copy_from_slice(bytes);
    if secret.iter().fold(0, |all, byte| all | byte) == 0 { Err(Refusal::Malformed("a key of zeros")) } else { Ok(secret) }
}

fn key(kind: Kind) -> Result<KeyBytes> {
    let mut key = Zeroizing::new([0; 32]);
    random::fill(&mut key[..kind.key_len()])?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was() {
        for kind in [Kind::Aes128Gmac, Kind::Aes128Gcm, Kind::Aes256Gmac, Kind::Aes256Gcm] {
            let plain = KeyMaterial::generate(kind, 7).unwrap();
            for material in [plain.with_receiver(9).unwrap(), plain] {
                let bytes = material.to_bytes();
                assert_eq!(bytes.len(), 24 + kind.key_len() * if material.receiver.is_some() { 3 } else { 2 });
                let back = KeyMaterial::parse(&bytes).unwrap().unwrap();
                assert_eq!((back.kind, back.sender_id), (kind, 7));
                assert!(back.salt == material.salt && back.sender_key == material.sender_key && back.receiver == material.receiver);
                for length in 0..bytes.len() {
                    let cut = KeyMaterial::parse(&bytes[..length]);
                    // Without its last length, which is 0, it is whole as well.
                    assert!(cut.is_err() || material.receiver.is_none() && length == bytes.len() - 4, "{length}");
                }
            }
        }
        assert!(KeyMaterial::parse(&KeyMaterial::none()).unwrap().is_none());
    }

    #[test]
    fn keys_of_zeros_and_of_other_lengths_are_refused() {
        let material = KeyMaterial::generate(Kind::Aes256Gcm, 1).unwrap();
        let mut bytes = material.to_bytes();
        bytes[3] = 1;
        assert!(matches!(KeyMaterial::parse(&bytes), Err(Refusal::Malformed(_))));
        bytes[3] = 9;
        assert!(matches!(KeyMaterial::parse(&bytes), Err(Refusal::Kind(9))));
        let zeros = KeyMaterial { sender_key: Zeroizing::new([0; 32]), ..material };
        assert!(matches!(KeyMaterial::parse(&zeros.to_bytes()), Err(Refusal::Malformed(_))));
    }
}
