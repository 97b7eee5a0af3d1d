//! What calibration and benchmarks compute: one session and one operation of each algorithm. The keys are public and protect nothing.

use bywash_core::{
    Algorithm, Direction, Error, Key, Kind, OwnedOperation, Result, RsaPrivateKey, RsaPublicKey, SecretBytes, SessionParams,
};

/// A session's parameters, and an operation of about `size` bytes for it.
///
/// # Errors
/// None for an algorithm of the table; a key that does not parse would be a mistake here.
pub fn sample(algorithm: Algorithm, size: usize) -> Result<(SessionParams, OwnedOperation)> {
    let params = SessionParams::new(algorithm, key(algorithm)?)?;
    let (direction, iv) = match algorithm.kind() {
        Kind::Cipher { .. } | Kind::Aead { .. } => (Direction::Encrypt, algorithm.usual_iv_len()),
        _ => (Direction::Compute, 0),
    };
    let input = input(algorithm, size);
    let operation = OwnedOperation {
        direction,
        iv: vec![1; iv],
        aad: Vec::new(),
        output: SecretBytes::zeroed(algorithm.output_len(input.len())),
        input: input.into(),
        tag: vec![1; params.tag_len()],
    };
    Ok((params, operation))
}

fn key(algorithm: Algorithm) -> Result<Key> {
    Ok(match algorithm.kind() {
        Kind::Cipher { key, .. } | Kind::Aead { key, .. } => Key::Symmetric((0..key as u8).collect::<Vec<_>>().into()),
        Kind::Mac { output } => Key::Symmetric(vec![7; output].into()),
        Kind::RsaPrivate { bits } => Key::RsaPrivate(rsa(algorithm, bits)?),
        Kind::RsaPublic { bits } => Key::RsaPublic(rsa(algorithm, bits)?.public),
        Kind::EcdsaSign { scalar: private }
        | Kind::EddsaSign { private, .. }
        | Kind::Agreement { private, .. }
        | Kind::PublicValue { private, .. } => Key::EcPrivate(vec![7; private].into()),
        Kind::EcdsaVerify { scalar } => Key::EcPublic(point(1 + 2 * scalar)),
        _ => Key::None,
    })
}

/// The bytes of an operation of about `size`: modes of whole blocks take the next that they can have.
pub(super) fn input_len(algorithm: Algorithm, size: usize) -> usize {
    match algorithm.kind() {
        Kind::Cipher { block, .. } => size.div_ceil(block).max(1) * block,
        _ => size,
    }
}

fn input(algorithm: Algorithm, size: usize) -> Vec<u8> {
    match algorithm.kind() {
        // The first byte keeps it below the modulus.
        Kind::RsaPrivate { bits } | Kind::RsaPublic { bits } => [vec![0], vec![5; bits / 8 - 1]].concat(),
        Kind::EcdsaSign { scalar } | Kind::EcdsaVerify { scalar } => vec![5; scalar],
        Kind::Agreement { public: 32, .. } => vec![9; 32],
        Kind::Agreement { public, .. } => point(public),
        // As long as what TLS 1.3 has signed under SHA-256 (RFC 8446 s4.4.3).
        Kind::EddsaSign { .. } => vec![5; 130],
        Kind::PublicValue { .. } => Vec::new(),
        _ => vec![5; input_len(algorithm, size)],
    }
}

/// The point of P-256 that belongs to the private key 0707..07.
const P256_POINT: &str =
    "041e18532fd4754c02f3041d9c75ceb33b83ffd81ac7ce4fe882ccb1c98bc5896ea46c311c4e2ff40dd96a3653e6e45445d32dfe486eced75c7a90c6a18881c0a3";

/// The point of P-384 that belongs to the private key 0707..07.
const P384_POINT: &str = "04b01bfc4a2d7fe2095e6627cc5caf9abd153d5b551fe7f6da615da9d1bfd101e8d191e85902c0a34eaa3a16e666880b73\
    059f658c4d6a6e57c0959de80109b0fa6b56bd63d1d5701a93d15322f2267a15526641c60cd07c912a6df58aa993d89b";

/// A point of the curve whose uncompressed points have this length.
fn point(len: usize) -> Vec<u8> {
    unhex(if len == 65 { P256_POINT } else { P384_POINT })
}

fn rsa(algorithm: Algorithm, bits: usize) -> Result<RsaPrivateKey> {
    let text = match bits {
        1024 => include_str!("keys/rsa-1024.txt"),
        2048 => include_str!("keys/rsa-2048.txt"),
        3072 => include_str!("keys/rsa-3072.txt"),
        4096 => include_str!("keys/rsa-4096.txt"),
        _ => return Err(Error::BadKey { algorithm, reason: "there is no calibration key of this size" }),
    };
    let part = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map(unhex).ok_or(Error::BadKey { algorithm, reason: "the calibration key lacks a part" })
    };
    let secret = |name: &str| part(name).map(SecretBytes::from);
    Ok(RsaPrivateKey {
        public: RsaPublicKey { modulus: part("modulus")?, exponent: part("public_exponent")? },
        private_exponent: secret("private_exponent")?,
        prime1: secret("prime1")?,
        prime2: secret("prime2")?,
        exponent1: secret("exponent1")?,
        exponent2: secret("exponent2")?,
        coefficient: secret("coefficient")?,
    })
}

/// Bytes from hexadecimal digits; other characters read as 0, which the engine's own checks of a key would find.
fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_a_sample_that_passes_the_checks() {
        for &algorithm in Algorithm::ALL {
            for size in [0, 16, 1024] {
                let (params, mut operation) = sample(algorithm, size).unwrap();
                params.check(&operation.borrow()).unwrap();
            }
        }
    }
}
