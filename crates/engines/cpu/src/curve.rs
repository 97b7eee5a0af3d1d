//! ECDSA and ECDH on P-256 and P-384, X25519, Ed25519.

use crate::ffi::ec::{Curve, EcKey};
use crate::ffi::ed25519::Ed25519Key;
use crate::ffi::x25519;
use crate::hash::apart;
use crate::lanes::Ed25519Form;
use crate::{NAME, failed, wrong};
use bywash_core::{Algorithm, Error, Key, Keyed, Operation, Result, SecretBytes};
use std::any::Any;

/// A session on one of the curves.
enum KeyedCurve {
    Sign(EcKey),
    Verify(EcKey),
    Agree(EcKey),
    Public(EcKey),
    AgreeX25519,
    PublicX25519,
    SignEd25519(Box<Ed25519Key>),
}

pub(crate) fn open(algorithm: Algorithm, key: &Key) -> Result<Box<dyn Keyed>> {
    use Algorithm as A;
    let scalar = |curve, bytes: &[u8]| {
        EcKey::private(curve, bytes).map_err(|_| Error::BadKey { algorithm, reason: "the scalar is 0 or not below the group's order" })
    };
    let point = |curve, bytes: &[u8]| {
        EcKey::public(curve, bytes).map_err(|_| Error::BadKey { algorithm, reason: "not an uncompressed point on the curve" })
    };
    let keyed = match (algorithm, key) {
        (A::EcdsaP256Sign, Key::EcPrivate(bytes)) => KeyedCurve::Sign(scalar(Curve::P256, bytes)?),
        (A::EcdsaP384Sign, Key::EcPrivate(bytes)) => KeyedCurve::Sign(scalar(Curve::P384, bytes)?),
        (A::EcdsaP256Verify, Key::EcPublic(bytes)) => KeyedCurve::Verify(point(Curve::P256, bytes)?),
        (A::EcdsaP384Verify, Key::EcPublic(bytes)) => KeyedCurve::Verify(point(Curve::P384, bytes)?),
        (A::EcdhP256, Key::EcPrivate(bytes)) => KeyedCurve::Agree(scalar(Curve::P256, bytes)?),
        (A::EcdhP384, Key::EcPrivate(bytes)) => KeyedCurve::Agree(scalar(Curve::P384, bytes)?),
        (A::EcdhP256Public, Key::EcPrivate(bytes)) => KeyedCurve::Public(scalar(Curve::P256, bytes)?),
        (A::EcdhP384Public, Key::EcPrivate(bytes)) => KeyedCurve::Public(scalar(Curve::P384, bytes)?),
        (A::X25519, Key::EcPrivate(_)) => KeyedCurve::AgreeX25519,
        (A::X25519Public, Key::EcPrivate(_)) => KeyedCurve::PublicX25519,
        (A::Ed25519Sign, Key::EcPrivate(bytes)) => KeyedCurve::SignEd25519(Ed25519Key::from_seed(exactly(algorithm, bytes)?)),
        _ => return Err(Error::Unsupported { engine: NAME.to_owned(), algorithm }),
    };
    let private = match key {
        Key::EcPrivate(bytes) => bytes.clone(),
        _ => SecretBytes::default(),
    };
    Ok(Box::new(Session { algorithm, keyed, private, ed25519: Ed25519Form::default() }))
}

/// A session on a curve.
pub(crate) struct Session {
    algorithm: Algorithm,
    keyed: KeyedCurve,
    /// The private key as it came; empty for a public one.
    private: SecretBytes,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "for the kernels"))]
    ed25519: Ed25519Form,
}

#[cfg(target_arch = "x86_64")]
impl Session {
    /// The session's algorithm.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The Ed25519 key as the kernels hold it and as the library does; `None` for a key of another kind.
    pub(crate) fn ed25519(&self) -> Option<(&Ed25519Form, &Ed25519Key)> {
        match &self.keyed {
            KeyedCurve::SignEd25519(key) => Some((&self.ed25519, key)),
            _ => None,
        }
    }

    /// A session of this engine with a private key of this length; `None` for any other.
    pub(crate) fn with_private<const N: usize>(keyed: &dyn Keyed) -> Option<(&Self, &[u8; N])> {
        let session = keyed.as_any().downcast_ref::<Self>()?;
        Some((session, (*session.private).try_into().ok()?))
    }
}

/// The first byte of a buffer and the rest.
#[cfg(target_arch = "x86_64")]
pub(crate) fn first(algorithm: Algorithm, output: &mut [u8]) -> Result<(&mut u8, &mut [u8])> {
    output.split_first_mut().ok_or(Error::OutputTooSmall { algorithm, needed: algorithm.output_len(0), given: 0 })
}

/// The front of a buffer, as long as the output; the length has been checked, so the error is for a caller that did not.
fn room(algorithm: Algorithm, output: &mut [u8]) -> Result<&mut [u8]> {
    let (needed, given) = (algorithm.output_len(0), output.len());
    output.get_mut(..needed).ok_or(Error::OutputTooSmall { algorithm, needed, given })
}

/// The same as an array; the length has been checked, so the error is for a caller that did not.
pub(crate) fn front<const N: usize>(algorithm: Algorithm, output: &mut [u8]) -> Result<&mut [u8; N]> {
    let given = output.len();
    output.first_chunk_mut().ok_or(Error::OutputTooSmall { algorithm, needed: N, given })
}

pub(crate) fn exactly<const N: usize>(algorithm: Algorithm, input: &[u8]) -> Result<&[u8; N]> {
    input.try_into().map_err(|_| Error::InputLength { algorithm, expected: format!("{N} bytes"), given: input.len() })
}

impl Keyed for Session {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let algorithm = self.algorithm;
        if let KeyedCurve::Verify(key) = &self.keyed {
            return key.verify(operation.data.input(), operation.tag).map(|()| 0).map_err(|_| Error::Authentication);
        }
        let (input, output) = apart(algorithm, &mut operation.data)?;
        match &self.keyed {
            KeyedCurve::Sign(key) => key.sign(input, room(algorithm, output)?).map_err(|_| failed("to sign"))?,
            KeyedCurve::Agree(key) => key.agree(input, room(algorithm, output)?).map_err(|_| Error::Authentication)?,
            KeyedCurve::Public(key) => key.public_value(room(algorithm, output)?).map_err(|_| failed("the public point"))?,
            KeyedCurve::AgreeX25519 => {
                let shared = front(algorithm, output)?;
                x25519::agree(exactly(algorithm, &self.private)?, exactly(algorithm, input)?, shared).map_err(|_| Error::Authentication)?;
            }
            KeyedCurve::PublicX25519 => x25519::public(exactly(algorithm, &self.private)?, front(algorithm, output)?),
            KeyedCurve::SignEd25519(key) => key.sign(input, front(algorithm, output)?).map_err(|_| failed("to sign"))?,
            KeyedCurve::Verify(_) => return Err(wrong(algorithm, "give output")),
        }
        Ok(algorithm.output_len(input.len()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
