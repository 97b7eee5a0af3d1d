//! What a key is for.

use bywash_core::Algorithm;

/// A `CryptoTransformKind` (DDS Security 1.1 s9.5.2.1.1): whether text is encrypted or signed only, and how long keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Text in the clear, with an AES-128 tag.
    Aes128Gmac = 1,
    /// Encrypted with AES-128-GCM.
    Aes128Gcm = 2,
    /// Text in the clear, with an AES-256 tag.
    Aes256Gmac = 3,
    /// Encrypted with AES-256-GCM.
    Aes256Gcm = 4,
}

impl Kind {
    /// The kind of that number; none for 0, which is no protection, and for numbers that mean nothing.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Aes128Gmac),
            2 => Some(Self::Aes128Gcm),
            3 => Some(Self::Aes256Gmac),
            4 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// The kind that encrypts or does not, with keys of 256 bits or of 128.
    pub fn of(encrypts: bool, is_256: bool) -> Self {
        match (encrypts, is_256) {
            (false, false) => Self::Aes128Gmac,
            (true, false) => Self::Aes128Gcm,
            (false, true) => Self::Aes256Gmac,
            (true, true) => Self::Aes256Gcm,
        }
    }

    /// As it stands in a message and a token: four bytes, big-endian.
    pub fn to_bytes(self) -> [u8; 4] {
        [0, 0, 0, self as u8]
    }

    /// Whether text is encrypted; else it has a tag only.
    pub fn encrypts(self) -> bool {
        matches!(self, Self::Aes128Gcm | Self::Aes256Gcm)
    }

    /// Bytes of its keys, and of its salts.
    pub fn key_len(self) -> usize {
        match self {
            Self::Aes128Gmac | Self::Aes128Gcm => 16,
            Self::Aes256Gmac | Self::Aes256Gcm => 32,
        }
    }

    /// What computes it.
    pub fn algorithm(self) -> Algorithm {
        if self.key_len() == 16 { Algorithm::Aes128Gcm } else { Algorithm::Aes256Gcm }
    }
}
