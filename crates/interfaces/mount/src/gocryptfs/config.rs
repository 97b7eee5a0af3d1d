//! `gocryptfs.conf`: what a volume is sealed with, and its master key under a passphrase. Every byte is taken for hostile.

use super::blocks::{BlockCipher, Kind};
use base64ct::{Base64, Encoding};
use bywash_client::Client;
use bywash_core::SecretBytes;
use serde::Deserialize;

/// Longest file that is read, in bytes.
pub const CONFIG_BYTES_MAX: usize = 1 << 16;
/// The on-disk version since gocryptfs 0.7, and the only one that is read.
pub const VERSION: u32 = 2;
const KEY_BYTES: usize = 32;
/// Most memory that scrypt may take, in bytes.
const SCRYPT_BYTES_MAX: u64 = 1 << 30;
/// The same, summed over what it does one after the other (gocryptfs does one).
const SCRYPT_WORK_MAX: u64 = 4 << 30;

/// Why a gocryptfs volume cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not the form of gocryptfs.conf.
    #[error("gocryptfs.conf is damaged: {what}; restore it from a copy")]
    Damaged {
        /// What is wrong with it.
        what: String,
    },
    /// Something that a volume may have and that is not known here.
    #[error("the volume has {what}, which bywash does not know; mount it with gocryptfs")]
    Unknown {
        /// What it has.
        what: String,
    },
    /// The passphrase does not open the master key.
    #[error("wrong passphrase; try another")]
    WrongPassphrase,
    /// No engine computes its cipher.
    #[error("{0}")]
    Engine(#[from] bywash_core::Error),
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    #[serde(default)]
    creator: String,
    encrypted_key: String,
    scrypt_object: Scrypt,
    version: u32,
    #[serde(default)]
    feature_flags: Vec<String>,
    #[serde(default)]
    long_name_max: Option<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Scrypt {
    salt: String,
    n: u64,
    r: u32,
    p: u32,
    key_len: usize,
}

/// A volume's parameters, with its master key still sealed.
pub struct Config {
    creator: String,
    work: ScryptWork,
    sealed_key: Vec<u8>,
    salt: Vec<u8>,
    scrypt: scrypt::Params,
    is_derived: bool,
    pub(super) kind: Kind,
    pub(super) names: Names,
}

/// How names are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) are_plain: bool,
    /// Whether each folder has a tweak of its own.
    pub(super) has_folder_iv: bool,
    /// Whether base64 is written without padding.
    pub(super) is_raw: bool,
    /// Longest lower name in bytes; none if longer ones have no place.
    pub(super) long_from: Option<usize>,
}

impl Config {
    /// Parses the file.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Unknown`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > CONFIG_BYTES_MAX {
            return Err(Error::damaged("it is too long"));
        }
        let file: File = serde_json::from_slice(bytes).map_err(|error| Error::damaged(error.to_string()))?;
        if file.version != VERSION {
            return Err(Error::Unknown { what: format!("version {}", file.version) });
        }
        const KNOWN: [&str; 10] =
            ["PlaintextNames", "DirIV", "EMENames", "GCMIV128", "LongNames", "LongNameMax", "AESSIV", "Raw64", "HKDF", "XChaCha20Poly1305"];
        if let Some(flag) = file.feature_flags.iter().find(|flag| !KNOWN.contains(&flag.as_str())) {
            let what = if flag == "FIDO2" { "its key in a FIDO2 token".into() } else { format!("the feature {flag:?}") };
            return Err(Error::Unknown { what });
        }
        let has = |name: &str| file.feature_flags.iter().any(|flag| flag == name);
        let are_plain = has("PlaintextNames");
        if !are_plain && !has("EMENames") || !has("GCMIV128") && !has("XChaCha20Poly1305") {
            return Err(Error::Unknown { what: "the form of gocryptfs before 1.0".into() });
        }
        let kind = match (has("XChaCha20Poly1305"), has("AESSIV")) {
            (false, false) => Kind::Gcm,
            (true, false) if has("HKDF") => Kind::XChaCha,
            (false, true) => Kind::Siv,
            _ => return Err(Error::damaged("its features contradict each other")),
        };
        let long_from = has("LongNames").then(|| file.long_name_max.filter(|_| has("LongNameMax")).map_or(255, usize::from));
        if long_from.is_some_and(|max| max < 62) {
            return Err(Error::damaged("LongNameMax is less than the length of a hashed name"));
        }
        let decode = |text: &str, what| Base64::decode_vec(text).map_err(|_| Error::damaged(format!("{what} is no base64")));
        Ok(Self {
            work: ScryptWork { n: file.scrypt_object.n, r: file.scrypt_object.r, p: file.scrypt_object.p },
            creator: file.creator,
            sealed_key: decode(&file.encrypted_key, "EncryptedKey")?,
            salt: decode(&file.scrypt_object.salt, "Salt")?,
            scrypt: file.scrypt_object.params()?,
            is_derived: has("HKDF"),
            kind,
            names: Names { are_plain, has_folder_iv: has("DirIV"), is_raw: has("Raw64"), long_from },
        })
    }

    /// What made it, in its own words; empty if it does not say.
    pub fn creator(&self) -> &str {
        &self.creator
    }

    /// What contents are sealed with.
    pub fn cipher(&self) -> &'static str {
        self.kind.name()
    }

    /// Whether each folder has an identity, with which the names in it are sealed.
    pub fn has_folder_ids(&self) -> bool {
        self.names.has_folder_iv && !self.names.are_plain
    }

    /// Whether names, targets and attributes are as they are.
    pub fn has_plain_names(&self) -> bool {
        self.names.are_plain
    }

    /// What a passphrase costs who tries one.
    pub fn scrypt_work(&self) -> ScryptWork {
        self.work
    }

    /// The volume's keys. This takes the time of scrypt.
    ///
    /// # Errors
    /// [`Error::WrongPassphrase`]; [`Error::Engine`] if its cipher cannot be computed here.
    pub(super) fn unlock(&self, passphrase: &[u8], client: &Client) -> Result<Keys, Error> {
        let master = self.master_key(passphrase, client)?;
        let content = match (self.is_derived, self.kind) {
            (true, kind) => derive(&master, kind.purpose(), kind.key_len())?,
            (false, Kind::Siv) => sha512(&master),
            (false, _) => master.clone(),
        };
        let names = if self.is_derived { derive(&master, "EME filename encryption", KEY_BYTES)? } else { master };
        Ok(Keys { names, content: BlockCipher::new(client, self.kind, &content)? })
    }

    fn master_key(&self, passphrase: &[u8], client: &Client) -> Result<SecretBytes, Error> {
        let cipher = self.sealer(passphrase, &self.salt, client)?;
        let mut master = SecretBytes::zeroed(KEY_BYTES);
        if self.sealed_key.len() != KEY_BYTES + cipher.overhead() {
            return Err(Error::damaged("EncryptedKey has not the length of a key"));
        }
        match cipher.open(0, None, &self.sealed_key, &mut master)? {
            true => Ok(master),
            false => Err(Error::WrongPassphrase),
        }
    }

    /// What the master key is sealed with.
    fn sealer(&self, passphrase: &[u8], salt: &[u8], client: &Client) -> Result<BlockCipher, Error> {
        let mut hash = SecretBytes::zeroed(KEY_BYTES);
        scrypt::scrypt(passphrase, salt, &self.scrypt, &mut hash).map_err(|error| Error::damaged(error.to_string()))?;
        // Before HKDF came, this one block had a shorter nonce.
        let (key, nonce_len) = if self.is_derived { (derive(&hash, Kind::Gcm.purpose(), KEY_BYTES)?, 16) } else { (hash, 12) };
        Ok(BlockCipher::with_nonce_len(client, Kind::Gcm, &key, nonce_len)?)
    }

    /// The file for another passphrase: the master key, and so the whole volume, stays what it is, and everything else in the file too but the salt. This takes the time of scrypt twice.
    ///
    /// # Errors
    /// As [`parse`](Self::parse) and [`Gocryptfs::unlock`](super::Gocryptfs::unlock); [`Error::Io`] if the kernel has no randomness.
    pub fn with_passphrase(bytes: &[u8], old: &[u8], new: &[u8], client: &Client) -> Result<Vec<u8>, Error> {
        let config = Self::parse(bytes)?;
        let master = config.master_key(old, client)?;
        let mut salt = [0; KEY_BYTES];
        bywash_files::nonce::random(&mut salt).map_err(std::io::Error::other)?;
        let cipher = config.sealer(new, &salt, client)?;
        let mut sealed = vec![0; KEY_BYTES + cipher.overhead()];
        cipher.seal(0, None, &master, &mut sealed)?;
        // What is not known here stays in it.
        let mut file: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| Error::damaged(error.to_string()))?;
        file["EncryptedKey"] = Base64::encode_string(&sealed).into();
        file["ScryptObject"]["Salt"] = Base64::encode_string(&salt).into();
        let mut text = serde_json::to_vec_pretty(&file).map_err(|error| Error::damaged(error.to_string()))?;
        text.push(b'\n');
        Ok(text)
    }
}

/// What scrypt is asked to do (RFC 7914).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScryptWork {
    /// Cost, a power of two.
    pub n: u64,
    /// Block size.
    pub r: u32,
    /// Parallelisation.
    pub p: u32,
}

/// What a volume is opened with.
pub(super) struct Keys {
    pub(super) names: SecretBytes,
    pub(super) content: BlockCipher,
}

impl Scrypt {
    fn params(&self) -> Result<scrypt::Params, Error> {
        let is_bounded = self.n.is_power_of_two()
            && (1..=64).contains(&self.r)
            && (1..=64).contains(&self.p)
            && self.n.saturating_mul(128 * u64::from(self.r)) <= SCRYPT_BYTES_MAX
            && self.n.saturating_mul(128 * u64::from(self.r * self.p)) <= SCRYPT_WORK_MAX;
        if !is_bounded || self.key_len != KEY_BYTES {
            return Err(Error::damaged("the parameters of scrypt ask for more than 1 GiB, or 4 GiB in all, or for another key length"));
        }
        scrypt::Params::new(self.n.trailing_zeros() as u8, self.r, self.p).map_err(|error| Error::damaged(error.to_string()))
    }
}

/// The key of AES-SIV in volumes without HKDF, of gocryptfs before 1.3.
fn sha512(master: &SecretBytes) -> SecretBytes {
    SecretBytes::from(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA512, master).as_ref())
}

/// HKDF-SHA256 without a salt.
fn derive(key: &SecretBytes, purpose: &str, len: usize) -> Result<SecretBytes, Error> {
    bywash_files::derive(&[], key, &[purpose.as_bytes()], len).map_err(|error| Error::damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"Creator":"gocryptfs 2.3","EncryptedKey":"AAAA","ScryptObject":{"Salt":"AAAA","N":1024,"R":8,"P":1,"KeyLen":32},
        "Version":2,"FeatureFlags":["GCMIV128","HKDF","DirIV","EMENames","LongNames","Raw64"]}"#;

    #[test]
    fn what_a_volume_has_is_read_and_what_is_unknown_refused_by_name() {
        let config = Config::parse(GOOD.as_bytes()).unwrap();
        assert_eq!((config.kind, config.names.long_from), (Kind::Gcm, Some(255)));
        let refused = |from: &str, to: &str| match Config::parse(GOOD.replace(from, to).as_bytes()) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{to} was taken"),
        };
        for (from, to, says) in [
            ("\"Version\":2", "\"Version\":3", "version 3"),
            ("\"Raw64\"", "\"FIDO2\"", "FIDO2 token"),
            ("\"Raw64\"", "\"Warp\"", "\"Warp\""),
            ("\"EMENames\",", "", "before 1.0"),
            ("\"HKDF\"", "\"AESSIV\",\"XChaCha20Poly1305\"", "contradict"),
            ("1024", "1000", "scrypt"),
            ("1024", "1073741824", "scrypt"),
            ("AAAA", "?", "base64"),
            ("}", "", "damaged"),
        ] {
            assert!(refused(from, to).contains(says), "{to}: {}", refused(from, to));
        }
    }
}
