//! ECB and CBC: whole blocks, PKCS#7 padding (RFC 5652 s6.3), and the bytes that wait for their block to be full.

use super::delegated::Delegated;
use super::dispatch::{Cipher, Failed, Outcome, fail};
use super::io::Io;
use super::params::{self, Answers, settled};
use super::spec::{Mode, Spec};
use super::work::Work;
use crate::errors::Reason;
use crate::ffi::{OwnedParams, Param, Params, ParamsMut};
use crate::provider::Provider;
use bywash_core::{Data, Direction, Operation};
use zeroize::{Zeroize, Zeroizing};

const BLOCK: usize = 16;

/// A context of ECB or CBC.
pub(crate) struct Block {
    provider: &'static Provider,
    spec: &'static Spec,
    work: Work,
    direction: Direction,
    padding: bool,
    num: u32,
    /// Input that waits; when decrypting with padding, the last block is held back even if it is full.
    buffer: [u8; BLOCK],
    buffered: usize,
    original_iv: [u8; BLOCK],
    /// The chaining value; behind the stream's while `in_stream` is set.
    iv: [u8; BLOCK],
    iv_set: bool,
    in_stream: bool,
    tls: Tls,
}

/// CBC in TLS 1.0 to 1.2 with a separate MAC, done by the default provider.
#[derive(Default)]
struct Tls {
    /// 0 for no TLS.
    version: u32,
    mac_size: usize,
    cipher: Option<Delegated>,
}

impl Block {
    fn is_cbc(&self) -> bool {
        self.spec.mode == Mode::Cbc
    }

    fn decrypts(&self) -> bool {
        self.direction == Direction::Decrypt
    }

    /// Brings `iv` up to date.
    fn settle(&mut self) -> Outcome {
        if self.in_stream && self.is_cbc() {
            self.iv = self.work.chaining_value()?;
        }
        Ok(())
    }

    /// Puts whole blocks through the cipher.
    #[inline(always)]
    fn crypt(&mut self, data: Data<'_>) -> Outcome {
        if self.work.is_queued(data.input_len()) {
            return self.crypt_whole(data);
        }
        if !self.in_stream {
            let iv = self.iv;
            self.work.start(self.direction, &iv[..self.spec.iv_len])?;
            self.in_stream = true;
        }
        self.work.update(data)
    }

    /// The same as one operation, wherever it runs; the stream must begin anew after it.
    fn crypt_whole(&mut self, mut data: Data<'_>) -> Outcome {
        self.settle()?;
        let iv = self.iv;
        let last_input = self.decrypts().then(|| last_block(&data, false)).flatten();
        let operation = Operation { direction: self.direction, iv: &iv[..self.spec.iv_len], aad: &[], data: data.reborrow(), tag: &mut [] };
        self.work.run(operation)?;
        self.iv = last_input.or_else(|| last_block(&data, true)).unwrap_or(iv);
        self.in_stream = false;
        Ok(())
    }

    /// Puts the waiting block through the cipher and out.
    fn crypt_buffer(&mut self, io: &mut Io) -> Outcome {
        io.need_room(BLOCK)?;
        let mut block = Zeroizing::new(self.buffer);
        self.crypt(Data::InPlace(&mut *block))?;
        self.buffered = 0;
        io.write(&*block)
    }

    fn fill_buffer(&mut self, io: &mut Io, len: usize) {
        io.read(&mut self.buffer[self.buffered..self.buffered + len]);
        self.buffered += len;
    }

    fn finish_encryption(&mut self, io: &mut Io) -> Outcome<usize> {
        if self.padding {
            let pad = BLOCK - self.buffered;
            self.buffer[self.buffered..].fill(pad as u8);
        } else if self.buffered == 0 {
            return Ok(0);
        } else if self.buffered != BLOCK {
            return fail(Reason::WrongFinalBlockLength, "without padding the data must be a multiple of 16 bytes");
        }
        self.crypt_buffer(io)?;
        Ok(BLOCK)
    }

    fn finish_decryption(&mut self, io: &mut Io) -> Outcome<usize> {
        if self.buffered != BLOCK {
            if self.buffered == 0 && !self.padding {
                return Ok(0);
            }
            return fail(Reason::WrongFinalBlockLength, "the data is not a multiple of 16 bytes");
        }
        let mut block = Zeroizing::new(self.buffer);
        self.crypt(Data::InPlace(&mut *block))?;
        let len = if self.padding { unpadded(&block)? } else { BLOCK };
        io.write(&block[..len])?;
        self.buffered = 0;
        Ok(len)
    }

    /// The default provider's context for TLS, made for the key and IV that are set now.
    fn tls_cipher(&mut self) -> Outcome<&mut Delegated> {
        if self.tls.cipher.is_none() {
            let key = self.work.key().ok_or(Failed)?;
            let params = OwnedParams::new()
                .number(c"tls-version", self.tls.version.into())
                .number(c"tls-mac-size", self.tls.mac_size as u64)
                .number(c"padding", self.padding.into());
            let cipher = Delegated::new(self.provider, self.spec.algorithm, self.direction, key, &self.iv, params)?;
            self.tls.cipher = Some(cipher);
        }
        self.tls.cipher.as_mut().ok_or(Failed)
    }
}

/// The last block of the input or, for data in place or already written, of the output.
fn last_block(data: &Data<'_>, written: bool) -> Option<[u8; BLOCK]> {
    let bytes: &[u8] = match data {
        Data::InPlace(buffer) => buffer,
        Data::Copy { input, output } => {
            if written {
                &output[..input.len()]
            } else {
                input
            }
        }
    };
    bytes.last_chunk().copied()
}

/// Length of a last block without its padding. As in the default provider, the time this takes tells good padding from bad: a program
/// that decrypts what strangers send must authenticate it first.
fn unpadded(block: &[u8; BLOCK]) -> Outcome<usize> {
    let pad = usize::from(block[BLOCK - 1]);
    let good = (1..=BLOCK).contains(&pad) && block[BLOCK - pad..].iter().all(|&byte| usize::from(byte) == pad);
    if good { Ok(BLOCK - pad) } else { fail(Reason::BadDecrypt, "the padding is wrong: wrong key, or damaged data") }
}

impl Cipher for Block {
    const GETTABLE: &'static [Param] = params::GETTABLE;
    const SETTABLE: &'static [Param] = params::SETTABLE;

    #[inline(always)]
    fn new(provider: &'static Provider, spec: &'static Spec, work: Work) -> Self {
        Self {
            provider,
            spec,
            work,
            direction: Direction::Decrypt,
            padding: true,
            num: 0,
            buffer: [0; BLOCK],
            buffered: 0,
            original_iv: [0; BLOCK],
            iv: [0; BLOCK],
            iv_set: false,
            in_stream: false,
            tls: Tls::default(),
        }
    }

    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        self.settle()?;
        (self.num, self.buffered, self.in_stream) = (0, 0, false);
        self.direction = direction;
        self.tls.cipher = None;
        match iv {
            Some(iv) if self.is_cbc() => {
                let Ok(iv) = iv.try_into() else { return fail(Reason::InvalidIvLength, "CBC takes an IV of 16 bytes") };
                (self.original_iv, self.iv, self.iv_set) = (iv, iv, true);
            }
            None if self.iv_set => self.iv = self.original_iv,
            _ => {}
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
    fn lag(&self) -> usize {
        self.buffered
    }

    #[inline(always)]
    fn straight(&mut self, len: usize) -> Option<&mut Work> {
        let waits = self.buffered != 0 || !len.is_multiple_of(BLOCK) || self.decrypts() && self.padding;
        if waits || !self.in_stream || self.tls.version != 0 { None } else { self.work.alone() }
    }

    #[inline(always)]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        self.work.need_key()?;
        if self.tls.version != 0 {
            return self.tls_cipher()?.update(io);
        }
        let room = io.room();
        if self.buffered != 0 {
            self.fill_buffer(io, io.len().min(BLOCK - self.buffered));
        }
        if self.buffered == BLOCK && (!self.decrypts() || io.len() > 0 || !self.padding) {
            self.crypt_buffer(io)?;
        }
        let mut whole = io.len() & !(BLOCK - 1);
        if whole > 0 && whole == io.len() && self.decrypts() && self.padding {
            whole -= BLOCK;
        }
        if whole > 0 {
            io.transform(whole, |data| self.crypt(data))?;
        }
        if io.len() > 0 {
            self.fill_buffer(io, io.len());
        }
        Ok(room - io.room())
    }

    fn finish(&mut self, io: &mut Io) -> Outcome<usize> {
        self.work.need_key()?;
        if self.tls.version != 0 {
            return fail(Reason::CipherOperationFailed, "a TLS record has no separate end");
        }
        if self.decrypts() { self.finish_decryption(io) } else { self.finish_encryption(io) }
    }

    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        self.work.need_key()?;
        let len = io.len();
        io.need_room(len)?;
        if !len.is_multiple_of(BLOCK) && self.is_cbc() {
            return fail(Reason::CipherOperationFailed, "EVP_Cipher with CBC takes whole blocks");
        }
        if len >= BLOCK {
            io.transform(len & !(BLOCK - 1), |data| self.crypt(data))?;
        }
        Ok(len)
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        self.settle()?;
        let answers = Answers {
            key_len: self.spec.key_len,
            padding: self.padding,
            num: self.num,
            original_iv: &self.original_iv[..self.spec.iv_len],
            iv: &self.iv[..self.spec.iv_len],
        };
        answers.give(params)?;
        let tls = &mut self.tls;
        settled(params.answer(c"tls-mac", |param| match &mut tls.cipher {
            Some(cipher) => cipher.get(param),
            None => param.set_octet_pointer(core::ptr::null(), tls.mac_size),
        }))
    }

    #[inline(always)]
    fn pad(&mut self, padding: bool) {
        self.padding = padding;
    }

    fn set(&mut self, told: Params<'_>) -> Outcome {
        if let Some(padding) = params::uint(told, c"padding")? {
            self.padding = padding != 0;
        }
        if let Some(version) = params::uint(told, c"tls-version")? {
            self.settle()?;
            (self.tls.version, self.tls.cipher, self.in_stream) = (version, None, false);
        }
        if let Some(size) = params::number(told, c"tls-mac-size")? {
            (self.tls.mac_size, self.tls.cipher) = (size, None);
        }
        if let Some(num) = params::uint(told, c"num")? {
            if num >= BLOCK as u32 {
                return fail(Reason::FailedToGetParameter, "num must be below the block size");
            }
            self.num = num;
        }
        Ok(())
    }

    #[inline(always)]
    fn duplicate(&self, work: Work) -> Outcome<Self> {
        let cipher = match &self.tls.cipher {
            Some(cipher) => Some(cipher.duplicate()?),
            None => None,
        };
        let tls = Tls { version: self.tls.version, mac_size: self.tls.mac_size, cipher };
        Ok(Self { work, tls, ..*self })
    }

    fn work(&self) -> &Work {
        &self.work
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.buffer.zeroize();
    }
}
