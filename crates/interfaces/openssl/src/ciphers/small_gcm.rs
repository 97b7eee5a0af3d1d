//! GCM as long as there is little to do: the default provider's context, until so much text has come that ours is worth its making.
//!
//! A TLS handshake makes four contexts and protects a few hundred bytes with each; there OpenSSL's small kernel wins. From some KiB on ours is two to three
//! times as fast (`openssl speed -evp aes-256-gcm`), on machines with VAES. So what is needed to begin a message is remembered, and with the first
//! message that takes the text under a key past [`ENOUGH`] a context of ours takes over for good. It begins that message anew, nothing of which was put out yet.

#[cfg(test)]
mod tests;

use super::dispatch::{Cipher, Failed, Outcome, fail};
use super::gcm::{Gcm, IvState, TAG_LEN, TLS_AAD_LEN, TLS_FIXED_IV};
use super::io::Io;
use super::passed::Passed;
use super::spec::{AEAD_IV_LEN, Spec};
use crate::errors::Reason;
use crate::ffi::abi::OCTET_STRING;
use crate::ffi::{Param, Params, ParamsMut};
use crate::provider::Provider;
use bywash_core::{Direction, SecretBytes};
use core::ffi::{CStr, c_int};
use core::ptr;

/// Bytes of text under one key from which on our context is the cheaper one, its making included.
const ENOUGH: usize = 8 << 10;
/// Longest IV with which a message is begun anew.
const REPLAYED_IV_MAX: usize = 16;
/// Most associated data that is remembered; TLS has 5 or 13 bytes.
const REPLAYED_AAD_MAX: usize = 32;

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none, or its IV is not remembered.
    Unknown,
    /// An IV was given, and associated data perhaps: all of it is remembered.
    Begun,
    /// Text has come, or more associated data than is remembered.
    UnderWay,
}

/// A context of GCM.
pub(crate) enum SmallGcm {
    Small(Small),
    Own(Box<Gcm>),
}

/// What a message was begun with, and the default provider's context that it was begun in.
pub(crate) struct Small {
    passed: Passed,
    provider: &'static Provider,
    spec: &'static Spec,
    direction: Direction,
    key: Option<SecretBytes>,
    iv: [u8; REPLAYED_IV_MAX],
    iv_len: usize,
    aad: [u8; REPLAYED_AAD_MAX],
    aad_len: usize,
    tag: [u8; TAG_LEN],
    tag_len: usize,
    stage: Stage,
    /// Text so far, under any key.
    text: usize,
    /// IVs are counted up from a fixed part.
    generates: bool,
    /// The associated data of a TLS record was given; the record comes next.
    announced: bool,
    /// The IV has protected something that is not to come again under it.
    spent: bool,
}

/// C's answer; what went wrong is in the error queue already.
fn outcome(done: c_int) -> Outcome {
    if done == 1 { Ok(()) } else { Err(Failed) }
}

impl Small {
    fn new(passed: Passed, provider: &'static Provider, spec: &'static Spec) -> Self {
        Self {
            passed,
            provider,
            spec,
            direction: Direction::Decrypt,
            key: None,
            iv: [0; REPLAYED_IV_MAX],
            iv_len: AEAD_IV_LEN,
            aad: [0; REPLAYED_AAD_MAX],
            aad_len: 0,
            tag: [0; TAG_LEN],
            tag_len: 0,
            stage: Stage::Unknown,
            text: 0,
            generates: false,
            announced: false,
            spent: false,
        }
    }

    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        let turned = direction != self.direction;
        if turned && self.direction == Direction::Encrypt && self.tag_len > 0 {
            // The tag that was made is now one to compare with, and cannot be asked for any more.
            let mut tag = [0; TAG_LEN];
            _ = self.ask(c"tag", &mut tag);
            self.tag = tag;
        }
        let pointer = |bytes: Option<&[u8]>| bytes.map_or((ptr::null(), 0), |bytes| (bytes.as_ptr(), bytes.len()));
        outcome(self.passed.init(direction, pointer(key), pointer(iv), ptr::null()))?;
        self.direction = direction;
        if let Some(key) = key {
            self.key = Some(key.into());
        }
        match iv {
            Some(iv) => {
                (self.iv_len, self.aad_len, self.spent) = (iv.len(), 0, false);
                let remembered = self.iv.get_mut(..iv.len()).map(|room| room.copy_from_slice(iv)).is_some();
                self.stage = if remembered { Stage::Begun } else { Stage::Unknown };
            }
            None if (turned || key.is_some()) && self.is_under_way() => {
                // To encrypt another message under the same IV would give both away.
                (self.stage, self.spent) = (Stage::UnderWay, direction == Direction::Encrypt);
            }
            None => {}
        }
        Ok(())
    }

    fn is_under_way(&self) -> bool {
        self.stage == Stage::UnderWay || self.stage == Stage::Begun && self.aad_len > 0
    }

    /// Whether this IV may be used.
    fn check(&self) -> Outcome {
        let good = if self.announced { self.iv_len >= AEAD_IV_LEN } else { !self.spent };
        if good { Ok(()) } else { fail(Reason::CipherOperationFailed, "GCM needs a fresh IV, and one of 12 bytes for TLS") }
    }

    /// A context of ours with the same key, before any message.
    fn grown(&self) -> Option<Box<Gcm>> {
        let mut own = Box::new(Gcm::new(self.provider, self.spec)?);
        own.init(self.direction, Some(self.key.as_deref()?), None).ok()?;
        own.iv_generates = self.generates;
        if self.tag_len > 0 {
            (own.tag, own.tag_len) = (self.tag, Some(self.tag_len));
            if own.encrypts() {
                self.ask(c"tag", &mut own.tag)?;
            }
        }
        Some(own)
    }

    /// Ours in the midst of the same message, if text of this length makes it worth while.
    #[inline]
    fn outgrown(&self, io: &Io) -> Option<Box<Gcm>> {
        if self.text + io.len() < ENOUGH || !io.has_output() || self.stage != Stage::Begun || self.announced || self.key.is_none() {
            return None;
        }
        self.grown_in_message()
    }

    #[cold]
    fn grown_in_message(&self) -> Option<Box<Gcm>> {
        let mut own = self.grown()?;
        own.init(self.direction, None, Some(&self.iv[..self.iv_len])).ok()?;
        if self.aad_len > 0 {
            // SAFETY: no output, and input of that length.
            own.update(&mut unsafe { Io::new(ptr::null_mut(), 0, self.aad.as_ptr(), self.aad_len) }).ok()?;
        }
        Some(own)
    }

    /// Ours before a TLS record, if its length makes it worth while.
    fn outgrown_by_record(&self, params: Params<'_>) -> Option<Box<Gcm>> {
        let aad: &[u8; TLS_AAD_LEN] = params.get(c"tlsaad")?.octets()?.try_into().ok()?;
        let len = usize::from(u16::from_be_bytes([aad[11], aad[12]]));
        if self.text + len < ENOUGH || !self.generates || self.key.is_none() || self.iv_len < AEAD_IV_LEN {
            return None;
        }
        self.grown_before_record()
    }

    /// Asks the default provider's context for octets; their length.
    fn ask(&self, what: &'static CStr, room: &mut [u8]) -> Option<usize> {
        let mut asked = [Param::new(what, OCTET_STRING, room.as_mut_ptr().cast(), room.len()), Param::END];
        outcome(self.passed.get(asked.as_mut_ptr())).ok()?;
        Some(asked[0].return_size).filter(|&len| len <= room.len())
    }

    #[cold]
    fn grown_before_record(&self) -> Option<Box<Gcm>> {
        let mut own = self.grown()?;
        own.iv_len = self.ask(c"iv", &mut own.iv)?;
        // For records, which count it up, and for nothing else.
        own.iv_state = IvState::Spent;
        Some(own)
    }

    /// Associated data, text or the end went by.
    fn note(&mut self, io: &Io) {
        let begins = self.stage == Stage::Begun && !self.announced && io.has_input() && !io.has_output();
        let end = self.aad_len + io.len();
        match self.aad.get_mut(self.aad_len..end).filter(|_| begins) {
            Some(room) => {
                room.copy_from_slice(io.input());
                self.aad_len = end;
            }
            // A record, or the end of a message, leaves nothing under way.
            None => self.stage = if self.announced || !io.has_input() { Stage::Unknown } else { Stage::UnderWay },
        }
        self.announced = false;
        if io.has_output() {
            self.text = self.text.saturating_add(io.len());
        }
    }

    fn update(&mut self, io: &Io) -> Outcome<usize> {
        if io.len() == 0 {
            return Ok(0);
        }
        self.check()?;
        self.note(io);
        let (output, room, input, len) = io.raw();
        let mut written = 0;
        outcome(self.passed.update(output, &raw mut written, room, input, len)).map(|()| written)
    }

    fn step(&mut self, io: &Io) -> Outcome<usize> {
        self.check()?;
        self.note(io);
        let (output, room, input, len) = io.raw();
        let mut written = 0;
        outcome(self.passed.step(output, &raw mut written, room, input, len))?;
        self.note_end();
        Ok(written)
    }

    fn finish(&mut self, io: &Io) -> Outcome<usize> {
        self.check()?;
        (self.stage, self.announced) = (Stage::Unknown, false);
        let (output, room, ..) = io.raw();
        let mut written = 0;
        outcome(self.passed.finish(output, &raw mut written, room))?;
        self.note_end();
        Ok(written)
    }

    /// A message may have ended, and left a tag.
    fn note_end(&mut self) {
        if self.stage == Stage::Unknown && self.direction == Direction::Encrypt {
            self.tag_len = TAG_LEN;
        }
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        if self.generates && params.get(c"tlsivgen").is_some() {
            if self.spent || self.iv_len < AEAD_IV_LEN {
                return Err(Failed);
            }
            self.stage = Stage::UnderWay;
        }
        outcome(self.passed.get(params.as_mut_ptr()))
    }

    fn set(&mut self, params: Params<'_>) -> Outcome {
        if outcome(self.passed.set(params.as_ptr())).is_err() {
            // Some may have been taken: what was remembered is so no more.
            self.stage = Stage::UnderWay;
            return Err(Failed);
        }
        for param in params.iter() {
            match param.name().to_bytes() {
                b"tag" => self.note_tag(param),
                b"tlsaad" => self.announced = true,
                b"tlsivfixed" => {
                    let is_whole = param.data_size == usize::MAX;
                    (self.generates, self.stage, self.spent) = (is_whole || param.data_size >= TLS_FIXED_IV, Stage::Unknown, false);
                }
                b"tlsivinv" => (self.stage, self.spent) = (Stage::UnderWay, false),
                b"ivlen" => self.note_iv_len(param),
                _ => {}
            }
        }
        Ok(())
    }

    fn note_tag(&mut self, param: &Param) {
        if let Some(tag) = param.octets().filter(|tag| tag.len() <= TAG_LEN) {
            self.tag[..tag.len()].copy_from_slice(tag);
            self.tag_len = tag.len();
        }
    }

    fn note_iv_len(&mut self, param: &Param) {
        let len = param.size().unwrap_or(0);
        if len != self.iv_len && self.stage == Stage::Begun {
            self.stage = if self.aad_len > 0 { Stage::UnderWay } else { Stage::Unknown };
        }
        self.iv_len = len;
    }

    fn duplicate(&self) -> Outcome<Self> {
        Ok(Self { passed: self.passed.duplicate()?, key: self.key.clone(), ..*self })
    }

    /// A copy of ours, for a libcrypto that cannot copy its own contexts of GCM (3.0.2, OpenSSL issue 21955): possible while no text is under way.
    fn duplicate_as_own(&self) -> Outcome<Box<Gcm>> {
        let own = match self.stage {
            Stage::Begun => self.grown_in_message(),
            Stage::Unknown if !self.spent && !self.generates => self.grown(),
            _ => None,
        };
        own.ok_or(Failed)
    }
}

/// The same for either context.
macro_rules! either {
    ($self:expr, $context:ident => $does:expr) => {
        match $self {
            SmallGcm::Small($context) => $does,
            SmallGcm::Own($context) => $does,
        }
    };
}

impl SmallGcm {
    /// Takes ours from now on, if the small one has been outgrown.
    #[inline]
    fn grow(&mut self, outgrown: impl FnOnce(&Small) -> Option<Box<Gcm>>) {
        if let Self::Small(small) = self
            && let Some(own) = outgrown(small)
        {
            *self = Self::Own(own);
        }
    }
}

impl Cipher for SmallGcm {
    const GETTABLE: &'static [Param] = Gcm::GETTABLE;
    const SETTABLE: &'static [Param] = Gcm::SETTABLE;
    const MAY_PASS: bool = false;

    fn new(provider: &'static Provider, spec: &'static Spec) -> Option<Self> {
        match Passed::new(provider, spec.algorithm) {
            Some(passed) => Some(Self::Small(Small::new(passed, provider, spec))),
            None => Gcm::new(provider, spec).map(|own| Self::Own(Box::new(own))),
        }
    }

    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        either!(self, context => context.init(direction, key, iv))
    }

    #[inline]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        self.grow(|small| small.outgrown(io));
        either!(self, context => context.update(io))
    }

    fn finish(&mut self, io: &mut Io) -> Outcome<usize> {
        either!(self, context => context.finish(io))
    }

    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        self.grow(|small| small.outgrown(io));
        either!(self, context => context.step(io))
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        either!(self, context => context.get(params))
    }

    fn set(&mut self, params: Params<'_>) -> Outcome {
        self.grow(|small| small.outgrown_by_record(params));
        either!(self, context => context.set(params))
    }

    fn duplicate(&self) -> Outcome<Self> {
        match self {
            Self::Small(small) => small.duplicate().map(Self::Small).or_else(|Failed| small.duplicate_as_own().map(Self::Own)),
            Self::Own(own) => own.duplicate().map(|own| Self::Own(Box::new(own))),
        }
    }
}
