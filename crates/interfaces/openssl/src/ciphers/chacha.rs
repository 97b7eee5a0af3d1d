//! ChaCha20-Poly1305 (RFC 8439): messages in pieces, and TLS 1.2 records in one (RFC 7905).

use super::dispatch::{Cipher, Failed, Outcome, fail};
use super::io::Io;
use super::params::{number, settled};
use super::spec::{AEAD_IV_LEN, Spec};
use super::work::Work;
use crate::errors::Reason;
use crate::ffi::{Param, Params, ParamsMut};
use crate::provider::Provider;
use bywash_core::secret::constant_time_eq;
use bywash_core::{Data, Direction, Operation};

const TAG_LEN: usize = 16;
/// Sequence number, type, version, length (RFC 5246 s6.2.3.3).
const TLS_AAD_LEN: usize = 13;

/// A context of ChaCha20-Poly1305.
pub(crate) struct ChaCha {
    spec: &'static Spec,
    work: Work,
    direction: Direction,
    /// As it was set; TLS adds the sequence number to it.
    base_nonce: [u8; AEAD_IV_LEN],
    nonce: [u8; AEAD_IV_LEN],
    /// Whether a message is under way.
    begun: bool,
    /// Whether it was given another direction in the midst, after which there must be another IV: to encrypt again from its beginning would give both texts away.
    turned: bool,
    tag: [u8; TAG_LEN],
    tag_len: usize,
    /// The TLS record that comes next.
    tls: Option<Record>,
    tls_pad: usize,
}

#[derive(Clone, Copy)]
struct Record {
    aad: [u8; TLS_AAD_LEN],
    text_len: usize,
}

impl ChaCha {
    fn encrypts(&self) -> bool {
        self.direction == Direction::Encrypt
    }

    fn forget_message(&mut self) {
        (self.begun, self.turned) = (false, false);
        self.tls = None;
    }

    #[inline]
    fn enter(&mut self) -> Outcome {
        if !self.begun {
            if self.turned {
                return fail(Reason::CipherOperationFailed, "a message goes on in its direction; after another one there must be an IV");
            }
            self.work.need_key()?;
            self.work.start(self.direction, &self.nonce)?;
            self.begun = true;
        }
        Ok(())
    }

    /// Associated data, text or, without input, the end.
    #[inline]
    fn advance(&mut self, io: &mut Io) -> Outcome<usize> {
        if let Some(record) = self.tls {
            return self.protect(io, record);
        }
        self.enter()?;
        let len = io.len();
        if !io.has_input() {
            self.end()?;
        } else if self.work.is_late(io) {
            return fail(Reason::CipherOperationFailed, "associated data comes before text");
        } else {
            self.work.take(io)?;
        }
        Ok(len)
    }

    /// Compares as many bytes of the tag as were set: none, if none were, as the default provider does.
    fn end(&mut self) -> Outcome {
        if self.encrypts() {
            self.work.tag(&mut self.tag)?;
            self.begun = false;
            return Ok(());
        }
        let mut tag = [0; TAG_LEN];
        self.work.tag(&mut tag)?;
        self.begun = false;
        if constant_time_eq(&tag[..self.tag_len], &self.tag[..self.tag_len]) { Ok(()) } else { Err(Failed) }
    }

    /// One TLS record: text, then tag.
    fn protect(&mut self, io: &mut Io, record: Record) -> Outcome<usize> {
        let Record { aad, text_len } = record;
        if !io.has_output() || io.len() != text_len + TAG_LEN {
            return Err(Failed);
        }
        self.tls = None;
        let mut tag = [0; TAG_LEN];
        if !self.encrypts() {
            tag.copy_from_slice(&io.input()[text_len..]);
        }
        let (direction, iv) = (self.direction, self.nonce);
        let run = |data: Data<'_>| self.work.run(Operation { direction, iv: &iv, aad: &aad, data, tag: &mut tag });
        io.transform(text_len, run)?;
        if self.encrypts() {
            self.tag = tag;
            io.write(&tag)?;
            return Ok(text_len + TAG_LEN);
        }
        Ok(text_len)
    }

    /// Takes the associated data of the next record; its length field counts the tag when decrypting. The nonce is the IV with the
    /// sequence number added bit by bit (RFC 7905 s2).
    fn announce_record(&mut self, aad: &[u8]) -> Outcome {
        let bad = || fail(Reason::InvalidData, "TLS has 13 bytes of associated data, and a record holds a tag");
        let Ok(mut aad) = <[u8; TLS_AAD_LEN]>::try_from(aad) else { return bad() };
        let mut text_len = usize::from(u16::from_be_bytes([aad[11], aad[12]]));
        if !self.encrypts() {
            let Some(len) = text_len.checked_sub(TAG_LEN) else { return bad() };
            [aad[11], aad[12]] = (len as u16).to_be_bytes();
            text_len = len;
        }
        self.nonce = self.base_nonce;
        self.nonce[4..].iter_mut().zip(&aad[..8]).for_each(|(nonce, sequence)| *nonce ^= sequence);
        (self.begun, self.turned) = (false, false);
        self.tls = Some(Record { aad, text_len });
        self.tls_pad = TAG_LEN;
        Ok(())
    }

    fn take_tag(&mut self, param: &Param) -> Outcome {
        let len = param.data_size;
        if len == 0 || len > TAG_LEN {
            return fail(Reason::InvalidTagLength, "a tag has 1 to 16 bytes");
        }
        let Some(tag) = param.octets() else { return not_octets() };
        if !param.data.is_null() {
            if self.encrypts() {
                return fail(Reason::TagNotNeeded, "encryption makes the tag");
            }
            self.tag[..len].copy_from_slice(tag);
        }
        self.tag_len = len;
        Ok(())
    }

    fn answer_tag(&self, param: &mut Param) -> Outcome {
        let len = param.data_size;
        if !self.encrypts() {
            return fail(Reason::TagNotSet, "decryption has no tag to give");
        }
        if len == 0 || len > TAG_LEN {
            return fail(Reason::InvalidTagLength, "a tag has 1 to 16 bytes");
        }
        settled(param.set_octets(&self.tag[..len]))
    }
}

fn not_octets<T>() -> Outcome<T> {
    fail(Reason::FailedToGetParameter, "a parameter that should be an octet string is not")
}

impl Cipher for ChaCha {
    const GETTABLE: &'static [Param] = &[
        Param::declare_size(c"keylen"),
        Param::declare_size(c"ivlen"),
        Param::declare_size(c"taglen"),
        Param::declare_octets(c"tag"),
        Param::declare_size(c"tlsaadpad"),
        Param::END,
    ];
    const SETTABLE: &'static [Param] = &[
        Param::declare_size(c"keylen"),
        Param::declare_size(c"ivlen"),
        Param::declare_octets(c"tag"),
        Param::declare_octets(c"tlsaad"),
        Param::declare_octets(c"tlsivfixed"),
        Param::END,
    ];

    fn new(_: &'static Provider, spec: &'static Spec, work: Work) -> Self {
        Self {
            spec,
            work,
            direction: Direction::Decrypt,
            base_nonce: [0; AEAD_IV_LEN],
            nonce: [0; AEAD_IV_LEN],
            begun: false,
            turned: false,
            tag: [0; TAG_LEN],
            tag_len: 0,
            tls: None,
            tls_pad: 0,
        }
    }

    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        if direction != self.direction && self.begun {
            (self.begun, self.turned) = (false, true);
        }
        self.direction = direction;
        if let Some(iv) = iv {
            let Ok(nonce) = iv.try_into() else { return fail(Reason::InvalidIvLength, "ChaCha20-Poly1305 takes an IV of 12 bytes") };
            (self.base_nonce, self.nonce) = (nonce, nonce);
            self.forget_message();
        }
        if let Some(key) = key {
            if key.len() != self.spec.key_len {
                return fail(Reason::InvalidKeyLength, "ChaCha20-Poly1305 takes a key of 32 bytes");
            }
            self.forget_message();
            self.work.set_key(key)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.spec.key_len, AEAD_IV_LEN)
    }

    #[inline(always)]
    fn straight(&mut self, _: usize) -> Option<&mut Work> {
        if self.begun && self.tls.is_none() { self.work.alone_for_text() } else { None }
    }

    #[inline(always)]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        self.step(io)
    }

    fn finish(&mut self, io: &mut Io) -> Outcome<usize> {
        if self.tls.is_some() {
            return Err(Failed);
        }
        self.advance(io)?;
        Ok(0)
    }

    /// Nothing is no end: that is [`finish`](Self::finish) alone.
    #[inline]
    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        if io.len() == 0 {
            return Ok(0);
        }
        if io.has_output() {
            io.need_room(io.len())?;
        }
        self.advance(io)
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        settled(
            params.answer_number(c"ivlen", AEAD_IV_LEN as u64)
                && params.answer_number(c"keylen", self.spec.key_len as u64)
                && params.answer_number(c"taglen", self.tag_len as u64)
                && params.answer_number(c"tlsaadpad", self.tls_pad as u64),
        )?;
        match params.get(c"tag") {
            Some(param) => self.answer_tag(param),
            None => Ok(()),
        }
    }

    fn pad(&mut self, _: bool) {}

    fn set(&mut self, params: Params<'_>) -> Outcome {
        if number(params, c"keylen")?.is_some_and(|len| len != self.spec.key_len) {
            return fail(Reason::InvalidKeyLength, "ChaCha20-Poly1305 takes a key of 32 bytes");
        }
        if number(params, c"ivlen")?.is_some_and(|len| len != AEAD_IV_LEN) {
            return fail(Reason::InvalidIvLength, "ChaCha20-Poly1305 takes an IV of 12 bytes");
        }
        if let Some(param) = params.get(c"tag") {
            self.take_tag(param)?;
        }
        if let Some(param) = params.get(c"tlsaad") {
            let Some(aad) = param.octets() else { return not_octets() };
            self.announce_record(aad)?;
        }
        if let Some(param) = params.get(c"tlsivfixed") {
            let Some(fixed) = param.octets() else { return not_octets() };
            let Ok(nonce) = fixed.try_into() else { return fail(Reason::InvalidIvLength, "ChaCha20-Poly1305 takes an IV of 12 bytes") };
            (self.base_nonce, self.nonce) = (nonce, nonce);
        }
        Ok(())
    }

    #[inline(always)]
    fn duplicate(&self, work: Work) -> Outcome<Self> {
        Ok(Self { work, ..*self })
    }

    fn work(&self) -> &Work {
        &self.work
    }
}
