//! RSA keys from 1024 bits on. The library's own verification begins at 2048, as it should; the servers of 2000 had 1024.

use aws_lc_rs::signature::{RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};

/// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 s8.2), keys of 1024 to 8192 bits, for certificates and handshakes.
pub(crate) const ALGORITHMS: WebPkiSupportedAlgorithms =
    WebPkiSupportedAlgorithms { all: &[&Pkcs1Sha256], mapping: &[(SignatureScheme::RSA_PKCS1_SHA256, &[&Pkcs1Sha256])] };

#[derive(Debug)]
struct Pkcs1Sha256;

impl SignatureVerificationAlgorithm for Pkcs1Sha256 {
    fn verify_signature(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let key = UnparsedPublicKey::new(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, public_key);
        key.verify(message, signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_ENCRYPTION
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::RSA_PKCS1_SHA256
    }
}
