//! The AEADs that a file may be sealed with.

use bywash_core::{Algorithm, Kind};
use core::fmt;
use core::str::FromStr;

/// An AEAD that a file may be sealed with. Its number is in the file's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum Aead {
    /// AES-256-GCM (SP 800-38D), the default: the fastest that every processor of the last ten years has instructions for.
    #[default]
    Aes256Gcm = 1,
    /// AES-256-GCM-SIV (RFC 8452): were a nonce ever to repeat, it would show only that two texts are equal.
    Aes256GcmSiv = 2,
    /// ChaCha20-Poly1305 (RFC 8439), for processors without AES instructions.
    ChaCha20Poly1305 = 3,
    /// AEGIS-256 (draft-irtf-cfrg-aegis-aead), on every processor, and the fastest where there are AES instructions.
    Aegis256 = 4,
    /// AEGIS-128L (the same draft); a 128-bit key.
    Aegis128L = 5,
}

impl Aead {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Aes256Gcm, Self::Aes256GcmSiv, Self::ChaCha20Poly1305, Self::Aegis256, Self::Aegis128L];

    /// The number in headers.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The AEAD of that number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|aead| aead.number() == number)
    }

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::Aes256GcmSiv => "aes-256-gcm-siv",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
            Self::Aegis256 => "aegis-256",
            Self::Aegis128L => "aegis-128l",
        }
    }

    /// As engines know it.
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Aes256Gcm => Algorithm::Aes256Gcm,
            Self::Aes256GcmSiv => Algorithm::Aes256GcmSiv,
            Self::ChaCha20Poly1305 => Algorithm::ChaCha20Poly1305,
            Self::Aegis256 => Algorithm::Aegis256,
            Self::Aegis128L => Algorithm::Aegis128L,
        }
    }

    /// Bytes of its key.
    pub fn key_len(self) -> usize {
        match self.algorithm().kind() {
            Kind::Aead { key, .. } => key,
            _ => 0,
        }
    }

    /// Bytes of its nonce as it is used here.
    pub fn nonce_len(self) -> usize {
        self.algorithm().usual_iv_len()
    }
}

impl fmt::Display for Aead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Aead {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|aead| aead.name() == name).ok_or_else(|| format!("'{name}' is none of {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip_and_lengths_are_an_aeads() {
        for aead in Aead::ALL {
            assert_eq!(Aead::from_number(aead.number()), Some(aead));
            assert_eq!(aead.to_string().parse(), Ok(aead));
            assert!(matches!(aead.key_len(), 16 | 32) && matches!(aead.nonce_len(), 12 | 16 | 32), "{aead}");
        }
        assert_eq!(Aead::from_number(0), None);
        assert!("rot13".parse::<Aead>().unwrap_err().contains("aes-256-gcm"));
    }
}
