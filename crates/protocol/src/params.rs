//! Session parameters on the socket. Keys are borrowed from the message buffer, which is wiped; no copy of them is left behind.

use bywash_core::{Algorithm, Error, Key, KeyReference, Result, RsaPrivateKey, RsaPublicKey, SecretBytes, SessionParams};
use serde::{Deserialize, Serialize};

/// An algorithm and its key, as they travel. Not yet checked: [`WireParams::check`] does that, in core's one place for it.
#[derive(Clone, Serialize, Deserialize)]
pub struct WireParams<'a> {
    algorithm: u16,
    tag_len: u8,
    #[serde(borrow)]
    key: WireKey<'a>,
}

#[derive(Clone, Serialize, Deserialize)]
enum WireKey<'a> {
    None,
    Symmetric(&'a [u8]),
    RsaPublic {
        modulus: &'a [u8],
        exponent: &'a [u8],
    },
    RsaPrivate {
        modulus: &'a [u8],
        exponent: &'a [u8],
        private: &'a [u8],
        primes: [&'a [u8]; 2],
        exponents: [&'a [u8]; 2],
        coefficient: &'a [u8],
    },
    EcPrivate(&'a [u8]),
    EcPublic(&'a [u8]),
    Vault {
        name: &'a str,
        public: &'a [u8],
    },
}

impl core::fmt::Debug for WireParams<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "WireParams {{ algorithm: {}, tag_len: {}, key: [secret] }}", self.algorithm, self.tag_len)
    }
}

impl<'a> WireParams<'a> {
    /// Parameters to be sent.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for a kind of key that this version of the protocol does not carry.
    pub fn new(params: &'a SessionParams) -> Result<Self> {
        let key = match params.key() {
            Key::None => WireKey::None,
            Key::Symmetric(bytes) => WireKey::Symmetric(bytes),
            Key::RsaPublic(key) => WireKey::RsaPublic { modulus: &key.modulus, exponent: &key.exponent },
            Key::RsaPrivate(key) => WireKey::RsaPrivate {
                modulus: &key.public.modulus,
                exponent: &key.public.exponent,
                private: &key.private_exponent,
                primes: [&key.prime1, &key.prime2],
                exponents: [&key.exponent1, &key.exponent2],
                coefficient: &key.coefficient,
            },
            Key::EcPrivate(bytes) => WireKey::EcPrivate(bytes),
            Key::EcPublic(point) => WireKey::EcPublic(point),
            Key::Vault(key) => WireKey::Vault { name: &key.name, public: &key.public },
            _ => return Err(Error::Unavailable { what: "the broker's protocol does not carry this kind of key; run it in place".into() }),
        };
        // Tags are at most 64 bytes long.
        Ok(Self { algorithm: params.algorithm().number(), tag_len: params.tag_len() as u8, key })
    }

    /// Checks what was received and takes the key out of the message buffer.
    ///
    /// # Errors
    /// As [`SessionParams::new`]; [`Error::UnknownAlgorithm`].
    pub fn check(&self) -> Result<SessionParams> {
        let unknown = || Error::UnknownAlgorithm { name: format!("number {}", self.algorithm) };
        let algorithm = Algorithm::from_number(self.algorithm).ok_or_else(unknown)?;
        let public = |modulus: &[u8], exponent: &[u8]| RsaPublicKey { modulus: modulus.to_vec(), exponent: exponent.to_vec() };
        let key = match self.key {
            WireKey::None => Key::None,
            WireKey::Symmetric(bytes) => Key::Symmetric(SecretBytes::from(bytes)),
            WireKey::RsaPublic { modulus, exponent } => Key::RsaPublic(public(modulus, exponent)),
            WireKey::RsaPrivate { modulus, exponent, private, primes, exponents, coefficient } => Key::RsaPrivate(RsaPrivateKey {
                public: public(modulus, exponent),
                private_exponent: private.into(),
                prime1: primes[0].into(),
                prime2: primes[1].into(),
                exponent1: exponents[0].into(),
                exponent2: exponents[1].into(),
                coefficient: coefficient.into(),
            }),
            WireKey::EcPrivate(bytes) => Key::EcPrivate(bytes.into()),
            WireKey::EcPublic(point) => Key::EcPublic(point.to_vec()),
            WireKey::Vault { name, public } => Key::Vault(KeyReference { name: name.to_owned(), public: public.to_vec() }),
        };
        SessionParams::new(algorithm, key)?.with_tag_len(usize::from(self.tag_len))
    }
}
