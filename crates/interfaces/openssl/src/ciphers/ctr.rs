//! CTR: a counter block and a position in its key stream.

use super::dispatch::{Cipher, Outcome, fail};
use super::io::Io;
use super::params::{self, Answers, settled};
use super::spec::Spec;
use super::work::Work;
use crate::errors::Reason;
use crate::ffi::{Param, Params, ParamsMut};
use crate::provider::Provider;
use bywash_core::{Data, Direction, Operation};

const BLOCK: u64 = 16;

/// A context of CTR.
pub(crate) struct Ctr {
    spec: &'static Spec,
    work: Work,
    padding: bool,
    original_iv: [u8; 16],
    /// Where the message began; the counter is all 128 bits (SP 800-38A s6.5).
    base: u128,
    /// Bytes since then.
    position: u64,
    /// The next counter block, for programs that ask for it.
    next: [u8; 16],
    in_stream: bool,
}

impl Ctr {
    /// The counter block after so many bytes, a block begun counting as used or not.
    fn counter(&self, blocks: u64) -> u128 {
        self.base.wrapping_add(u128::from(blocks))
    }

    /// Forgets what is left of the key stream block in use.
    fn drop_partial_block(&mut self) {
        self.base = self.counter(self.position.div_ceil(BLOCK));
        self.position = 0;
        self.in_stream = false;
    }

    /// Brings the stream to the position.
    #[inline(always)]
    fn enter_stream(&mut self) -> Outcome {
        if self.in_stream { Ok(()) } else { self.begin_stream() }
    }

    fn begin_stream(&mut self) -> Outcome {
        let counter = self.counter(self.position / BLOCK).to_be_bytes();
        self.work.start(Direction::Encrypt, &counter)?;
        let used = (self.position % BLOCK) as usize;
        if used > 0 {
            self.work.skip(Data::InPlace(&mut [0; BLOCK as usize][..used]))?;
        }
        self.in_stream = true;
        Ok(())
    }

    #[inline(always)]
    fn crypt(&mut self, data: Data<'_>) -> Outcome {
        let len = data.input_len();
        if self.work.is_queued(len) && self.position.is_multiple_of(BLOCK) {
            let iv = self.counter(self.position / BLOCK).to_be_bytes();
            self.work.run(Operation { direction: Direction::Encrypt, iv: &iv, aad: &[], data, tag: &mut [] })?;
            self.in_stream = false;
        } else {
            self.enter_stream()?;
            self.work.update(data)?;
        }
        self.position += len as u64;
        Ok(())
    }
}

impl Cipher for Ctr {
    const GETTABLE: &'static [Param] = params::GETTABLE;
    const SETTABLE: &'static [Param] = params::SETTABLE;

    fn new(_: &'static Provider, spec: &'static Spec, work: Work) -> Self {
        Self { spec, work, padding: true, original_iv: [0; 16], base: 0, position: 0, next: [0; 16], in_stream: false }
    }

    /// Both directions are one. Without an IV the counter goes on, at the next block.
    fn init(&mut self, _direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        self.drop_partial_block();
        if let Some(iv) = iv {
            let Ok(iv) = iv.try_into() else { return fail(Reason::InvalidIvLength, "CTR takes an IV of 16 bytes") };
            (self.original_iv, self.base) = (iv, u128::from_be_bytes(iv));
        }
        match key {
            Some(key) => self.work.set_key(key),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn lengths(&self) -> (usize, usize) {
        (self.spec.key_len, self.spec.iv_len)
    }

    #[inline(always)]
    fn straight(&mut self, len: usize) -> Option<&mut Work> {
        let work = self.work.alone().filter(|_| self.in_stream)?;
        self.position += len as u64;
        Some(work)
    }

    #[inline(always)]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        self.step(io)
    }

    fn finish(&mut self, _io: &mut Io) -> Outcome<usize> {
        self.work.need_key()?;
        Ok(0)
    }

    #[inline(always)]
    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        self.work.need_key()?;
        let len = io.len();
        if len > 0 {
            io.transform(len, |data| self.crypt(data))?;
        }
        Ok(len)
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        self.next = self.counter(self.position.div_ceil(BLOCK)).to_be_bytes();
        let answers = Answers {
            key_len: self.spec.key_len,
            padding: self.padding,
            num: (self.position % BLOCK) as u32,
            original_iv: &self.original_iv,
            iv: &self.next,
        };
        answers.give(params)?;
        settled(params.answer(c"tls-mac", |param| param.set_octet_pointer(core::ptr::null(), 0)))
    }

    #[inline(always)]
    fn pad(&mut self, padding: bool) {
        self.padding = padding;
    }

    fn set(&mut self, told: Params<'_>) -> Outcome {
        if let Some(padding) = params::uint(told, c"padding")? {
            self.padding = padding != 0;
        }
        match params::uint(told, c"num")? {
            None => {}
            Some(0) => self.drop_partial_block(),
            // As the default provider has it: it compares with a block size of 1.
            Some(_) => return fail(Reason::FailedToGetParameter, "num must be below the block size"),
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
