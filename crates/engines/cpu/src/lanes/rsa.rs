//! RSA through the kernels.

use super::Kernel;
use crate::rsa::{KeyedRsa, Role};
use bywash_core::{Keyed, Operation, Result, RsaPrivateKey, RsaPublicKey};
use bywash_ifma::rsa::{self, PrivateKey, PrivateParts, PrivateTask, PublicKey, PublicTask};
use std::sync::OnceLock;

/// A private key as the kernels hold it, made when a batch first needs it: a session that never meets company pays for the copy of its
/// parts alone.
pub(crate) struct PrivateForm {
    parts: RsaPrivateKey,
    key: OnceLock<Option<PrivateKey>>,
}

impl PrivateForm {
    pub(crate) fn of(parts: &RsaPrivateKey) -> Self {
        Self { parts: parts.clone(), key: OnceLock::new() }
    }

    /// The key; `None` if the kernels refuse it.
    fn key(&self) -> Option<&PrivateKey> {
        let parts = &self.parts;
        let make = || {
            let parts = PrivateParts {
                modulus: &parts.public.modulus,
                public_exponent: &parts.public.exponent,
                prime1: &parts.prime1,
                prime2: &parts.prime2,
                exponent1: &parts.exponent1,
                exponent2: &parts.exponent2,
                coefficient: &parts.coefficient,
            };
            PrivateKey::new(&parts).ok()
        };
        self.key.get_or_init(make).as_ref()
    }
}

/// A public key as the kernels hold it.
pub(crate) struct PublicForm {
    parts: RsaPublicKey,
    key: OnceLock<Option<PublicKey>>,
}

impl PublicForm {
    pub(crate) fn of(parts: &RsaPublicKey) -> Self {
        Self { parts: parts.clone(), key: OnceLock::new() }
    }

    fn key(&self) -> Option<&PublicKey> {
        self.key.get_or_init(|| PublicKey::new(&self.parts.modulus, &self.parts.exponent).ok()).as_ref()
    }
}

/// c^d mod n, verified.
pub(super) enum Private {}

impl Kernel for Private {
    type Lane<'t> = PrivateTask<'t>;

    fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<PrivateTask<'t>>> {
        let Some(session) = keyed.as_any().downcast_ref::<KeyedRsa>() else { return Ok(None) };
        let Role::Private(form) = session.role() else { return Ok(None) };
        let (input, output) = session.spans(operation)?;
        Ok(form.key().map(|key| PrivateTask { key, input, output, verified: false }))
    }

    fn run(lanes: &mut [PrivateTask<'_>]) {
        rsa::private(lanes);
    }

    fn leave(lane: &PrivateTask<'_>) -> Option<Result<usize>> {
        // Not verified: the kernel has wiped it, and the library does it anew.
        lane.verified.then_some(Ok(lane.output.len()))
    }
}

/// m^e mod n.
pub(super) enum Public {}

impl Kernel for Public {
    type Lane<'t> = PublicTask<'t>;

    fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<PublicTask<'t>>> {
        let Some(session) = keyed.as_any().downcast_ref::<KeyedRsa>() else { return Ok(None) };
        let Role::Public(form) = session.role() else { return Ok(None) };
        let (input, output) = session.spans(operation)?;
        Ok(form.key().map(|key| PublicTask { key, input, output }))
    }

    fn run(lanes: &mut [PublicTask<'_>]) {
        rsa::public(lanes);
    }

    fn leave(lane: &PublicTask<'_>) -> Option<Result<usize>> {
        Some(Ok(lane.output.len()))
    }
}
