//! Digests and the removal of paddings, by the public functions of libcrypto in the twin's library context.

use super::twin::Twin;
use crate::ffi::Param;
use crate::ffi::libcrypto::{
    EVP_DigestFinal_ex, EVP_DigestInit_ex2, EVP_DigestUpdate, EVP_MD, EVP_MD_CTX, EVP_MD_CTX_copy_ex, EVP_MD_CTX_free,
    EVP_MD_CTX_get_params, EVP_MD_CTX_new, EVP_MD_CTX_set_params, EVP_MD_fetch, EVP_MD_free, EVP_MD_get_size, EVP_MD_is_a,
    RSA_padding_check_PKCS1_OAEP_mgf1, RSA_padding_check_PKCS1_type_2,
};
use core::ffi::{CStr, c_int};
use core::ptr::{self, NonNull};
use std::ffi::CString;
use std::sync::{Arc, RwLock};

/// The digests that signatures of ours know: OpenSSL's name, and the `DigestInfo` in front of the value (RFC 8017 s9.2 note 1; the
/// SHA-3 object identifiers are NIST's 2.16.840.1.101.3.4.2.7 to .10; MD5-SHA1 of TLS 1.0 has none).
const KNOWN: [(&CStr, &[u8]); 14] = [
    (c"SHA256", b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"),
    (c"SHA384", b"\x30\x41\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02\x05\x00\x04\x30"),
    (c"SHA512", b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40"),
    (c"SHA1", b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14"),
    (c"SHA224", b"\x30\x2d\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x04\x05\x00\x04\x1c"),
    (c"SHA512-224", b"\x30\x2d\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x05\x05\x00\x04\x1c"),
    (c"SHA512-256", b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x06\x05\x00\x04\x20"),
    (c"SHA3-224", b"\x30\x2d\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x07\x05\x00\x04\x1c"),
    (c"SHA3-256", b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x08\x05\x00\x04\x20"),
    (c"SHA3-384", b"\x30\x41\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x09\x05\x00\x04\x30"),
    (c"SHA3-512", b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x0a\x05\x00\x04\x40"),
    (c"MD5", b"\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05\x00\x04\x10"),
    (c"RIPEMD160", b"\x30\x21\x30\x09\x06\x05\x2b\x24\x03\x02\x01\x05\x00\x04\x14"),
    (c"MD5-SHA1", b""),
];

/// A digest fetched in the private context, one of those in [`KNOWN`].
pub(super) struct Digest {
    md: NonNull<EVP_MD>,
    size: usize,
    info: &'static [u8],
}

// SAFETY: a fetched EVP_MD is immutable and counts its references atomically.
unsafe impl Send for Digest {}
// SAFETY: as above.
unsafe impl Sync for Digest {}

/// So many names are remembered; further spellings are fetched each time.
const REMEMBERED_MAX: usize = 64;

impl Digest {
    /// The digest of that name (any of its names), if signatures of ours know it.
    pub(super) fn named(name: &str) -> Option<Arc<Self>> {
        static REMEMBERED: RwLock<Vec<(String, Arc<Digest>)>> = RwLock::new(Vec::new());
        if name.is_empty() {
            return None;
        }
        // Tried, not waited for: in a child of fork who held it may be missing.
        if let Ok(remembered) = REMEMBERED.try_read()
            && let Some((_, digest)) = remembered.iter().find(|(known, _)| known == name)
        {
            return Some(digest.clone());
        }
        let digest = Arc::new(Self::fetch(name)?);
        if let Ok(mut remembered) = REMEMBERED.try_write()
            && remembered.len() < REMEMBERED_MAX
        {
            remembered.push((name.to_owned(), digest.clone()));
        }
        Some(digest)
    }

    fn fetch(name: &str) -> Option<Self> {
        let context = Twin::get()?.context();
        let name = CString::new(name).ok()?;
        // SAFETY: a live context and NUL-terminated name; null on failure.
        let md = NonNull::new(unsafe { EVP_MD_fetch(context, name.as_ptr(), ptr::null()) })?;
        // SAFETY: a live digest.
        let size = usize::try_from(unsafe { EVP_MD_get_size(md.as_ptr()) }).unwrap_or(0);
        let mut digest = Self { md, size, info: &[] };
        // SAFETY: a live digest and a NUL-terminated name.
        let known = KNOWN.iter().find(|(known, _)| unsafe { EVP_MD_is_a(md.as_ptr(), known.as_ptr()) } == 1);
        digest.info = known?.1;
        Some(digest)
    }

    /// Length of its value in bytes.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// What goes in front of the value in EMSA-PKCS1-v1_5.
    pub(super) fn info(&self) -> &'static [u8] {
        self.info
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        // SAFETY: fetched once, freed once.
        unsafe { EVP_MD_free(self.md.as_ptr()) };
    }
}

/// A digest being computed.
pub(super) struct Hash(NonNull<EVP_MD_CTX>);

impl Hash {
    /// Begins.
    pub(super) fn new(digest: &Digest) -> Option<Self> {
        // SAFETY: no arguments; null on failure.
        let hash = Self(NonNull::new(unsafe { EVP_MD_CTX_new() })?);
        // SAFETY: a live context and digest.
        (unsafe { EVP_DigestInit_ex2(hash.0.as_ptr(), digest.md.as_ptr(), ptr::null()) } == 1).then_some(hash)
    }

    /// The digest of some pieces, one after the other, whatever was hashed before.
    pub(super) fn of(&mut self, digest: &Digest, pieces: &[&[u8]]) -> Option<Vec<u8>> {
        // SAFETY: a live context and digest.
        let begun = unsafe { EVP_DigestInit_ex2(self.0.as_ptr(), digest.md.as_ptr(), ptr::null()) } == 1;
        (begun && pieces.iter().all(|piece| self.update(piece))).then(|| self.finish())?
    }

    /// A copy in the same state.
    pub(super) fn duplicate(&self) -> Option<Self> {
        // SAFETY: no arguments; null on failure.
        let copy = Self(NonNull::new(unsafe { EVP_MD_CTX_new() })?);
        // SAFETY: two live contexts.
        (unsafe { EVP_MD_CTX_copy_ex(copy.0.as_ptr(), self.0.as_ptr()) } == 1).then_some(copy)
    }

    /// Takes more of the message.
    pub(super) fn update(&mut self, data: &[u8]) -> bool {
        // SAFETY: a live context; the slice gives pointer and length.
        unsafe { EVP_DigestUpdate(self.0.as_ptr(), data.as_ptr().cast(), data.len()) == 1 }
    }

    /// Ends and gives the value.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        let mut value = [0; 64];
        let mut length = 0;
        // SAFETY: a live context; no digest is longer than EVP_MAX_MD_SIZE, 64 bytes.
        let done = unsafe { EVP_DigestFinal_ex(self.0.as_ptr(), value.as_mut_ptr(), &raw mut length) } == 1;
        done.then(|| value[..(length as usize).min(64)].to_vec())
    }

    /// For `get_ctx_md_params`.
    ///
    /// # Safety
    /// `params` is null or a valid array.
    pub(super) unsafe fn get_params(&self, params: *mut Param) -> c_int {
        // SAFETY: a live context; the array is the caller's.
        unsafe { EVP_MD_CTX_get_params(self.0.as_ptr(), params) }
    }

    /// For `set_ctx_md_params`.
    ///
    /// # Safety
    /// `params` is null or a valid array.
    pub(super) unsafe fn set_params(&mut self, params: *const Param) -> c_int {
        // SAFETY: a live context; the array is the caller's.
        unsafe { EVP_MD_CTX_set_params(self.0.as_ptr(), params) }
    }
}

impl Drop for Hash {
    fn drop(&mut self) {
        // SAFETY: made once, freed once; it wipes its state.
        unsafe { EVP_MD_CTX_free(self.0.as_ptr()) };
    }
}

/// Removes RSAES-PKCS1-v1_5 padding in constant time: the length of the message, or -1. The very function the default provider uses.
pub(super) fn remove_pkcs1(encoded: &[u8], out: &mut [u8]) -> c_int {
    let (Ok(length), Ok(room)) = (c_int::try_from(encoded.len()), c_int::try_from(out.len())) else { return -1 };
    // SAFETY: the slices give pointers and lengths.
    unsafe { RSA_padding_check_PKCS1_type_2(out.as_mut_ptr(), room, encoded.as_ptr(), length, length) }
}

/// Removes OAEP padding in constant time: the length of the message, or -1. The very function the default provider uses.
pub(super) fn remove_oaep(encoded: &[u8], out: &mut [u8], label: &[u8], digest: &Digest, mgf1: &Digest) -> c_int {
    let (Ok(length), Ok(room), Ok(label_len)) = (c_int::try_from(encoded.len()), c_int::try_from(out.len()), c_int::try_from(label.len()))
    else {
        return -1;
    };
    let (md, mgf1) = (digest.md.as_ptr(), mgf1.md.as_ptr());
    // SAFETY: the slices give pointers and lengths; the digests are alive.
    unsafe {
        RSA_padding_check_PKCS1_OAEP_mgf1(out.as_mut_ptr(), room, encoded.as_ptr(), length, length, label.as_ptr(), label_len, md, mgf1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests_have_the_length_their_info_says() {
        for (name, info) in KNOWN {
            let digest = Digest::named(name.to_str().unwrap()).unwrap();
            assert!(info.is_empty() || usize::from(*info.last().unwrap()) == digest.size(), "{name:?}");
            assert!(info.is_empty() || usize::from(info[1]) == digest.size() + info.len() - 2, "{name:?}");
        }
        assert!(Digest::named("").is_none() && Digest::named("SHAKE128").is_none() && Digest::named("no such").is_none());
    }

    #[test]
    fn hashing_in_pieces_is_hashing_at_once() {
        let digest = Digest::named("sha256").unwrap();
        let mut hash = Hash::new(&digest).unwrap();
        assert!(hash.update(b"ab"));
        let mut copy = hash.duplicate().unwrap();
        assert!(hash.update(b"c") && copy.update(b"c"));
        assert_eq!(hash.finish(), Hash::new(&digest).unwrap().of(&digest, &[b"a", b"bc"]));
        assert_eq!(copy.finish().unwrap()[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
