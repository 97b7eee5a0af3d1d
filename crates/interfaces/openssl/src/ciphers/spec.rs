//! What a cipher says of itself before there is a context.

use crate::ffi::{Param, ParamsMut, Table};
use bywash_core::{Algorithm, Kind};

/// Modes by their number in `evp.h` (`EVP_CIPH_*_MODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Mode {
    Stream = 0,
    Ecb = 1,
    Cbc = 2,
    Ctr = 5,
    Gcm = 6,
    Xts = 0x1_0001,
}

/// One cipher's fixed properties.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) algorithm: Algorithm,
    pub(crate) mode: Mode,
    pub(crate) key_len: usize,
    pub(crate) iv_len: usize,
    /// As OpenSSL counts: 1 for everything that takes any length.
    block: usize,
    aead: bool,
    custom_iv: bool,
}

/// Default IV length of the AEADs.
pub(crate) const AEAD_IV_LEN: usize = 12;

impl Spec {
    pub(crate) const fn new(algorithm: Algorithm, mode: Mode) -> Self {
        let (key_len, iv_len, aead) = match algorithm.kind() {
            Kind::Cipher { key, iv, .. } => (key, iv, false),
            Kind::Aead { key, .. } => (key, AEAD_IV_LEN, true),
            _ => panic!("not a cipher"),
        };
        let block = if matches!(mode, Mode::Ecb | Mode::Cbc) { 16 } else { 1 };
        Self { algorithm, mode, key_len, iv_len, block, aead, custom_iv: aead || matches!(mode, Mode::Xts) }
    }

    /// Answers `EVP_CIPHER_get_params`.
    pub(crate) fn describe(&self, params: &mut ParamsMut<'_>) -> bool {
        [
            (c"mode", self.mode as u64),
            (c"aead", u64::from(self.aead)),
            (c"custom-iv", u64::from(self.custom_iv)),
            (c"cts", 0),
            (c"tls-multi", 0),
            (c"has-randkey", 0),
            (c"keylen", self.key_len as u64),
            (c"blocksize", self.block as u64),
            (c"ivlen", self.iv_len as u64),
        ]
        .into_iter()
        .all(|(key, value)| params.answer_number(key, value))
    }
}

/// What [`Spec::describe`] answers.
pub(crate) static GETTABLE: Table<[Param; 10]> = Table([
    Param::declare_uint(c"mode"),
    Param::declare_size(c"keylen"),
    Param::declare_size(c"ivlen"),
    Param::declare_size(c"blocksize"),
    Param::declare_int(c"aead"),
    Param::declare_int(c"custom-iv"),
    Param::declare_int(c"cts"),
    Param::declare_int(c"tls-multi"),
    Param::declare_int(c"has-randkey"),
    Param::END,
]);
