//! XTS: every update is one data unit with the same tweak until another is set.

use super::delegated::Delegated;
use super::dispatch::{Cipher, Failed, Outcome, fail};
use super::io::Io;
use super::params::{self, Answers, settled};
use super::spec::Spec;
use super::work::Work;
use crate::errors::Reason;
use crate::ffi::{OwnedParams, Param, Params, ParamsMut};
use crate::provider::Provider;
use bywash_core::secret::constant_time_eq;
use bywash_core::{Direction, Operation, SecretBytes};

const BLOCK: usize = 16;
/// IEEE 1619-2018 s5.1: 2^20 blocks.
const DATA_UNIT_MAX: usize = BLOCK << 20;

/// A context of XTS.
pub(crate) struct Xts {
    provider: &'static Provider,
    spec: &'static Spec,
    work: Work,
    direction: Direction,
    iv: Option<[u8; BLOCK]>,
    /// The cipher that is this context's alone has key, direction and tweak.
    begun: bool,
    /// No IV, for programs that ask before they set one.
    no_iv: [u8; BLOCK],
    /// A key of two equal halves. The default provider decrypts with it, for data that exists; sessions refuse it.
    weak: Option<SecretBytes>,
}

impl Xts {
    fn set_key(&mut self, key: &[u8]) -> Outcome {
        if key.len() != self.spec.key_len {
            return fail(Reason::InvalidKeyLength, "an XTS key has two halves");
        }
        let (left, right) = key.split_at(key.len() / 2);
        self.weak = None;
        if !constant_time_eq(left, right) {
            return self.work.set_key(key);
        }
        if self.direction == Direction::Encrypt {
            return fail(Reason::XtsDuplicatedKeys, "the two halves of an XTS key must differ");
        }
        self.work.forget_key();
        self.weak = Some(key.into());
        Ok(())
    }

    #[inline(always)]
    fn data_unit(&mut self, io: &mut Io) -> Outcome<usize> {
        let len = io.len();
        let iv = self.iv.ok_or(Failed)?;
        if len < BLOCK || !io.has_output() {
            return Err(Failed);
        }
        if len > DATA_UNIT_MAX {
            return fail(Reason::XtsDataUnitIsTooLarge, "a data unit has at most 2^20 blocks");
        }
        if let Some(key) = &self.weak {
            if self.direction == Direction::Encrypt {
                return Err(Failed);
            }
            let algorithm = self.spec.algorithm;
            return Delegated::new(self.provider, algorithm, Direction::Decrypt, key, &iv, OwnedParams::new())?.update(io);
        }
        self.work.need_key()?;
        let direction = self.direction;
        if let Some(work) = self.work.alone() {
            if !self.begun {
                work.start(direction, &iv)?;
                self.begun = true;
            }
            io.transform(len, |data| work.update(data))?;
        } else {
            io.transform(len, |data| self.work.run(Operation { direction, iv: &iv, aad: &[], data, tag: &mut [] }))?;
        }
        Ok(len)
    }
}

impl Cipher for Xts {
    const GETTABLE: &'static [Param] = params::GETTABLE;
    const SETTABLE: &'static [Param] = &[Param::declare_size(c"keylen"), Param::END];

    #[inline(always)]
    fn new(provider: &'static Provider, spec: &'static Spec, work: Work) -> Self {
        Self { provider, spec, work, direction: Direction::Decrypt, iv: None, begun: false, no_iv: [0; BLOCK], weak: None }
    }

    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        (self.direction, self.begun) = (direction, false);
        if let Some(iv) = iv {
            let Ok(iv) = iv.try_into() else { return fail(Reason::InvalidIvLength, "XTS takes a tweak of 16 bytes") };
            self.iv = Some(iv);
        }
        match key {
            Some(key) => self.set_key(key),
            None if direction == Direction::Encrypt && self.weak.is_some() => {
                fail(Reason::XtsDuplicatedKeys, "the two halves of an XTS key must differ")
            }
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.spec.key_len, BLOCK)
    }

    #[inline(always)]
    fn straight(&mut self, len: usize) -> Option<&mut Work> {
        if self.begun && (BLOCK..=DATA_UNIT_MAX).contains(&len) { self.work.alone() } else { None }
    }

    #[inline(always)]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        io.need_room(io.len())?;
        match self.data_unit(io) {
            Ok(written) => Ok(written),
            Err(Failed) => fail(Reason::CipherOperationFailed, "XTS needs a key, a tweak and 16 bytes or more at once"),
        }
    }

    fn finish(&mut self, _io: &mut Io) -> Outcome<usize> {
        Ok(0)
    }

    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        self.data_unit(io)
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        let iv = self.iv.as_ref().unwrap_or(&self.no_iv);
        Answers { key_len: self.spec.key_len, padding: true, num: 0, original_iv: iv, iv }.give(params)?;
        settled(params.answer(c"tls-mac", |param| param.set_octet_pointer(core::ptr::null(), 0)))
    }

    #[inline(always)]
    fn pad(&mut self, _: bool) {}

    fn set(&mut self, told: Params<'_>) -> Outcome {
        match params::number(told, c"keylen")? {
            Some(len) if len != self.spec.key_len => Err(Failed),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn duplicate(&self, work: Work) -> Outcome<Self> {
        Ok(Self { work, weak: self.weak.clone(), ..*self })
    }

    fn work(&self) -> &Work {
        &self.work
    }
}
