//! A session as a queue holds it.

use crate::embedded::EmbeddedSession;
use crate::link::{Link, LinkSession};
use bywash_core::Error;
use bywash_protocol::monotonic_ns;
use std::sync::Arc;
use std::time::Duration;

/// For how long a refusal is remembered, so that a session over its quota does not ask again for every operation.
const REFUSAL: Duration = Duration::from_secs(1);

/// A session as a queue holds it.
pub(crate) enum Remote {
    /// Open at a broker.
    Broker(LinkSession),
    /// Open in this process's own manager.
    Embedded(EmbeddedSession),
    /// Refused by this broker.
    Refused {
        /// Which.
        link: Arc<Link>,
        /// Why.
        error: Error,
        /// When to ask again.
        until_ns: u64,
    },
}

impl Remote {
    pub(crate) fn refused(link: Arc<Link>, error: Error) -> Self {
        Remote::Refused { link, error, until_ns: monotonic_ns() + REFUSAL.as_nanos() as u64 }
    }

    /// Whether it is still what it was: its queue is there and belongs to this process.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Remote::Broker(session) => session.is_usable(),
            Remote::Embedded(session) => session.is_usable(),
            Remote::Refused { link, until_ns, .. } => link.life.is_usable() && monotonic_ns() < *until_ns,
        }
    }
}
