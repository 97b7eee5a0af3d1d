//! A cipher that is left to the default provider as a whole, where its kernels are the faster ones and nothing is to be handed over.
//!
//! Measured on a machine with AVX-512: OpenSSL 3.0 does ChaCha20-Poly1305 at 4.1 GB/s and the CPU engine's streams at 1.9; AES-ECB at 9.4
//! against 8.9, and small updates at half the cost. A program must not become slower by being routed, so these contexts are passed on
//! unless the routing table, when they are made, sends records of 16 KiB to the queue.

use super::dispatch::{Cipher, Failed, Outcome};
use super::io::Io;
use super::spec::Spec;
use crate::ffi::libcrypto::{
    EVP_CIPHER_CTX, EVP_CIPHER_CTX_copy, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_get_params, EVP_CIPHER_CTX_new, EVP_CIPHER_CTX_set_params,
    EVP_CIPHER_fetch, EVP_CIPHER_free, EVP_Cipher, EVP_CipherFinal_ex, EVP_CipherInit_ex2, EVP_CipherUpdate,
};
use crate::ffi::{Param, Params, ParamsMut};
use crate::provider::Provider;
use bywash_client::Client;
use bywash_core::{Algorithm, Direction, Place};
use core::ffi::{c_int, c_uint};
use core::ptr::{self, NonNull};
use std::ffi::CString;

/// The size by which it is decided: a full TLS record.
const TYPICAL: usize = 16 << 10;
/// How many parameters are passed on in one call.
const PARAMS_MAX: usize = 16;

/// A context of the default provider.
pub(crate) struct Passed {
    context: NonNull<EVP_CIPHER_CTX>,
    client: &'static Client,
    algorithm: Algorithm,
    operations: u64,
    bytes: u64,
}

impl Passed {
    fn new(provider: &'static Provider, algorithm: Algorithm) -> Option<Self> {
        let (client, delegate) = (provider.client()?, provider.delegate()?);
        let name = CString::new(algorithm.name()).ok()?;
        // SAFETY: no arguments; null on failure.
        let context = NonNull::new(unsafe { EVP_CIPHER_CTX_new() })?;
        let passed = Self { context, client, algorithm, operations: 0, bytes: 0 };
        // SAFETY: live contexts and a NUL-terminated name; the cipher is given back once, the context keeps its own reference.
        let done = unsafe {
            let cipher = EVP_CIPHER_fetch(delegate.context(), name.as_ptr(), ptr::null());
            let done = EVP_CipherInit_ex2(context.as_ptr(), cipher, ptr::null(), ptr::null(), 1, ptr::null());
            EVP_CIPHER_free(cipher);
            done
        };
        (done == 1).then_some(passed)
    }
}

/// C's answer, and the bytes it put out. What went wrong is in the error queue already.
fn outcome(done: c_int, written: c_int) -> Outcome<usize> {
    if done == 1 { usize::try_from(written).map_err(|_| Failed) } else { Err(Failed) }
}

/// The entries, ended again.
fn ended(entries: &[Param]) -> Outcome<[Param; PARAMS_MAX]> {
    let mut array = [Param::END; PARAMS_MAX];
    array[..PARAMS_MAX - 1].get_mut(..entries.len()).ok_or(Failed)?.copy_from_slice(entries);
    Ok(array)
}

impl Passed {
    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        let pointer = |bytes: Option<&[u8]>| bytes.map_or(ptr::null(), <[u8]>::as_ptr);
        let encrypt = c_int::from(direction == Direction::Encrypt);
        // SAFETY: a live context; key and IV have the lengths of this cipher, by which libcrypto asked the program for them.
        let done = unsafe { EVP_CipherInit_ex2(self.context.as_ptr(), ptr::null(), pointer(key), pointer(iv), encrypt, ptr::null()) };
        outcome(done, 0).map(drop)
    }

    #[inline]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        let (output, input, len) = io.raw();
        if io.has_output() {
            (self.operations, self.bytes) = (self.operations + 1, self.bytes + len as u64);
        }
        let mut written = 0;
        // SAFETY: the program's own buffers, with the room it gave for this very call.
        let done =
            unsafe { EVP_CipherUpdate(self.context.as_ptr(), output, &raw mut written, input, c_int::try_from(len).map_err(|_| Failed)?) };
        outcome(done, written)
    }

    fn finish(&mut self, io: &mut Io) -> Outcome<usize> {
        let mut written = 0;
        // SAFETY: a live context, and room for a block where the cipher has blocks.
        outcome(unsafe { EVP_CipherFinal_ex(self.context.as_ptr(), io.raw().0, &raw mut written) }, written)
    }

    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        let (output, input, len) = io.raw();
        (self.operations, self.bytes) = (self.operations + 1, self.bytes + len as u64);
        // SAFETY: the program's own buffers, with the room it gave for this very call.
        let written = unsafe { EVP_Cipher(self.context.as_ptr(), output, input, c_uint::try_from(len).map_err(|_| Failed)?) };
        usize::try_from(written).map_err(|_| Failed)
    }

    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        let mut array = ended(params.entries())?;
        // SAFETY: a live context and an array that is ended, with the program's own room.
        let done = unsafe { EVP_CIPHER_CTX_get_params(self.context.as_ptr(), array.as_mut_ptr()) };
        params.iter_mut().zip(&array).for_each(|(param, answered)| param.return_size = answered.return_size);
        outcome(done, 0).map(drop)
    }

    fn set(&mut self, params: Params<'_>) -> Outcome {
        let array = ended(params.entries())?;
        // SAFETY: a live context and an array that is ended.
        outcome(unsafe { EVP_CIPHER_CTX_set_params(self.context.as_ptr(), array.as_ptr()) }, 0).map(drop)
    }

    fn duplicate(&self) -> Outcome<Self> {
        // SAFETY: no arguments; null on failure.
        let context = NonNull::new(unsafe { EVP_CIPHER_CTX_new() }).ok_or(Failed)?;
        let copy = Self { context, client: self.client, algorithm: self.algorithm, operations: 0, bytes: 0 };
        // SAFETY: two live contexts.
        outcome(unsafe { EVP_CIPHER_CTX_copy(context.as_ptr(), self.context.as_ptr()) }, 0)?;
        Ok(copy)
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_CIPHER_CTX_new` and freed once.
        unsafe { EVP_CIPHER_CTX_free(self.context.as_ptr()) };
        if self.operations > 0 {
            self.client.count(self.algorithm, self.operations, self.bytes);
        }
    }
}

/// A context of our own, or one that is passed on.
pub(crate) enum Either<C> {
    Own(C),
    Passed(Passed),
}

macro_rules! either {
    ($self:ident, $context:ident => $call:expr) => {
        match $self {
            Either::Own($context) => $call,
            Either::Passed($context) => $call,
        }
    };
}

impl<C: Cipher> Cipher for Either<C> {
    const GETTABLE: &'static [Param] = C::GETTABLE;
    const SETTABLE: &'static [Param] = C::SETTABLE;

    fn new(provider: &'static Provider, spec: &'static Spec) -> Option<Self> {
        match provider.client()?.place(spec.algorithm, TYPICAL) {
            Place::Queue => C::new(provider, spec).map(Self::Own),
            Place::Here => Passed::new(provider, spec.algorithm).map(Self::Passed),
        }
    }
    fn init(&mut self, direction: Direction, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome {
        either!(self, context => context.init(direction, key, iv))
    }
    #[inline]
    fn update(&mut self, io: &mut Io) -> Outcome<usize> {
        either!(self, context => context.update(io))
    }
    fn finish(&mut self, io: &mut Io) -> Outcome<usize> {
        either!(self, context => context.finish(io))
    }
    fn step(&mut self, io: &mut Io) -> Outcome<usize> {
        either!(self, context => context.step(io))
    }
    fn get(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        either!(self, context => context.get(params))
    }
    fn set(&mut self, params: Params<'_>) -> Outcome {
        either!(self, context => context.set(params))
    }
    fn duplicate(&self) -> Outcome<Self> {
        match self {
            Either::Own(context) => context.duplicate().map(Either::Own),
            Either::Passed(context) => context.duplicate().map(Either::Passed),
        }
    }
}
