//! The proxy library: one interface to engines in this process and to a broker's.
#![forbid(unsafe_code)]

use bywash_core::{Algorithm, Direction, Keyed, Operation, OwnedOperation, Place, Result, SessionParams, Stream};
use bywash_core::{Engine, Error};
use std::sync::Arc;

/// What a client is told when it is made.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The broker's socket; `None` works without a broker.
    pub socket: Option<std::path::PathBuf>,
    /// Overrides the routing table.
    pub route: Route,
    /// Names the run that this process belongs to, for the broker's accounts.
    pub run: Option<String>,
}

/// Whether the routing table is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// The routing table decides.
    #[default]
    Auto,
    /// Everything in the caller's place.
    Here,
    /// Everything through the manager's queue (the broker's, if there is one).
    Queue,
}

/// A process's access to engines.
#[derive(Clone)]
pub struct Client(Arc<dyn Engine>);

impl Client {
    /// A client. Never fails for want of a broker: it then works in this process alone and looks for the broker again later.
    pub fn new(_config: Config) -> Self {
        unreachable!("furnished later")
    }

    /// Where an operation of this size would run.
    pub fn place(&self, _algorithm: Algorithm, _bytes: usize) -> Place {
        Place::Here
    }

    /// Opens a session.
    pub fn session(&self, params: SessionParams) -> Result<Session> {
        let keyed = self.0.open(&params)?;
        Ok(Session { params, keyed: keyed.into() })
    }
}

/// An algorithm bound to a key. Cheap to clone, shared by threads, survives fork.
#[derive(Clone)]
pub struct Session {
    params: SessionParams,
    keyed: Arc<dyn Keyed>,
}

impl Session {
    /// The session's parameters.
    pub fn params(&self) -> &SessionParams {
        &self.params
    }

    /// Runs one operation to its end; returns bytes of output.
    pub fn run(&self, operation: &mut Operation<'_>) -> Result<usize> {
        self.params.check(operation)?;
        self.keyed.run(operation)
    }

    /// Hands one operation over and returns at once.
    pub fn submit(&self, _operation: OwnedOperation) -> Pending {
        Pending(())
    }

    /// A message in pieces, in the caller's place.
    pub fn stream(&self, direction: Direction, iv: &[u8]) -> Result<Box<dyn Stream>> {
        self.keyed.stream(direction, iv)
    }
}

/// A submitted operation: a future, and something that can be waited for.
pub struct Pending(());

impl Pending {
    /// Waits until it is done.
    pub fn wait(self) -> Result<OwnedOperation> {
        Err(Error::Unavailable { what: "furnished later".into() })
    }
}
