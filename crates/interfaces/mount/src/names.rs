//! Names, targets of links and extended attributes: sealed, and as text that a lower file system takes. `VOLUME.md` specifies it.

use crate::format::{FOLDER_ID_BYTES, FolderId, LongName, LowerName, damaged};
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest;
use base64ct::{Base64UrlUnpadded, Encoding};
use bywash_core::SecretBytes;
use bywash_files::disk::is_journal;
use bywash_files::leftover::{is_unfinished, is_unfinished_key};
use bywash_files::nonce::random;
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// What the format's own entries begin with. No sealed name has a point in it.
pub(crate) const OWN_PREFIX: &[u8] = b".bywash-";
const LONG_PREFIX: &[u8] = b".bywash-long-";
const SIDE_PREFIX: &[u8] = b".bywash-name-";
const ATTRIBUTE_PREFIX: &[u8] = b"user.bywash.";
/// Longest name that a file system takes, in bytes; also ours.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// Longest target that a file system takes, in bytes.
const TARGET_BYTES_MAX: usize = 4095;
/// Longest value of an extended attribute that Linux takes, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 1 << 16;
/// Names are padded to multiples of this.
const BLOCK_BYTES: usize = 16;
const TAG_BYTES: usize = 16;

/// Seals and opens with one key, AES-256-GCM-SIV (RFC 8452).
pub(crate) struct Siv(LessSafeKey);

impl Siv {
    pub(crate) fn new(key: &SecretBytes) -> io::Result<Self> {
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).map_err(|_| io::Error::other("AES-256-GCM-SIV is not there"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    fn seal(&self, nonce: [u8; NONCE_LEN], context: &[u8], mut text: Vec<u8>) -> io::Result<Vec<u8>> {
        let sealed = self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut text);
        sealed.map(|()| text).map_err(|_| io::Error::other("AES-256-GCM-SIV failed"))
    }

    fn open(&self, nonce: [u8; NONCE_LEN], context: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let len = self.0.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut sealed).ok()?.len();
        sealed.truncate(len);
        Some(sealed)
    }

    /// With a random nonce before it.
    fn seal_randomly(&self, context: &[u8], text: &[u8]) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        random(&mut nonce).map_err(io::Error::other)?;
        let sealed = self.seal(nonce, context, text.to_vec())?;
        Ok([&nonce[..], &sealed].concat())
    }

    fn open_randomly(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk()?;
        self.open(*nonce, context, sealed.to_vec())
    }
}

/// The keys of a volume's names, links and attributes.
pub(crate) struct NameKeys {
    pub(crate) names: Siv,
    pub(crate) links: Siv,
    pub(crate) attributes: Siv,
}

fn name_nonce(folder: &FolderId) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&folder[..NONCE_LEN]);
    nonce
}

/// A name, then 0x80, then zeros to a full block: so its exact length does not show.
fn pad(name: &[u8]) -> Vec<u8> {
    let mut padded = Vec::with_capacity((name.len() + 1).next_multiple_of(BLOCK_BYTES) + TAG_BYTES);
    padded.extend_from_slice(name);
    padded.push(0x80);
    padded.resize((name.len() + 1).next_multiple_of(BLOCK_BYTES), 0);
    padded
}

fn unpad(mut padded: Vec<u8>) -> Option<Vec<u8>> {
    let end = padded.iter().rposition(|byte| *byte != 0)?;
    (padded[end] == 0x80).then(|| {
        padded.truncate(end);
        padded
    })
}

fn c_string(bytes: Vec<u8>) -> io::Result<CString> {
    Ok(CString::new(bytes).map_err(|_| Errno::INVAL)?)
}

pub(crate) fn prefixed(prefix: &[u8], text: &str) -> io::Result<CString> {
    c_string([prefix, text.as_bytes()].concat())
}

impl NameKeys {
    pub(crate) fn seal_name(&self, folder: &FolderId, name: &[u8]) -> io::Result<LowerName> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NAMETOOLONG.into());
        }
        let sealed = self.names.seal(name_nonce(folder), folder, pad(name))?;
        let text = Base64UrlUnpadded::encode_string(&sealed);
        if text.len() <= NAME_BYTES_MAX {
            return Ok(LowerName { name: c_string(text.into_bytes())?, long: None });
        }
        let hash = Base64UrlUnpadded::encode_string(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
        let long = LongName { side_file: prefixed(SIDE_PREFIX, &hash)?, sealed: text.into_bytes() };
        Ok(LowerName { name: prefixed(LONG_PREFIX, &hash)?, long: Some(long) })
    }

    pub(crate) fn open_name(&self, folder: &FolderId, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let open = || {
            let sealed = Base64UrlUnpadded::decode_vec(core::str::from_utf8(sealed).ok()?).ok()?;
            let name = unpad(self.names.open(name_nonce(folder), folder, sealed)?)?;
            // Who could seal a name could also seal one that leads out of its folder.
            let is_name = !name.is_empty()
                && name.len() <= NAME_BYTES_MAX
                && name != b"."
                && name != b".."
                && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
            is_name.then_some(name)
        };
        open().ok_or_else(|| damaged("its name was not sealed in this folder"))
    }

    pub(crate) fn seal_target(&self, target: &[u8]) -> io::Result<Vec<u8>> {
        let text = Base64UrlUnpadded::encode_string(&self.links.seal_randomly(b"", target)?);
        if text.len() > TARGET_BYTES_MAX { Err(Errno::NAMETOOLONG.into()) } else { Ok(text.into_bytes()) }
    }

    pub(crate) fn open_target(&self, lower: &[u8]) -> io::Result<Vec<u8>> {
        let sealed = core::str::from_utf8(lower).ok().and_then(|text| Base64UrlUnpadded::decode_vec(text).ok());
        let target = sealed.and_then(|sealed| self.links.open_randomly(b"", &sealed));
        target.ok_or_else(|| damaged("a symbolic link's target is not authentic"))
    }

    pub(crate) fn seal_attribute_name(&self, name: &[u8]) -> io::Result<CString> {
        let name = name.strip_prefix(b"user.").ok_or(Errno::OPNOTSUPP)?;
        let sealed = self.attributes.seal([0; NONCE_LEN], b"name", name.to_vec())?;
        let lower = prefixed(ATTRIBUTE_PREFIX, &Base64UrlUnpadded::encode_string(&sealed))?;
        if lower.as_bytes().len() > NAME_BYTES_MAX { Err(Errno::RANGE.into()) } else { Ok(lower) }
    }

    pub(crate) fn open_attribute_name(&self, lower: &[u8]) -> Option<Vec<u8>> {
        let text = core::str::from_utf8(lower.strip_prefix(ATTRIBUTE_PREFIX)?).ok()?;
        let name = self.attributes.open([0; NONCE_LEN], b"name", Base64UrlUnpadded::decode_vec(text).ok()?)?;
        Some([b"user.", &name[..]].concat())
    }

    pub(crate) fn seal_attribute(&self, lower_name: &CStr, value: &[u8]) -> io::Result<Vec<u8>> {
        let sealed = self.attributes.seal_randomly(lower_name.to_bytes(), value)?;
        if sealed.len() > ATTRIBUTE_BYTES_MAX { Err(Errno::NOSPC.into()) } else { Ok(sealed) }
    }

    pub(crate) fn open_attribute(&self, lower_name: &CStr, lower: &[u8]) -> io::Result<Vec<u8>> {
        self.attributes.open_randomly(lower_name.to_bytes(), lower).ok_or_else(|| damaged("an extended attribute is not authentic"))
    }
}

/// Length of a target, from that of its lower one.
pub(crate) fn target_len(lower_len: u64) -> u64 {
    (lower_len * 3 / 4).saturating_sub((NONCE_LEN + TAG_BYTES) as u64)
}

/// The side file of a long entry.
pub(crate) fn side_file(lower: &[u8]) -> Option<CString> {
    let hash = lower.strip_prefix(LONG_PREFIX)?;
    c_string([SIDE_PREFIX, hash].concat()).ok()
}

/// Whether that could be a sealed name.
pub(crate) fn is_sealed(lower: &[u8]) -> bool {
    lower.len() >= (BLOCK_BYTES + TAG_BYTES) * 4 / 3 && lower.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// A new folder's identity.
pub(crate) fn new_folder_id() -> io::Result<FolderId> {
    let mut id = [0; FOLDER_ID_BYTES];
    random(&mut id).map_err(io::Error::other)?;
    Ok(id)
}

/// Whether a name belongs to the format where names stay as they are: what programs of ours that work within such a volume make beside their files does not.
pub(crate) fn is_own(name: &[u8]) -> bool {
    let called = OsStr::from_bytes(name);
    let is_of_file = || (is_unfinished(called) && !is_unfinished_key(called)) || is_journal(called);
    name.starts_with(OWN_PREFIX) && !is_of_file()
}

/// What names become where they stay as they are.
pub(crate) fn plain_name(name: &[u8]) -> io::Result<LowerName> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Errno::NAMETOOLONG.into());
    }
    Ok(LowerName { name: CString::new(name).map_err(|_| Errno::INVAL)?, long: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> NameKeys {
        let siv = |byte: u8| Siv::new(&(&[byte; 32]).into()).unwrap();
        NameKeys { names: siv(1), links: siv(2), attributes: siv(3) }
    }

    #[test]
    fn names_of_every_length_open_in_their_folder_only() {
        let keys = keys();
        for len in 1..=NAME_BYTES_MAX {
            let name: Vec<u8> = (0..len).map(|at| b'a' + (at % 26) as u8).collect();
            let lower = keys.seal_name(&[7; 16], &name).unwrap();
            assert_eq!(keys.seal_name(&[7; 16], &name).unwrap(), lower);
            assert!(lower.name.as_bytes().len() <= NAME_BYTES_MAX);
            assert_eq!(lower.long.is_some(), len >= 160, "{len}");
            let sealed = lower.long.as_ref().map_or(lower.name.as_bytes(), |long| &long.sealed);
            assert_eq!(lower.long.as_ref().map(|long| long.side_file.clone()), side_file(lower.name.as_bytes()));
            assert!(lower.long.is_some() || is_sealed(lower.name.as_bytes()));
            assert_eq!(keys.open_name(&[7; 16], sealed).unwrap(), name);
            assert!(keys.open_name(&[8; 16], sealed).is_err());
        }
        assert!(keys.seal_name(&[7; 16], &[b'a'; 256]).is_err());
    }

    #[test]
    fn names_that_lead_elsewhere_do_not_open() {
        let keys = keys();
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
            let sealed = keys.seal_name(&[7; 16], name).unwrap();
            assert!(keys.open_name(&[7; 16], sealed.name.as_bytes()).is_err(), "{name:?}");
        }
    }

    #[test]
    fn targets_and_attributes_round_trip() {
        let keys = keys();
        for len in [0, 1, 2, 3, 100, 3000] {
            let target = vec![b'x'; len];
            let lower = keys.seal_target(&target).unwrap();
            assert_eq!(target_len(lower.len() as u64), len as u64);
            assert_eq!(keys.open_target(&lower).unwrap(), target);
            assert_ne!(keys.seal_target(&target).unwrap(), lower);
        }
        assert!(keys.seal_target(&[b'x'; 3100]).is_err());
        let name = keys.seal_attribute_name(b"user.mime").unwrap();
        assert_eq!(keys.open_attribute_name(name.as_bytes()).unwrap(), b"user.mime");
        let value = keys.seal_attribute(&name, b"text").unwrap();
        assert_eq!(keys.open_attribute(&name, &value).unwrap(), b"text");
        assert!(keys.open_attribute(c"user.bywash.x", &value).is_err());
        assert!(keys.seal_attribute_name(b"security.selinux").is_err());
    }
}
