//! Raw RSA.

use crate::failed;
use crate::ffi::rsa::Rsa;
use crate::hash::apart;
use crate::lanes::{RsaPrivateForm, RsaPublicForm};
use bywash_core::{Algorithm, Error, Keyed, Operation, Result, RsaPrivateKey, RsaPublicKey};
use std::any::Any;
use std::cmp::Ordering;

/// Both halves of RSA as sessions.
pub(crate) struct KeyedRsa {
    algorithm: Algorithm,
    rsa: Rsa,
    /// n, without leading zeros: as long as an input.
    modulus: Box<[u8]>,
    role: Role,
}

/// Which half, with the key as the kernels hold it.
pub(crate) enum Role {
    Private(RsaPrivateForm),
    Public(RsaPublicForm),
}

pub(crate) fn open_private(algorithm: Algorithm, key: &RsaPrivateKey) -> Result<Box<dyn Keyed>> {
    let refused = |_| Error::BadKey { algorithm, reason: "its parts do not belong together (n = p q, d e = 1, or the CRT parts)" };
    let rsa = Rsa::private(key).map_err(refused)?;
    Ok(Box::new(KeyedRsa { algorithm, rsa, modulus: significant(&key.public), role: Role::Private(RsaPrivateForm::of(key)) }))
}

pub(crate) fn open_public(algorithm: Algorithm, key: &RsaPublicKey) -> Result<Box<dyn Keyed>> {
    let refused = |_| Error::BadKey { algorithm, reason: "the modulus or the public exponent cannot be used" };
    let rsa = Rsa::public(key).map_err(refused)?;
    Ok(Box::new(KeyedRsa { algorithm, rsa, modulus: significant(key), role: Role::Public(RsaPublicForm::of(key)) }))
}

fn significant(key: &RsaPublicKey) -> Box<[u8]> {
    let first = key.modulus.iter().position(|&byte| byte != 0).unwrap_or(key.modulus.len());
    key.modulus[first..].into()
}

#[cfg(target_arch = "x86_64")]
impl KeyedRsa {
    /// The session's algorithm.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its half, with the key as the kernels hold it.
    pub(crate) fn role(&self) -> &Role {
        &self.role
    }
}

impl KeyedRsa {
    /// Input, below the modulus, and output, each of the modulus's length.
    pub(crate) fn spans<'d>(&self, operation: &'d mut Operation<'_>) -> Result<(&'d [u8], &'d mut [u8])> {
        let algorithm = self.algorithm;
        let (input, output) = apart(algorithm, &mut operation.data)?;
        // Whether an input is in range may leak: padding puts it there (the library's own reasoning).
        if input.len() != self.modulus.len() || input.cmp(&self.modulus) != Ordering::Less {
            return Err(Error::InputRange { algorithm });
        }
        let (needed, given) = (input.len(), output.len());
        let output = output.get_mut(..needed).ok_or(Error::OutputTooSmall { algorithm, needed, given })?;
        Ok((input, output))
    }

    /// Whether the input is its own image under every odd exponent: 0, 1 and n - 1. The library refuses these; padded data never is one.
    fn is_fixed(&self, input: &[u8]) -> bool {
        let Some((&last, front)) = input.split_last() else { return false };
        let Some((&top, rest)) = self.modulus.split_last() else { return false };
        // n is odd, so n - 1 differs from n in its last byte alone.
        (last <= 1 && front.iter().all(|&byte| byte == 0)) || (last == top - 1 && front == rest)
    }
}

impl Keyed for KeyedRsa {
    fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        let (input, output) = self.spans(operation)?;
        match self.role {
            Role::Private(_) if self.is_fixed(input) => output.copy_from_slice(input),
            Role::Private(_) => {
                self.rsa.private_operation(input, output).map_err(|_| failed("the private operation, or its result was not verified"))?
            }
            Role::Public(_) => self.rsa.public_operation(input, output).map_err(|_| failed("the public operation"))?,
        }
        Ok(output.len())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
