//! Streams that leave a trace while the broker records.

use crate::client::{Began, Client};
use crate::extent::Extent;
use crate::session::Session;
use bywash_core::{Data, Direction, Result, Stream};

/// Looks whether a broker records: while none does only at the first message and at every so many-th, for at the pace of small messages each look would be felt.
#[derive(Debug, Default)]
pub struct Looks {
    /// Messages until the next look.
    left: u32,
}

impl Looks {
    const EVERY: u32 = 8;

    /// One whose first look is at the next message.
    pub const fn new() -> Self {
        Self { left: 0 }
    }

    /// The beginning of a message, if a broker records.
    #[inline]
    pub fn begin(&mut self, client: &Client) -> Option<Began> {
        if let Some(fewer) = self.left.checked_sub(1) {
            self.left = fewer;
            return None;
        }
        let began = client.begin();
        if began.is_none() {
            self.left = Self::EVERY - 1;
        }
        began
    }
}

/// A stream whose messages are traced: a message lasts from its start to its tag, or where there is none to the next start or the end.
pub(crate) struct Traced {
    session: Session,
    inner: Box<dyn Stream>,
    direction: Direction,
    /// When the message began, if somebody records.
    began: Option<Began>,
    text: Extent,
    aad: Extent,
    looks: Looks,
}

impl Traced {
    pub(crate) fn new(session: Session, inner: Box<dyn Stream>, direction: Direction) -> Self {
        let mut stream = Self { session, inner, direction, began: None, text: Extent::NONE, aad: Extent::NONE, looks: Looks::new() };
        stream.begin();
        stream
    }

    fn begin(&mut self) {
        (self.text, self.aad) = (Extent::NONE, Extent::NONE);
        self.began = self.looks.begin(self.session.client());
    }

    fn end(&mut self) {
        // As `Operation::work_len` has it: a message without text is its associated data (GMAC).
        let extent = if self.text.bytes() > 0 { self.text } else { self.aad };
        if let Some(began) = self.began.take()
            && extent.bytes() > 0
        {
            let session = &self.session;
            session.client().trace(began, session.number(), session.params().algorithm(), self.direction, extent);
        }
    }
}

impl Stream for Traced {
    fn start(&mut self, iv: &[u8]) -> Result<()> {
        self.end();
        self.begin();
        self.inner.start(iv)
    }

    fn aad(&mut self, aad: &[u8]) -> Result<()> {
        self.aad.add(aad.len());
        self.inner.aad(aad)
    }

    fn update(&mut self, data: Data<'_>) -> Result<()> {
        self.text.add(data.input_len());
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
            began: None,
            text: Extent::NONE,
            aad: Extent::NONE,
            looks: Looks::new(),
        }))
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.end();
    }
}
