//! The ciphers that programs can ask for, by the names of the kernel.

use crate::cipher::{CipherKind, Mode};
use crate::hash::HashKind;
use bywash_core::Algorithm::{self, *};
use bywash_cryptodev_abi::{freebsd, linux};

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
pub(crate) static BLOWFISH_CBC: CipherKind = kind("cbc(blowfish)", Mode::Cbc, 8, 8, &[BlowfishCbc]);
pub(crate) static AES_CFB: CipherKind = kind("cfb(aes)", Mode::Cfb, 1, 16, &[Aes128Cfb, Aes192Cfb, Aes256Cfb]);
pub(crate) static AES_OFB: CipherKind = kind("ofb(aes)", Mode::Ofb, 1, 16, &[Aes128Ofb, Aes192Ofb, Aes256Ofb]);
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
        linux::CRYPTO_BLF_CBC => &BLOWFISH_CBC,
        linux::CRYPTO_AES_CFB => &AES_CFB,
        linux::CRYPTO_AES_OFB => &AES_OFB,
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

macro_rules! hashes {
    ($($identifier:ident => $name:literal $algorithm:ident,)*) => {
        /// The hash that Linux's dialect gives this identifier.
        pub(crate) fn linux_hash(identifier: u32) -> Option<&'static HashKind> {
            Some(match identifier {
                $(linux::$identifier => {
                    static KIND: HashKind = HashKind { name: $name, algorithm: Algorithm::$algorithm };
                    &KIND
                })*
                _ => return None,
            })
        }
    };
}

hashes! {
    CRYPTO_MD5 => "md5" Md5,
    CRYPTO_SHA1 => "sha1" Sha1,
    CRYPTO_RIPEMD160 => "rmd160" Ripemd160,
    CRYPTO_SHA2_224 => "sha224" Sha224,
    CRYPTO_SHA2_256 => "sha256" Sha256,
    CRYPTO_SHA2_384 => "sha384" Sha384,
    CRYPTO_SHA2_512 => "sha512" Sha512,
    CRYPTO_MD5_HMAC => "hmac(md5)" HmacMd5,
    CRYPTO_SHA1_HMAC => "hmac(sha1)" HmacSha1,
    CRYPTO_RIPEMD160_HMAC => "hmac(rmd160)" HmacRipemd160,
    CRYPTO_SHA2_224_HMAC => "hmac(sha224)" HmacSha224,
    CRYPTO_SHA2_256_HMAC => "hmac(sha256)" HmacSha256,
    CRYPTO_SHA2_384_HMAC => "hmac(sha384)" HmacSha384,
    CRYPTO_SHA2_512_HMAC => "hmac(sha512)" HmacSha512,
}

static NULL_CBC: CipherKind = kind("cbc(cipher_null)", Mode::Null, 4, 0, &[]);
static CHACHA20_POLY1305: CipherKind = kind("rfc7539(chacha20,poly1305)", Mode::Gcm, 1, 12, &[ChaCha20Poly1305]);

/// The cipher that FreeBSD's dialect gives this identifier, if it is computed here.
pub(crate) fn freebsd_cipher(identifier: u32) -> Option<&'static CipherKind> {
    Some(match identifier {
        freebsd::CRYPTO_DES_CBC => &DES_CBC,
        freebsd::CRYPTO_3DES_CBC => &TRIPLE_DES_CBC,
        freebsd::CRYPTO_AES_CBC => &AES_CBC,
        freebsd::CRYPTO_NULL_CBC => &NULL_CBC,
        freebsd::CRYPTO_CAMELLIA_CBC => &CAMELLIA_CBC,
        freebsd::CRYPTO_AES_XTS => &AES_XTS,
        freebsd::CRYPTO_AES_ICM => &AES_CTR,
        freebsd::CRYPTO_AES_NIST_GCM_16 => &AES_GCM,
        freebsd::CRYPTO_AES_CCM_16 => &AES_CCM,
        freebsd::CRYPTO_CHACHA20_POLY1305 => &CHACHA20_POLY1305,
        _ => return None,
    })
}

/// The hash that FreeBSD's dialect gives this identifier, if it is computed here.
pub(crate) fn freebsd_hash(identifier: u32) -> Option<&'static HashKind> {
    linux_hash(match identifier {
        freebsd::CRYPTO_MD5 | freebsd::CRYPTO_SHA1 => identifier,
        freebsd::CRYPTO_MD5_HMAC | freebsd::CRYPTO_SHA1_HMAC | freebsd::CRYPTO_RIPEMD160_HMAC => identifier,
        freebsd::CRYPTO_SHA2_256_HMAC | freebsd::CRYPTO_SHA2_384_HMAC | freebsd::CRYPTO_SHA2_512_HMAC => identifier,
        freebsd::CRYPTO_RIPEMD160 => linux::CRYPTO_RIPEMD160,
        freebsd::CRYPTO_SHA2_224 => linux::CRYPTO_SHA2_224,
        freebsd::CRYPTO_SHA2_256 => linux::CRYPTO_SHA2_256,
        freebsd::CRYPTO_SHA2_384 => linux::CRYPTO_SHA2_384,
        freebsd::CRYPTO_SHA2_512 => linux::CRYPTO_SHA2_512,
        freebsd::CRYPTO_SHA2_224_HMAC => linux::CRYPTO_SHA2_224_HMAC,
        _ => return None,
    })
}
