//! Key material as it is handed over when a session is opened.

use crate::error::{Error, Result};
use crate::secret::SecretBytes;

/// The key of a session. What fits which algorithm is checked by [`SessionParams::new`](crate::SessionParams::new).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// No key: digests.
    None,
    /// A symmetric key.
    Symmetric(SecretBytes),
    /// An RSA private key.
    RsaPrivate(RsaPrivateKey),
    /// An RSA public key.
    RsaPublic(RsaPublicKey),
    /// An elliptic-curve private key: big-endian scalar (P-256, P-384), or the 32 bytes of RFC 7748 (X25519) or RFC 8032 (the seed of
    /// Ed25519).
    EcPrivate(SecretBytes),
    /// An elliptic-curve public key: uncompressed point, SEC 1 s2.3.3.
    EcPublic(Vec<u8>),
    /// A private key that lives in a broker's vault; only its name and its public half are here.
    Vault(KeyReference),
}

impl Key {
    /// In words, for messages.
    pub const fn describe(&self) -> &'static str {
        match self {
            Key::None => "no key",
            Key::Symmetric(_) => "a symmetric key",
            Key::RsaPrivate(_) => "an RSA private key",
            Key::RsaPublic(_) => "an RSA public key",
            Key::EcPrivate(_) => "an elliptic-curve private key",
            Key::EcPublic(_) => "an elliptic-curve public key",
            Key::Vault(_) => "a reference to a key in a vault",
        }
    }
}

/// Names a private key that another process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReference {
    /// Its name in the vault.
    pub name: String,
    /// Its public half: a `SubjectPublicKeyInfo` in DER (RFC 5280 s4.1.2.7). It pins the key: after a rotation the name alone would mean another.
    pub public: Vec<u8>,
}

/// Longest name of a key in a vault, in bytes.
pub const KEY_NAME_MAX: usize = 64;

impl KeyReference {
    /// What names of such keys begin with where they stand as URIs.
    pub const SCHEME: &'static str = "bywash:";

    /// Checks a name: it becomes part of a file's name.
    ///
    /// # Errors
    /// [`Error::VaultKey`] with the rule.
    pub fn check_name(name: &str) -> Result<()> {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let starts = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if starts && name.len() <= KEY_NAME_MAX && name.bytes().all(good) {
            return Ok(());
        }
        let reason = format!("a key's name has 1 to {KEY_NAME_MAX} letters, digits, '.', '_' and '-', and begins with a letter or a digit");
        Err(Error::VaultKey { name: name.chars().filter(|c| !c.is_control()).take(KEY_NAME_MAX).collect(), reason })
    }

    /// As a URI.
    pub fn uri(&self) -> String {
        format!("{}{}", Self::SCHEME, self.name)
    }
}

/// An RSA public key; unsigned big-endian numbers, leading zeros allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaPublicKey {
    /// The modulus n.
    pub modulus: Vec<u8>,
    /// The public exponent e.
    pub exponent: Vec<u8>,
}

/// An RSA private key with its CRT parts (RFC 8017 s3.2, second representation); unsigned big-endian numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaPrivateKey {
    /// n and e.
    pub public: RsaPublicKey,
    /// d.
    pub private_exponent: SecretBytes,
    /// p, the first factor.
    pub prime1: SecretBytes,
    /// q, the second factor.
    pub prime2: SecretBytes,
    /// d mod (p - 1).
    pub exponent1: SecretBytes,
    /// d mod (q - 1).
    pub exponent2: SecretBytes,
    /// q^-1 mod p.
    pub coefficient: SecretBytes,
}

/// Length in bits of an unsigned big-endian number.
pub(crate) fn bit_len(number: &[u8]) -> usize {
    match number.iter().position(|&byte| byte != 0) {
        None => 0,
        Some(first) => (number.len() - first) * 8 - number[first].leading_zeros() as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_vault_keys_are_tame() {
        for good in ["a", "web", "www.example.org", "0-1_2", &"x".repeat(64)] {
            KeyReference::check_name(good).unwrap();
        }
        for bad in ["", ".hidden", "-x", "a/b", "a b", "a\n", "\u{e9}", &"x".repeat(65), "../x"] {
            assert!(KeyReference::check_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bit_length_skips_leading_zeros() {
        assert_eq!(bit_len(&[]), 0);
        assert_eq!(bit_len(&[0, 0]), 0);
        assert_eq!(bit_len(&[0, 1]), 1);
        assert_eq!(bit_len(&[0x80, 0]), 16);
    }
}
