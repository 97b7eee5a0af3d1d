//! Public halves of vault keys, to and from `SubjectPublicKeyInfo` (RFC 5280 s4.1.2.7, RFC 8017 appendix A, RFC 5480).

use crate::keys::KeyAlgorithm;
use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier, UintRef};
use der::{Decode, Encode};
use spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};

/// `rsaEncryption`.
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
/// `id-ecPublicKey`.
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// `secp256r1`.
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");

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
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo`; none if it is not one of ours to the letter.
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfo::<AnyRef<'_>, BitStringRef<'_>>::from_der(der).ok()?;
        let bits = info.subject_public_key.as_bytes()?;
        match info.algorithm.oid {
            RSA if info.algorithm.parameters.is_some_and(|any| any.is_null()) => {
                let key = pkcs1::RsaPublicKeyRef::from_der(bits).ok()?;
                let (modulus, exponent) = (key.modulus.as_bytes().to_vec(), key.public_exponent.as_bytes().to_vec());
                Some(Self::Rsa { modulus, exponent })
            }
            EC => {
                let curve = info.algorithm.parameters?.decode_as::<ObjectIdentifier>().ok()?;
                (curve == P256 && bits.len() == 65 && bits[0] == 4).then(|| Self::P256(bits.to_vec()))
            }
            _ => None,
        }
    }

    /// As a `SubjectPublicKeyInfo`; none for numbers that are too long to be keys.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        let wrap = |oid, parameters: AnyRef<'_>, bits: &[u8]| {
            let algorithm = AlgorithmIdentifier { oid, parameters: Some(parameters) };
            SubjectPublicKeyInfo { algorithm, subject_public_key: BitStringRef::from_bytes(bits).ok()? }.to_der().ok()
        };
        match self {
            Self::Rsa { modulus, exponent } => {
                let key = pkcs1::RsaPublicKey { modulus: UintRef::new(modulus).ok()?, public_exponent: UintRef::new(exponent).ok()? };
                wrap(RSA, AnyRef::NULL, &key.to_der().ok()?)
            }
            Self::P256(point) => wrap(EC, (&P256).into(), point),
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_round_trip() {
        let rsa = PublicKey::Rsa { modulus: vec![0xC1; 256], exponent: vec![1, 0, 1] };
        let ec = PublicKey::P256([&[4][..], &[7; 64]].concat());
        for (key, kind) in [(rsa, KeyAlgorithm::Rsa2048), (ec, KeyAlgorithm::P256)] {
            assert_eq!(PublicKey::from_der(&key.to_der().unwrap()).unwrap(), key);
            assert_eq!(key.algorithm(), Some(kind));
        }
        assert_eq!(PublicKey::Rsa { modulus: vec![0xC1; 128], exponent: vec![3] }.algorithm(), None);
    }

    #[test]
    fn what_is_cut_or_continued_is_refused() {
        let der = PublicKey::P256([&[4][..], &[7; 64]].concat()).to_der().unwrap();
        (0..der.len()).for_each(|cut| assert_eq!(PublicKey::from_der(&der[..cut]), None));
        assert_eq!(PublicKey::from_der(&[&der[..], &[0]].concat()), None);
    }
}
