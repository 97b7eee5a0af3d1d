//! The ciphers that programs can ask for, by the names of the kernel.

use crate::cipher::{CipherKind, Mode};
use bywash_core::Algorithm::{self, *};
use bywash_cryptodev_abi::linux;

const fn kind(name: &'static str, mode: Mode, block: usize, iv: usize, algorithms: &'static [Algorithm]) -> CipherKind {
    CipherKind { name, mode, block, iv, algorithms }
}

pub(crate) static DES_CBC: CipherKind = kind("cbc(des)", Mode::Cbc, 8, 8, &[DesCbc]);
pub(crate) static TRIPLE_DES_CBC: CipherKind = kind("cbc(des3_ede)", Mode::Cbc, 8, 8, &[TripleDesCbc]);
pub(crate) static AES_CBC: CipherKind = kind("cbc(aes)", Mode::Cbc, 16, 16, &[Aes128Cbc, Aes192Cbc, Aes256Cbc]);
pub(crate) static AES_ECB: CipherKind = kind("ecb(aes)", Mode::Ecb, 16, 0, &[Aes128Ecb, Aes192Ecb, Aes256Ecb]);
pub(crate) static AES_CTR: CipherKind = kind("ctr(aes)", Mode::Ctr, 1, 16, &[Aes128Ctr, Aes192Ctr, Aes256Ctr]);
pub(crate) static AES_XTS: CipherKind = kind("xts(aes)", Mode::Xts, 16, 16, &[Aes128Xts, Aes256Xts]);
pub(crate) static CAMELLIA_CBC: CipherKind = kind("cbc(camellia)", Mode::Cbc, 16, 16, &[Camellia128Cbc, Camellia192Cbc, Camellia256Cbc]);
pub(crate) static NULL: CipherKind = kind("ecb(cipher_null)", Mode::Null, 1, 0, &[]);
pub(crate) static AES_GCM: CipherKind = kind("gcm(aes)", Mode::Gcm, 1, 12, &[Aes128Gcm, Aes192Gcm, Aes256Gcm]);
pub(crate) static AES_CCM: CipherKind = kind("ccm(aes)", Mode::Ccm, 1, 16, &[Aes128Ccm, Aes192Ccm, Aes256Ccm]);

/// The cipher that Linux's dialect gives this identifier, if it is computed here.
pub(crate) fn linux_cipher(identifier: u32) -> Option<&'static CipherKind> {
    Some(match identifier {
        linux::CRYPTO_DES_CBC => &DES_CBC,
        linux::CRYPTO_3DES_CBC => &TRIPLE_DES_CBC,
        linux::CRYPTO_AES_CBC => &AES_CBC,
        linux::CRYPTO_AES_ECB => &AES_ECB,
        linux::CRYPTO_AES_CTR => &AES_CTR,
        linux::CRYPTO_AES_XTS => &AES_XTS,
        linux::CRYPTO_CAMELLIA_CBC => &CAMELLIA_CBC,
        linux::CRYPTO_NULL => &NULL,
        linux::CRYPTO_AES_GCM => &AES_GCM,
        linux::CRYPTO_AES_CCM => &AES_CCM,
        _ => return None,
    })
}

/// The name of an identifier in Linux's dialect, for messages.
pub(crate) fn linux_name(identifier: u32) -> &'static str {
    linux::ALGORITHMS.iter().find(|(number, _)| *number == identifier).map_or("no identifier of /dev/crypto", |(_, name)| name)
}
