//! Keys of a broker's vault, as they are spoken of: which kinds there are, what may be done with them, by whom, and the owner's commands.

use bywash_core::{Algorithm, Error, Kind};
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// The kinds of keys that a vault keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyAlgorithm {
    /// RSA with a modulus of 2048 bits.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
    /// RSA with a modulus of 3072 bits.
    #[serde(rename = "rsa-3072")]
    Rsa3072,
    /// RSA with a modulus of 4096 bits.
    #[serde(rename = "rsa-4096")]
    Rsa4096,
    /// An elliptic-curve key on NIST P-256.
    P256,
    /// An elliptic-curve key on NIST P-384.
    P384,
    /// An Ed25519 key (RFC 8032).
    Ed25519,
}

impl KeyAlgorithm {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Rsa2048, Self::Rsa3072, Self::Rsa4096, Self::P256, Self::P384, Self::Ed25519];

    /// The name by which users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rsa2048 => "rsa-2048",
            Self::Rsa3072 => "rsa-3072",
            Self::Rsa4096 => "rsa-4096",
            Self::P256 => "p256",
            Self::P384 => "p384",
            Self::Ed25519 => "ed25519",
        }
    }

    /// The RSA key of so many bits.
    pub const fn rsa(bits: usize) -> Option<Self> {
        match bits {
            2048 => Some(Self::Rsa2048),
            3072 => Some(Self::Rsa3072),
            4096 => Some(Self::Rsa4096),
            _ => None,
        }
    }

    /// What such a key signs with; with RSA it is also what it decrypts with.
    pub const fn signature(self) -> Algorithm {
        match self {
            Self::Rsa2048 => Algorithm::Rsa2048Private,
            Self::Rsa3072 => Algorithm::Rsa3072Private,
            Self::Rsa4096 => Algorithm::Rsa4096Private,
            Self::P256 => Algorithm::EcdsaP256Sign,
            Self::P384 => Algorithm::EcdsaP384Sign,
            Self::Ed25519 => Algorithm::Ed25519Sign,
        }
    }

    /// How such a key agrees on a secret, if it can.
    pub const fn agreement(self) -> Option<Algorithm> {
        match self {
            Self::P256 => Some(Algorithm::EcdhP256),
            Self::P384 => Some(Algorithm::EcdhP384),
            Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096 | Self::Ed25519 => None,
        }
    }

    /// Whether such a key can be used so at all.
    pub const fn can(self, one: KeyUse) -> bool {
        match one {
            KeyUse::Sign => true,
            KeyUse::Decrypt => matches!(self, Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096),
            KeyUse::Derive => self.agreement().is_some(),
        }
    }

    /// Whether a session of this algorithm can be opened with such a key.
    pub fn serves(self, algorithm: Algorithm) -> bool {
        algorithm == self.signature() || Some(algorithm) == self.agreement()
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KeyAlgorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("'{name}' is none of {}", known()))
    }
}

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyUse {
    /// Signatures. With RSA the block to sign must bear the padding of a signature: PKCS#1 v1.5, or PSS with a salt no longer than its digest.
    Sign,
    /// With RSA, any private operation: decryption, and by that also any signature.
    Decrypt,
    /// Key agreement (ECDH).
    Derive,
}

impl KeyUse {
    /// Every use.
    pub const ALL: [Self; 3] = [Self::Sign, Self::Decrypt, Self::Derive];

    /// The name by which users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Decrypt => "decrypt",
            Self::Derive => "derive",
        }
    }

    /// The least that a session of this algorithm is for; with RSA each request says more.
    pub const fn of(algorithm: Algorithm) -> Self {
        match algorithm.kind() {
            Kind::Agreement { .. } => Self::Derive,
            _ => Self::Sign,
        }
    }
}

impl FromStr for KeyUse {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("'{name}' is none of sign, decrypt, derive"))
    }
}

/// Who may do what with a key, and how often. The broker's own user and root need no mention to use it; the rest holds for them too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyPolicy {
    /// Other users who may use it.
    pub uids: Vec<u32>,
    /// Groups whose members may use it.
    pub gids: Vec<u32>,
    /// What it may be used for.
    pub uses: Vec<KeyUse>,
    /// Uses a second, of all clients together; as many can be saved up.
    pub rate: Option<u32>,
}

impl Default for KeyPolicy {
    /// Signatures for the broker's own user and root, without a limit.
    fn default() -> Self {
        Self { uids: Vec::new(), gids: Vec::new(), uses: vec![KeyUse::Sign], rate: None }
    }
}

impl KeyPolicy {
    /// Whether it may be used so.
    pub fn allows(&self, one: KeyUse) -> bool {
        self.uses.contains(&one)
    }

    /// Its uses in words.
    pub fn uses_in_words(&self) -> String {
        self.uses.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ")
    }
}

/// What the vault's owner can ask for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyCommand<'a> {
    /// Takes a key over from elsewhere.
    Import {
        /// Its name to be.
        name: &'a str,
        /// PKCS#8 in DER.
        private: &'a [u8],
        /// Who may do what with it.
        policy: KeyPolicy,
    },
    /// Makes a key.
    Generate {
        /// Its name to be.
        name: &'a str,
        /// Its kind.
        algorithm: KeyAlgorithm,
        /// Who may do what with it.
        policy: KeyPolicy,
    },
    /// All keys.
    List,
    /// New key material under the same name.
    Rotate {
        /// Which key.
        name: &'a str,
        /// PKCS#8 in DER; without it the broker makes a key of the same kind.
        private: Option<&'a [u8]>,
        /// For how many seconds the old key can still be used by who knows its public half.
        grace_s: u64,
    },
    /// Another policy.
    Policy {
        /// Which key.
        name: &'a str,
        /// Who may do what with it from now on.
        policy: KeyPolicy,
    },
    /// Forgets a key; sessions that use it end.
    Remove {
        /// Which key.
        name: &'a str,
    },
}

impl fmt::Debug for KeyCommand<'_> {
    /// Without keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb(), self.name().unwrap_or_default())
    }
}

impl KeyCommand<'_> {
    /// What it does, in a word.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Import { .. } => "import",
            Self::Generate { .. } => "generate",
            Self::List => "list",
            Self::Rotate { .. } => "rotate",
            Self::Policy { .. } => "policy",
            Self::Remove { .. } => "remove",
        }
    }

    /// The key it is about.
    pub const fn name(&self) -> Option<&str> {
        match self {
            Self::List => None,
            Self::Import { name, .. }
            | Self::Generate { name, .. }
            | Self::Rotate { name, .. }
            | Self::Policy { name, .. }
            | Self::Remove { name } => Some(name),
        }
    }
}

/// What is told of a key. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    /// Its name.
    pub name: String,
    /// Its URI.
    pub uri: String,
    /// Its kind.
    pub algorithm: KeyAlgorithm,
    /// SHA-256 of its `SubjectPublicKeyInfo`, in hexadecimal.
    pub fingerprint: String,
    /// When the name was first given.
    pub created: u64,
    /// When the present key was made, if it is not the first.
    pub rotated: Option<u64>,
    /// When the old keys of this name cease to work, if there are any.
    pub old_until: Option<u64>,
    /// Who may do what with it.
    pub policy: KeyPolicy,
    /// Uses since the broker started; none where no broker runs.
    pub used: Option<u64>,
}

/// The error of a key that cannot be had or used.
pub fn key_error(name: &str, reason: impl Into<String>) -> Error {
    Error::VaultKey { name: name.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_in_words_and_json() {
        for kind in KeyAlgorithm::ALL {
            assert_eq!(kind.name().parse::<KeyAlgorithm>(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
        assert!("rsa-1024".parse::<KeyAlgorithm>().unwrap_err().contains("rsa-2048, rsa-3072"));
        for one in KeyUse::ALL {
            assert_eq!(one.name().parse::<KeyUse>(), Ok(one));
        }
    }

    #[test]
    fn a_key_serves_its_own_algorithms() {
        assert!(KeyAlgorithm::P256.serves(Algorithm::EcdhP256) && KeyAlgorithm::Rsa3072.serves(Algorithm::Rsa3072Private));
        assert!(KeyAlgorithm::P384.serves(Algorithm::EcdsaP384Sign) && KeyAlgorithm::Ed25519.serves(Algorithm::Ed25519Sign));
        assert!(!KeyAlgorithm::P256.serves(Algorithm::Rsa2048Private) && !KeyAlgorithm::Rsa2048.serves(Algorithm::Rsa3072Private));
        assert!(!KeyAlgorithm::P384.serves(Algorithm::EcdhP256) && !KeyAlgorithm::Ed25519.serves(Algorithm::X25519));
    }

    #[test]
    fn each_kind_can_do_what_its_algorithms_do() {
        let uses = |kind: KeyAlgorithm| KeyUse::ALL.into_iter().filter(|&one| kind.can(one)).collect::<Vec<_>>();
        assert_eq!(uses(KeyAlgorithm::Rsa4096), [KeyUse::Sign, KeyUse::Decrypt]);
        assert_eq!(uses(KeyAlgorithm::P384), [KeyUse::Sign, KeyUse::Derive]);
        assert_eq!(uses(KeyAlgorithm::Ed25519), [KeyUse::Sign]);
    }

    #[test]
    fn commands_never_print_keys() {
        let command = KeyCommand::Import { name: "web", private: &[77; 4], policy: KeyPolicy::default() };
        assert_eq!(format!("{command:?}"), "import web");
    }
}
