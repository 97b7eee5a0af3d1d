//! Parameters that the unauthenticated modes share.

use super::dispatch::{Outcome, fail};
use crate::errors::Reason;
use crate::ffi::{Param, Params, ParamsMut};
use core::ffi::CStr;

/// What can be asked of ECB, CBC, CTR and XTS.
pub(crate) const GETTABLE: &[Param] = &[
    Param::declare_size(c"keylen"),
    Param::declare_size(c"ivlen"),
    Param::declare_uint(c"padding"),
    Param::declare_uint(c"num"),
    Param::declare_octets(c"iv"),
    Param::declare_octets(c"updated-iv"),
    Param::declare(c"tls-mac", crate::ffi::abi::OCTET_PTR, 0),
    Param::END,
];

/// What can be told to ECB, CBC and CTR.
pub(crate) const SETTABLE: &[Param] = &[
    Param::declare_uint(c"padding"),
    Param::declare_uint(c"num"),
    Param::declare_uint(c"use-bits"),
    Param::declare_uint(c"tls-version"),
    Param::declare_size(c"tls-mac-size"),
    Param::END,
];

/// The answers of one context. IVs are pointed to by programs that ask the old way, so they live in the context.
pub(crate) struct Answers<'a> {
    pub(crate) key_len: usize,
    pub(crate) padding: bool,
    pub(crate) num: u32,
    pub(crate) original_iv: &'a [u8],
    pub(crate) iv: &'a [u8],
}

impl Answers<'_> {
    /// Answers all but `tls-mac`.
    pub(crate) fn give(&self, params: &mut ParamsMut<'_>) -> Outcome {
        let done = params.answer_number(c"ivlen", self.iv.len() as u64)
            && params.answer_number(c"padding", u64::from(self.padding))
            && params.answer(c"iv", |param| param.set_octets(self.original_iv))
            && params.answer(c"updated-iv", |param| param.set_octets(self.iv))
            && params.answer_number(c"num", u64::from(self.num))
            && params.answer_number(c"keylen", self.key_len as u64);
        settled(done)
    }
}

/// Turns "the room does not fit" into an error.
pub(crate) fn settled(done: bool) -> Outcome {
    if done { Ok(()) } else { fail(Reason::FailedToSetParameter, "a parameter does not fit the room given for it") }
}

/// A number that is told, if it is.
pub(crate) fn number(params: Params<'_>, key: &CStr) -> Outcome<Option<usize>> {
    match params.get(key) {
        None => Ok(None),
        Some(param) => match param.size() {
            Some(value) => Ok(Some(value)),
            None => fail(Reason::FailedToGetParameter, "a parameter that should be a number is not"),
        },
    }
}

/// An `unsigned int` that is told, if it is.
pub(crate) fn uint(params: Params<'_>, key: &CStr) -> Outcome<Option<u32>> {
    match number(params, key)?.map(u32::try_from) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => fail(Reason::FailedToGetParameter, "a parameter is too large"),
    }
}
