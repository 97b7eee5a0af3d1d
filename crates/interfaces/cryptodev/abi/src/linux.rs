//! The dialect of Linux's cryptodev module (64-bit processes).

use crate::layout::layout;
use crate::{CRK_MAXPARAM, LETTER};

/// `_IO*('c', number, size)` as Linux packs it: two bits of direction, fourteen of size, the letter, the number.
const fn request(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | (LETTER as u32) << 8 | number
}

/// The program writes, the device reads.
const W: u32 = 1;
/// The device writes, the program reads.
const R: u32 = 2;

/// A new descriptor of the same open file; its number is written to the argument, a `u32`.
pub const CRIOGET: u32 = request(R | W, 101, 4);
/// Opens a session ([`SessionOp`]).
pub const CIOCGSESSION: u32 = request(R | W, 102, size_of::<SessionOp>());
/// Closes a session: the argument points to its number, a `u32`.
pub const CIOCFSESSION: u32 = request(W, 103, 4);
/// Enciphers, deciphers or hashes ([`CryptOp`]).
pub const CIOCCRYPT: u32 = request(R | W, 104, size_of::<CryptOp>());
/// Arithmetic with large numbers ([`CryptKop`]).
pub const CIOCKEY: u32 = request(R | W, 105, size_of::<CryptKop>());
/// What [`CIOCKEY`] can do: `CRF_` bits, a `u32`.
pub const CIOCASYMFEAT: u32 = request(R, 106, 4);
/// What computes a session ([`SessionInfoOp`]).
pub const CIOCGSESSINFO: u32 = request(R | W, 107, size_of::<SessionInfoOp>());
/// Enciphers and authenticates ([`CryptAuthOp`]).
pub const CIOCAUTHCRYPT: u32 = request(R | W, 109, size_of::<CryptAuthOp>());
/// Queues a [`CryptOp`] and returns.
pub const CIOCASYNCCRYPT: u32 = request(W, 110, size_of::<CryptOp>());
/// Fetches the first of the queued operations that are done ([`CryptOp`]).
pub const CIOCASYNCFETCH: u32 = request(R, 111, size_of::<CryptOp>());
/// Copies the state of a hash from one session to another ([`CphashOp`]).
pub const CIOCCPHASH: u32 = request(W, 112, size_of::<CphashOp>());

/// Every request with its name.
pub const REQUESTS: [(u32, &str); 11] = [
    (CRIOGET, "CRIOGET"),
    (CIOCGSESSION, "CIOCGSESSION"),
    (CIOCFSESSION, "CIOCFSESSION"),
    (CIOCCRYPT, "CIOCCRYPT"),
    (CIOCKEY, "CIOCKEY"),
    (CIOCASYMFEAT, "CIOCASYMFEAT"),
    (CIOCGSESSINFO, "CIOCGSESSINFO"),
    (CIOCAUTHCRYPT, "CIOCAUTHCRYPT"),
    (CIOCASYNCCRYPT, "CIOCASYNCCRYPT"),
    (CIOCASYNCFETCH, "CIOCASYNCFETCH"),
    (CIOCCPHASH, "CIOCCPHASH"),
];

/// Longest key of a cipher, in bytes.
pub const CRYPTO_CIPHER_MAX_KEY_LEN: usize = 64;
/// Longest key of an HMAC, in bytes.
pub const CRYPTO_HMAC_MAX_KEY_LEN: usize = 512;
/// Room for a name in [`AlgInfo`], with its terminating zero, in bytes.
pub const CRYPTODEV_MAX_ALG_NAME: usize = 64;
/// Longest IV, in bytes.
pub const EALG_MAX_BLOCK_LEN: usize = 16;
/// Longest digest, in bytes.
pub const AALG_MAX_RESULT_LEN: usize = 64;

/// [`CryptOp::op`]: encipher.
pub const COP_ENCRYPT: u16 = 0;
/// [`CryptOp::op`]: decipher.
pub const COP_DECRYPT: u16 = 1;

/// A piece of a message: its hash goes on, and no digest is written.
pub const COP_FLAG_UPDATE: u16 = 1;
/// The last piece of a message: its digest is written.
pub const COP_FLAG_FINAL: u16 = 2;
/// The IV with which a next operation would go on is written to where this one's was read.
pub const COP_FLAG_WRITE_IV: u16 = 4;
/// Data are to be copied, not mapped.
pub const COP_FLAG_NO_ZC: u16 = 8;
/// Authenticates, pads and enciphers a record as TLS with a CBC cipher does.
pub const COP_FLAG_AEAD_TLS_TYPE: u16 = 16;
/// Enciphers and authenticates a packet as SRTP does.
pub const COP_FLAG_AEAD_SRTP_TYPE: u16 = 32;
/// The message starts anew; with [`COP_FLAG_UPDATE`].
pub const COP_FLAG_RESET: u16 = 64;

/// Only a driver in the kernel can do this, so that a program has nothing as fast of its own.
pub const SIOP_FLAG_KERNEL_DRIVER_ONLY: u32 = 1;

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        $($(#[$doc])* pub const $name: u32 = $value;)*
        /// Every identifier of a cipher or hash, with its name.
        pub const ALGORITHMS: &[(u32, &str)] = &[$(($name, stringify!($name)),)*];
    };
}

identifiers! {
    /// DES in CBC mode.
    CRYPTO_DES_CBC = 1,
    /// 3DES with three keys, in CBC mode.
    CRYPTO_3DES_CBC = 2,
    /// Blowfish in CBC mode.
    CRYPTO_BLF_CBC = 3,
    /// CAST-128 in CBC mode.
    CRYPTO_CAST_CBC = 4,
    /// Skipjack in CBC mode.
    CRYPTO_SKIPJACK_CBC = 5,
    /// HMAC-MD5.
    CRYPTO_MD5_HMAC = 6,
    /// HMAC-SHA-1.
    CRYPTO_SHA1_HMAC = 7,
    /// HMAC-RIPEMD-160.
    CRYPTO_RIPEMD160_HMAC = 8,
    /// MD5 with the key before and after.
    CRYPTO_MD5_KPDK = 9,
    /// SHA-1 with the key before and after.
    CRYPTO_SHA1_KPDK = 10,
    /// AES in CBC mode.
    CRYPTO_AES_CBC = 11,
    /// RC4.
    CRYPTO_ARC4 = 12,
    /// MD5.
    CRYPTO_MD5 = 13,
    /// SHA-1.
    CRYPTO_SHA1 = 14,
    /// Deflate.
    CRYPTO_DEFLATE_COMP = 15,
    /// The cipher that changes nothing.
    CRYPTO_NULL = 16,
    /// LZS.
    CRYPTO_LZS_COMP = 17,
    /// HMAC-SHA-256.
    CRYPTO_SHA2_256_HMAC = 18,
    /// HMAC-SHA-384.
    CRYPTO_SHA2_384_HMAC = 19,
    /// HMAC-SHA-512.
    CRYPTO_SHA2_512_HMAC = 20,
    /// AES in counter mode.
    CRYPTO_AES_CTR = 21,
    /// AES-XTS.
    CRYPTO_AES_XTS = 22,
    /// AES block by block.
    CRYPTO_AES_ECB = 23,
    /// AES in CFB mode.
    CRYPTO_AES_CFB = 24,
    /// AES in OFB mode.
    CRYPTO_AES_OFB = 25,
    /// AES-GCM.
    CRYPTO_AES_GCM = 50,
    /// AES-CCM.
    CRYPTO_AES_CCM = 51,
    /// Camellia in CBC mode.
    CRYPTO_CAMELLIA_CBC = 101,
    /// RIPEMD-160.
    CRYPTO_RIPEMD160 = 102,
    /// SHA-224.
    CRYPTO_SHA2_224 = 103,
    /// SHA-256.
    CRYPTO_SHA2_256 = 104,
    /// SHA-384.
    CRYPTO_SHA2_384 = 105,
    /// SHA-512.
    CRYPTO_SHA2_512 = 106,
    /// HMAC-SHA-224.
    CRYPTO_SHA2_224_HMAC = 107,
    /// Records of TLS 1.1 with AES-CBC and HMAC-SHA-1.
    CRYPTO_TLS11_AES_CBC_HMAC_SHA1 = 108,
    /// Records of TLS 1.2 with AES-CBC and HMAC-SHA-256.
    CRYPTO_TLS12_AES_CBC_HMAC_SHA256 = 109,
}

/// [`CryptKop::crk_op`]: a^b mod m. Parameters: a, b, m; the result.
pub const CRK_MOD_EXP: u32 = 0;
/// [`CryptKop::crk_op`]: an RSA private operation. Parameters: p, q, the input, d mod (p - 1), d mod (q - 1), q^-1 mod p; the result.
pub const CRK_MOD_EXP_CRT: u32 = 1;
/// [`CryptKop::crk_op`]: DSA, signing.
pub const CRK_DSA_SIGN: u32 = 2;
/// [`CryptKop::crk_op`]: DSA, verification.
pub const CRK_DSA_VERIFY: u32 = 3;
/// [`CryptKop::crk_op`]: Diffie-Hellman, the shared secret. Parameters: the private key, the peer's public value, the modulus; the result.
pub const CRK_DH_COMPUTE_KEY: u32 = 4;

/// [`CIOCASYMFEAT`]: [`CRK_MOD_EXP`] is there.
pub const CRF_MOD_EXP: u32 = 1 << CRK_MOD_EXP;
/// [`CIOCASYMFEAT`]: [`CRK_MOD_EXP_CRT`] is there.
pub const CRF_MOD_EXP_CRT: u32 = 1 << CRK_MOD_EXP_CRT;
/// [`CIOCASYMFEAT`]: [`CRK_DSA_SIGN`] is there.
pub const CRF_DSA_SIGN: u32 = 1 << CRK_DSA_SIGN;
/// [`CIOCASYMFEAT`]: [`CRK_DSA_VERIFY`] is there.
pub const CRF_DSA_VERIFY: u32 = 1 << CRK_DSA_VERIFY;
/// [`CIOCASYMFEAT`]: [`CRK_DH_COMPUTE_KEY`] is there.
pub const CRF_DH_COMPUTE_KEY: u32 = 1 << CRK_DH_COMPUTE_KEY;

layout! {
    /// The argument of [`CIOCGSESSION`].
    SessionOp = 48 {
        /// A cipher, or 0.
        0 cipher: u32,
        /// A hash, or 0.
        4 mac: u32,
        /// Length of the cipher's key in bytes.
        8 keylen: u32,
        /// Points to the cipher's key.
        16 key: u64,
        /// Length of the hash's key in bytes.
        24 mackeylen: u32,
        /// Points to the hash's key.
        32 mackey: u64,
        /// Answered: the session's number.
        40 ses: u32,
    }

    /// The argument of [`CIOCCRYPT`], [`CIOCASYNCCRYPT`] and [`CIOCASYNCFETCH`].
    CryptOp = 48 {
        /// The session's number.
        0 ses: u32,
        /// [`COP_ENCRYPT`] or [`COP_DECRYPT`].
        4 op: u16,
        /// `COP_FLAG_` bits.
        6 flags: u16,
        /// Length of the data in bytes.
        8 len: u32,
        /// Points to the data.
        16 src: u64,
        /// Points to where the cipher's result goes.
        24 dst: u64,
        /// Points to where the digest goes.
        32 mac: u64,
        /// Points to the IV; null goes on with the last one.
        40 iv: u64,
    }

    /// The argument of [`CIOCAUTHCRYPT`].
    CryptAuthOp = 72 {
        /// The session's number.
        0 ses: u32,
        /// [`COP_ENCRYPT`] or [`COP_DECRYPT`].
        4 op: u16,
        /// `COP_FLAG_` bits.
        6 flags: u16,
        /// Length of the data in bytes; answered: that of the result.
        8 len: u32,
        /// Length of what is authenticated only, in bytes.
        12 auth_len: u32,
        /// Points to what is authenticated only.
        16 auth_src: u64,
        /// Points to the data.
        24 src: u64,
        /// Points to where the result goes.
        32 dst: u64,
        /// Points to the tag (SRTP); answered by GCM and CCM: where in the data it lies.
        40 tag: u64,
        /// Length of the tag in bytes; 0 is the longest. Answered.
        48 tag_len: u32,
        /// Points to the IV.
        56 iv: u64,
        /// Length of the IV in bytes. The module never looked at it.
        64 iv_len: u32,
    }

    /// Names of one algorithm and what computes it.
    AlgInfo = 128 {
        /// The algorithm, as the kernel calls it: `cbc(aes)`.
        0 cra_name: [u8; CRYPTODEV_MAX_ALG_NAME],
        /// What computes it.
        64 cra_driver_name: [u8; CRYPTODEV_MAX_ALG_NAME],
    }

    /// The argument of [`CIOCGSESSINFO`].
    SessionInfoOp = 268 {
        /// The session's number.
        0 ses: u32,
        /// Answered: of its cipher.
        4 cipher_info: AlgInfo,
        /// Answered: of its hash.
        132 hash_info: AlgInfo,
        /// Answered: bits of addresses that had better be 0.
        260 alignmask: u16,
        /// Answered: `SIOP_FLAG_` bits.
        264 flags: u32,
    }

    /// A large number: little-endian bytes.
    CrParam = 16 {
        /// Points to its bytes.
        0 crp_p: u64,
        /// Its length in bits.
        8 crp_nbits: u32,
    }

    /// The argument of [`CIOCKEY`].
    CryptKop = 144 {
        /// A `CRK_` operation.
        0 crk_op: u32,
        /// Answered: 0, or what was wrong.
        4 crk_status: u32,
        /// How many of the parameters are read.
        8 crk_iparams: u16,
        /// How many of those behind them are written.
        10 crk_oparams: u16,
        /// Of no meaning here.
        12 crk_pad1: u32,
        /// The parameters.
        16 crk_param: [CrParam; CRK_MAXPARAM],
    }

    /// The argument of [`CIOCCPHASH`].
    CphashOp = 8 {
        /// The session whose state is replaced.
        0 dst_ses: u32,
        /// The session whose state is copied.
        4 src_ses: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn numbers_are_those_that_programs_were_compiled_with() {
        let expected = [
            0xc004_6365,
            0xc030_6366,
            0x4004_6367,
            0xc030_6368,
            0xc090_6369,
            0x8004_636a,
            0xc10c_636b,
            0xc048_636d,
            0x4030_636e,
            0x8030_636f,
            0x4008_6370,
        ];
        assert_eq!(REQUESTS.map(|(number, _)| number), expected);
    }

    #[test]
    fn bytes_and_structures_are_the_same() {
        let bytes: Vec<u8> = (0..=255).cycle().take(CryptKop::SIZE).collect();
        let mut back = vec![0; CryptKop::SIZE];
        let read = CryptKop::from_bytes(&bytes);
        read.put_bytes(&mut back);
        assert_eq!(CryptKop::from_bytes(&back), read);
        assert_eq!((read.crk_op, read.crk_oparams), (u32::from_ne_bytes([0, 1, 2, 3]), u16::from_ne_bytes([10, 11])));
        assert_eq!(read.crk_param[7].crp_p, u64::from_ne_bytes([128, 129, 130, 131, 132, 133, 134, 135]));
        assert_eq!(SessionInfoOp::default().hash_info.cra_name, [0; 64]);
    }
}
