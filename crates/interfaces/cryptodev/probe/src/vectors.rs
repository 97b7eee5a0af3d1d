//! Answers of independent implementations: OpenSSL 3.0 (ciphers), CPython's `hashlib` and `hmac` (hashes), pyca/cryptography (XTS, GCM, CCM).
//!
//! Byte `i` of every input is `7 * i + s`, modulo 256: of keys with s = 3, of IVs and nonces 5, of texts 1, of associated data 9. Texts have 64 bytes, keys of
//! HMACs 20, nonces 12, associated data 20.

use bywash_cryptodev_abi::linux::*;

/// A cipher.
pub(crate) struct CipherVector {
    pub(crate) name: &'static str,
    pub(crate) cipher: u32,
    pub(crate) key_len: usize,
    pub(crate) iv_len: usize,
    /// In hexadecimal digits, as all answers.
    pub(crate) enciphered: &'static str,
}

/// A hash: of the text, and of nothing.
pub(crate) struct HashVector {
    pub(crate) name: &'static str,
    pub(crate) mac: u32,
    pub(crate) key_len: usize,
    pub(crate) of_text: &'static str,
    pub(crate) of_nothing: &'static str,
}

/// An AEAD: the enciphered text with its tag.
pub(crate) struct AeadVector {
    pub(crate) name: &'static str,
    pub(crate) cipher: u32,
    pub(crate) key_len: usize,
    pub(crate) tag_len: usize,
    pub(crate) sealed: &'static str,
}

/// Ciphers.
pub(crate) const CIPHERS: &[CipherVector] = &[
    CipherVector {
        name: "aes-cbc-128",
        cipher: CRYPTO_AES_CBC,
        key_len: 16,
        iv_len: 16,
        enciphered: "4ee9a2864dea4d07979834c3c510a47bf41dd6f127f0fdab4663336c987ac933e9ddff7b728fcd2ba193c65b2ef0574b6727165b72d8d7ab9df9345abc75dbef",
    },
    CipherVector {
        name: "aes-cbc-192",
        cipher: CRYPTO_AES_CBC,
        key_len: 24,
        iv_len: 16,
        enciphered: "3f24dd12fec6e7aa051382fa8426e1f92f5c0ec573e5c3a14c09b1e288aae14b2d198e2d7c42b00744c103298e69781cd452de266128c0e2c7874e572bed9098",
    },
    CipherVector {
        name: "aes-cbc-256",
        cipher: CRYPTO_AES_CBC,
        key_len: 32,
        iv_len: 16,
        enciphered: "fbd5087c88f6ed674eb2e8b1cca9bd7c14adf13069b08c270cd62f607de8b77898aa094e75689d2193a92d2154f5447afb02cb4cb199679a456332976c941eda",
    },
    CipherVector {
        name: "aes-ecb-128",
        cipher: CRYPTO_AES_ECB,
        key_len: 16,
        iv_len: 0,
        enciphered: "d614958b02446d1c311682bcf007aeff49666d7e8a6c2987c0583be144458799a2b2bc8c59cc68b73f6dfb5347b340f7de1fad6589696a6d8e5a32b13d789c30",
    },
    CipherVector {
        name: "aes-ecb-192",
        cipher: CRYPTO_AES_ECB,
        key_len: 24,
        iv_len: 0,
        enciphered: "e6a37da7199f227b215d97c4df44784da2ca059fcea31b183bccd59dfedb56df9d9f75197e459fb03b80e4e4b981e89b47fd6aead63aa8274c3cde266d4a70a8",
    },
    CipherVector {
        name: "aes-ecb-256",
        cipher: CRYPTO_AES_ECB,
        key_len: 32,
        iv_len: 0,
        enciphered: "3a6053df99393dae9fbe8ceb4f8d9ca18bb9942e1456841de7ad5440ed3117e8f8946d5614dd796952c5be207b2073b46c3cd7876e8cbfb1443509d701441b5a",
    },
    CipherVector {
        name: "aes-ctr-128",
        cipher: CRYPTO_AES_CTR,
        key_len: 16,
        iv_len: 16,
        enciphered: "7975dbd812123ac4e26d16b0e387036a993fca95c9eabf3cc2b8ff71c2206ae7823cff75c3773649218f19285eccadbf97f3e848ddab3383cd6033bdc89f0397",
    },
    CipherVector {
        name: "aes-ctr-192",
        cipher: CRYPTO_AES_CTR,
        key_len: 24,
        iv_len: 16,
        enciphered: "b838fc0fb69ade375f7203b9505975aad87c4cdbba6b9f37d938b2cf7adc38fa6a3f9677ccecca3c6a4b4e81e691fbd90fd902eb0121c272cc9764d4f6c0a6ad",
    },
    CipherVector {
        name: "aes-ctr-256",
        cipher: CRYPTO_AES_CTR,
        key_len: 32,
        iv_len: 16,
        enciphered: "3964d4360e3773dee6e9b437f8e6c620a15108fb46b64e2e3af23677a987a4cdd8c93d6125507a6734d0b965d98e9ede6fff468359242d951bdec6517e7221b7",
    },
    CipherVector {
        name: "aes-xts-128",
        cipher: CRYPTO_AES_XTS,
        key_len: 32,
        iv_len: 16,
        enciphered: "b008e04d9251a821e7edb2a277f4037a01102c1b6e76578cdb42df8eef6f137e6277c00c6c7f6581a33c436dbf60dc09bc6d261a9c3ca031eb83399016d46f3b",
    },
    CipherVector {
        name: "aes-xts-256",
        cipher: CRYPTO_AES_XTS,
        key_len: 64,
        iv_len: 16,
        enciphered: "3a6e438a9c60fc945c0acf9ce5d3ec9b1015846dc586275d75fbdb8bf5fc27305ed05cbfc76bc3c1afb190f1add38538b0f9289297a7502b551992c89850f7f9",
    },
    CipherVector {
        name: "des-cbc-64",
        cipher: CRYPTO_DES_CBC,
        key_len: 8,
        iv_len: 8,
        enciphered: "387f98e46da4799ab3437302f6a0ffe881cf05693b484b6869338ab5445635c32ee1daf0f93c28130958e6d674213cb92799eec71a5489dbd3087618327a67b8",
    },
    CipherVector {
        name: "3des-cbc-192",
        cipher: CRYPTO_3DES_CBC,
        key_len: 24,
        iv_len: 8,
        enciphered: "67e77aaf08cf892e6255690b0ee2cbe7ece0f214ec6fa69e734f449b48eaab25bc6ee1eff2bca17b678f2311e79d743185a8292b2797d1503ee20bea19b0dce3",
    },
    CipherVector {
        name: "camellia-cbc-128",
        cipher: CRYPTO_CAMELLIA_CBC,
        key_len: 16,
        iv_len: 16,
        enciphered: "32c080cc47d13b900ac56c9f2c99c75ef004aeb3e9f39e9716f44ffe28f165d738f43e3338461c55474fd17d1790a2a65d55a42aa725c3d69c140f73c75ce4b5",
    },
    CipherVector {
        name: "camellia-cbc-192",
        cipher: CRYPTO_CAMELLIA_CBC,
        key_len: 24,
        iv_len: 16,
        enciphered: "b74b9dc8669b376df051dc3c1b6be8f6303e0723f2d5c94aff198f0395935f29d9b9721d3988df96bbf14393bffafd9af490b54962b4c930afa8d6d9eaf05617",
    },
    CipherVector {
        name: "camellia-cbc-256",
        cipher: CRYPTO_CAMELLIA_CBC,
        key_len: 32,
        iv_len: 16,
        enciphered: "e12fa57262f538c5a47f04e980a10c8802c898d1f63f5fa348e2484bd9d016f070df7b0ee9f82ae2d794582e0255ab4135a2407ef374147810d78d1494e245b9",
    },
];

/// Hashes.
pub(crate) const HASHES: &[HashVector] = &[
    HashVector {
        name: "md5",
        mac: CRYPTO_MD5,
        key_len: 0,
        of_text: "7b412e00d38c31b0845a4f502d39d5e3",
        of_nothing: "d41d8cd98f00b204e9800998ecf8427e",
    },
    HashVector {
        name: "hmac-md5",
        mac: CRYPTO_MD5_HMAC,
        key_len: 20,
        of_text: "2e49a1a4cb3a5aa6f0327e0ee5505eed",
        of_nothing: "1048efd33ce0db1df0c131f1441905a1",
    },
    HashVector {
        name: "sha1",
        mac: CRYPTO_SHA1,
        key_len: 0,
        of_text: "54305ee7e4c7bc5a96afc6d1994fc52d9bcb665f",
        of_nothing: "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    },
    HashVector {
        name: "hmac-sha1",
        mac: CRYPTO_SHA1_HMAC,
        key_len: 20,
        of_text: "060d844a9597b2dc2213bc896eac84d6f8630123",
        of_nothing: "9da08dc1e47f585bf5bff9a636cdfd719abdfcfb",
    },
    HashVector {
        name: "ripemd160",
        mac: CRYPTO_RIPEMD160,
        key_len: 0,
        of_text: "79b913dafd7cdb22d56f1b488351435e15367d0d",
        of_nothing: "9c1185a5c5e9fc54612808977ee8f548b2258d31",
    },
    HashVector {
        name: "hmac-ripemd160",
        mac: CRYPTO_RIPEMD160_HMAC,
        key_len: 20,
        of_text: "79b46524c66c0911fb31bdd25d40d09cdff66453",
        of_nothing: "f4d09b3078af7db3f31c01c82b7ecd7f3eaa76c1",
    },
    HashVector {
        name: "sha224",
        mac: CRYPTO_SHA2_224,
        key_len: 0,
        of_text: "f7ebe2caa6adf802424414ed9ae3d1887a1f662b56706704edb54027",
        of_nothing: "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f",
    },
    HashVector {
        name: "hmac-sha224",
        mac: CRYPTO_SHA2_224_HMAC,
        key_len: 20,
        of_text: "7181d4c799ff2130d9d5937a39ea25c9574706d26612865597aa8399",
        of_nothing: "05c4c1a932e3cef3b6a65f6d4c4cb79511b09703b5e376e971d627ab",
    },
    HashVector {
        name: "sha256",
        mac: CRYPTO_SHA2_256,
        key_len: 0,
        of_text: "66bd4633ed6f71c4ecfa4763bf7ba1c8ec7612de9aa6c0578a7b675207c71e0b",
        of_nothing: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    },
    HashVector {
        name: "hmac-sha256",
        mac: CRYPTO_SHA2_256_HMAC,
        key_len: 20,
        of_text: "df0e001dc6cd17455c08920377e86448b898bd5a7d7bc59505a2b6bf589c278f",
        of_nothing: "d0d6d58c87cbf4a52bfab018ab92a073effa0bffba4fde91df30c8278175d293",
    },
    HashVector {
        name: "sha384",
        mac: CRYPTO_SHA2_384,
        key_len: 0,
        of_text: "5c03431a001926e1861dcac42a1d51fcabb7f957cd1fba2b78e14288d2e903c62b86c3e7106310515fd9350df7c73579",
        of_nothing: "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b",
    },
    HashVector {
        name: "hmac-sha384",
        mac: CRYPTO_SHA2_384_HMAC,
        key_len: 20,
        of_text: "95e07e831a097c4a8072bf6e27926ad2bdc60a53d3f6ce09edad733dd9d02170e5262e1a673b9a6b58b50585a0b69cd1",
        of_nothing: "73f24f24e5132506473f66c00f3c75033482da9f572e000651de87eeb472bfb72d9eb149042abcc7a973c03fa460c879",
    },
    HashVector {
        name: "sha512",
        mac: CRYPTO_SHA2_512,
        key_len: 0,
        of_text: "1df51ad9960b51cd1d186dc402e9070ead3d517047225dee450a3d0a6a85c2e33759bea36f40ab8ef53360529e8a49fb83e9d9d2f03d49be1faa06c3054925f7",
        of_nothing: "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
    },
    HashVector {
        name: "hmac-sha512",
        mac: CRYPTO_SHA2_512_HMAC,
        key_len: 20,
        of_text: "30dc5c80041a6fa7d77b560887c0acd63381b95a01a610c23369977b0ea6d1f3a9da8f99553783d11adffd760123c7765a0d31b46559a41c524507710c80488e",
        of_nothing: "01094e66319bc6f6a15d4cf89fed9e33fa9caf515a08292950571bae2d936c72d2f85f9412345fd1ca53a9de334540b8c7e24c0652f0452f8cef5058d63ef7d5",
    },
];

/// AEADs.
pub(crate) const AEADS: &[AeadVector] = &[
    AeadVector {
        name: "aes-gcm-128",
        cipher: CRYPTO_AES_GCM,
        key_len: 16,
        tag_len: 16,
        sealed: "8530352a01c28d0702ebb9d4c537b825b75eabf889a00cebea1d846e51cf708924fbe52c8d5b4427ec1a01578d6265f96d837fafc2dd0d002dcf5e6aa0c9726167364a6f92c8622246aa68c639587b38",
    },
    AeadVector {
        name: "aes-ccm-128-tag-16",
        cipher: CRYPTO_AES_CCM,
        key_len: 16,
        tag_len: 16,
        sealed: "f92fe2126849ccb30ff52cfdba422799e2f86498d3239fbd989c831944283b86fb40d8b1ca1486b540c83056f5644eb7af6efbb0b71566994c60b6be9d65d77ed869f9097ad97e7da3fe3d5c5e7713ea",
    },
    AeadVector {
        name: "aes-ccm-128-tag-8",
        cipher: CRYPTO_AES_CCM,
        key_len: 16,
        tag_len: 8,
        sealed: "f92fe2126849ccb30ff52cfdba422799e2f86498d3239fbd989c831944283b86fb40d8b1ca1486b540c83056f5644eb7af6efbb0b71566994c60b6be9d65d77e791bd64b3d3d39d7",
    },
    AeadVector {
        name: "aes-gcm-192",
        cipher: CRYPTO_AES_GCM,
        key_len: 24,
        tag_len: 16,
        sealed: "9054272b95c530d94a3225c23a87bbc0cbfa8d33d941a821f579caa27f2e5f74e7d4040dd25156eff82844d8b738fcb8489b0c3f17baa8bb675494135222da4e187d9db399e45b8d748f778f496460df",
    },
    AeadVector {
        name: "aes-ccm-192-tag-16",
        cipher: CRYPTO_AES_CCM,
        key_len: 24,
        tag_len: 16,
        sealed: "5f200045340b13c749e181ef95ed304decfd94222de4e86a83b04db86d8a89ddf3ac474a34db24b98f61a0b59d6f53417bdd0fa74b7a2b57f6d1342bdd9ae57585f96b1874e660e1edd15e29ff0a4f39",
    },
    AeadVector {
        name: "aes-ccm-192-tag-8",
        cipher: CRYPTO_AES_CCM,
        key_len: 24,
        tag_len: 8,
        sealed: "5f200045340b13c749e181ef95ed304decfd94222de4e86a83b04db86d8a89ddf3ac474a34db24b98f61a0b59d6f53417bdd0fa74b7a2b57f6d1342bdd9ae57573dea5db34424a44",
    },
    AeadVector {
        name: "aes-gcm-256",
        cipher: CRYPTO_AES_GCM,
        key_len: 32,
        tag_len: 16,
        sealed: "c2942e937a3458ec2b2ee82eafa090a0a2e56003b82b911b154dc2eec7a5efbcb5fcc6eb03286419c0180cb801b067d2e10b1837dac33d23b3eba5823e6af7242fc5ab0b8ed90900db39e35f7de9c931",
    },
    AeadVector {
        name: "aes-ccm-256-tag-16",
        cipher: CRYPTO_AES_CCM,
        key_len: 32,
        tag_len: 16,
        sealed: "226250d57dcd7459d1280e253130a21bbbec82e21fc734da90dfafad09c7d9e67b04777322cbeebe0819338d9643bc20d5b79f192c817be882e31b749074fc06bba77d53bc38b4d314370bbfc6d84a34",
    },
    AeadVector {
        name: "aes-ccm-256-tag-8",
        cipher: CRYPTO_AES_CCM,
        key_len: 32,
        tag_len: 8,
        sealed: "226250d57dcd7459d1280e253130a21bbbec82e21fc734da90dfafad09c7d9e67b04777322cbeebe0819338d9643bc20d5b79f192c817be882e31b749074fc0673b9523d0add8b80",
    },
];
