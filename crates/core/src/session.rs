//! Session parameters: validated once, here, above every engine.

use crate::algorithm::{Algorithm, Kind, MAC_KEY_MAX};
use crate::error::{Error, Result};
use crate::key::{Key, KeyReference, RsaPrivateKey, RsaPublicKey, bit_len};
use crate::operation::{Direction, Operation};
use crate::secret::constant_time_eq;

/// An algorithm bound to a key, checked. An engine that is handed one need not check lengths again.
///
/// Checked here: kind and length of the key, the two halves of an XTS key differ (IEEE 1619-2018 s5.1; FIPS 140 IG C.I),
/// the RSA modulus has exactly the algorithm's bits and is odd, the exponent is odd and above 1. What needs arithmetic (a scalar
/// below the group order, a point on its curve, p times q equal to n) is the engine's to check in [`Engine::open`](crate::Engine::open).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionParams {
    algorithm: Algorithm,
    key: Key,
    tag_len: usize,
}

impl SessionParams {
    /// Binds a key to an algorithm, with the algorithm's full tag length.
    pub fn new(algorithm: Algorithm, key: Key) -> Result<Self> {
        check_key(algorithm, &key)?;
        let tag_len = match algorithm.kind() {
            Kind::Aead { .. } => 16,
            Kind::EcdsaVerify { scalar } => 2 * scalar,
            _ => 0,
        };
        Ok(Self { algorithm, key, tag_len })
    }

    /// The same with a truncated tag: 4, 8 or 12 to 16 bytes for GCM (SP 800-38D s5.2.1.2), an even number from 4 to 16 for CCM
    /// (SP 800-38C appendix A.1), 16 alone for the other AEADs.
    pub fn with_tag_len(mut self, tag_len: usize) -> Result<Self> {
        let (allowed, fits) = match self.algorithm {
            Algorithm::Aes128Gcm | Algorithm::Aes192Gcm | Algorithm::Aes256Gcm => ("4, 8 or 12 to 16", matches!(tag_len, 4 | 8 | 12..=16)),
            algorithm if algorithm.is_ccm() => ("4, 6, 8, 10, 12, 14 or 16", matches!(tag_len, 4 | 6 | 8 | 10 | 12 | 14 | 16)),
            algorithm if matches!(algorithm.kind(), Kind::Aead { .. }) => ("16", tag_len == 16),
            _ => ("no", tag_len == self.tag_len),
        };
        if !fits {
            return Err(Error::TagLengthNotAllowed { algorithm: self.algorithm, allowed, given: tag_len });
        }
        self.tag_len = tag_len;
        Ok(self)
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Length in bytes of the tag (AEAD) or signature to verify (ECDSA); 0 where there is none.
    pub fn tag_len(&self) -> usize {
        self.tag_len
    }

    /// Checks an operation against the session; after it an engine may trust every length.
    ///
    /// # Errors
    /// [`Error::WrongOperation`], [`Error::IvLength`], [`Error::TagLength`], [`Error::InputLength`], [`Error::OutputTooSmall`].
    #[inline]
    pub fn check(&self, operation: &Operation<'_>) -> Result<()> {
        if self.is_common(operation) { Ok(()) } else { self.check_any(operation) }
    }

    /// Whether it is GCM with the usual nonce, and fits: what most short messages are, seen without a look at tables.
    #[inline]
    fn is_common(&self, operation: &Operation<'_>) -> bool {
        let Operation { direction, iv, data, tag, .. } = operation;
        matches!(self.algorithm, Algorithm::Aes128Gcm | Algorithm::Aes192Gcm | Algorithm::Aes256Gcm)
            && *direction != Direction::Compute
            && iv.len() == 12
            && tag.len() == self.tag_len
            && data.input_len() <= data.output_len()
            && data.input_len() as u64 <= AEAD_INPUT_MAX
    }

    #[inline(never)]
    fn check_any(&self, operation: &Operation<'_>) -> Result<()> {
        let Operation { direction, iv, aad, data, tag } = operation;
        let shape = Shape {
            direction: *direction,
            iv: iv.len(),
            aad: aad.len(),
            input: data.input_len(),
            output: data.output_len(),
            tag: tag.len(),
        };
        shape.check(self.algorithm, self.tag_len)
    }
}

/// The lengths of an operation, without its bytes: what is checked, and what a broker knows before it copies anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Encrypt, decrypt or compute.
    pub direction: Direction,
    /// IV length in bytes.
    pub iv: usize,
    /// Associated data length in bytes.
    pub aad: usize,
    /// Input length in bytes.
    pub input: usize,
    /// Room for output in bytes.
    pub output: usize,
    /// Tag length in bytes.
    pub tag: usize,
}

impl Shape {
    /// Checks the lengths against an algorithm and the session's tag length.
    ///
    /// # Errors
    /// As [`SessionParams::check`].
    pub fn check(&self, algorithm: Algorithm, tag_len: usize) -> Result<()> {
        let kind = algorithm.kind();
        let ciphers = matches!(kind, Kind::Cipher { .. } | Kind::Aead { .. });
        match self.direction {
            Direction::Encrypt | Direction::Decrypt if !ciphers => {
                return Err(Error::WrongOperation { algorithm, what: "encrypt or decrypt: its one direction is Compute" });
            }
            Direction::Compute if ciphers => return Err(Error::WrongOperation { algorithm, what: "compute: say Encrypt or Decrypt" }),
            _ => {}
        }
        if self.aad > 0 && !matches!(kind, Kind::Aead { .. }) {
            return Err(Error::WrongOperation { algorithm, what: "take associated data" });
        }
        let (iv_min, iv_max) = match kind {
            Kind::Cipher { iv, .. } => (iv, iv),
            Kind::Aead { iv, .. } => iv,
            _ => (0, 0),
        };
        if self.iv < iv_min || self.iv > iv_max {
            return Err(Error::IvLength { algorithm, min: iv_min, max: iv_max, given: self.iv });
        }
        if self.tag != tag_len {
            return Err(Error::TagLength { algorithm, expected: tag_len, given: self.tag });
        }
        check_input_len(algorithm, self.iv, self.input)?;
        let needed = algorithm.output_len(self.input);
        if self.output < needed {
            return Err(Error::OutputTooSmall { algorithm, needed, given: self.output });
        }
        Ok(())
    }
}

/// Longest message of one AEAD operation in bytes: 2^36 - 32 (SP 800-38D s5.2.1.1), which is below the others' limits but for CCM with nonces of 11
/// bytes and more.
pub const AEAD_INPUT_MAX: u64 = (1 << 36) - 32;

/// Longest message under a CCM nonce: its length has the bytes of a block that flags and nonce leave (SP 800-38C appendix A.1).
fn ccm_input_max(nonce: usize) -> u64 {
    let bits = 8 * (15 - nonce.min(15)) as u32;
    1u64.checked_shl(bits).map_or(AEAD_INPUT_MAX, |most| AEAD_INPUT_MAX.min(most - 1))
}

fn check_input_len(algorithm: Algorithm, iv: usize, given: usize) -> Result<()> {
    let fail = |expected: String| Err(Error::InputLength { algorithm, expected, given });
    match algorithm.kind() {
        Kind::Cipher { block, .. } if algorithm.is_xts() => {
            // One data unit of at most 2^20 blocks: IEEE 1619-2018 s5.1.
            if given < block || given > block << 20 { fail("16 bytes to 16 MiB".into()) } else { Ok(()) }
        }
        Kind::Cipher { block, .. } if !given.is_multiple_of(block) => fail(format!("a multiple of {block} bytes")),
        Kind::Aead { .. } if algorithm.is_ccm() && given as u64 > ccm_input_max(iv) => {
            fail(format!("at most {} bytes with a nonce of {iv}", ccm_input_max(iv)))
        }
        Kind::Aead { .. } if given as u64 > AEAD_INPUT_MAX => fail(format!("at most {AEAD_INPUT_MAX} bytes")),
        Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } if given != bits / 8 => fail(format!("{} bytes (one modulus)", bits / 8)),
        Kind::EcdsaSign { .. } | Kind::EcdsaVerify { .. } if !(20..=64).contains(&given) => fail("20 to 64 bytes (a digest)".into()),
        Kind::Agreement { public, .. } if given != public => fail(format!("{public} bytes (a public value)")),
        Kind::PublicValue { .. } if given != 0 => fail("no bytes".into()),
        _ => Ok(()),
    }
}

fn check_key(algorithm: Algorithm, key: &Key) -> Result<()> {
    let length =
        |expected: usize, given: usize| if given == expected { Ok(()) } else { Err(Error::KeyLength { algorithm, expected, given }) };
    let wrong = |expected: &'static str| Err(Error::WrongKeyKind { algorithm, expected, given: key.describe() });
    match (algorithm.kind(), key) {
        // Whether the key fits is for whoever holds it to say.
        (Kind::RsaPrivate { .. } | Kind::EcdsaSign { .. } | Kind::EddsaSign { .. } | Kind::Agreement { .. }, Key::Vault(reference)) => {
            KeyReference::check_name(&reference.name)
        }
        (Kind::Cipher { .. }, Key::Symmetric(bytes)) => {
            let (min, max) = algorithm.key_lengths();
            length(bytes.len().clamp(min, max), bytes.len())?;
            let (left, right) = bytes.split_at(bytes.len() / 2);
            if algorithm.is_xts() && constant_time_eq(left, right) {
                return Err(Error::BadKey { algorithm, reason: "the two halves of an XTS key must differ" });
            }
            Ok(())
        }
        (Kind::Aead { key: expected, .. }, Key::Symmetric(bytes)) => length(expected, bytes.len()),
        (Kind::Cipher { .. } | Kind::Aead { .. }, _) => wrong("a symmetric key"),
        (Kind::Digest { .. }, Key::None) => Ok(()),
        (Kind::Digest { .. }, _) => wrong("no key"),
        (Kind::Mac { .. }, Key::Symmetric(bytes)) if bytes.len() > MAC_KEY_MAX => {
            Err(Error::KeyLength { algorithm, expected: MAC_KEY_MAX, given: bytes.len() })
        }
        (Kind::Mac { .. }, Key::Symmetric(_)) => Ok(()),
        (Kind::Mac { .. }, _) => wrong("a symmetric key"),
        (Kind::RsaPrivate { bits }, Key::RsaPrivate(private)) => check_rsa_private(algorithm, bits, private),
        (Kind::RsaPrivate { .. }, _) => wrong("an RSA private key"),
        (Kind::RsaPublic { bits }, Key::RsaPublic(public)) => check_rsa_public(algorithm, bits, public),
        (Kind::RsaPublic { .. }, _) => wrong("an RSA public key"),
        (Kind::EcdsaVerify { scalar }, Key::EcPublic(point)) => length(2 * scalar + 1, point.len()),
        (Kind::EcdsaVerify { .. }, _) => wrong("an elliptic-curve public key"),
        (Kind::EcdsaSign { scalar }, Key::EcPrivate(bytes)) => length(scalar, bytes.len()),
        (Kind::Agreement { private, .. } | Kind::PublicValue { private, .. }, Key::EcPrivate(bytes)) => length(private, bytes.len()),
        (Kind::EddsaSign { private, .. }, Key::EcPrivate(bytes)) => length(private, bytes.len()),
        (Kind::EcdsaSign { .. } | Kind::EddsaSign { .. } | Kind::Agreement { .. } | Kind::PublicValue { .. }, _) => {
            wrong("an elliptic-curve private key")
        }
    }
}

fn check_rsa_public(algorithm: Algorithm, bits: usize, key: &RsaPublicKey) -> Result<()> {
    let bad = |reason| Err(Error::BadKey { algorithm, reason });
    if bit_len(&key.modulus) != bits {
        return bad("the modulus does not have this algorithm's number of bits");
    }
    if key.modulus.last().is_none_or(|byte| byte & 1 == 0) {
        return bad("the modulus is even");
    }
    match bit_len(&key.exponent) {
        0 | 1 => bad("the public exponent must be at least 3"),
        65.. => bad("the public exponent has more than 64 bits"),
        _ if key.exponent.last().is_some_and(|byte| byte & 1 == 0) => bad("the public exponent is even"),
        _ => Ok(()),
    }
}

fn check_rsa_private(algorithm: Algorithm, bits: usize, key: &RsaPrivateKey) -> Result<()> {
    check_rsa_public(algorithm, bits, &key.public)?;
    let parts = [&key.private_exponent, &key.prime1, &key.prime2, &key.exponent1, &key.exponent2, &key.coefficient];
    if parts.iter().any(|part| part.is_empty() || part.len() > bits / 8 + 1) {
        return Err(Error::BadKey { algorithm, reason: "a CRT part is missing or longer than the modulus" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Data;

    fn gcm() -> SessionParams {
        SessionParams::new(Algorithm::Aes128Gcm, Key::Symmetric((&[7; 16]).into())).unwrap()
    }

    #[test]
    fn key_kind_and_length_are_checked() {
        let short = SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&[0; 16]).into()));
        assert_eq!(short.unwrap_err(), Error::KeyLength { algorithm: Algorithm::Aes256Gcm, expected: 32, given: 16 });
        let kind = SessionParams::new(Algorithm::Sha256, Key::Symmetric((&[0; 16]).into()));
        assert!(kind.unwrap_err().to_string().contains("no key"));
    }

    #[test]
    fn references_stand_for_private_keys_only() {
        let key = |name: &str| Key::Vault(KeyReference { name: name.into(), public: Vec::new() });
        assert!(SessionParams::new(Algorithm::Rsa2048Private, key("web")).is_ok());
        assert!(SessionParams::new(Algorithm::EcdsaP256Sign, key("web")).is_ok());
        assert!(SessionParams::new(Algorithm::Ed25519Sign, key("web")).is_ok());
        assert!(SessionParams::new(Algorithm::Rsa2048Private, key("../web")).is_err());
        assert!(SessionParams::new(Algorithm::Aes128Gcm, key("web")).is_err());
        assert!(SessionParams::new(Algorithm::Rsa2048Public, key("web")).is_err());
    }

    #[test]
    fn xts_halves_must_differ() {
        let same = SessionParams::new(Algorithm::Aes128Xts, Key::Symmetric((&[1; 32]).into()));
        assert!(same.unwrap_err().to_string().contains("halves"));
    }

    #[test]
    fn truncated_tags_are_agreed_in_advance() {
        assert_eq!(gcm().with_tag_len(12).unwrap().tag_len(), 12);
        assert!(gcm().with_tag_len(5).is_err());
        let ccm = |tag_len| SessionParams::new(Algorithm::Aes128Ccm, Key::Symmetric((&[7; 16]).into())).unwrap().with_tag_len(tag_len);
        let taken: Vec<usize> = (0..20).filter(|&tag_len| ccm(tag_len).is_ok()).collect();
        assert_eq!(taken, [4, 6, 8, 10, 12, 14, 16]);
        let mut tag = [0; 12];
        let mut data = [0; 3];
        let operation = Operation { direction: Direction::Encrypt, iv: &[0; 12], aad: &[], data: Data::InPlace(&mut data), tag: &mut tag };
        assert_eq!(gcm().check(&operation).unwrap_err(), Error::TagLength { algorithm: Algorithm::Aes128Gcm, expected: 16, given: 12 });
    }

    #[test]
    fn what_is_common_is_what_all_rules_allow() {
        let aes = |algorithm: Algorithm, tag_len| {
            let key = Key::Symmetric((&vec![7; algorithm.key_lengths().0][..]).into());
            SessionParams::new(algorithm, key).unwrap().with_tag_len(tag_len)
        };
        let mut common = 0;
        for algorithm in [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::Aes128Ccm, Algorithm::ChaCha20Poly1305] {
            for params in [aes(algorithm, 16), aes(algorithm, 12)].into_iter().flatten() {
                for direction in [Direction::Encrypt, Direction::Decrypt, Direction::Compute] {
                    for (iv, tag, room) in [(12, 16, 5), (12, 12, 5), (12, 16, 4), (12, 16, 6), (11, 16, 5), (0, 16, 5), (12, 0, 5)] {
                        let (iv, mut tag, mut room) = (vec![0; iv], vec![0; tag], vec![0; room]);
                        let data = Data::Copy { input: &[0; 5], output: &mut room };
                        let operation = Operation { direction, iv: &iv, aad: b"any", data, tag: &mut tag };
                        let is_common = params.is_common(&operation);
                        assert!(!is_common || params.check_any(&operation).is_ok(), "{algorithm}: {operation:?}");
                        assert_eq!(params.check(&operation), params.check_any(&operation));
                        common += u32::from(is_common);
                    }
                }
            }
        }
        assert!(common > 0);
    }

    #[test]
    fn every_length_rule_refuses_its_neighbour() {
        let shape = |direction, iv, input, output, tag| Shape { direction, iv, aad: 0, input, output, tag };
        use Direction::{Compute, Encrypt};
        assert!(shape(Encrypt, 16, 32, 32, 0).check(Algorithm::Aes128Cbc, 0).is_ok());
        assert!(shape(Encrypt, 16, 33, 64, 0).check(Algorithm::Aes128Cbc, 0).is_err());
        assert!(shape(Encrypt, 16, 32, 31, 0).check(Algorithm::Aes128Cbc, 0).is_err());
        assert!(shape(Encrypt, 12, 32, 32, 0).check(Algorithm::Aes128Cbc, 0).is_err());
        assert!(shape(Compute, 16, 32, 32, 0).check(Algorithm::Aes128Cbc, 0).is_err());
        assert!(shape(Encrypt, 16, 17, 17, 0).check(Algorithm::Aes128Xts, 0).is_ok());
        assert!(shape(Encrypt, 16, 15, 15, 0).check(Algorithm::Aes128Xts, 0).is_err());
        assert!(shape(Encrypt, 13, 65_535, 65_535, 16).check(Algorithm::Aes128Ccm, 16).is_ok());
        assert!(shape(Encrypt, 13, 65_536, 65_536, 16).check(Algorithm::Aes128Ccm, 16).is_err());
        assert!(shape(Encrypt, 12, 65_536, 65_536, 16).check(Algorithm::Aes128Ccm, 16).is_ok());
        assert!(shape(Encrypt, 12, 1 << 24, 1 << 24, 16).check(Algorithm::Aes128Ccm, 16).is_err());
        assert!(shape(Encrypt, 7, 1 << 36, 1 << 36, 16).check(Algorithm::Aes128Ccm, 16).is_err());
        assert!(shape(Encrypt, 6, 1, 1, 16).check(Algorithm::Aes128Ccm, 16).is_err());
        assert!(shape(Compute, 0, 256, 256, 0).check(Algorithm::Rsa2048Private, 0).is_ok());
        assert!(shape(Compute, 0, 255, 256, 0).check(Algorithm::Rsa2048Private, 0).is_err());
        assert!(shape(Encrypt, 0, 0, 64, 0).check(Algorithm::Sha256, 0).is_err());
    }
}
