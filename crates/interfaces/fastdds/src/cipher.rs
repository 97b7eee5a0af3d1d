//! What becomes of an `EVP_CIPHER_CTX`: one message of AES-GCM, computed by a cipher that is keyed already, or an object of libcrypto's.

use crate::counts::{From, Of, count};
use crate::kept::{self, Cipher, Trial};
use crate::real::{self, raise};
use crate::slab::{SLOTS, Slab};
use crate::tally;
use bywash_client::Extent;
use bywash_core::secret::{constant_time_eq, wipe};
use bywash_core::{Data, Direction};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uchar, c_void};
use core::{ptr, slice};

const IV: usize = 12;
const TAG: usize = 16;
/// `EVP_CTRL_AEAD_GET_TAG`, `EVP_CTRL_AEAD_SET_TAG`
const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;
/// `EVP_R_*`
const INVALID_OPERATION: u32 = 148;
const UPDATE_ERROR: u32 = 189;
const FINAL_ERROR: u32 = 188;
const CTRL_NOT_IMPLEMENTED: u32 = 132;

/// All contexts that are ours.
pub(crate) static CONTEXTS: Slab<Context> = Slab::new([const { UnsafeCell::new(Context::EMPTY) }; SLOTS]);

/// A context.
pub(crate) struct Context {
    state: State,
    direction: Direction,
    /// Bytes of text; of associated data until text comes.
    extent: Extent,
    /// Whether text has come, after which there is no more associated data.
    has_text: bool,
    tag: [u8; TAG],
    /// How much of the tag was set (decryption).
    tag_len: usize,
    /// The derivation that its key is of, if that is not known to be good.
    trial: Option<Trial>,
}

enum State {
    /// Nothing was said yet.
    New,
    /// Keyed, with an IV, and no byte taken: can still become libcrypto's.
    Ready { cipher: Cipher, iv: [u8; IV] },
    /// Within a message.
    Busy(Cipher),
    /// The message has ended well.
    Ended(Cipher),
    /// It has not: a new init helps.
    Failed,
    /// An object of libcrypto's.
    Real(*mut c_void),
}

// SAFETY: libcrypto's contexts may be used in any thread, one at a time.
unsafe impl Send for Context {}

type Pointer = *const c_uchar;

impl Context {
    const EMPTY: Self = Self {
        state: State::New,
        direction: Direction::Encrypt,
        extent: Extent::NONE,
        has_text: false,
        tag: [0; TAG],
        tag_len: 0,
        trial: None,
    };

    /// A new one; libcrypto's own if no handle is left.
    pub(crate) fn make(plain: bool) -> *mut c_void {
        let Some(handle) = CONTEXTS.take() else {
            count(Of::Contexts, From::Libcrypto);
            // SAFETY: takes nothing.
            return unsafe { (real::get().0.EVP_CIPHER_CTX_new)() };
        };
        // SAFETY: a handle that nobody else has yet.
        if let Some(context) = unsafe { CONTEXTS.get(handle) }.filter(|_| plain) {
            context.materialise();
        }
        handle
    }

    /// Ends it; its handle is free afterwards.
    pub(crate) fn end(&mut self) {
        let (direction, extent) = (self.direction, self.extent);
        wipe(&mut self.tag);
        self.trial = None;
        (self.direction, self.extent, self.has_text, self.tag_len) = (Direction::Encrypt, Extent::NONE, false, 0);
        match core::mem::replace(&mut self.state, State::New) {
            State::Ready { cipher, .. } | State::Busy(cipher) | State::Ended(cipher) => kept::keep(cipher, direction, extent),
            // SAFETY: made by `materialise`, and nobody else's.
            State::Real(context) => unsafe { (real::get().0.EVP_CIPHER_CTX_free)(context) },
            State::New | State::Failed => {}
        }
    }

    /// Makes it an object of libcrypto's in the same state; null if it cannot be any more.
    fn materialise(&mut self) -> *mut c_void {
        let (functions, constants) = real::get();
        match &self.state {
            // One object of libcrypto's for each of ours.
            State::Real(context) => return *context,
            State::New | State::Ready { .. } => {}
            State::Busy(_) | State::Ended(_) | State::Failed => {
                raise(INVALID_OPERATION);
                return ptr::null_mut();
            }
        }
        // SAFETY: libcrypto's functions on its own new object; key and IV have the cipher's lengths.
        unsafe {
            let context = (functions.EVP_CIPHER_CTX_new)();
            if context.is_null() {
                return context;
            }
            if let State::Ready { cipher, iv } = &self.state {
                let key = cipher.solo.key().unwrap_or_default();
                let kind = if key.len() == 16 { constants.aes_128_gcm } else { constants.aes_256_gcm };
                let init = if self.direction == Direction::Encrypt { functions.EVP_EncryptInit } else { functions.EVP_DecryptInit };
                if init(context, kind, key.as_ptr(), iv.as_ptr()) != 1 {
                    (functions.EVP_CIPHER_CTX_free)(context);
                    return ptr::null_mut();
                }
                // In this state the tag can only have been set.
                if self.tag_len > 0 {
                    (functions.EVP_CIPHER_CTX_ctrl)(context, SET_TAG, self.tag_len as c_int, self.tag.as_mut_ptr().cast());
                }
            }
            tally::passed_on();
            self.state = State::Real(context);
            context
        }
    }

    /// EVP_EncryptInit and EVP_DecryptInit.
    ///
    /// # Safety
    /// That of the function.
    pub(crate) unsafe fn init(&mut self, direction: Direction, cipher: *const c_void, key: Pointer, iv: Pointer) -> c_int {
        let constants = &real::get().1;
        let key_len = match cipher {
            cipher if cipher == constants.aes_128_gcm => 16,
            cipher if cipher == constants.aes_256_gcm => 32,
            _ => 0,
        };
        // SAFETY: the cipher's key has that length.
        let gcm_key = (key_len > 0 && !key.is_null()).then(|| unsafe { slice::from_raw_parts(key, key_len) });
        // SAFETY: as the caller says.
        let done = unsafe { self.begin(direction, gcm_key, cipher, key, iv) };
        if !cipher.is_null() || !key.is_null() {
            self.trial = gcm_key.and_then(kept::on_trial);
        }
        done
    }

    /// As [`init`](Self::init), with the key if it is one of AES-GCM.
    unsafe fn begin(&mut self, direction: Direction, gcm_key: Option<&[u8]>, cipher: *const c_void, key: Pointer, iv: Pointer) -> c_int {
        let is_whole = !iv.is_null() && !matches!(self.state, State::Real(_));
        if let Some(mut keyed) = gcm_key.filter(|_| is_whole).and_then(kept::cipher) {
            // What was begun is forgotten, as libcrypto does when it is given a cipher.
            self.end();
            let mut nonce = [0; IV];
            // SAFETY: GCM's IV has twelve bytes unless something else was said, which would have made the context libcrypto's.
            nonce.copy_from_slice(unsafe { slice::from_raw_parts(iv, IV) });
            self.direction = direction;
            if keyed.solo.start(direction, &nonce).is_ok() {
                self.state = State::Ready { cipher: keyed, iv: nonce };
                return 1;
            }
        }
        if !cipher.is_null() && !matches!(self.state, State::Real(_)) {
            count(Of::Contexts, From::Libcrypto);
            // With a cipher libcrypto begins anew: nothing of the old state is needed.
            self.end();
        }
        let context = self.materialise();
        let functions = &real::get().0;
        let init = if direction == Direction::Encrypt { functions.EVP_EncryptInit } else { functions.EVP_DecryptInit };
        // SAFETY: libcrypto's object, and what we were given.
        if context.is_null() { 0 } else { unsafe { init(context, cipher, key, iv) } }
    }

    /// EVP_EncryptUpdate and EVP_DecryptUpdate.
    ///
    /// # Safety
    /// That of the function.
    pub(crate) unsafe fn update(
        &mut self,
        direction: Direction,
        out: *mut c_uchar,
        written: *mut c_int,
        input: Pointer,
        len: c_int,
    ) -> c_int {
        if len < 0 {
            // Fast DDS 2.9.1 takes a length from a message that nobody has authenticated, and can be brought to this call; libcrypto 3.0 reads on and crashes.
            raise(UPDATE_ERROR);
            return 0;
        }
        let functions = &real::get().0;
        let is_ours = !written.is_null() && !input.is_null() && direction == self.direction;
        if !is_ours || matches!(self.state, State::New | State::Real(_)) {
            let context = self.materialise();
            let update = if direction == Direction::Encrypt { functions.EVP_EncryptUpdate } else { functions.EVP_DecryptUpdate };
            // SAFETY: libcrypto's object, and what we were given.
            return if context.is_null() { 0 } else { unsafe { update(context, out, written, input, len) } };
        }
        // SAFETY: not null.
        unsafe { written.write(0) };
        let state = core::mem::replace(&mut self.state, State::Failed);
        let mut cipher = match state {
            State::Ready { cipher, iv } if len == 0 => {
                self.state = State::Ready { cipher, iv };
                return 1;
            }
            State::Ready { cipher, .. } | State::Busy(cipher) => cipher,
            other => {
                // Ended: no more text without a new IV.
                let nothing = len == 0;
                self.state = other;
                if !nothing {
                    raise(UPDATE_ERROR);
                }
                return c_int::from(nothing);
            }
        };
        if out.is_null() && self.has_text {
            // Refused, and what was begun can go on.
            self.state = State::Busy(cipher);
            raise(UPDATE_ERROR);
            return 0;
        }
        if !self.has_text && !out.is_null() && len > 0 {
            (self.has_text, self.extent) = (true, Extent::NONE);
        }
        let count = len as usize;
        // SAFETY: the caller's buffers, of which the output has at least the input's length.
        let done = unsafe {
            match out.is_null() {
                true => cipher.solo.aad(slice::from_raw_parts(input, count)),
                false => with_data(input, out, count, |data| cipher.solo.update(data)),
            }
        };
        if done.is_err() {
            kept::keep(cipher, self.direction, self.extent);
            self.extent = Extent::NONE;
            raise(UPDATE_ERROR);
            return 0;
        }
        if !out.is_null() || !self.has_text {
            self.extent.add(count);
        }
        self.state = State::Busy(cipher);
        // SAFETY: not null.
        unsafe { written.write(len) };
        1
    }

    /// EVP_EncryptFinal, EVP_DecryptFinal and EVP_DecryptFinal_ex.
    ///
    /// # Safety
    /// That of the functions.
    pub(crate) unsafe fn finish(&mut self, direction: Direction, real: real::CipherFinal, out: *mut c_uchar, written: *mut c_int) -> c_int {
        // SAFETY: as the caller says.
        let done = unsafe { self.conclude(direction, real, out, written) };
        if done == 1
            && let Some(trial) = self.trial.take()
        {
            kept::prove(trial);
        }
        done
    }

    /// As [`finish`](Self::finish): 1 for a message that was made here, and for one that is authentic.
    unsafe fn conclude(&mut self, direction: Direction, real: real::CipherFinal, out: *mut c_uchar, written: *mut c_int) -> c_int {
        if written.is_null() || direction != self.direction || matches!(self.state, State::New | State::Real(_)) {
            let context = self.materialise();
            // SAFETY: libcrypto's object, and what we were given.
            return if context.is_null() { 0 } else { unsafe { real(context, out, written) } };
        }
        // SAFETY: not null.
        unsafe { written.write(0) };
        // libcrypto refuses to decrypt without a tag, can go on afterwards, and tells its queue of errors nothing; so it does after a wrong tag.
        if direction == Direction::Decrypt && self.tag_len == 0 {
            return 0;
        }
        let mut cipher = match core::mem::replace(&mut self.state, State::Failed) {
            State::Ready { cipher, .. } | State::Busy(cipher) => cipher,
            other => {
                self.state = other;
                raise(FINAL_ERROR);
                return 0;
            }
        };
        let good = if direction == Direction::Decrypt {
            let mut tag = [0; TAG];
            let done = cipher.solo.finish(&mut tag).is_ok();
            done && constant_time_eq(&tag[..self.tag_len], &self.tag[..self.tag_len])
        } else {
            let done = cipher.solo.finish(&mut self.tag).is_ok();
            self.tag_len = if done { TAG } else { self.tag_len };
            done
        };
        if good {
            cipher.is_proved = true;
            cipher.trace(self.direction, self.extent);
            self.state = State::Ended(cipher);
            return 1;
        }
        kept::keep(cipher, self.direction, self.extent);
        self.extent = Extent::NONE;
        0
    }

    /// EVP_CIPHER_CTX_ctrl
    ///
    /// # Safety
    /// That of the function.
    pub(crate) unsafe fn control(&mut self, what: c_int, number: c_int, pointer: *mut c_void) -> c_int {
        let len = usize::try_from(number).ok().filter(|len| (1..=TAG).contains(len) && !pointer.is_null());
        let encrypts = self.direction == Direction::Encrypt;
        match (what, len, &self.state) {
            (_, _, State::Real(_)) | (_, _, State::New) => {}
            (GET_TAG, Some(len), State::Ended(_)) if encrypts => {
                // SAFETY: the caller's room for so many bytes.
                unsafe { ptr::copy_nonoverlapping(self.tag.as_ptr(), pointer.cast(), len) };
                return 1;
            }
            (SET_TAG, Some(len), State::Ready { .. } | State::Busy(_) | State::Ended(_)) if !encrypts => {
                // SAFETY: the caller's tag of so many bytes.
                unsafe { ptr::copy_nonoverlapping(pointer.cast(), self.tag.as_mut_ptr(), len) };
                self.tag_len = len;
                return 1;
            }
            (_, _, State::Ready { .. }) => {}
            _ => {
                raise(CTRL_NOT_IMPLEMENTED);
                return 0;
            }
        }
        let context = self.materialise();
        // SAFETY: libcrypto's object, and what we were given.
        if context.is_null() { 0 } else { unsafe { (real::get().0.EVP_CIPHER_CTX_ctrl)(context, what, number, pointer) } }
    }
}

/// The buffers as one or as two; text that overlaps its place in part is copied first.
///
/// # Safety
/// `input` is readable and `out` writable for so many bytes.
unsafe fn with_data<R>(input: Pointer, out: *mut c_uchar, count: usize, run: impl FnOnce(Data<'_>) -> R) -> R {
    let (from, to) = (input.addr(), out.addr());
    // SAFETY: the caller's word; the slices are one, apart, or a copy.
    unsafe {
        if from == to {
            run(Data::InPlace(slice::from_raw_parts_mut(out, count)))
        } else if from + count <= to || to + count <= from {
            run(Data::Copy { input: slice::from_raw_parts(input, count), output: slice::from_raw_parts_mut(out, count) })
        } else {
            let mut copy = zeroize::Zeroizing::new(vec![0; count]);
            copy.copy_from_slice(slice::from_raw_parts(input, count));
            run(Data::Copy { input: &copy, output: slice::from_raw_parts_mut(out, count) })
        }
    }
}
