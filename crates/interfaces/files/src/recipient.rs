//! Recipients and identities: files for whoever holds a private key. X25519 alone (RFC 7748), or together with ML-KEM-768 (FIPS 203) so that both
//! must be broken.

use crate::error::{Error, Result};
use crate::kdf::{KEY_BYTES, derive};
use crate::nonce::random;
use crate::slot::SlotKind;
use aws_lc_rs::{agreement, digest, kem};
use base64ct::{Base64UrlUnpadded, Encoding};
use bywash_core::SecretBytes;
use core::fmt;
use core::str::FromStr;

/// Bytes of an X25519 key, public or private.
const X25519_BYTES: usize = 32;
/// Bytes of an ML-KEM-768 encapsulation key, decapsulation key and ciphertext (FIPS 203 table 3).
const ENCAPSULATION_BYTES: usize = 1184;
const DECAPSULATION_BYTES: usize = 2400;
const CIPHERTEXT_BYTES: usize = 1088;
/// Where the encapsulation key stands in a decapsulation key (FIPS 203 algorithm 16).
const ENCAPSULATION_AT: usize = 1152;
const CHECK_BYTES: usize = 4;

const RECIPIENT_X25519: &str = "bywash-x25519-";
const RECIPIENT_HYBRID: &str = "bywash-hybrid-";
const IDENTITY_X25519: &str = "BYWASH-IDENTITY-X25519-";
const IDENTITY_HYBRID: &str = "BYWASH-IDENTITY-HYBRID-";

/// A public key that files can be encrypted for. As text: `bywash-x25519-...` or `bywash-hybrid-...`.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient {
    x25519: [u8; X25519_BYTES],
    /// ML-KEM-768's part, of a hybrid one.
    encapsulation: Option<Vec<u8>>,
}

/// A private key that opens files for its recipient. As text, secret: `BYWASH-IDENTITY-X25519-...` or `BYWASH-IDENTITY-HYBRID-...`.
pub struct Identity {
    x25519: SecretBytes,
    /// ML-KEM-768's part, of a hybrid one.
    decapsulation: Option<SecretBytes>,
    recipient: Recipient,
}

fn failed(what: &str) -> Error {
    Error::BadKey { what: what.into() }
}

impl Identity {
    /// A new one; hybrid, or X25519 alone.
    ///
    /// # Errors
    /// [`Error::BadKey`] or [`Error::Io`] if there is no randomness.
    pub fn generate(hybrid: bool) -> Result<Self> {
        let mut x25519 = SecretBytes::zeroed(X25519_BYTES);
        random(&mut x25519)?;
        let decapsulation = if hybrid {
            let key = kem::DecapsulationKey::generate(&kem::ML_KEM_768).map_err(|_| failed("ML-KEM-768 made no key"))?;
            Some(SecretBytes::from(key.key_bytes().map_err(|_| failed("ML-KEM-768 gave no key"))?.as_ref()))
        } else {
            None
        };
        Self::new(x25519, decapsulation)
    }

    fn new(x25519: SecretBytes, decapsulation: Option<SecretBytes>) -> Result<Self> {
        let public = private_key(&x25519)?.compute_public_key().map_err(|_| failed("this is no X25519 key"))?;
        let mut own = [0; X25519_BYTES];
        own.copy_from_slice(public.as_ref());
        let encapsulation = decapsulation.as_ref().map(|key| key[ENCAPSULATION_AT..][..ENCAPSULATION_BYTES].to_vec());
        Ok(Self { x25519, decapsulation, recipient: Recipient { x25519: own, encapsulation } })
    }

    /// Its public half.
    pub fn recipient(&self) -> &Recipient {
        &self.recipient
    }

    /// As text for a file that nobody else reads.
    pub fn to_secret_text(&self) -> SecretBytes {
        let (name, key) = match &self.decapsulation {
            None => (IDENTITY_X25519, self.x25519.clone()),
            Some(more) => (IDENTITY_HYBRID, joined(&[&self.x25519, more])),
        };
        secret_text(name, &key)
    }

    /// From its text.
    ///
    /// # Errors
    /// [`Error::BadKey`], which does not repeat the text.
    pub fn from_secret_text(text: &str) -> Result<Self> {
        let unknown = || failed("this is no identity: it begins with neither BYWASH-IDENTITY-X25519- nor BYWASH-IDENTITY-HYBRID-");
        if let Some(text) = text.strip_prefix(IDENTITY_X25519) {
            return Self::new(from_text(IDENTITY_X25519, text, X25519_BYTES)?, None);
        }
        let text = text.strip_prefix(IDENTITY_HYBRID).ok_or_else(unknown)?;
        let bytes = from_text(IDENTITY_HYBRID, text, X25519_BYTES + DECAPSULATION_BYTES)?;
        let (x25519, decapsulation) = bytes.split_at(X25519_BYTES);
        Self::new(x25519.into(), Some(decapsulation.into()))
    }

    /// What slots of this kind it may open.
    pub(crate) fn kind(&self) -> SlotKind {
        self.recipient.kind()
    }

    /// The key-encryption key of a slot, right or wrong.
    pub(crate) fn open(&self, body: &[u8]) -> Result<SecretBytes> {
        let expected = X25519_BYTES + if self.decapsulation.is_some() { CIPHERTEXT_BYTES } else { 0 };
        if body.len() != expected {
            return Err(Error::DamagedHeader { what: "a recipient's slot has a length that cannot be" });
        }
        let (ephemeral, ciphertext) = body.split_at(X25519_BYTES);
        let shared = agree(&private_key(&self.x25519)?, ephemeral)?;
        let Some(decapsulation) = &self.decapsulation else { return combine(&self.recipient, body, &[&shared]) };
        let key = kem::DecapsulationKey::new(&kem::ML_KEM_768, decapsulation).map_err(|_| failed("this is no ML-KEM-768 key"))?;
        let second = key.decapsulate(ciphertext.into()).map_err(|_| Error::DamagedHeader { what: "an ML-KEM-768 ciphertext is none" })?;
        combine(&self.recipient, body, &[second.as_ref(), &shared])
    }
}

impl Recipient {
    /// The kind of slot it gets.
    pub(crate) fn kind(&self) -> SlotKind {
        if self.encapsulation.is_some() { SlotKind::Hybrid } else { SlotKind::X25519 }
    }

    /// A key-encryption key that only its identity finds again, and the slot body to find it by.
    pub(crate) fn encapsulate(&self) -> Result<(SecretBytes, Vec<u8>)> {
        let mut secret = SecretBytes::zeroed(X25519_BYTES);
        random(&mut secret)?;
        let ephemeral = private_key(&secret)?;
        let shared = agree(&ephemeral, &self.x25519)?;
        let mut body = ephemeral.compute_public_key().map_err(|_| failed("X25519 failed"))?.as_ref().to_vec();
        let Some(encapsulation) = &self.encapsulation else { return Ok((combine(self, &body, &[&shared])?, body)) };
        let key = kem::EncapsulationKey::new(&kem::ML_KEM_768, encapsulation).map_err(|_| failed("this is no ML-KEM-768 key"))?;
        let (ciphertext, second) =
            key.encapsulate().map_err(|_| failed("this recipient's ML-KEM-768 key cannot be used; ask for it again"))?;
        body.extend_from_slice(ciphertext.as_ref());
        Ok((combine(self, &body, &[second.as_ref(), &shared])?, body))
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, key) = match &self.encapsulation {
            None => (RECIPIENT_X25519, self.x25519.to_vec()),
            Some(more) => (RECIPIENT_HYBRID, [&self.x25519[..], more].concat()),
        };
        f.write_str(&String::from_utf8_lossy(&secret_text(name, &key)))
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Recipient {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, text, more) = if let Some(text) = text.strip_prefix(RECIPIENT_X25519) {
            (RECIPIENT_X25519, text, 0)
        } else {
            let unknown = || failed("this is no recipient: it begins with neither bywash-x25519- nor bywash-hybrid-");
            (RECIPIENT_HYBRID, text.strip_prefix(RECIPIENT_HYBRID).ok_or_else(unknown)?, ENCAPSULATION_BYTES)
        };
        let bytes = from_text(name, text, X25519_BYTES + more)?;
        let mut x25519 = [0; X25519_BYTES];
        x25519.copy_from_slice(&bytes[..X25519_BYTES]);
        Ok(Self { x25519, encapsulation: (more > 0).then(|| bytes[X25519_BYTES..].to_vec()) })
    }
}

fn private_key(bytes: &[u8]) -> Result<agreement::PrivateKey> {
    agreement::PrivateKey::from_private_key(&agreement::X25519, bytes).map_err(|_| failed("this is no X25519 key"))
}

/// X25519; a public key whose result is zero (RFC 7748 s6.1) is an error.
fn agree(own: &agreement::PrivateKey, public: &[u8]) -> Result<SecretBytes> {
    let public = agreement::UnparsedPublicKey::new(&agreement::X25519, public);
    agreement::agree(own, public, failed("this X25519 public key cannot be used"), |shared| Ok(shared.into()))
}

/// One key from the shared secrets, bound to both public keys and to all that was sent.
fn combine(recipient: &Recipient, body: &[u8], secrets: &[&[u8]]) -> Result<SecretBytes> {
    let more = recipient.encapsulation.as_deref().unwrap_or_default();
    let public = digest::digest(&digest::SHA256, &[&recipient.x25519, more, body].concat());
    derive(public.as_ref(), &joined(secrets), &[b"bywash-files/1 recipient", &[recipient.kind() as u8]], KEY_BYTES)
}

fn joined(parts: &[&[u8]]) -> SecretBytes {
    let mut all = SecretBytes::zeroed(parts.iter().map(|part| part.len()).sum());
    let mut rest = &mut all[..];
    for part in parts {
        let (front, back) = rest.split_at_mut(part.len());
        front.copy_from_slice(part);
        rest = back;
    }
    all
}

/// A check sum against typing errors: of the name and the key.
fn check_sum(name: &str, key: &[u8]) -> [u8; CHECK_BYTES] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(name.as_bytes());
    context.update(key);
    let mut sum = [0; CHECK_BYTES];
    sum.copy_from_slice(&context.finish().as_ref()[..CHECK_BYTES]);
    sum
}

fn secret_text(name: &str, key: &[u8]) -> SecretBytes {
    let bytes = joined(&[key, &check_sum(name, key)]);
    let mut text = SecretBytes::zeroed(name.len() + Base64UrlUnpadded::encoded_len(&bytes));
    text[..name.len()].copy_from_slice(name.as_bytes());
    // The room is exactly what the encoding takes, so it cannot fail.
    let written = Base64UrlUnpadded::encode(&bytes, &mut text[name.len()..]).map(str::len);
    debug_assert!(written.is_ok());
    text
}

fn from_text(name: &str, text: &str, len: usize) -> Result<SecretBytes> {
    let wrong = || failed(&format!("this key ({name}...) is incomplete or has a typing error; copy it again"));
    let mut bytes = SecretBytes::zeroed(len + CHECK_BYTES);
    let read = Base64UrlUnpadded::decode(text.trim_end(), &mut bytes).map_err(|_| wrong())?.len();
    let (key, sum) = bytes.split_at(len);
    if read != len + CHECK_BYTES || check_sum(name, key) != sum {
        return Err(wrong());
    }
    Ok(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip_and_show_typing_errors() {
        for hybrid in [false, true] {
            let identity = Identity::generate(hybrid).unwrap();
            let text = String::from_utf8(identity.to_secret_text().to_vec()).unwrap();
            let again = Identity::from_secret_text(&text).unwrap();
            assert_eq!(again.recipient(), identity.recipient());
            let public = identity.recipient().to_string();
            assert_eq!(public.parse::<Recipient>().unwrap(), *identity.recipient());
            let typo = public[..40].to_owned() + if &public[40..41] == "A" { "B" } else { "A" } + &public[41..];
            assert!(typo.parse::<Recipient>().unwrap_err().to_string().contains("typing error"));
            assert!(public[..public.len() - 3].parse::<Recipient>().is_err());
            let error = Identity::from_secret_text(&text[..text.len() - 1]).err().unwrap().to_string();
            assert!(!error.contains(&text[30..50]), "{error}");
        }
        assert!("age1xyz".parse::<Recipient>().is_err() && Identity::from_secret_text("AGE-SECRET-KEY-1").is_err());
    }

    #[test]
    fn only_the_identity_finds_the_key_again() {
        for hybrid in [false, true] {
            let (identity, other) = (Identity::generate(hybrid).unwrap(), Identity::generate(hybrid).unwrap());
            let (key, body) = identity.recipient().encapsulate().unwrap();
            assert_eq!(identity.open(&body).unwrap(), key);
            assert_ne!(other.open(&body).unwrap(), key);
            assert!(matches!(identity.open(&body[1..]), Err(Error::DamagedHeader { .. })));
            for at in [0, body.len() - 1] {
                let mut changed = body.clone();
                changed[at] ^= 1;
                assert!(identity.open(&changed).map_or(true, |opened| opened != key));
            }
            let zeros = [&[0; 32][..], &body[32..]].concat();
            assert!(identity.open(&zeros).is_err(), "a public key of small order");
        }
    }
}
