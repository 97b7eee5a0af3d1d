//! ECDSA and ECDH on P-256, and X25519.

use crate::ffi::ec::EcKey;
use crate::ffi::x25519;
use crate::hash::apart;
use crate::{NAME, failed, wrong};
use bywash_core::{Algorithm, Error, Key, Keyed, Operation, Result, SecretBytes};
use std::any::Any;

/// A session on either curve.
enum KeyedCurve {
    Sign(EcKey),
    Verify(EcKey),
    Agree(EcKey),
    Public(EcKey),
    AgreeX25519(SecretBytes),
    PublicX25519(SecretBytes),
}

pub(crate) fn open(algorithm: Algorithm, key: &Key) -> Result<Box<dyn Keyed>> {
    let scalar = |bytes: &[u8]| {
        EcKey::private(bytes).map_err(|_| Error::BadKey { algorithm, reason: "the scalar is 0 or not below the group's order" })
    };
    let point =
        |bytes: &[u8]| EcKey::public(bytes).map_err(|_| Error::BadKey { algorithm, reason: "not an uncompressed point on the curve" });
    let keyed = match (algorithm, key) {
        (Algorithm::EcdsaP256Sign, Key::EcPrivate(bytes)) => KeyedCurve::Sign(scalar(bytes)?),
        (Algorithm::EcdsaP256Verify, Key::EcPublic(bytes)) => KeyedCurve::Verify(point(bytes)?),
        (Algorithm::EcdhP256, Key::EcPrivate(bytes)) => KeyedCurve::Agree(scalar(bytes)?),
        (Algorithm::EcdhP256Public, Key::EcPrivate(bytes)) => KeyedCurve::Public(scalar(bytes)?),
        (Algorithm::X25519, Key::EcPrivate(bytes)) => KeyedCurve::AgreeX25519(bytes.clone()),
        (Algorithm::X25519Public, Key::EcPrivate(bytes)) => KeyedCurve::PublicX25519(bytes.clone()),
        _ => return Err(Error::Unsupported { engine: NAME.to_owned(), algorithm }),
    };
    Ok(Box::new(Session { algorithm, keyed }))
}

struct Session {
    algorithm: Algorithm,
    keyed: KeyedCurve,
}

/// The front of a buffer as an array; the length has been checked, so the error is for a caller that did not.
fn front<const N: usize>(algorithm: Algorithm, output: &mut [u8]) -> Result<&mut [u8; N]> {
    let given = output.len();
    output.first_chunk_mut().ok_or(Error::OutputTooSmall { algorithm, needed: N, given })
}

fn exactly<const N: usize>(algorithm: Algorithm, input: &[u8]) -> Result<&[u8; N]> {
    input.try_into().map_err(|_| Error::InputLength { algorithm, expected: format!("{N} bytes"), given: input.len() })
}

impl Keyed for Session {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let algorithm = self.algorithm;
        if let KeyedCurve::Verify(key) = &self.keyed {
            let digest = match &operation.data {
                bywash_core::Data::InPlace(buffer) => &**buffer,
                bywash_core::Data::Copy { input, .. } => input,
            };
            return key.verify(digest, operation.tag).map(|()| 0).map_err(|_| Error::Authentication);
        }
        let (input, output) = apart(algorithm, &mut operation.data)?;
        match &self.keyed {
            KeyedCurve::Sign(key) => key.sign(input, front(algorithm, output)?).map_err(|_| failed("to sign"))?,
            KeyedCurve::Agree(key) => key.agree(input, front(algorithm, output)?).map_err(|_| Error::Authentication)?,
            KeyedCurve::Public(key) => key.public_value(front(algorithm, output)?).map_err(|_| failed("the public point"))?,
            KeyedCurve::AgreeX25519(key) => {
                let shared = front(algorithm, output)?;
                x25519::agree(exactly(algorithm, key)?, exactly(algorithm, input)?, shared).map_err(|_| Error::Authentication)?;
            }
            KeyedCurve::PublicX25519(key) => x25519::public(exactly(algorithm, key)?, front(algorithm, output)?),
            KeyedCurve::Verify(_) => return Err(wrong(algorithm, "give output")),
        }
        Ok(algorithm.output_len(input.len()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
