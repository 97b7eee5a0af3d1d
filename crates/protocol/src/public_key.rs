//! Public halves of vault keys, to and from `SubjectPublicKeyInfo` (RFC 5280 s4.1.2.7, RFC 8017 appendix A, RFC 5480, RFC 8410).

use crate::keys::KeyAlgorithm;
use crate::oid;
use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier, UintRef};
use der::{Decode, Encode};
use spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};

/// A public key of a kind that a vault keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    /// RSA: modulus and exponent, big-endian without leading zeros.
    Rsa {
        /// n.
        modulus: Vec<u8>,
        /// e.
        exponent: Vec<u8>,
    },
    /// P-256: the uncompressed point, 65 bytes (SEC 1 s2.3.3). Whether it is on the curve is not checked here.
    P256(Vec<u8>),
    /// P-384: the uncompressed point, 97 bytes. Whether it is on the curve is not checked here.
    P384(Vec<u8>),
    /// Ed25519: the 32 bytes of RFC 8032 s5.1.5. Whether they are a point is not checked here.
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo`; none if it is not one of ours to the letter.
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfo::<AnyRef<'_>, BitStringRef<'_>>::from_der(der).ok()?;
        let bits = info.subject_public_key.as_bytes()?;
        match info.algorithm.oid {
            oid::RSA if info.algorithm.parameters.is_some_and(|any| any.is_null()) => {
                let key = pkcs1::RsaPublicKeyRef::from_der(bits).ok()?;
                let (modulus, exponent) = (key.modulus.as_bytes().to_vec(), key.public_exponent.as_bytes().to_vec());
                Some(Self::Rsa { modulus, exponent })
            }
            oid::EC => {
                let point = |length| (bits.len() == length && bits[0] == 4).then(|| bits.to_vec());
                match info.algorithm.parameters?.decode_as::<ObjectIdentifier>().ok()? {
                    oid::P256 => point(65).map(Self::P256),
                    oid::P384 => point(97).map(Self::P384),
                    _ => None,
                }
            }
            oid::ED25519 if info.algorithm.parameters.is_none() && bits.len() == 32 => Some(Self::Ed25519(bits.to_vec())),
            _ => None,
        }
    }

    /// As a `SubjectPublicKeyInfo`; none for numbers that are too long to be keys.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        let wrap = |oid, parameters: Option<AnyRef<'_>>, bits: &[u8]| {
            let algorithm = AlgorithmIdentifier { oid, parameters };
            SubjectPublicKeyInfo { algorithm, subject_public_key: BitStringRef::from_bytes(bits).ok()? }.to_der().ok()
        };
        match self {
            Self::Rsa { modulus, exponent } => {
                let key = pkcs1::RsaPublicKey { modulus: UintRef::new(modulus).ok()?, public_exponent: UintRef::new(exponent).ok()? };
                wrap(oid::RSA, Some(AnyRef::NULL), &key.to_der().ok()?)
            }
            Self::P256(point) => wrap(oid::EC, Some((&oid::P256).into()), point),
            Self::P384(point) => wrap(oid::EC, Some((&oid::P384).into()), point),
            Self::Ed25519(bytes) => wrap(oid::ED25519, None, bytes),
        }
    }

    /// Its kind; none for an RSA key of a length that a vault does not keep.
    pub fn algorithm(&self) -> Option<KeyAlgorithm> {
        match self {
            Self::Rsa { modulus, .. } => {
                let first = modulus.iter().position(|&byte| byte != 0)?;
                KeyAlgorithm::rsa((modulus.len() - first) * 8 - modulus[first].leading_zeros() as usize)
            }
            Self::P256(_) => Some(KeyAlgorithm::P256),
            Self::P384(_) => Some(KeyAlgorithm::P384),
            Self::Ed25519(_) => Some(KeyAlgorithm::Ed25519),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_round_trips() {
        let keys = [
            (PublicKey::Rsa { modulus: vec![0xC1; 256], exponent: vec![1, 0, 1] }, KeyAlgorithm::Rsa2048),
            (PublicKey::P256([&[4][..], &[7; 64]].concat()), KeyAlgorithm::P256),
            (PublicKey::P384([&[4][..], &[7; 96]].concat()), KeyAlgorithm::P384),
            (PublicKey::Ed25519(vec![7; 32]), KeyAlgorithm::Ed25519),
        ];
        for (key, kind) in keys {
            assert_eq!(PublicKey::from_der(&key.to_der().unwrap()).unwrap(), key);
            assert_eq!(key.algorithm(), Some(kind));
        }
        assert_eq!(PublicKey::Rsa { modulus: vec![0xC1; 128], exponent: vec![3] }.algorithm(), None);
    }

    #[test]
    fn what_is_cut_or_continued_is_refused() {
        for key in [PublicKey::P256([&[4][..], &[7; 64]].concat()), PublicKey::Ed25519(vec![7; 32])] {
            let der = key.to_der().unwrap();
            (0..der.len()).for_each(|cut| assert_eq!(PublicKey::from_der(&der[..cut]), None));
            assert_eq!(PublicKey::from_der(&[&der[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn a_point_has_the_length_of_its_curve() {
        let wrong = [
            PublicKey::P256([&[4][..], &[7; 96]].concat()),
            PublicKey::P384([&[4][..], &[7; 64]].concat()),
            PublicKey::P384([&[2][..], &[7; 96]].concat()),
            PublicKey::Ed25519(vec![7; 33]),
        ];
        wrong.into_iter().for_each(|key| assert_eq!(PublicKey::from_der(&key.to_der().unwrap()), None));
    }
}
