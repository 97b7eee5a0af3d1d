//! Messages hashed in pieces, which are counted and leave a trace while the broker records.

use crate::client::Began;
use crate::extent::Extent;
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
    extent: Extent,
}

impl Counted {
    pub(crate) fn new(session: Session, inner: Box<dyn Hashing>) -> Self {
        Self { session, inner, began: None, begun: false, extent: Extent::NONE }
    }

    fn begin(&mut self) {
        (self.began, self.begun, self.extent) = (None, false, Extent::NONE);
    }

    fn count(&self) {
        let Self { session, began, extent, .. } = self;
        let algorithm = session.params().algorithm();
        session.client().count(algorithm, 1, extent.bytes());
        if let Some(began) = *began {
            session.client().trace(began, session.number(), algorithm, Direction::Compute, *extent);
        }
    }
}

impl Hashing for Counted {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        if !self.begun {
            self.began = self.session.client().begin();
        }
        self.begun = true;
        self.extent.add(data.len());
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
        let Self { session, inner, began, begun, extent } = self;
        Ok(Box::new(Self { session: session.clone(), inner: inner.duplicate()?, began: *began, begun: *begun, extent: *extent }))
    }
}
