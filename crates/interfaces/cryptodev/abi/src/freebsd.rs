//! The dialect of FreeBSD's opencrypto (64-bit processes), with what releases before 14 had on top.

use crate::LETTER;
use crate::layout::layout;
use crate::linux::CryptKop;

/// The program writes, the kernel reads: `IOC_IN`.
const IN: u32 = 0x8000_0000;
/// The kernel writes, the program reads: `IOC_OUT`.
const OUT: u32 = 0x4000_0000;

/// `_IO*('c', number, size)` as FreeBSD packs it: three bits of direction, thirteen of size, the letter, the number.
const fn request(direction: u32, number: u32, size: usize) -> u32 {
    direction | (size as u32 & 0x1fff) << 16 | (LETTER as u32) << 8 | number
}

/// A new descriptor (until FreeBSD 13); its number is written to the argument, a `u32`.
pub const CRIOGET: u32 = request(IN | OUT, 100, 4);
/// Opens a session ([`SessionOp`]).
pub const CIOCGSESSION: u32 = request(IN | OUT, 101, size_of::<SessionOp>());
/// Closes a session: the argument points to its number, a `u32`.
pub const CIOCFSESSION: u32 = request(IN, 102, 4);
/// Enciphers, deciphers or hashes ([`CryptOp`]).
pub const CIOCCRYPT: u32 = request(IN | OUT, 103, size_of::<CryptOp>());
/// Arithmetic with large numbers (until FreeBSD 13).
pub const CIOCKEY: u32 = request(IN | OUT, 104, size_of::<CryptKop>());
/// What [`CIOCKEY`] can do (until FreeBSD 13); also called `CRIOASYMFEAT`.
pub const CIOCASYMFEAT: u32 = request(OUT, 105, 4);
/// Opens a session and says with what it is computed ([`Session2Op`]).
pub const CIOCGSESSION2: u32 = request(IN | OUT, 106, size_of::<Session2Op>());
/// As [`CIOCKEY`], and says what computed it (until FreeBSD 13).
pub const CIOCKEY2: u32 = request(IN | OUT, 107, size_of::<CryptKop>());
/// Finds a driver by name or number ([`CryptFindOp`]); also called `CRIOFINDDEV`.
pub const CIOCFINDDEV: u32 = request(IN | OUT, 108, size_of::<CryptFindOp>());
/// Enciphers and authenticates ([`CryptAead`]).
pub const CIOCCRYPTAEAD: u32 = request(IN | OUT, 109, size_of::<CryptAead>());

/// Every request with its name.
pub const REQUESTS: [(u32, &str); 10] = [
    (CRIOGET, "CRIOGET"),
    (CIOCGSESSION, "CIOCGSESSION"),
    (CIOCFSESSION, "CIOCFSESSION"),
    (CIOCCRYPT, "CIOCCRYPT"),
    (CIOCKEY, "CIOCKEY"),
    (CIOCASYMFEAT, "CIOCASYMFEAT"),
    (CIOCGSESSION2, "CIOCGSESSION2"),
    (CIOCKEY2, "CIOCKEY2"),
    (CIOCFINDDEV, "CIOCFINDDEV"),
    (CIOCCRYPTAEAD, "CIOCCRYPTAEAD"),
];

/// [`CryptOp::op`]: encipher, or hash.
pub const COP_ENCRYPT: u16 = 1;
/// [`CryptOp::op`]: decipher.
pub const COP_DECRYPT: u16 = 2;
/// The cipher comes before the hash.
pub const COP_F_CIPHER_FIRST: u16 = 1;
/// It may wait for company.
pub const COP_F_BATCH: u16 = 8;

/// [`Session2Op::crid`]: by hardware.
pub const CRYPTO_FLAG_HARDWARE: u32 = 0x0100_0000;
/// [`Session2Op::crid`]: by software.
pub const CRYPTO_FLAG_SOFTWARE: u32 = 0x0200_0000;

macro_rules! identifiers {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: u32 = $value;)*
        /// Every identifier of a cipher or hash, with its name.
        pub const ALGORITHMS: &[(u32, &str)] = &[$(($name, stringify!($name)),)*];
    };
}

identifiers! {
    CRYPTO_DES_CBC = 1, "DES in CBC mode (until FreeBSD 12).";
    CRYPTO_3DES_CBC = 2, "3DES in CBC mode (until FreeBSD 12).";
    CRYPTO_MD5_HMAC = 6, "HMAC-MD5 (until FreeBSD 12).";
    CRYPTO_SHA1_HMAC = 7, "HMAC-SHA-1.";
    CRYPTO_RIPEMD160_HMAC = 8, "HMAC-RIPEMD-160.";
    CRYPTO_AES_CBC = 11, "AES in CBC mode.";
    CRYPTO_MD5 = 13, "MD5 (until FreeBSD 12).";
    CRYPTO_SHA1 = 14, "SHA-1.";
    CRYPTO_NULL_HMAC = 15, "The hash of nothing.";
    CRYPTO_NULL_CBC = 16, "The cipher that changes nothing.";
    CRYPTO_SHA2_256_HMAC = 18, "HMAC-SHA-256.";
    CRYPTO_SHA2_384_HMAC = 19, "HMAC-SHA-384.";
    CRYPTO_SHA2_512_HMAC = 20, "HMAC-SHA-512.";
    CRYPTO_CAMELLIA_CBC = 21, "Camellia in CBC mode.";
    CRYPTO_AES_XTS = 22, "AES-XTS.";
    CRYPTO_AES_ICM = 23, "AES in counter mode.";
    CRYPTO_AES_NIST_GMAC = 24, "GMAC.";
    CRYPTO_AES_NIST_GCM_16 = 25, "AES-GCM.";
    CRYPTO_BLAKE2B = 29, "BLAKE2b.";
    CRYPTO_BLAKE2S = 30, "BLAKE2s.";
    CRYPTO_CHACHA20 = 31, "ChaCha20.";
    CRYPTO_SHA2_224_HMAC = 32, "HMAC-SHA-224.";
    CRYPTO_RIPEMD160 = 33, "RIPEMD-160.";
    CRYPTO_SHA2_224 = 34, "SHA-224.";
    CRYPTO_SHA2_256 = 35, "SHA-256.";
    CRYPTO_SHA2_384 = 36, "SHA-384.";
    CRYPTO_SHA2_512 = 37, "SHA-512.";
    CRYPTO_POLY1305 = 38, "Poly1305.";
    CRYPTO_AES_CCM_CBC_MAC = 39, "CBC-MAC as CCM has it.";
    CRYPTO_AES_CCM_16 = 40, "AES-CCM.";
    CRYPTO_CHACHA20_POLY1305 = 41, "ChaCha20-Poly1305 (RFC 8439).";
    CRYPTO_XCHACHA20_POLY1305 = 42, "XChaCha20-Poly1305.";
}

/// The argument of [`CIOCGSESSION`]: as Linux's.
pub use crate::linux::SessionOp;

/// The argument of [`CIOCCRYPT`]: as Linux's, with other values of `op` and `flags`.
pub use crate::linux::CryptOp;

layout! {
    /// The argument of [`CIOCGSESSION2`].
    Session2Op = 64 {
        /// A cipher, or 0.
        0 cipher: u32,
        /// A hash, or 0.
        4 mac: u32,
        /// Length of the cipher's key in bytes.
        8 keylen: u32,
        /// Points to the cipher's key.
        16 key: u64,
        /// Length of the hash's key in bytes.
        24 mackeylen: i32,
        /// Points to the hash's key.
        32 mackey: u64,
        /// Answered: the session's number.
        40 ses: u32,
        /// A driver's number, or `CRYPTO_FLAG_` bits. Answered: the driver's number and bits.
        44 crid: u32,
        /// Length of the nonce in bytes; 0 is the usual one.
        48 ivlen: i32,
        /// Length of the tag or digest in bytes; 0 is the longest.
        52 maclen: i32,
        /// Of no meaning.
        56 pad: [i32; 2],
    }

    /// The argument of [`CIOCCRYPTAEAD`].
    CryptAead = 64 {
        /// The session's number.
        0 ses: u32,
        /// [`COP_ENCRYPT`] or [`COP_DECRYPT`].
        4 op: u16,
        /// `COP_F_` bits.
        6 flags: u16,
        /// Length of the data in bytes.
        8 len: u32,
        /// Length of the associated data in bytes.
        12 aadlen: u32,
        /// Length of the nonce in bytes.
        16 ivlen: u32,
        /// Points to the data.
        24 src: u64,
        /// Points to where the result goes.
        32 dst: u64,
        /// Points to the associated data.
        40 aad: u64,
        /// Points to the tag.
        48 tag: u64,
        /// Points to the nonce.
        56 iv: u64,
    }

    /// The argument of [`CIOCFINDDEV`].
    CryptFindOp = 36 {
        /// A driver's number, or -1 to find it by name. Answered.
        0 crid: i32,
        /// Its name, with a terminating zero. Answered.
        4 name: [u8; 32],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_programs_were_compiled_with() {
        let expected = [
            0xc004_6364,
            0xc030_6365,
            0x8004_6366,
            0xc030_6367,
            0xc090_6368,
            0x4004_6369,
            0xc040_636a,
            0xc090_636b,
            0xc024_636c,
            0xc040_636d,
        ];
        assert_eq!(REQUESTS.map(|(number, _)| number), expected);
    }

    #[test]
    fn no_number_means_two_things() {
        let ours = REQUESTS.map(|(number, _)| number);
        assert!(crate::linux::REQUESTS.iter().all(|(number, _)| !ours.contains(number)));
    }
}
