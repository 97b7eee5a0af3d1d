//! Parameters of GCM: tag, IV and its generation (SP 800-38D s8.2), TLS.

use super::dispatch::{Failed, Outcome, fail};
use super::gcm::{Gcm, IV_MAX, IvState, TAG_LEN, TLS_FIXED_IV};
use super::params::{number, settled};
use crate::errors::Reason;
use crate::ffi::{Param, Params, ParamsMut};

/// What can be asked.
pub(super) const GETTABLE: &[Param] = &[
    Param::declare_size(c"keylen"),
    Param::declare_size(c"ivlen"),
    Param::declare_size(c"taglen"),
    Param::declare_octets(c"iv"),
    Param::declare_octets(c"updated-iv"),
    Param::declare_octets(c"tag"),
    Param::declare_size(c"tlsaadpad"),
    Param::declare_octets(c"tlsivgen"),
    Param::END,
];

/// What can be told.
pub(super) const SETTABLE: &[Param] = &[
    Param::declare_size(c"ivlen"),
    Param::declare_octets(c"tag"),
    Param::declare_octets(c"tlsaad"),
    Param::declare_octets(c"tlsivfixed"),
    Param::declare_octets(c"tlsivinv"),
    Param::END,
];

fn not_octets<T>() -> Outcome<T> {
    fail(Reason::FailedToGetParameter, "a parameter that should be an octet string is not")
}

impl Gcm {
    pub(super) fn answer(&mut self, params: &mut ParamsMut<'_>) -> Outcome {
        // The end of every message.
        if let Some(param) = params.only(c"tag") {
            return self.answer_tag(param);
        }
        settled(
            params.answer_number(c"ivlen", self.iv_len as u64)
                && params.answer_number(c"keylen", self.spec.key_len as u64)
                && params.answer_number(c"taglen", self.tag_len.unwrap_or(TAG_LEN) as u64),
        )?;
        for key in [c"iv", c"updated-iv"] {
            if let Some(param) = params.get(key) {
                self.answer_iv(param)?;
            }
        }
        settled(params.answer_number(c"tlsaadpad", self.tls_pad as u64))?;
        if let Some(param) = params.get(c"tag") {
            self.answer_tag(param)?;
        }
        match params.get(c"tlsivgen") {
            Some(param) => self.next_iv(param),
            None => Ok(()),
        }
    }

    fn answer_iv(&self, param: &mut Param) -> Outcome {
        if self.iv_state == IvState::Unset {
            return Err(Failed);
        }
        if self.iv_len > param.data_size {
            return fail(Reason::InvalidIvLength, "the IV does not fit the room given for it");
        }
        settled(param.set_octets(&self.iv[..self.iv_len]))
    }

    fn answer_tag(&self, param: &mut Param) -> Outcome {
        let len = param.data_size;
        if len == 0 || len > TAG_LEN || !self.encrypts() || self.tag_len.is_none() {
            return fail(Reason::InvalidTag, "there is a tag of up to 16 bytes, at the end of an encryption");
        }
        settled(param.set_octets(&self.tag[..len]))
    }

    /// Begins a message under the IV as it stands, gives the IV's last bytes and counts it up.
    fn next_iv(&mut self, param: &mut Param) -> Outcome {
        if !self.can_count() || !self.work.is_keyed() || param.data.is_null() {
            return Err(Failed);
        }
        self.begin()?;
        let len = if param.data_size == 0 || param.data_size > self.iv_len { self.iv_len } else { param.data_size };
        let tail = &self.iv[self.iv_len - len..self.iv_len];
        // SAFETY: EVP_CTRL_GCM_IV_GEN asks with a size, or with none (-1) by a program that has room for a whole IV (EVP_EncryptInit(3)).
        let done = unsafe { param.set_octets_trusting(tail) };
        self.count_iv_up();
        if done { Ok(()) } else { Err(Failed) }
    }

    pub(super) fn tell(&mut self, params: Params<'_>) -> Outcome {
        if let Some(len) = params.only_size(c"ivlen") {
            return self.resize_iv(len);
        }
        if let Some(param) = params.get(c"tag") {
            self.take_tag(param)?;
        }
        if let Some(len) = number(params, c"ivlen")? {
            self.resize_iv(len)?;
        }
        if let Some(param) = params.get(c"tlsaad") {
            let Some(aad) = param.octets() else { return not_octets() };
            self.announce_record(aad)?;
        }
        if let Some(param) = params.get(c"tlsivfixed") {
            self.fix_iv(param)?;
        }
        match params.get(c"tlsivinv") {
            Some(param) => self.take_invocation(param),
            None => Ok(()),
        }
    }

    fn take_tag(&mut self, param: &Param) -> Outcome {
        if param.data.is_null() || param.data_size > TAG_LEN {
            return fail(Reason::FailedToGetParameter, "a tag has at most 16 bytes");
        }
        let Some(tag) = param.octets() else { return not_octets() };
        if tag.is_empty() || self.encrypts() {
            return fail(Reason::InvalidTag, "a tag of 1 to 16 bytes is set for decryption only");
        }
        self.tag[..tag.len()].copy_from_slice(tag);
        self.tag_len = Some(tag.len());
        Ok(())
    }

    fn resize_iv(&mut self, len: usize) -> Outcome {
        if len == 0 || len > IV_MAX {
            return fail(Reason::InvalidIvLength, "GCM takes an IV of 1 to 128 bytes");
        }
        if len != self.iv_len {
            if self.iv_state != IvState::Unset {
                self.iv_state = IvState::Spent;
            }
            self.iv_len = len;
        }
        Ok(())
    }

    /// The fixed part of the IV, the rest being random and then counted (RFC 5288 s3); a size of -1 restores a whole IV.
    fn fix_iv(&mut self, param: &Param) -> Outcome {
        if param.data_size == usize::MAX {
            // SAFETY: EVP_CTRL_GCM_SET_IV_FIXED with -1 comes with a whole IV (EVP_EncryptInit(3)).
            let Some(iv) = (unsafe { param.octets_of(self.iv_len) }) else { return not_octets() };
            self.iv[..iv.len()].copy_from_slice(iv);
        } else {
            let Some(fixed) = param.octets() else { return not_octets() };
            if fixed.len() < TLS_FIXED_IV || fixed.len() + 8 > self.iv_len {
                return fail(Reason::FailedToGetParameter, "a fixed part has 4 bytes or more and leaves 8 to be counted");
            }
            self.iv[..fixed.len()].copy_from_slice(fixed);
            if self.encrypts() {
                self.randomise_iv(fixed.len())?;
            }
        }
        self.iv_generates = true;
        self.iv_state = IvState::Set;
        Ok(())
    }

    /// The counted part of the IV as it came with a message.
    fn take_invocation(&mut self, param: &Param) -> Outcome {
        let Some(tail) = param.octets() else { return Err(Failed) };
        if !self.iv_generates || !self.work.is_keyed() || self.encrypts() || tail.is_empty() || tail.len() > self.iv_len {
            return Err(Failed);
        }
        self.iv[self.iv_len - tail.len()..self.iv_len].copy_from_slice(tail);
        self.begin()
    }
}
