//! A private key that was checked: its kind, its public half, and itself on locked pages.

use crate::source::{ED25519_SEED, scalar_len};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
};
use bywash_core::{Algorithm, Key, RsaPrivateKey, RsaPublicKey, SecretBytes};
use bywash_protocol::keys::{KeyAlgorithm, key_error};
use bywash_protocol::{LockedBytes, PublicKey, oid};
use der::Decode;
use der::asn1::{ObjectIdentifier, OctetStringRef, UintRef};
use pkcs8::PrivateKeyInfoRef;

/// A checked private key.
#[derive(Debug)]
pub struct Material {
    algorithm: KeyAlgorithm,
    public: Vec<u8>,
    private: LockedBytes,
}

impl Material {
    /// Takes a key from PKCS#8 and checks it: its size, its numbers, its point.
    ///
    /// # Errors
    /// A text for people: what is wrong with it.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, String> {
        let info = PrivateKeyInfoRef::from_der(der).map_err(|_| "it is no PKCS#8 private key")?;
        let public = match info.algorithm.oid {
            oid::RSA => check_rsa(der, info.private_key.as_bytes())?,
            oid::EC => check_ec(der, &info)?,
            oid::ED25519 => check_ed25519(&info)?,
            other => return Err(format!("keys of its kind ({other}) are not kept; RSA, P-256, P-384 and Ed25519 are")),
        };
        let algorithm = public.algorithm().ok_or("keys of its size are not kept")?;
        let public = public.to_der().ok_or("its public half cannot be written")?;
        let private = LockedBytes::new(der).map_err(|error| error.to_string())?;
        Ok(Self { algorithm, public, private })
    }

    /// Makes a key.
    ///
    /// # Errors
    /// A text for people; only a broken generator of random numbers fails.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, String> {
        let failed = |_| "it could not be made: the generator of random numbers failed".to_owned();
        let rsa = |size| {
            let der: Pkcs8V1Der<'static> = rsa::KeyPair::generate(size).map_err(failed)?.as_der().map_err(failed)?;
            Self::from_pkcs8(der.as_ref())
        };
        let ec = |algorithm| Self::from_pkcs8(EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).map_err(failed)?.as_ref());
        match algorithm {
            KeyAlgorithm::Rsa2048 => rsa(KeySize::Rsa2048),
            KeyAlgorithm::Rsa3072 => rsa(KeySize::Rsa3072),
            KeyAlgorithm::Rsa4096 => rsa(KeySize::Rsa4096),
            KeyAlgorithm::P256 => ec(&ECDSA_P256_SHA256_ASN1_SIGNING),
            KeyAlgorithm::P384 => ec(&ECDSA_P384_SHA384_ASN1_SIGNING),
            KeyAlgorithm::Ed25519 => Self::from_pkcs8(Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).map_err(failed)?.as_ref()),
        }
    }

    /// Its kind.
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// Its public half, a `SubjectPublicKeyInfo` in DER.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// SHA-256 of its public half, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.public)
    }

    /// Whether the system keeps it out of swap.
    pub fn is_locked(&self) -> bool {
        self.private.is_locked()
    }

    /// A copy in PKCS#8, for the file.
    pub fn pkcs8(&self) -> SecretBytes {
        self.private.secret()
    }

    /// The key as engines take it, for a session of this algorithm.
    ///
    /// # Errors
    /// [`Error::VaultKey`](bywash_core::Error::VaultKey) if such a key does not serve the algorithm.
    pub fn key(&self, name: &str, algorithm: Algorithm) -> bywash_core::Result<Key> {
        if !self.algorithm.serves(algorithm) {
            return Err(key_error(name, format!("it is a key of kind {} and cannot be used for {algorithm}", self.algorithm)));
        }
        let der = self.private.secret();
        let damaged = || key_error(name, "it can no longer be read; restart the broker");
        let info = PrivateKeyInfoRef::from_der(&der).map_err(|_| damaged())?;
        let inner = info.private_key.as_bytes();
        match self.algorithm {
            KeyAlgorithm::P256 | KeyAlgorithm::P384 => {
                let key = sec1::EcPrivateKey::from_der(inner).map_err(|_| damaged())?;
                Ok(Key::EcPrivate(key.private_key.into()))
            }
            KeyAlgorithm::Ed25519 => {
                let seed = <&OctetStringRef>::from_der(inner).map_err(|_| damaged())?;
                Ok(Key::EcPrivate(seed.as_bytes().into()))
            }
            KeyAlgorithm::Rsa2048 | KeyAlgorithm::Rsa3072 | KeyAlgorithm::Rsa4096 => {
                Ok(Key::RsaPrivate(rsa_key(&pkcs1::RsaPrivateKeyRef::from_der(inner).map_err(|_| damaged())?)))
            }
        }
    }
}

/// SHA-256 in hexadecimal.
pub fn fingerprint(public: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, public);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn rsa_key(key: &pkcs1::RsaPrivateKeyRef<'_>) -> RsaPrivateKey {
    let secret = |number: &UintRef<'_>| SecretBytes::from(number.as_bytes());
    RsaPrivateKey {
        public: RsaPublicKey { modulus: key.modulus.as_bytes().to_vec(), exponent: key.public_exponent.as_bytes().to_vec() },
        private_exponent: secret(&key.private_exponent),
        prime1: secret(&key.prime1),
        prime2: secret(&key.prime2),
        exponent1: secret(&key.exponent1),
        exponent2: secret(&key.exponent2),
        coefficient: secret(&key.coefficient),
    }
}

fn check_rsa(pkcs8: &[u8], inner: &[u8]) -> Result<PublicKey, String> {
    let key = pkcs1::RsaPrivateKeyRef::from_der(inner).map_err(|_| "its RSA private key is damaged, or lacks its CRT parts")?;
    if key.other_prime_infos.is_some() {
        return Err("RSA keys of more than two primes are not kept".into());
    }
    let public = PublicKey::Rsa { modulus: key.modulus.as_bytes().to_vec(), exponent: key.public_exponent.as_bytes().to_vec() };
    let bytes = key.modulus.as_bytes();
    let bits = bytes.len() * 8 - bytes.first().map_or(0, |first| first.leading_zeros() as usize);
    if KeyAlgorithm::rsa(bits).is_none() {
        let small = if bits < 2048 { "too small: " } else { "" };
        return Err(format!("{small}it has {bits} bits; RSA keys of 2048, 3072 and 4096 bits are kept"));
    }
    rsa::KeyPair::from_pkcs8(pkcs8).map_err(|why| format!("its numbers do not make an RSA key ({why})"))?;
    Ok(public)
}

fn check_ec(pkcs8: &[u8], info: &PrivateKeyInfoRef<'_>) -> Result<PublicKey, String> {
    type Curve = (&'static EcdsaSigningAlgorithm, fn(Vec<u8>) -> PublicKey);
    let curve = info.algorithm.parameters.and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
    let (signing, public): Curve = match curve {
        Some(oid::P256) => (&ECDSA_P256_SHA256_ASN1_SIGNING, PublicKey::P256),
        Some(oid::P384) => (&ECDSA_P384_SHA384_ASN1_SIGNING, PublicKey::P384),
        _ => return Err("of elliptic-curve keys only those on P-256 and P-384, and Ed25519, are kept".into()),
    };
    let key = sec1::EcPrivateKey::from_der(info.private_key.as_bytes()).map_err(|_| "its elliptic-curve private key is damaged")?;
    let wanted = curve.and_then(scalar_len).unwrap_or_default();
    if key.private_key.len() != wanted {
        return Err(format!("its private scalar has {} bytes instead of {wanted}", key.private_key.len()));
    }
    let pair = EcdsaKeyPair::from_pkcs8(signing, pkcs8).map_err(|why| format!("its numbers do not make a key on its curve ({why})"))?;
    Ok(public(pair.public_key().as_ref().to_vec()))
}

/// Any 32 bytes are a key; a public half that comes along must be its own.
fn check_ed25519(info: &PrivateKeyInfoRef<'_>) -> Result<PublicKey, String> {
    let damaged = || "its Ed25519 private key is damaged".to_owned();
    let seed = <&OctetStringRef>::from_der(info.private_key.as_bytes()).map_err(|_| damaged())?;
    if info.algorithm.parameters.is_some() || seed.as_bytes().len() != ED25519_SEED {
        return Err(damaged());
    }
    let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_bytes()).map_err(|_| damaged())?;
    let public = pair.public_key().as_ref();
    match info.public_key.map(|bits| bits.as_bytes()) {
        Some(given) if given != Some(public) => Err("its private and public half do not belong together".into()),
        _ => Ok(PublicKey::Ed25519(public.to_vec())),
    }
}
