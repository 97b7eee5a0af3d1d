//! Sessions as a program holds them.

use crate::client::Client;
use crate::pending::{Pending, pair};
use bywash_core::{Direction, Keyed, Operation, OwnedOperation, Result, SessionParams, Stream};
use std::sync::Arc;

/// An algorithm bound to a key. Cheap to clone, shared by threads, survives fork.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    client: Client,
    params: SessionParams,
    keyed: Box<dyn Keyed>,
}

impl Session {
    pub(crate) fn open(client: Client, params: SessionParams) -> Result<Self> {
        let keyed = client.engine().open(&params)?;
        Ok(Self(Arc::new(Inner { client, params, keyed })))
    }

    /// The session's parameters.
    pub fn params(&self) -> &SessionParams {
        &self.0.params
    }

    /// Runs one operation to its end, where the routing table says; returns bytes of output.
    ///
    /// It counts itself: callers use [`Client::count`] for streams alone.
    ///
    /// # Errors
    /// Those of [`SessionParams::check`] and of [`Keyed::run`].
    pub fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        self.0.params.check(operation)?;
        let bytes = operation.data.input_len();
        let written = self.0.keyed.run(operation)?;
        self.0.client.count(self.0.params.algorithm(), 1, bytes as u64);
        Ok(written)
    }

    /// Hands one operation over and returns at once; an operation that the routing table keeps in place is done when this returns.
    pub fn submit(&self, mut operation: OwnedOperation) -> Pending {
        let (promise, pending) = pair();
        let outcome = self.run(&mut operation.borrow());
        promise.complete(outcome.map(|_| operation));
        pending
    }

    /// A message in pieces, in the caller's place. Whoever drives it tells [`Client::count`] of each message.
    ///
    /// # Errors
    /// Those of [`Keyed::stream`].
    pub fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        self.0.keyed.stream(direction, iv)
    }
}
