//! RSA through the kernels.

use super::Kernel;
use super::blindings::{self, Blindings};
use crate::rsa::{KeyedRsa, Role};
use bywash_core::{Keyed, Operation, Result, RsaPrivateKey, RsaPublicKey};
use bywash_ifma::rsa::{self, Blinding, PrivateKey, PrivateParts, PrivateTask, PublicKey, PublicTask};
use once_cell::race::OnceBox;

/// A private key as the kernels hold it, made when a batch first needs it: a session that never meets company pays for the copy of its
/// parts alone.
pub(crate) struct PrivateForm {
    parts: RsaPrivateKey,
    key: OnceBox<Option<PrivateKey>>,
    pub(super) blindings: Blindings,
}

impl PrivateForm {
    pub(crate) fn of(parts: &RsaPrivateKey) -> Self {
        Self { parts: parts.clone(), key: OnceBox::new(), blindings: Blindings::default() }
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
            Box::new(PrivateKey::new(&parts).ok())
        };
        self.key.get_or_init(make).as_ref()
    }

    /// A lane for one operation; `None` if the kernels refuse the key.
    pub(super) fn lane<'t>(&'t self, input: &'t [u8], output: &'t mut [u8]) -> Option<PrivateLane<'t>> {
        let key = self.key()?;
        Some(PrivateLane { key, blindings: &self.blindings, blinding: self.blindings.take(), input, output, verified: false })
    }
}

/// A public key as the kernels hold it.
pub(crate) struct PublicForm {
    parts: RsaPublicKey,
    key: OnceBox<Option<PublicKey>>,
}

impl PublicForm {
    pub(crate) fn of(parts: &RsaPublicKey) -> Self {
        Self { parts: parts.clone(), key: OnceBox::new() }
    }

    fn key(&self) -> Option<&PublicKey> {
        self.key.get_or_init(|| Box::new(PublicKey::new(&self.parts.modulus, &self.parts.exponent).ok())).as_ref()
    }
}

/// c^d mod n, blinded and verified.
pub(super) enum Private {}

/// What a private operation needs.
pub(super) struct PrivateLane<'t> {
    pub(super) key: &'t PrivateKey,
    /// Where the blinding comes from and goes back to.
    pub(super) blindings: &'t Blindings,
    pub(super) blinding: Blinding,
    input: &'t [u8],
    output: &'t mut [u8],
    verified: bool,
}

impl PrivateLane<'_> {
    fn task(&mut self) -> PrivateTask<'_> {
        PrivateTask { key: self.key, blinding: &mut self.blinding, input: self.input, output: self.output, verified: false }
    }
}

impl Drop for PrivateLane<'_> {
    fn drop(&mut self) {
        self.blindings.put(std::mem::take(&mut self.blinding));
    }
}

impl Kernel for Private {
    type Lane<'t> = PrivateLane<'t>;

    fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<PrivateLane<'t>>> {
        let Some(session) = keyed.as_any().downcast_ref::<KeyedRsa>() else { return Ok(None) };
        let Role::Private(form) = session.role() else { return Ok(None) };
        let (input, output) = session.spans(operation)?;
        Ok(form.lane(input, output))
    }

    fn run(lanes: &mut [PrivateLane<'_>]) {
        if blindings::renew(lanes).is_err() {
            return; // Without randomness nothing is verified, and the library is asked.
        }
        let mut tasks: Vec<_> = lanes.iter_mut().map(PrivateLane::task).collect();
        rsa::private(&mut tasks);
        let verified: Vec<_> = tasks.iter().map(|task| task.verified).collect();
        lanes.iter_mut().zip(verified).for_each(|(lane, verified)| lane.verified = verified);
    }

    fn leave(lane: &PrivateLane<'_>) -> Option<Result<usize>> {
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
