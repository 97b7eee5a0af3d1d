//! Algorithms: the closed list of what Bywash can be asked to compute.
//!
//! Adding an algorithm is adding one line to the table below. The number of a line travels in the broker's protocol
//! and in traces, so lines are only ever appended and numbers never reused.

use crate::error::{Error, Result};
use core::fmt;
use core::str::FromStr;

/// What sort of computation an algorithm is, with the sizes (in bytes unless named otherwise) that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Unauthenticated cipher. `block` is 1 for a mode that takes any length; XTS (`block` 16, `iv` 16) also takes
    /// any length from one block up, by ciphertext stealing (IEEE 1619-2018).
    Cipher {
        /// Key length; for XTS both halves together. The usual one where there are several ([`Algorithm::key_lengths`]).
        key: usize,
        /// IV, counter block or tweak length; 0 for ECB.
        iv: usize,
        /// Input must be a multiple of this.
        block: usize,
    },
    /// Authenticated encryption with associated data. The tag is detached.
    Aead {
        /// Key length.
        key: usize,
        /// Shortest and longest IV taken.
        iv: (usize, usize),
    },
    /// Unkeyed hash.
    Digest {
        /// Output length.
        output: usize,
    },
    /// Keyed hash (HMAC, RFC 2104), any key length up to [`MAC_KEY_MAX`].
    Mac {
        /// Output length.
        output: usize,
    },
    /// Raw RSA private operation, c^d mod n (RFC 8017 s5.1.2, s5.2.1): the input is one full modulus long, padding is the caller's.
    RsaPrivate {
        /// Modulus length in bits.
        bits: usize,
    },
    /// Raw RSA public operation, m^e mod n (RFC 8017 s5.1.1, s5.2.2).
    RsaPublic {
        /// Modulus length in bits.
        bits: usize,
    },
    /// ECDSA signature of a digest (FIPS 186-5 s6.4.1); output `r || s`, each `scalar` bytes, big-endian.
    EcdsaSign {
        /// Length of a scalar.
        scalar: usize,
    },
    /// ECDSA verification (FIPS 186-5 s6.4.2): data is the digest, tag is `r || s`, no output.
    EcdsaVerify {
        /// Length of a scalar.
        scalar: usize,
    },
    /// Diffie-Hellman: input is the peer's public value, output the shared secret.
    Agreement {
        /// Length of the private key.
        private: usize,
        /// Length of a public value (uncompressed point, SEC 1 s2.3.3; or RFC 7748 u-coordinate).
        public: usize,
        /// Length of the shared secret.
        shared: usize,
    },
    /// EdDSA signature of a message of any length (RFC 8032 s5.1.6, without prehash). The session's key is the 32-byte seed. Its time is
    /// taken as that of a short message, which handshakes sign.
    EddsaSign {
        /// Length of the seed.
        private: usize,
        /// Length of the signature.
        signature: usize,
    },
    /// The public value belonging to the session's private key: no input, output `public` bytes.
    PublicValue {
        /// Length of the private key.
        private: usize,
        /// Length of the public value.
        public: usize,
    },
}

/// Longest HMAC key taken, in bytes.
pub const MAC_KEY_MAX: usize = 4096;

macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $kind:expr;)*) => {
        /// A named primitive and mode with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Algorithm { $($(#[$doc])* #[doc = concat!("`", $name, "`")] $variant = $number,)* }

        impl Algorithm {
            /// Every algorithm, in the order of its number.
            pub const ALL: &'static [Algorithm] = &[$(Algorithm::$variant,)*];

            /// The name by which users and messages call it.
            pub const fn name(self) -> &'static str {
                match self { $(Algorithm::$variant => $name,)* }
            }

            /// What sort of computation it is.
            pub const fn kind(self) -> Kind {
                match self { $(Algorithm::$variant => $kind,)* }
            }
        }
    };
}

const fn cipher(key: usize, iv: usize, block: usize) -> Kind {
    Kind::Cipher { key, iv, block }
}
const fn gcm(key: usize) -> Kind {
    Kind::Aead { key, iv: (1, 128) }
}
const fn ccm(key: usize) -> Kind {
    Kind::Aead { key, iv: (7, 13) }
}
/// An AEAD with one length of nonce.
const fn aead(key: usize, nonce: usize) -> Kind {
    Kind::Aead { key, iv: (nonce, nonce) }
}

algorithms! {
    Aes128Ecb = 0, "AES-128-ECB", cipher(16, 0, 16);
    Aes192Ecb = 1, "AES-192-ECB", cipher(24, 0, 16);
    Aes256Ecb = 2, "AES-256-ECB", cipher(32, 0, 16);
    Aes128Cbc = 3, "AES-128-CBC", cipher(16, 16, 16);
    Aes192Cbc = 4, "AES-192-CBC", cipher(24, 16, 16);
    Aes256Cbc = 5, "AES-256-CBC", cipher(32, 16, 16);
    Aes128Ctr = 6, "AES-128-CTR", cipher(16, 16, 1);
    Aes192Ctr = 7, "AES-192-CTR", cipher(24, 16, 1);
    Aes256Ctr = 8, "AES-256-CTR", cipher(32, 16, 1);
    Aes128Gcm = 9, "AES-128-GCM", gcm(16);
    Aes192Gcm = 10, "AES-192-GCM", gcm(24);
    Aes256Gcm = 11, "AES-256-GCM", gcm(32);
    Aes128Xts = 12, "AES-128-XTS", cipher(32, 16, 16);
    Aes256Xts = 13, "AES-256-XTS", cipher(64, 16, 16);
    ChaCha20Poly1305 = 14, "ChaCha20-Poly1305", aead(32, 12);
    Sha256 = 15, "SHA-256", Kind::Digest { output: 32 };
    Sha384 = 16, "SHA-384", Kind::Digest { output: 48 };
    Sha512 = 17, "SHA-512", Kind::Digest { output: 64 };
    HmacSha256 = 18, "HMAC-SHA-256", Kind::Mac { output: 32 };
    HmacSha384 = 19, "HMAC-SHA-384", Kind::Mac { output: 48 };
    HmacSha512 = 20, "HMAC-SHA-512", Kind::Mac { output: 64 };
    Rsa2048Private = 21, "RSA-2048 private", Kind::RsaPrivate { bits: 2048 };
    Rsa3072Private = 22, "RSA-3072 private", Kind::RsaPrivate { bits: 3072 };
    Rsa4096Private = 23, "RSA-4096 private", Kind::RsaPrivate { bits: 4096 };
    Rsa2048Public = 24, "RSA-2048 public", Kind::RsaPublic { bits: 2048 };
    Rsa3072Public = 25, "RSA-3072 public", Kind::RsaPublic { bits: 3072 };
    Rsa4096Public = 26, "RSA-4096 public", Kind::RsaPublic { bits: 4096 };
    EcdsaP256Sign = 27, "ECDSA-P256 sign", Kind::EcdsaSign { scalar: 32 };
    EcdsaP256Verify = 28, "ECDSA-P256 verify", Kind::EcdsaVerify { scalar: 32 };
    EcdhP256 = 29, "ECDH-P256", Kind::Agreement { private: 32, public: 65, shared: 32 };
    EcdhP256Public = 30, "ECDH-P256 public", Kind::PublicValue { private: 32, public: 65 };
    X25519 = 31, "X25519", Kind::Agreement { private: 32, public: 32, shared: 32 };
    X25519Public = 32, "X25519 public", Kind::PublicValue { private: 32, public: 32 };
    Rsa1024Private = 33, "RSA-1024 private", Kind::RsaPrivate { bits: 1024 };
    Rsa1024Public = 34, "RSA-1024 public", Kind::RsaPublic { bits: 1024 };
    EcdsaP384Sign = 35, "ECDSA-P384 sign", Kind::EcdsaSign { scalar: 48 };
    EcdsaP384Verify = 36, "ECDSA-P384 verify", Kind::EcdsaVerify { scalar: 48 };
    EcdhP384 = 37, "ECDH-P384", Kind::Agreement { private: 48, public: 97, shared: 48 };
    EcdhP384Public = 38, "ECDH-P384 public", Kind::PublicValue { private: 48, public: 97 };
    Ed25519Sign = 39, "Ed25519 sign", Kind::EddsaSign { private: 32, signature: 64 };
    // Legacy, down to RC6: see `is_legacy`.
    DesEcb = 40, "DES-ECB", cipher(8, 0, 8);
    DesCbc = 41, "DES-CBC", cipher(8, 8, 8);
    DesCtr = 42, "DES-CTR", cipher(8, 8, 1);
    TripleDesEcb = 43, "DES-EDE3-ECB", cipher(24, 0, 8);
    TripleDesCbc = 44, "DES-EDE3-CBC", cipher(24, 8, 8);
    TripleDesCtr = 45, "DES-EDE3-CTR", cipher(24, 8, 1);
    Camellia128Ecb = 46, "Camellia-128-ECB", cipher(16, 0, 16);
    Camellia192Ecb = 47, "Camellia-192-ECB", cipher(24, 0, 16);
    Camellia256Ecb = 48, "Camellia-256-ECB", cipher(32, 0, 16);
    Camellia128Cbc = 49, "Camellia-128-CBC", cipher(16, 16, 16);
    Camellia192Cbc = 50, "Camellia-192-CBC", cipher(24, 16, 16);
    Camellia256Cbc = 51, "Camellia-256-CBC", cipher(32, 16, 16);
    Camellia128Ctr = 52, "Camellia-128-CTR", cipher(16, 16, 1);
    Camellia192Ctr = 53, "Camellia-192-CTR", cipher(24, 16, 1);
    Camellia256Ctr = 54, "Camellia-256-CTR", cipher(32, 16, 1);
    Serpent128Ecb = 55, "Serpent-128-ECB", cipher(16, 0, 16);
    Serpent192Ecb = 56, "Serpent-192-ECB", cipher(24, 0, 16);
    Serpent256Ecb = 57, "Serpent-256-ECB", cipher(32, 0, 16);
    Serpent128Cbc = 58, "Serpent-128-CBC", cipher(16, 16, 16);
    Serpent192Cbc = 59, "Serpent-192-CBC", cipher(24, 16, 16);
    Serpent256Cbc = 60, "Serpent-256-CBC", cipher(32, 16, 16);
    Serpent128Ctr = 61, "Serpent-128-CTR", cipher(16, 16, 1);
    Serpent192Ctr = 62, "Serpent-192-CTR", cipher(24, 16, 1);
    Serpent256Ctr = 63, "Serpent-256-CTR", cipher(32, 16, 1);
    Twofish128Ecb = 64, "Twofish-128-ECB", cipher(16, 0, 16);
    Twofish192Ecb = 65, "Twofish-192-ECB", cipher(24, 0, 16);
    Twofish256Ecb = 66, "Twofish-256-ECB", cipher(32, 0, 16);
    Twofish128Cbc = 67, "Twofish-128-CBC", cipher(16, 16, 16);
    Twofish192Cbc = 68, "Twofish-192-CBC", cipher(24, 16, 16);
    Twofish256Cbc = 69, "Twofish-256-CBC", cipher(32, 16, 16);
    Twofish128Ctr = 70, "Twofish-128-CTR", cipher(16, 16, 1);
    Twofish192Ctr = 71, "Twofish-192-CTR", cipher(24, 16, 1);
    Twofish256Ctr = 72, "Twofish-256-CTR", cipher(32, 16, 1);
    Rc6_128Ecb = 73, "RC6-128-ECB", cipher(16, 0, 16);
    Rc6_192Ecb = 74, "RC6-192-ECB", cipher(24, 0, 16);
    Rc6_256Ecb = 75, "RC6-256-ECB", cipher(32, 0, 16);
    Rc6_128Cbc = 76, "RC6-128-CBC", cipher(16, 16, 16);
    Rc6_192Cbc = 77, "RC6-192-CBC", cipher(24, 16, 16);
    Rc6_256Cbc = 78, "RC6-256-CBC", cipher(32, 16, 16);
    Rc6_128Ctr = 79, "RC6-128-CTR", cipher(16, 16, 1);
    Rc6_192Ctr = 80, "RC6-192-CTR", cipher(24, 16, 1);
    Rc6_256Ctr = 81, "RC6-256-CTR", cipher(32, 16, 1);
    // Current ones again.
    Aes128Ccm = 82, "AES-128-CCM", ccm(16);
    Aes192Ccm = 83, "AES-192-CCM", ccm(24);
    Aes256Ccm = 84, "AES-256-CCM", ccm(32);
    Aes128GcmSiv = 85, "AES-128-GCM-SIV", aead(16, 12);
    Aes256GcmSiv = 86, "AES-256-GCM-SIV", aead(32, 12);
    Aegis128L = 87, "AEGIS-128L", aead(16, 16);
    Aegis128X4 = 88, "AEGIS-128X4", aead(16, 16);
    Aegis256 = 89, "AEGIS-256", aead(32, 32);
    // Hashes that programs of the cryptodev interface ask for; all but SHA-224 legacy.
    Md5 = 90, "MD5", Kind::Digest { output: 16 };
    Sha1 = 91, "SHA-1", Kind::Digest { output: 20 };
    Sha224 = 92, "SHA-224", Kind::Digest { output: 28 };
    Ripemd160 = 93, "RIPEMD-160", Kind::Digest { output: 20 };
    HmacMd5 = 94, "HMAC-MD5", Kind::Mac { output: 16 };
    HmacSha1 = 95, "HMAC-SHA-1", Kind::Mac { output: 20 };
    HmacSha224 = 96, "HMAC-SHA-224", Kind::Mac { output: 28 };
    HmacRipemd160 = 97, "HMAC-RIPEMD-160", Kind::Mac { output: 20 };
    // Ciphers that they ask for; Blowfish is legacy, and takes keys of other lengths too: see `key_lengths`.
    BlowfishCbc = 98, "Blowfish-CBC", cipher(16, 8, 8);
    Aes128Cfb = 99, "AES-128-CFB", cipher(16, 16, 1);
    Aes192Cfb = 100, "AES-192-CFB", cipher(24, 16, 1);
    Aes256Cfb = 101, "AES-256-CFB", cipher(32, 16, 1);
    Aes128Ofb = 102, "AES-128-OFB", cipher(16, 16, 1);
    Aes192Ofb = 103, "AES-192-OFB", cipher(24, 16, 1);
    Aes256Ofb = 104, "AES-256-OFB", cipher(32, 16, 1);
}

impl Algorithm {
    /// How many algorithms there are; their numbers are `0..COUNT`.
    pub const COUNT: usize = Self::ALL.len();

    /// Those that are not [legacy](Self::is_legacy): what is offered, measured and listed where nobody asks for more.
    pub const CURRENT: &'static [Algorithm] = &current::<{ count_current() }>();

    /// Whether it is for old data and old protocols alone: a [legacy cipher](Self::is_legacy_cipher) or a [legacy hash](Self::is_legacy_hash). An engine that
    /// has it computes it for whoever opens a session of it by name; nothing else ever chooses it.
    pub const fn is_legacy(self) -> bool {
        self.is_legacy_cipher() || self.is_legacy_hash()
    }

    /// Whether it is a cipher for old data: DES, 3DES (withdrawn by SP 800-131A), Camellia, Serpent, Twofish, RC6, Blowfish.
    pub const fn is_legacy_cipher(self) -> bool {
        let number = self.number();
        (Self::DesEcb.number() <= number && number <= Self::Rc6_256Ctr.number()) || number == Self::BlowfishCbc.number()
    }

    /// Whether it is a hash for old data: MD5 and SHA-1, whose collisions have been found (RFC 6151, RFC 6194), RIPEMD-160, whose values are too short to be safe
    /// from them, or the HMAC of one. The HMACs are not known to be broken, but nothing new needs them.
    pub const fn is_legacy_hash(self) -> bool {
        matches!(self, Self::Md5 | Self::Sha1 | Self::Ripemd160 | Self::HmacMd5 | Self::HmacSha1 | Self::HmacRipemd160)
    }

    /// The number under which it travels in protocols and traces.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The algorithm of that number, if there is one: the check for every number that comes from outside.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether one operation costs the same whatever its input (public-key operations): its size class is then always 0.
    pub const fn is_public_key(self) -> bool {
        ARE_PUBLIC_KEY[self as usize]
    }

    /// Whether the mode is XTS, whose length rules (at least one block, then any length) differ from other block modes.
    pub const fn is_xts(self) -> bool {
        matches!(self, Self::Aes128Xts | Self::Aes256Xts)
    }

    /// Whether it is AES-CCM (SP 800-38C), whose longest message depends on the length of the nonce.
    pub const fn is_ccm(self) -> bool {
        matches!(self, Self::Aes128Ccm | Self::Aes192Ccm | Self::Aes256Ccm)
    }

    /// Whether a message cannot come in pieces: all of it must be there before the first byte is enciphered (CCM, GCM-SIV).
    pub const fn is_one_shot(self) -> bool {
        self.is_ccm() || matches!(self, Self::Aes128GcmSiv | Self::Aes256GcmSiv)
    }

    /// Shortest and longest key of a cipher or AEAD, in bytes: both its one length, but for Blowfish, whose [`kind`](Self::kind) names the usual one. No bytes for others.
    pub const fn key_lengths(self) -> (usize, usize) {
        match self.kind() {
            _ if matches!(self, Self::BlowfishCbc) => (4, 56),
            Kind::Cipher { key, .. } | Kind::Aead { key, .. } => (key, key),
            _ => (0, 0),
        }
    }

    /// Length of the IV where any will do: 12 bytes where an AEAD takes several.
    pub const fn usual_iv_len(self) -> usize {
        match self.kind() {
            Kind::Cipher { iv, .. } => iv,
            Kind::Aead { iv: (min, max), .. } => match (min, max) {
                (13.., _) => min,
                (_, ..12) => max,
                _ => 12,
            },
            _ => 0,
        }
    }

    /// Length of the output for an input of `input` bytes, the tag not counted.
    pub const fn output_len(self, input: usize) -> usize {
        match self.kind() {
            Kind::Cipher { .. } | Kind::Aead { .. } => input,
            Kind::Digest { output } | Kind::Mac { output } => output,
            Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } => bits / 8,
            Kind::EcdsaSign { scalar } => 2 * scalar,
            Kind::EcdsaVerify { .. } => 0,
            Kind::Agreement { shared, .. } => shared,
            Kind::EddsaSign { signature, .. } => signature,
            Kind::PublicValue { public, .. } => public,
        }
    }
}

/// By number: asked several times of each request.
const ARE_PUBLIC_KEY: [bool; Algorithm::COUNT] = {
    let (mut are, mut at) = ([false; Algorithm::COUNT], 0);
    while at < Algorithm::COUNT {
        are[at] = !matches!(Algorithm::ALL[at].kind(), Kind::Cipher { .. } | Kind::Aead { .. } | Kind::Digest { .. } | Kind::Mac { .. });
        at += 1;
    }
    are
};

const fn count_current() -> usize {
    let (mut at, mut count) = (0, 0);
    while at < Algorithm::COUNT {
        if !Algorithm::ALL[at].is_legacy() {
            count += 1;
        }
        at += 1;
    }
    count
}

const fn current<const COUNT: usize>() -> [Algorithm; COUNT] {
    let (mut found, mut at, mut count) = ([Algorithm::ALL[0]; COUNT], 0, 0);
    while at < Algorithm::COUNT {
        if !Algorithm::ALL[at].is_legacy() {
            found[count] = Algorithm::ALL[at];
            count += 1;
        }
        at += 1;
    }
    found
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    /// By name; case, and spaces against dashes, do not matter: `aes-256-gcm`, `rsa-2048-private`. 3DES goes by OpenSSL's name,
    /// `des-ede3-cbc`, and by its own, `3des-cbc`.
    fn from_str(name: &str) -> Result<Self> {
        let fold = |s: &str| -> String { s.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect() };
        let wanted = fold(name);
        let wanted = wanted.strip_prefix("3des").map_or_else(|| wanted.clone(), |mode| format!("desede3{mode}"));
        Self::ALL.iter().copied().find(|a| fold(a.name()) == wanted).ok_or_else(|| Error::UnknownAlgorithm { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_round_trip() {
        for (index, algorithm) in Algorithm::ALL.iter().enumerate() {
            assert_eq!(usize::from(algorithm.number()), index);
            assert_eq!(Algorithm::from_number(algorithm.number()), Some(*algorithm));
            assert_eq!(algorithm.name().parse::<Algorithm>().unwrap(), *algorithm);
        }
        assert_eq!(Algorithm::from_number(u16::MAX), None);
    }

    #[test]
    fn legacy_algorithms_are_no_current_ones() {
        assert!(Algorithm::DesEcb.is_legacy() && Algorithm::Serpent128Cbc.is_legacy() && Algorithm::Rc6_256Ctr.is_legacy());
        assert!(Algorithm::BlowfishCbc.is_legacy() && !Algorithm::Aes128Ofb.is_legacy());
        assert!(!Algorithm::Ed25519Sign.is_legacy() && !Algorithm::Aes128Cbc.is_legacy());
        assert!(Algorithm::Md5.is_legacy() && Algorithm::HmacSha1.is_legacy() && !Algorithm::HmacSha224.is_legacy());
        assert!(Algorithm::ALL.iter().all(|algorithm| !(algorithm.is_legacy_cipher() && algorithm.is_legacy_hash())));
        assert!(Algorithm::CURRENT.iter().all(|algorithm| !algorithm.is_legacy()));
        assert_eq!(Algorithm::CURRENT.len() + 43 + 6, Algorithm::COUNT);
    }

    #[test]
    fn the_usual_iv_is_one_that_is_taken() {
        for algorithm in Algorithm::ALL {
            if let Kind::Aead { iv: (min, max), .. } = algorithm.kind() {
                assert_eq!(algorithm.usual_iv_len(), 12.clamp(min, max), "{algorithm}");
            }
        }
        assert_eq!((Algorithm::Aes128Ecb.usual_iv_len(), Algorithm::Aes128Cbc.usual_iv_len()), (0, 16));
    }

    #[test]
    fn names_are_forgiving_but_not_guessed() {
        assert_eq!("aes256gcm".parse::<Algorithm>().unwrap(), Algorithm::Aes256Gcm);
        assert_eq!("rsa-2048-private".parse::<Algorithm>().unwrap(), Algorithm::Rsa2048Private);
        assert_eq!("des-ede3-cbc".parse::<Algorithm>().unwrap(), Algorithm::TripleDesCbc);
        assert_eq!("3des-ctr".parse::<Algorithm>().unwrap(), Algorithm::TripleDesCtr);
        assert_eq!("camellia-256-ctr".parse::<Algorithm>().unwrap(), Algorithm::Camellia256Ctr);
        let error = "AES-257-GCM".parse::<Algorithm>().unwrap_err();
        assert!(error.to_string().contains("AES-257-GCM"), "{error}");
    }
}
