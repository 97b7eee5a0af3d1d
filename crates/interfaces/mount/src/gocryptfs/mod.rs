//! gocryptfs volumes, read and written: their documented format, under the same file system as our own.
//!
//! Facts are from gocryptfs's description of its format (<https://nuetzlich.net/gocryptfs/forward_mode_crypto/>) and its behaviour; version 2 of the on-disk format, which gocryptfs writes since 0.7, with the
//! features of 1.0 and later but for keys in FIDO2 tokens. Its tests open what `gocryptfs` wrote and the other way round.
//!
//! | module | what it knows |
//! |---|---|
//! | [`config`] | `gocryptfs.conf`, and the master key in it |
//! | `eme` | the wide block cipher of names |
//! | `blocks` | the ciphers of contents |
//! | `content` | files |

mod blocks;
pub mod config;
mod content;
mod eme;

use crate::format::{Content, Entry, FolderId, Format, LongName, Looked, LowerName, damaged};
use aws_lc_rs::digest;
use base64ct::{Base64Url, Base64UrlUnpadded, Encoding};
use blocks::BlockCipher;
use bywash_client::Client;
use bywash_files::disk::Access;
pub use config::{Config, Error, ScryptWork, VERSION};
use content::Blocks;
use eme::{BLOCK_BYTES, Eme};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// The volume's parameters, in its root.
pub const CONFIG_FILE: &CStr = c"gocryptfs.conf";
const FOLDER_FILE: &CStr = c"gocryptfs.diriv";
const LONG_PREFIX: &str = "gocryptfs.longname.";
const SIDE_SUFFIX: &str = ".name";
const ATTRIBUTE_PREFIX: &str = "user.gocryptfs.";
/// The tweak of attributes' names, which belong to no folder.
const ATTRIBUTE_TWEAK: FolderId = *b"xattr_name_iv_xx";
const NAME_BYTES_MAX: usize = 255;
const TARGET_BYTES_MAX: usize = 4095;
/// Longest value of an extended attribute that Linux takes, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 1 << 16;

/// An open gocryptfs volume.
pub struct Gocryptfs {
    names: config::Names,
    eme: Eme,
    cipher: Arc<BlockCipher>,
}

impl Gocryptfs {
    /// Opens a volume with its passphrase. This takes the time of scrypt.
    ///
    /// # Errors
    /// [`Error::WrongPassphrase`]; [`Error::Engine`] if no engine computes its cipher.
    pub fn unlock(config: &Config, passphrase: &[u8], client: &Client) -> Result<Self, Error> {
        let keys = config.unlock(passphrase, client)?;
        let eme = Eme::new(&keys.names).ok_or_else(|| Error::damaged("its key of names is too short"))?;
        Ok(Self { names: config.names, eme, cipher: Arc::new(keys.content) })
    }

    fn encode(&self, bytes: &[u8]) -> String {
        if self.names.is_raw { Base64UrlUnpadded::encode_string(bytes) } else { Base64Url::encode_string(bytes) }
    }

    fn decode(&self, text: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(text).ok()?;
        if self.names.is_raw { Base64UrlUnpadded::decode_vec(text).ok() } else { Base64Url::decode_vec(text).ok() }
    }

    /// A name enciphered and as text.
    fn seal_text(&self, tweak: &FolderId, name: &[u8]) -> io::Result<String> {
        let padding = BLOCK_BYTES - name.len() % BLOCK_BYTES;
        let mut text = [name, &vec![padding as u8; padding]].concat();
        if !self.eme.seal(tweak, &mut text) {
            return Err(Errno::NAMETOOLONG.into());
        }
        Ok(self.encode(&text))
    }

    fn open_text(&self, tweak: &FolderId, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut text = self.decode(sealed)?;
        if !self.eme.open(tweak, &mut text) {
            return None;
        }
        let padding = usize::from(*text.last()?);
        let name_len = text.len().checked_sub(padding).filter(|_| (1..=BLOCK_BYTES).contains(&padding))?;
        let is_padded = text[name_len..].iter().all(|byte| usize::from(*byte) == padding);
        text.truncate(name_len);
        (is_padded && !text.is_empty() && !text.contains(&0)).then_some(text)
    }

    /// Bytes that belong to no file, such as a link's target.
    fn seal_bytes(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let mut sealed = vec![0; bytes.len() + self.cipher.overhead()];
        self.cipher.seal(0, None, bytes, &mut sealed)?;
        Ok(sealed)
    }

    fn open_bytes(&self, sealed: &[u8], what: &str) -> io::Result<Vec<u8>> {
        if sealed.is_empty() {
            return Ok(Vec::new());
        }
        let len = sealed.len().checked_sub(self.cipher.overhead()).ok_or_else(|| damaged(format!("{what} is too short")))?;
        let mut bytes = vec![0; len];
        match self.cipher.open(0, None, sealed, &mut bytes).map_err(io::Error::other)? {
            true => Ok(bytes),
            false => Err(damaged(format!("{what} is not authentic"))),
        }
    }
}

/// Text of ours, which has no zero in it, as the system takes it.
fn c_string(text: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(text).map_err(|_| Errno::INVAL.into())
}

impl Format for Gocryptfs {
    fn folder_file(&self) -> Option<&CStr> {
        self.names.has_folder_iv.then_some(FOLDER_FILE)
    }

    fn classify(&self, lower: &CStr, is_in_root: bool) -> Entry {
        if is_in_root && lower == CONFIG_FILE {
            return Entry::Hidden;
        }
        if self.names.are_plain {
            return Entry::Named;
        }
        if lower == FOLDER_FILE {
            return Entry::Hidden;
        }
        match std::str::from_utf8(lower.to_bytes()) {
            Ok(name) if name.starts_with(LONG_PREFIX) && self.names.long_from.is_some() => match c_string(format!("{name}{SIDE_SUFFIX}")) {
                Ok(side_file) if !name.ends_with(SIDE_SUFFIX) => Entry::Long(side_file),
                _ => Entry::Hidden,
            },
            // A point is in no sealed name.
            Ok(name) if !name.contains('.') => Entry::Named,
            _ => Entry::Foreign,
        }
    }

    fn seal_name(&self, folder: &FolderId, name: &[u8]) -> io::Result<LowerName> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NAMETOOLONG.into());
        }
        if self.names.are_plain {
            // In a folder below the root gocryptfs would take it; nobody needs it enough to risk the one that holds the key.
            let is_reserved = name == CONFIG_FILE.to_bytes();
            return if is_reserved { Err(Errno::PERM.into()) } else { Ok(LowerName { name: c_string(name)?, long: None }) };
        }
        let sealed = self.seal_text(folder, name)?;
        if self.names.long_from.is_none_or(|max| sealed.len() <= max) {
            return Ok(LowerName { name: c_string(sealed)?, long: None });
        }
        let hash = self.encode(digest::digest(&digest::SHA256, sealed.as_bytes()).as_ref());
        let name = format!("{LONG_PREFIX}{hash}");
        let side_file = c_string(format!("{name}{SIDE_SUFFIX}"))?;
        Ok(LowerName { name: c_string(name)?, long: Some(LongName { side_file, sealed: sealed.into_bytes() }) })
    }

    fn open_name(&self, folder: &FolderId, sealed: &[u8]) -> io::Result<Vec<u8>> {
        if self.names.are_plain {
            return Ok(sealed.to_vec());
        }
        let name = self.open_text(folder, sealed).filter(|name| !name.contains(&b'/') && name != b"." && name != b"..");
        name.ok_or_else(|| damaged("a name that was not sealed in this folder"))
    }

    fn seal_target(&self, target: &[u8]) -> io::Result<Vec<u8>> {
        if self.names.are_plain {
            return Ok(target.to_vec());
        }
        let sealed = self.encode(&self.seal_bytes(target)?).into_bytes();
        if sealed.len() > TARGET_BYTES_MAX { Err(Errno::NAMETOOLONG.into()) } else { Ok(sealed) }
    }

    fn open_target(&self, lower: &[u8]) -> io::Result<Vec<u8>> {
        if self.names.are_plain {
            return Ok(lower.to_vec());
        }
        let sealed = self.decode(lower).ok_or_else(|| damaged("the target of a link is not base64"))?;
        self.open_bytes(&sealed, "the target of a link")
    }

    /// With padding in the text this may be up to 2 more: only the target itself says how much of that there is.
    fn target_len(&self, lower_len: u64) -> u64 {
        if self.names.are_plain { lower_len } else { (lower_len * 3 / 4).saturating_sub(self.cipher.overhead() as u64) }
    }

    fn seal_attribute_name(&self, name: &[u8]) -> io::Result<CString> {
        if !name.starts_with(b"user.") {
            return Err(Errno::OPNOTSUPP.into());
        }
        let lower = format!("{ATTRIBUTE_PREFIX}{}", self.seal_text(&ATTRIBUTE_TWEAK, name)?);
        if lower.len() > NAME_BYTES_MAX { Err(Errno::RANGE.into()) } else { c_string(lower) }
    }

    fn open_attribute_name(&self, lower: &[u8]) -> Option<Vec<u8>> {
        let name = self.open_text(&ATTRIBUTE_TWEAK, lower.strip_prefix(ATTRIBUTE_PREFIX.as_bytes())?)?;
        name.starts_with(b"user.").then_some(name)
    }

    fn seal_attribute(&self, _lower_name: &CStr, value: &[u8]) -> io::Result<Vec<u8>> {
        let sealed = self.seal_bytes(value)?;
        if sealed.len() > ATTRIBUTE_BYTES_MAX { Err(Errno::NOSPC.into()) } else { Ok(sealed) }
    }

    fn open_attribute(&self, _lower_name: &CStr, lower: &[u8]) -> io::Result<Vec<u8>> {
        self.open_bytes(lower, "the value of an attribute")
    }

    fn text_len(&self, lower_len: u64) -> io::Result<u64> {
        Ok(content::text_len(lower_len, self.cipher.overhead()))
    }

    fn create(&self, file: Arc<File>) -> io::Result<Arc<dyn Content>> {
        self.open(file, Access::Write)
    }

    fn has_holes(&self) -> bool {
        true
    }

    fn look_at(&self, file: Arc<File>) -> io::Result<Looked> {
        Ok(Blocks::open(file, self.cipher.clone(), Access::Read)?.look())
    }

    fn open(&self, file: Arc<File>, access: Access) -> io::Result<Arc<dyn Content>> {
        Ok(Arc::new(Blocks::open(file, self.cipher.clone(), access)?))
    }
}
