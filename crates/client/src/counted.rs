//! Messages hashed in pieces, which are counted and leave a trace while the broker records.

use crate::session::Session;
use bywash_core::{Direction, Hashing, Result};
use bywash_protocol::{TraceEntry, monotonic_ns};

/// Hashing whose messages are counted. In a trace a message lasts from its first piece to its value; one without any leaves none.
pub(crate) struct Counted {
    session: Session,
    inner: Box<dyn Hashing>,
    /// When the message began; 0 while nobody records, and before its first piece.
    began_ns: u64,
    /// Whether a piece of the message has come.
    begun: bool,
    bytes: u64,
}

impl Counted {
    pub(crate) fn new(session: Session, inner: Box<dyn Hashing>) -> Self {
        Self { session, inner, began_ns: 0, begun: false, bytes: 0 }
    }

    fn begin(&mut self) {
        (self.began_ns, self.begun, self.bytes) = (0, false, 0);
    }

    fn count(&self) {
        let Self { session, began_ns: arrival_ns, bytes, .. } = self;
        let (algorithm, bytes) = (session.params().algorithm(), *bytes);
        session.client().count(algorithm, 1, bytes);
        if *arrival_ns != 0 {
            let (arrival_ns, session_number, direction) = (*arrival_ns, session.number(), Direction::Compute);
            let entry = TraceEntry {
                arrival_ns,
                start_ns: arrival_ns,
                done_ns: monotonic_ns(),
                bytes,
                session: session_number,
                algorithm,
                direction,
            };
            session.client().upstream().trace(entry);
        }
    }
}

impl Hashing for Counted {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        if !self.begun && self.session.client().upstream().is_recording() {
            self.began_ns = monotonic_ns();
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
        let Self { session, inner, began_ns, begun, bytes } = self;
        Ok(Box::new(Self { session: session.clone(), inner: inner.duplicate()?, began_ns: *began_ns, begun: *begun, bytes: *bytes }))
    }
}
