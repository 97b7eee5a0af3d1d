/* The interface of /dev/crypto, as programs on Linux know it: requests, structures, flags and identifiers.
 *
 * Written from the interface's numbers for Bywash; part of it, under its licence. It stands in for the header of the same name
 * which programs are compiled with that speak to the device. Structures are those of 64-bit processes where pointers have 64 bits.
 */
#ifndef BYWASH_CRYPTO_CRYPTODEV_H
#define BYWASH_CRYPTO_CRYPTODEV_H

#include <linux/types.h>
#include <sys/ioctl.h>

/* Linux gives every open its own sessions, so a program need not ask for a descriptor of its own. */
#define CRIOGET_NOT_NEEDED 1

/* Ciphers and hashes. */
enum cryptodev_crypto_op_t {
	CRYPTO_DES_CBC = 1,
	CRYPTO_3DES_CBC = 2,
	CRYPTO_BLF_CBC = 3,
	CRYPTO_CAST_CBC = 4,
	CRYPTO_SKIPJACK_CBC = 5,
	CRYPTO_MD5_HMAC = 6,
	CRYPTO_SHA1_HMAC = 7,
	CRYPTO_RIPEMD160_HMAC = 8,
	CRYPTO_MD5_KPDK = 9,
	CRYPTO_SHA1_KPDK = 10,
	CRYPTO_AES_CBC = 11,
	CRYPTO_RIJNDAEL128_CBC = CRYPTO_AES_CBC,
	CRYPTO_ARC4 = 12,
	CRYPTO_MD5 = 13,
	CRYPTO_SHA1 = 14,
	CRYPTO_DEFLATE_COMP = 15,
	CRYPTO_NULL = 16,
	CRYPTO_LZS_COMP = 17,
	CRYPTO_SHA2_256_HMAC = 18,
	CRYPTO_SHA2_384_HMAC = 19,
	CRYPTO_SHA2_512_HMAC = 20,
	CRYPTO_AES_CTR = 21,
	CRYPTO_AES_XTS = 22,
	CRYPTO_AES_ECB = 23,
	CRYPTO_AES_CFB = 24,
	CRYPTO_AES_OFB = 25,
	CRYPTO_AES_GCM = 50,
	CRYPTO_AES_CCM = 51,
	CRYPTO_CAMELLIA_CBC = 101,
	CRYPTO_RIPEMD160 = 102,
	CRYPTO_SHA2_224 = 103,
	CRYPTO_SHA2_256 = 104,
	CRYPTO_SHA2_384 = 105,
	CRYPTO_SHA2_512 = 106,
	CRYPTO_SHA2_224_HMAC = 107,
	CRYPTO_TLS11_AES_CBC_HMAC_SHA1 = 108,
	CRYPTO_TLS12_AES_CBC_HMAC_SHA256 = 109,
	CRYPTO_ALGORITHM_ALL
};
#define CRYPTO_ALGORITHM_MAX (CRYPTO_ALGORITHM_ALL - 1)

/* Lengths in bytes. */
#define CRYPTO_CIPHER_MAX_KEY_LEN 64
#define CRYPTO_HMAC_MAX_KEY_LEN 512
#define CRYPTODEV_MAX_ALG_NAME 64
#define HASH_MAX_LEN 64
#define AALG_MAX_RESULT_LEN 64
#define EALG_MAX_BLOCK_LEN 16
#define DES_BLOCK_LEN 8
#define DES3_BLOCK_LEN 8
#define BLOWFISH_BLOCK_LEN 8
#define SKIPJACK_BLOCK_LEN 8
#define CAST128_BLOCK_LEN 8
#define AES_BLOCK_LEN 16
#define RIJNDAEL128_BLOCK_LEN AES_BLOCK_LEN
#define CAMELLIA_BLOCK_LEN 16

/* Which way. */
#define COP_ENCRYPT 0
#define COP_DECRYPT 1

/* How; see the documentation of Bywash's crate bywash-cryptodev-abi. */
#define COP_FLAG_NONE 0
#define COP_FLAG_UPDATE (1 << 0)
#define COP_FLAG_FINAL (1 << 1)
#define COP_FLAG_WRITE_IV (1 << 2)
#define COP_FLAG_NO_ZC (1 << 3)
#define COP_FLAG_AEAD_TLS_TYPE (1 << 4)
#define COP_FLAG_AEAD_SRTP_TYPE (1 << 5)
#define COP_FLAG_RESET (1 << 6)

struct session_op {
	__u32 cipher;
	__u32 mac;
	__u32 keylen;
	__u8 *key;
	__u32 mackeylen;
	__u8 *mackey;
	__u32 ses; /* answered */
};

#define SIOP_FLAG_KERNEL_DRIVER_ONLY 1

struct session_info_op {
	__u32 ses;
	struct alg_info {
		char cra_name[CRYPTODEV_MAX_ALG_NAME];
		char cra_driver_name[CRYPTODEV_MAX_ALG_NAME];
	} cipher_info, hash_info; /* answered */
	__u16 alignmask; /* answered */
	__u32 flags; /* answered */
};

struct crypt_op {
	__u32 ses;
	__u16 op;
	__u16 flags;
	__u32 len;
	__u8 *src;
	__u8 *dst;
	__u8 *mac;
	__u8 *iv;
};

struct crypt_auth_op {
	__u32 ses;
	__u16 op;
	__u16 flags;
	__u32 len; /* answered: of the result */
	__u32 auth_len;
	__u8 *auth_src;
	__u8 *src;
	__u8 *dst;
	__u8 *tag;
	__u32 tag_len; /* 0: the longest */
	__u8 *iv;
	__u32 iv_len;
};

/* Large numbers, little-endian. */
struct crparam {
	__u8 *crp_p;
	__u32 crp_nbits;
};

#define CRK_MAXPARAM 8

struct crypt_kop {
	__u32 crk_op;
	__u32 crk_status; /* answered */
	__u16 crk_iparams;
	__u16 crk_oparams;
	__u32 crk_pad1;
	struct crparam crk_param[CRK_MAXPARAM];
};

enum cryptodev_crk_op_t {
	CRK_MOD_EXP = 0,
	CRK_MOD_EXP_CRT = 1,
	CRK_DSA_SIGN = 2,
	CRK_DSA_VERIFY = 3,
	CRK_DH_COMPUTE_KEY = 4,
	CRK_ALGORITHM_ALL
};
#define CRK_ALGORITHM_MAX (CRK_ALGORITHM_ALL - 1)

#define CRF_MOD_EXP (1 << CRK_MOD_EXP)
#define CRF_MOD_EXP_CRT (1 << CRK_MOD_EXP_CRT)
#define CRF_DSA_SIGN (1 << CRK_DSA_SIGN)
#define CRF_DSA_VERIFY (1 << CRK_DSA_VERIFY)
#define CRF_DH_COMPUTE_KEY (1 << CRK_DH_COMPUTE_KEY)
#define CRYPTO_ALG_FLAG_SUPPORTED 1
#define CRYPTO_ALG_FLAG_RNG_ENABLE 2
#define CRYPTO_ALG_FLAG_DSA_SHA 4

struct cphash_op {
	__u32 dst_ses;
	__u32 src_ses;
};

#define CRIOGET _IOWR('c', 101, __u32)
#define CIOCGSESSION _IOWR('c', 102, struct session_op)
#define CIOCFSESSION _IOW('c', 103, __u32)
#define CIOCCRYPT _IOWR('c', 104, struct crypt_op)
#define CIOCKEY _IOWR('c', 105, struct crypt_kop)
#define CIOCASYMFEAT _IOR('c', 106, __u32)
#define CIOCGSESSINFO _IOWR('c', 107, struct session_info_op)
#define CIOCAUTHCRYPT _IOWR('c', 109, struct crypt_auth_op)
#define CIOCASYNCCRYPT _IOW('c', 110, struct crypt_op)
#define CIOCASYNCFETCH _IOR('c', 111, struct crypt_op)
#define CIOCCPHASH _IOW('c', 112, struct cphash_op)

#endif
