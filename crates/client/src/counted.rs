//! Messages hashed in pieces, which are counted and leave a trace while the broker records.

use crate::client::Began;
use crate::session::Session;
use bywash_core::{Direction, Hashing, Result};

/// Hashing whose messages are counted. In a trace a message lasts from its first piece to its value; one without any leaves none.
pub(crate) struct Counted {
    session: Session,
    inner: Box<dyn Hashing>,
    /// When the message began, if somebody records.
    began: Option<Began>,
    /// Whether a piece of the message has come.
    begun: bool,
    bytes: u64,
}

impl Counted {
    pub(crate) fn new(session: Session, inner: Box<dyn Hashing>) -> Self {
        Self { session, inner, began: None, begun: false, bytes: 0 }
    }

    fn begin(&mut self) {
        (self.began, self.begun, self.bytes) = (None, false, 0);
    }

    fn count(&self) {
        let Self { session, began, bytes, .. } = self;
        let (algorithm, bytes) = (session.params().algorithm(), *bytes);
        session.client().count(algorithm, 1, bytes);
        if let Some(began) = *began {
            session.client().trace(began, session.number(), algorithm, Direction::Compute, bytes);
        }
    }
}

impl Hashing for Counted {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        if !self.begun {
            self.began = self.session.client().begin();
        }
        self.begun = true;
        self.bytes += data.len() as u64;
        self.inner.update(data)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<usize> {
        let written = self.inner.finish(out)?;
        self.count();
        self.begin();
        Ok(written)
    }

    fn reset(&mut self) -> Result<()> {
        self.begin();
        self.inner.reset()
    }

    fn duplicate(&self) -> Result<Box<dyn Hashing>> {
        let Self { session, inner, began, begun, bytes } = self;
        Ok(Box::new(Self { session: session.clone(), inner: inner.duplicate()?, began: *began, begun: *begun, bytes: *bytes }))
    }
}
