//! A cipher of both providers.

use super::{Cipher, Context, Library, last_error};

pub const PLAIN: &[&str] = &[
    "AES-128-ECB",
    "AES-192-ECB",
    "AES-256-ECB",
    "AES-128-CBC",
    "AES-192-CBC",
    "AES-256-CBC",
    "AES-128-CTR",
    "AES-192-CTR",
    "AES-256-CTR",
];
pub const XTS: &[&str] = &["AES-128-XTS", "AES-256-XTS"];
pub const AEAD: &[&str] = &["AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "ChaCha20-Poly1305"];

/// The same cipher from both providers.
pub struct Pair {
    pub ours: Cipher,
    pub theirs: Cipher,
    pub name: String,
}

impl Pair {
    pub fn new(library: &Library, name: &str) -> Self {
        let pair = Self { ours: library.cipher(name, "bywash"), theirs: library.cipher(name, "default"), name: name.into() };
        assert_eq!(pair.ours.provider(), "bywash");
        pair
    }
    pub fn key_len(&self) -> usize {
        self.theirs.number(c"keylen") as usize
    }
    pub fn iv_len(&self) -> usize {
        self.theirs.number(c"ivlen") as usize
    }
    pub fn contexts(&self, key: &[u8], iv: &[u8], encrypt: bool) -> (Context, Context) {
        let (ours, theirs) = (Context::new(), Context::new());
        assert!(ours.init(Some(&self.ours), Some(key), Some(iv), encrypt.into()), "{}: {}", self.name, last_error());
        assert!(theirs.init(Some(&self.theirs), Some(key), Some(iv), encrypt.into()));
        (ours, theirs)
    }
}
