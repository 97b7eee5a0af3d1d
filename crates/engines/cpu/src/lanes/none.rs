//! What stands in for the kernels on processors for which there are none.

use bywash_core::{Algorithm, RsaPrivateKey, RsaPublicKey, Task};

/// Whether the kernels can run here.
pub(crate) fn is_supported() -> bool {
    false
}

/// How many operations gain from going together.
pub(crate) fn count(_: Algorithm) -> usize {
    1
}

/// One after the other.
pub(crate) fn run(batch: Vec<&mut Task<'_>>) {
    batch.into_iter().for_each(crate::alone);
}

/// An RSA private key as the kernels hold it.
#[derive(Default)]
pub(crate) struct RsaPrivateForm;

impl RsaPrivateForm {
    pub(crate) fn of(_: &RsaPrivateKey) -> Self {
        Self
    }
}

/// An RSA public key as the kernels hold it.
#[derive(Default)]
pub(crate) struct RsaPublicForm;

impl RsaPublicForm {
    pub(crate) fn of(_: &RsaPublicKey) -> Self {
        Self
    }
}

/// An Ed25519 key as the kernels hold it.
#[derive(Default)]
pub(crate) struct Ed25519Form;
