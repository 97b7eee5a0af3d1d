//! Streams that leave a trace while the broker records.

use crate::session::Session;
use bywash_core::{Data, Direction, Result, Stream};
use bywash_protocol::{TraceEntry, monotonic_ns};

/// While nobody records, a stream looks only at its first message and at every so many-th whether somebody does: at the pace of small messages
/// the look would be felt.
const LOOK_EVERY: u32 = 8;

/// A stream whose messages are traced: a message lasts from its start to its tag, or where there is none to the next start or the end.
pub(crate) struct Traced {
    session: Session,
    inner: Box<dyn Stream>,
    direction: Direction,
    /// When the message began; 0 while nobody records.
    began_ns: u64,
    bytes: u64,
    aad_bytes: u64,
    /// Messages until the next look.
    unlooked: u32,
}

impl Traced {
    pub(crate) fn new(session: Session, inner: Box<dyn Stream>, direction: Direction) -> Self {
        let mut stream = Self { session, inner, direction, began_ns: 0, bytes: 0, aad_bytes: 0, unlooked: 0 };
        stream.begin();
        stream
    }

    fn begin(&mut self) {
        (self.bytes, self.aad_bytes, self.began_ns) = (0, 0, 0);
        match self.unlooked.checked_sub(1) {
            Some(fewer) => self.unlooked = fewer,
            None if self.session.client().upstream().is_recording() => self.began_ns = monotonic_ns(),
            None => self.unlooked = LOOK_EVERY - 1,
        }
    }

    fn end(&mut self) {
        // As `Operation::work_len` has it: a message without text is its associated data (GMAC).
        let bytes = if self.bytes > 0 { self.bytes } else { self.aad_bytes };
        let arrival_ns = core::mem::take(&mut self.began_ns);
        if arrival_ns == 0 || bytes == 0 {
            return;
        }
        let (session, algorithm, direction) = (self.session.number(), self.session.params().algorithm(), self.direction);
        let entry = TraceEntry { arrival_ns, start_ns: arrival_ns, done_ns: monotonic_ns(), bytes, session, algorithm, direction };
        self.session.client().upstream().trace(entry);
    }
}

impl Stream for Traced {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        self.end();
        self.begin();
        self.inner.start(iv)
    }

    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        self.aad_bytes += aad.len() as u64;
        self.inner.aad(aad)
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        self.bytes += data.input_len() as u64;
        self.inner.update(data)
    }

    fn finish(&mut self) -> Result<[u8; 16]> {
        let tag = self.inner.finish();
        self.end();
        tag
    }

    fn chaining_value(&self) -> [u8; 16] {
        self.inner.chaining_value()
    }

    fn duplicate(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Self {
            session: self.session.clone(),
            inner: self.inner.duplicate()?,
            direction: self.direction,
            began_ns: 0,
            bytes: 0,
            aad_bytes: 0,
            unlooked: 0,
        }))
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.end();
    }
}
