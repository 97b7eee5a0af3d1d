//! Keys from keys: HKDF-SHA256 (RFC 5869), and HMAC-SHA256 over headers and journals.

use crate::error::{Error, Result};
use aws_lc_rs::{constant_time, hkdf, hmac};
use bywash_core::SecretBytes;

/// Bytes of a file key, of the keys that wrap it, and of an HMAC-SHA256.
pub const KEY_BYTES: usize = 32;

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-SHA256 (RFC 5869): `len` bytes (at most 8,160) from a key, a salt (empty: none) and what they are for.
///
/// # Errors
/// [`Error::BadKey`] for more bytes than that.
pub fn derive(salt: &[u8], key: &[u8], purpose: &[&[u8]], len: usize) -> Result<SecretBytes> {
    let mut derived = SecretBytes::zeroed(len);
    let expanded = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(key);
    let filled = expanded.expand(purpose, Length(len)).and_then(|okm| okm.fill(&mut derived));
    filled.map_err(|_| Error::BadKey { what: "HKDF failed".into() })?;
    Ok(derived)
}

/// HMAC-SHA256 of what comes piece by piece.
#[derive(Clone)]
pub(crate) struct Mac(hmac::Context);

impl Mac {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key)))
    }

    pub(crate) fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// Of all that came; more may come.
    pub(crate) fn value(&self) -> [u8; KEY_BYTES] {
        let mut out = [0; KEY_BYTES];
        out.copy_from_slice(self.0.clone().sign().as_ref());
        out
    }
}

/// HMAC-SHA256.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut mac = Mac::new(key);
    parts.iter().for_each(|part| mac.update(part));
    mac.value()
}

/// Whether that is the MAC, in time that does not depend on how much of it is right.
pub(crate) fn mac_is(key: &[u8], parts: &[&[u8]], given: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(&mac(key, parts), given).is_ok()
}

/// The keys of one file, from its file key and salt.
pub struct FileKeys {
    pub(crate) salt: [u8; KEY_BYTES],
    file_key: SecretBytes,
    pub(crate) header: SecretBytes,
    pub(crate) journal: SecretBytes,
}

impl FileKeys {
    /// From a file key and the salt in the file's header.
    ///
    /// # Errors
    /// [`Error::BadKey`] for a file key that is not 32 bytes long.
    pub fn new(file_key: SecretBytes, salt: [u8; KEY_BYTES]) -> Result<Self> {
        if file_key.len() != KEY_BYTES {
            return Err(Error::BadKey { what: format!("a file key has {KEY_BYTES} bytes, this one {}", file_key.len()) });
        }
        let header = derive(&salt, &file_key, &[b"bywash-files/1 header"], KEY_BYTES)?;
        let journal = derive(&salt, &file_key, &[b"bywash-files/1 journal"], KEY_BYTES)?;
        Ok(Self { salt, file_key, header, journal })
    }

    /// The key under which a session of writing seals its chunks.
    pub(crate) fn session(&self, aead: crate::Aead, session: &crate::nonce::SessionId) -> Result<SecretBytes> {
        derive(&self.salt, &self.file_key, &[b"bywash-files/1 chunks", &aead.number().to_le_bytes(), session], aead.key_len())
    }

    /// The file key itself, for who adds a slot.
    pub fn file_key(&self) -> &SecretBytes {
        &self.file_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5869 appendix A.1, and RFC 4231 test case 2.
    #[test]
    fn published_vectors() {
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let okm = derive(&(0..13).collect::<Vec<u8>>(), &[0x0b; 22], &[&info[..3], &info[3..]], 42).unwrap();
        assert_eq!(okm[..6], [0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac]);
        assert_eq!(okm[33..], [0x00, 0x72, 0x08, 0xd5, 0xb8, 0x87, 0x18, 0x58, 0x65]);
        let tag = mac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(tag[..6], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60]);
        assert!(mac_is(b"Jefe", &[b"what do ya want for nothing?"], &tag) && !mac_is(b"Jefe", &[b"what"], &tag));
    }
}
