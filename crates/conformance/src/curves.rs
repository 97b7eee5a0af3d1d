//! The second implementation of P-256 and P-384, bytes in and bytes out, and the curves' published constants.

use bywash_core::Algorithm;
use std::sync::LazyLock;

/// A curve: its algorithms, its constants, and RustCrypto's way to compute on it. The functions give nothing where the bytes are no scalar,
/// point or signature.
pub(crate) struct NistCurve {
    pub(crate) sign: Algorithm,
    pub(crate) verify: Algorithm,
    pub(crate) agree: Algorithm,
    pub(crate) public: Algorithm,
    /// Length of a scalar or coordinate in bytes.
    pub(crate) scalar: usize,
    /// The order n.
    pub(crate) order: Vec<u8>,
    /// The generator, uncompressed.
    pub(crate) generator: Vec<u8>,
    /// The uncompressed point of a private key.
    pub(crate) point_of: fn(&[u8]) -> Option<Vec<u8>>,
    /// Signs a digest: private key, digest.
    pub(crate) signature: fn(&[u8], &[u8]) -> Option<Vec<u8>>,
    /// Whether a point verifies a signature of a digest: point, digest, signature.
    pub(crate) verifies: fn(&[u8], &[u8], &[u8]) -> bool,
    /// The shared secret of a private key and a peer's point.
    pub(crate) shared: fn(&[u8], &[u8]) -> Option<Vec<u8>>,
}

/// A digest as long as a scalar at least: the same number (FIPS 186-5 s6.4.1), for RustCrypto takes no digest below half of that.
fn widened(digest: &[u8], scalar: usize) -> Vec<u8> {
    [&vec![0; scalar.saturating_sub(digest.len())], digest].concat()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).filter_map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()).collect()
}

macro_rules! curve {
    ($library:ident, $scalar:literal, $algorithms:expr, $order:expr, $generator:expr) => {{
        use $library::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
        use $library::ecdsa::{Signature, SigningKey, VerifyingKey};
        use $library::elliptic_curve::sec1::ToSec1Point;
        use $library::{PublicKey, SecretKey};
        let [sign, verify, agree, public] = $algorithms;
        NistCurve {
            sign,
            verify,
            agree,
            public,
            scalar: $scalar,
            order: unhex($order),
            generator: unhex($generator),
            point_of: |private| Some(SecretKey::from_slice(private).ok()?.public_key().to_sec1_point(false).as_bytes().to_vec()),
            signature: |private, digest| {
                let key = SigningKey::from_slice(private).ok()?;
                let signature: Signature = key.sign_prehash(&widened(digest, $scalar)).ok()?;
                Some(signature.to_bytes().to_vec())
            },
            verifies: |point, digest, signature| {
                let Ok(key) = VerifyingKey::from_sec1_bytes(point) else { return false };
                let Ok(signature) = Signature::from_slice(signature) else { return false };
                key.verify_prehash(&widened(digest, $scalar), &signature).is_ok()
            },
            shared: |private, point| {
                let (private, peer) = (SecretKey::from_slice(private).ok()?, PublicKey::from_sec1_bytes(point).ok()?);
                let shared = $library::ecdh::diffie_hellman(private.to_nonzero_scalar(), peer.as_affine());
                Some(shared.raw_secret_bytes().to_vec())
            },
        }
    }};
}

/// Both curves; constants of SP 800-186 s3.2.1.3 and s3.2.1.4.
pub(crate) static NIST_CURVES: LazyLock<[NistCurve; 2]> = LazyLock::new(|| {
    use Algorithm as A;
    [
        curve!(
            p256,
            32,
            [A::EcdsaP256Sign, A::EcdsaP256Verify, A::EcdhP256, A::EcdhP256Public],
            "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
            "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296\
             4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
        ),
        curve!(
            p384,
            48,
            [A::EcdsaP384Sign, A::EcdsaP384Verify, A::EcdhP384, A::EcdhP384Public],
            "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
            "04aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7\
             3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f"
        ),
    ]
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_knows_the_constants() {
        for curve in NIST_CURVES.iter() {
            let mut one = vec![0; curve.scalar];
            one[curve.scalar - 1] = 1;
            assert_eq!((curve.point_of)(&one).as_ref(), Some(&curve.generator), "{}", curve.sign);
            assert_eq!((curve.point_of)(&curve.order), None, "{}", curve.sign);
            let mut last = curve.order.clone();
            last[curve.scalar - 1] -= 1;
            assert!((curve.point_of)(&last).is_some(), "{}", curve.sign);
        }
    }
}
