//! X25519 and Ed25519 through the kernels.

use super::Kernel;
use crate::curve::{Session, exactly, front};
use crate::hash::apart;
use bywash_core::{Error, Keyed, Operation, Result};
use bywash_ifma::{ed25519, x25519};
use once_cell::race::OnceBox;

/// An Ed25519 key as the kernels hold it, made when a batch first needs it.
///
/// Two signatures of one message under different public keys give the private key away, and each signature hashes the public key: so what the
/// kernels computed must be what the library computed, or the library signs.
#[derive(Default)]
pub(crate) struct Form(OnceBox<Option<ed25519::Key>>);

/// X25519 agreements.
pub(super) enum Agree {}

impl Kernel for Agree {
    type Lane<'t> = x25519::AgreeTask<'t>;

    fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<x25519::AgreeTask<'t>>> {
        let Some((session, private)) = Session::with_private(keyed) else { return Ok(None) };
        let algorithm = session.algorithm();
        let (peer, output) = apart(algorithm, &mut operation.data)?;
        Ok(Some(x25519::AgreeTask { private, peer: exactly(algorithm, peer)?, shared: front(algorithm, output)?, nonzero: false }))
    }

    fn run(lanes: &mut [x25519::AgreeTask<'_>]) {
        x25519::agree(lanes);
    }

    fn leave(lane: &x25519::AgreeTask<'_>) -> Option<Result<usize>> {
        Some(if lane.nonzero { Ok(lane.shared.len()) } else { Err(Error::Authentication) })
    }
}

/// X25519 public values.
pub(super) enum Public {}

impl Kernel for Public {
    type Lane<'t> = x25519::PublicValueTask<'t>;

    fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<x25519::PublicValueTask<'t>>> {
        let Some((session, private)) = Session::with_private(keyed) else { return Ok(None) };
        let (_, output) = apart(session.algorithm(), &mut operation.data)?;
        Ok(Some(x25519::PublicValueTask { private, public: front(session.algorithm(), output)? }))
    }

    fn run(lanes: &mut [x25519::PublicValueTask<'_>]) {
        x25519::public_value(lanes);
    }

    fn leave(lane: &x25519::PublicValueTask<'_>) -> Option<Result<usize>> {
        Some(Ok(lane.public.len()))
    }
}

/// Ed25519 signatures.
pub(super) enum Sign {}

impl Kernel for Sign {
    type Lane<'t> = ed25519::SignTask<'t>;

    fn enter<'t>(keyed: &'t dyn Keyed, operation: &'t mut Operation<'_>) -> Result<Option<ed25519::SignTask<'t>>> {
        let Some((session, seed)) = Session::with_private(keyed) else { return Ok(None) };
        let (message, output) = apart(session.algorithm(), &mut operation.data)?;
        let Some((form, library)) = session.ed25519() else { return Ok(None) };
        let key = form.0.get_or_init(|| Box::new(Some(ed25519::Key::new(seed)).filter(|key| key.public() == library.public())));
        let signature = front(session.algorithm(), output)?;
        Ok(key.as_ref().map(|key| ed25519::SignTask { key, message, signature }))
    }

    fn run(lanes: &mut [ed25519::SignTask<'_>]) {
        ed25519::sign(lanes);
    }

    fn leave(lane: &ed25519::SignTask<'_>) -> Option<Result<usize>> {
        Some(Ok(lane.signature.len()))
    }
}
