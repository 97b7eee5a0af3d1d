//! GCM: messages in pieces, and TLS 1.2 records in one (RFC 5288).

use super::dispatch::{Cipher, Failed, Outcome, fail};
use super::io::Io;
use super::spec::{AEAD_IV_LEN, Spec};
use super::work::Work;
use crate::errors::Reason;
use crate::ffi::{Param, Params, ParamsMut};
use crate::provider::Provider;
use crate::random::random;
use bywash_core::secret::constant_time_eq;
use bywash_core::{Data, Direction, Operation};

/// Longest IV taken, as in the default provider.
pub(super) const IV_MAX: usize = 128;
pub(super) const TAG_LEN: usize = 16;
/// Explicit part of a TLS 1.2 record's nonce.
const TLS_EXPLICIT_IV: usize = 8;
pub(super) const TLS_FIXED_IV: usize = 4;
/// Sequence number, type, version, length (RFC 5246 s6.2.3.3).
pub(super) const TLS_AAD_LEN: usize = 13;

/// What has become of the IV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IvState {
    /// None was set; encryption makes a random one.
    Unset,
    /// Set, not yet used.
    Set,
    /// A message has begun under it.
    InUse,
    /// Used up: another must be set.
    Spent,
}

/// A context of GCM.
pub(crate) struct Gcm {
    pub(super) spec: &'static Spec,
    pub(super) work: Work,
    pub(super) direction: Direction,
    pub(super) iv: [u8; IV_MAX],
    pub(super) iv_len: usize,
    pub(super) iv_state: IvState,
    /// Whether IVs may be counted up from a fixed part.
    pub(super) iv_generates: bool,
    /// Whether text has come, after which there is no more associated data.
    pub(super) tag: [u8; TAG_LEN],
    /// Length of the tag that was set, or made by the end of an encryption.
    pub(super) tag_len: Option<usize>,
    /// Associated data of the TLS record that comes next.
    pub(super) tls_aad: Option<[u8; TLS_AAD_LEN]>,
    pub(super) tls_pad: usize,
    tls_records: u64,
}

impl Gcm {
    pub(super) fn encrypts(&self) -> bool {
        self.direction == Direction::Encrypt
    }

    /// Begins a message under the IV as it stands.
    pub(super) fn begin(&mut self) -> Outcome {
        self.work.start(self.direction, &self.iv[..self.iv_len])?;
        self.iv_state = IvState::InUse;
        Ok(())
    }

    /// Sets the IV; it has been checked. One of the usual length is copied in the parts in which kernels read it, for it is read before it is out of the store buffer.
    #[inline(always)]
    fn set_iv(&mut self, iv: &[u8]) {
        match (iv.split_first_chunk::<8>(), self.iv.split_first_chunk_mut::<8>()) {
            (Some((first, &[a, b, c, d])), Some((to, rest))) => {
                *to = *first;
                rest[..4].copy_from_slice(&[a, b, c, d]);
            }
            _ => self.iv[..iv.len()].copy_from_slice(iv),
        }
        self.iv_len = iv.len();
        self.iv_state = IvState::Set;
    }

    /// Random bytes for the IV from `offset` on.
    pub(super) fn randomise_iv(&mut self, offset: usize) -> Outcome {
        if random(&mut self.iv[offset..self.iv_len]) { Ok(()) } else { Err(Failed) }
    }

    /// SP 800-38D s8.2.2: a random IV of at least 96 bits, where the program set none.
    fn generate_iv(&mut self) -> Outcome {
        if !self.encrypts() || self.iv_len < AEAD_IV_LEN {
            return Err(Failed);
        }
        self.randomise_iv(0)?;
        self.iv_state = IvState::Set;
        Ok(())
    }

    /// Makes sure a message is under way.
    #[inline(always)]
    fn enter(&mut self) -> Outcome {
        if self.iv_state == IvState::InUse { Ok(()) } else { self.enter_anew() }
    }

    #[inline(never)]
    fn enter_anew(&mut self) -> Outcome {
        if !self.work.is_keyed() || self.iv_state == IvState::Spent {
            return Err(Failed);
        }
        if self.iv_state == IvState::Unset {
            self.generate_iv()?;
        }
        self.begin()
    }

    /// Associated data, text or, without input, the end.
    #[inline(always)]
    fn advance(&mut self, io: &mut Io) -> Outcome<usize> {
        if self.tls_aad.is_some() {
            return self.record(io);
        }
        self.enter()?;
        let len = io.len();
        if io.has_input() {
            self.work.take(io)?;
        } else {
            self.end()?;
        }
        Ok(len)
    }

    fn end(&mut self) -> Outcome {
        let wanted = if self.encrypts() { None } else { Some(self.tag_len.ok_or(Failed)?) };
        match wanted {
            None => {
                self.work.tag(&mut self.tag)?;
                self.tag_len = Some(TAG_LEN);
            }
            Some(len) => {
                let mut tag = [0; TAG_LEN];
                self.work.tag(&mut tag)?;
                if !constant_time_eq(&tag[..len], &self.tag[..len]) {
                    return Err(Failed);
                }
            }
        }
        self.iv_state = IvState::Spent;
        Ok(())
    }

    /// Whether IVs are to be counted up, and this one is long enough for a fixed part and a counter.
    pub(super) fn can_count(&self) -> bool {
        self.iv_generates && self.iv_len >= TLS_FIXED_IV + TLS_EXPLICIT_IV
    }

    /// Counts the last 8 bytes of the IV up by one; they are never fewer ([`Gcm::can_count`]), so no carry goes further.
    pub(super) fn count_iv_up(&mut self) {
        if let Some(counter) = self.iv[..self.iv_len].last_chunk_mut::<8>() {
            *counter = u64::from_be_bytes(*counter).wrapping_add(1).to_be_bytes();
        }
    }

    /// One TLS 1.2 record, in place: explicit IV, text, tag. Whatever happens, the IV is spent.
    #[inline(never)]
    fn record(&mut self, io: &mut Io) -> Outcome<usize> {
        let done = self.protect(io);
        self.iv_state = IvState::Spent;
        self.tls_aad = None;
        done
    }

    fn protect(&mut self, io: &mut Io) -> Outcome<usize> {
        let len = io.len();
        let aad = self.tls_aad.ok_or(Failed)?;
        if !self.work.is_keyed() || !self.can_count() || !io.is_in_place() || len < TLS_EXPLICIT_IV + TAG_LEN {
            return Err(Failed);
        }
        let record = &mut io.output()[..len];
        let (explicit, rest) = record.split_at_mut(TLS_EXPLICIT_IV);
        let (text, tag) = rest.split_at_mut(len - TLS_EXPLICIT_IV - TAG_LEN);
        let explicit_at = self.iv_len - TLS_EXPLICIT_IV..self.iv_len;
        if self.encrypts() {
            // SP 800-38D s8.3: not more records than invocation fields.
            self.tls_records = self.tls_records.checked_add(1).ok_or(Failed)?;
            explicit.copy_from_slice(&self.iv[explicit_at]);
        } else {
            self.iv[explicit_at].copy_from_slice(explicit);
        }
        let text_len = text.len();
        let operation = Operation { direction: self.direction, iv: &self.iv[..self.iv_len], aad: &aad, data: Data::InPlace(text), tag };
        let done = self.work.run(operation);
        if self.encrypts() {
            self.count_iv_up();
        }
        self.tag_len = Some(TAG_LEN);
        done.map(|()| if self.encrypts() { len } else { text_len })
    }

    /// Takes the associated data of the next TLS record; its length field counts explicit IV and, when decrypting, tag.
    pub(super) fn announce_record(&mut self, aad: &[u8]) -> Outcome {
        let bad = || fail(Reason::InvalidAad, "TLS 1.2 has 13 bytes of associated data, and a record holds explicit IV and tag");
        let Ok(mut aad) = <[u8; TLS_AAD_LEN]>::try_from(aad) else { return bad() };
        let overhead = if self.encrypts() { TLS_EXPLICIT_IV } else { TLS_EXPLICIT_IV + TAG_LEN };
        let Some(len) = usize::from(u16::from_be_bytes([aad[11], aad[12]])).checked_sub(overhead) else { return bad() };
        [aad[11], aad[12]] = (len as u16).to_be_bytes();
        self.tls_aad = Some(aad);
        self.tls_pad = TAG_LEN;
        Ok(())
    }
}

impl Cipher for Gcm {
    const GETTABLE: &'static [Param] = super::gcm_params::GETTABLE;
    const SETTABLE: &'static [Param] = super::gcm_params::SETTABLE;

    #[inline(always)]
    fn new(_: &'static Provider, spec: &'static Spec, work: Work) -> Self {
        Self {
            spec,
            work,
            direction: Direction::Decrypt,
            iv: [0; IV_MAX],
            iv_len: AEAD_IV_LEN,
            iv_state: IvState::Unset,
            iv_generates: false,
            tag: [0; TAG_LEN],
            tag_len: None,
            tls_aad: None,
            tls_pad: 0,
            tls_records: 0,
        }
    }

    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        let turned = direction != self.direction;
        self.direction = direction;
        if let Some(iv) = iv {
            if iv.is_empty() || iv.len() > IV_MAX {
                return fail(Reason::InvalidIvLength, "GCM takes an IV of 1 to 128 bytes");
            }
            self.set_iv(iv);
        }
        if let Some(key) = key {
            if key.len() != self.spec.key_len {
                return fail(Reason::InvalidKeyLength, "the key does not have this cipher's length");
            }
            self.work.set_key(key)?;
            self.tls_records = 0;
        }
        if self.iv_state == IvState::InUse && (turned || key.is_some()) {
            // In the middle of a message: what comes next is a new one, and to encrypt it under the same IV would give both away.
            if self.encrypts() {
                self.iv_state = IvState::Spent;
            } else {
                self.begin()?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.spec.key_len, self.iv_len)
    }

    #[inline(always)]
    fn straight(&mut self, _: usize) -> Option<&mut Work> {
        if self.iv_state == IvState::InUse && self.tls_aad.is_none() { self.work.alone_for_text() } else { None }
    }

    #[inline(always)]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        if io.len() == 0 {
            return Ok(0);
        }
        if io.has_output() {
            io.need_room(io.len())?;
        }
        match self.advance(io) {
            Ok(written) => Ok(written),
            Err(Failed) => {
                fail(Reason::CipherOperationFailed, "GCM needs a key and a fresh IV, associated data before text, and a good tag")
            }
        }
    }

    fn finish(&mut self, io: &mut Io) -> Outcome<usize> {
        self.advance(io)?;
        Ok(0)
    }

    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        let len = io.len();
        if io.has_output() {
            io.need_room(len)?;
        }
        self.advance(io)?;
        Ok(len)
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        self.answer(params)
    }

    #[inline(always)]
    fn pad(&mut self, _: bool) {}

    fn set(&mut self, params: Params<'_>) -> Outcome {
        self.tell(params)
    }

    #[inline(always)]
    fn duplicate(&self, work: Work) -> Outcome<Self> {
        Ok(Self { work, ..*self })
    }

    fn work(&self) -> &Work {
        &self.work
    }
}
