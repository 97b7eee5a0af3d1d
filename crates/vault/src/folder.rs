//! The folder of a vault: one JSON file a key, mode 0600, written beside and renamed, so that a crash leaves the old or the new.

use base64ct::{Base64, Encoding};
use bywash_core::{Error, Result};
use bywash_protocol::keys::{KeyPolicy, KeyUse};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, Stat, flock, fstat, statat};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

use crate::seal::Sealed;

/// Longest file of a key, in bytes: some forty versions of an RSA-4096 key.
const RECORD_MAX: usize = 256 << 10;
/// How files end that are not written to their end.
const UNFINISHED: &str = "new";
/// How what we write begins: a key's file and the seal.
const BEGINNINGS: [&[u8]; 2] = [b"{\n  \"format\":", b"{\n  \"kdf\":"];

/// Bytes that stand in JSON as base64, wiped when dropped.
#[derive(Clone)]
pub(crate) struct Encoded(pub(crate) Zeroizing<Vec<u8>>);

impl core::fmt::Debug for Encoded {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

impl Serialize for Encoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&Zeroizing::new(Base64::encode_string(&self.0)))
    }
}

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let bytes = Base64::decode_vec(&text).map_err(|_| serde::de::Error::custom("not base64"))?;
        Ok(Self(bytes.into()))
    }
}

/// A key's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// 1.
    pub(crate) format: u32,
    /// What everybody may know, and a seal binds.
    pub(crate) about: About,
    /// In the order of `about.versions`.
    pub(crate) private: Vec<Private>,
}

/// What a key's file tells of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) created: u64,
    pub(crate) policy: Rules,
    /// The present key first.
    pub(crate) versions: Vec<AboutVersion>,
}

/// A [`KeyPolicy`] as it is stored. A seal binds these very bytes, so what came later is left out where it says nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    uids: Vec<u32>,
    uses: Vec<KeyUse>,
    rate: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gids: Vec<u32>,
}

impl From<KeyPolicy> for Rules {
    fn from(KeyPolicy { uids, gids, uses, rate }: KeyPolicy) -> Self {
        Self { uids, uses, rate, gids }
    }
}

impl From<Rules> for KeyPolicy {
    fn from(Rules { uids, uses, rate, gids }: Rules) -> Self {
        Self { uids, gids, uses, rate }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AboutVersion {
    pub(crate) made: u64,
    pub(crate) expires: Option<u64>,
    pub(crate) public: Encoded,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Private {
    /// PKCS#8 as it is.
    Plain(Encoded),
    /// PKCS#8, encrypted.
    Sealed(Sealed),
}

/// A folder that this process alone works on.
pub(crate) struct Folder {
    path: PathBuf,
    _locked: File,
}

pub(crate) fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::Config { place: path.display().to_string(), reason: format!("cannot {what}: {error}; check owner and mode") }
}

impl Folder {
    /// Takes a folder, made with mode 0700 where there is none.
    pub(crate) fn take(path: &Path) -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        if !path.exists() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|error| failed("make the folder of keys", path, &error))?;
        }
        let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed("look at", path, &error.into()))?;
        check(&stat, path, 0o022, "others may write there; `chmod go-w` it")?;
        let lock = path.join(".lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&lock, flags, Mode::from_raw_mode(0o600)).map_err(|error| failed("open", &lock, &error.into()))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let reason = "is in use by a running broker; leave --keys out, and the broker does it".into();
            return Err(Error::Config { place: path.display().to_string(), reason });
        }
        Ok(Self { path: path.to_owned(), _locked: file.into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.key"))
    }

    /// Every key's file, by name. Files that others may read are refused; those that a crash left half written are deleted.
    pub(crate) fn records(&self) -> Result<Vec<Record>> {
        let entries = std::fs::read_dir(&self.path).map_err(|error| failed("list", &self.path, &error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let ends = |path: &Path, wanted: &str| path.extension().is_some_and(|end| end == wanted);
        // Of ours alone: this may be somebody's folder of other keys, named by mistake.
        for path in paths.iter().filter(|path| ends(path, UNFINISHED) && is_ours(path)) {
            std::fs::remove_file(path).map_err(|error| failed("remove", path, &error))?;
        }
        paths.retain(|path| ends(path, "key"));
        paths.sort();
        paths.iter().map(|path| read(path)).collect()
    }

    /// Whether a key of this folder is encrypted.
    pub(crate) fn has_sealed(&self) -> Result<bool> {
        Ok(self.records()?.iter().any(|record| record.private.iter().any(|private| matches!(private, Private::Sealed(_)))))
    }

    pub(crate) fn write(&self, record: &Record) -> Result<()> {
        let path = self.file(&record.about.name);
        // A slice, not a vector: one that grows leaves copies of the keys behind.
        let mut text = Zeroizing::new(vec![0; RECORD_MAX]);
        let mut room = &mut text[..];
        serde_json::to_writer_pretty(&mut room, record).map_err(|_| Error::Config {
            place: path.display().to_string(),
            reason: "has too many old keys or rules; wait until some are over".into(),
        })?;
        let unused = room.len();
        write_whole(&path, &text[..RECORD_MAX - unused])
    }

    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let path = self.file(name);
        match std::fs::remove_file(&path) {
            // By somebody else: what was wanted.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| failed("remove", &path, &error)),
        }
    }

    pub(crate) fn sync(&self) -> Result<()> {
        sync(&self.path)
    }
}

fn read(path: &Path) -> Result<Record> {
    let text = read_own(path, 0o077, "others may read it; take the key for known to them, and `chmod 600` it if that does not matter")?;
    let damaged = |reason: String| Error::Config { place: path.display().to_string(), reason };
    let record: Record = serde_json::from_slice(&text).map_err(|error| damaged(where_damaged(&error)))?;
    let named = path.file_stem().is_some_and(|stem| stem == record.about.name.as_str());
    if record.format != 1 || !named || record.private.len() != record.about.versions.len() || record.private.is_empty() {
        return Err(damaged("is damaged, renamed, or written by a later release".into()));
    }
    Ok(record)
}

/// Where a file is damaged. Not how: the library's own words quote what stands there, and that may be a key.
pub(crate) fn where_damaged(error: &serde_json::Error) -> String {
    format!("is damaged in line {}, column {}", error.line(), error.column())
}

/// Reads a file that is this user's and has none of these mode bits. It is the file that was opened that is looked at, not what its name stands for then.
pub(crate) fn read_own(path: &Path, forbidden: u32, why: &str) -> Result<Zeroizing<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = rustix::fs::open(path, flags, Mode::empty()).and_then(|file| Ok((fstat(&file)?, file)));
    let (stat, file) = opened.map_err(|error| failed("read", path, &error.into()))?;
    check(&stat, path, forbidden, why)?;
    // All the room at once, as above.
    let mut text = Zeroizing::new(Vec::with_capacity(RECORD_MAX));
    let read = File::from(file).take(RECORD_MAX as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| failed("read", path, &error))?;
    if text.len() > RECORD_MAX {
        return Err(Error::Config {
            place: path.display().to_string(),
            reason: format!("is longer than {RECORD_MAX} bytes: it is none of ours"),
        });
    }
    Ok(text)
}

/// Whether a file begins as we write them, as far as it is there. One that is too short to tell has nothing of a key.
fn is_ours(path: &Path) -> bool {
    read_own(path, 0o077, "").is_ok_and(|text| BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)))
}

/// Refuses what belongs to another user, or has one of these mode bits.
fn check(stat: &Stat, path: &Path, forbidden: u32, why: &str) -> Result<()> {
    let refuse = |reason: String| Err(Error::Config { place: path.display().to_string(), reason });
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return refuse(format!("belongs to uid {}, not to this user; `chown` it", stat.st_uid));
    }
    if stat.st_mode & forbidden != 0 {
        return refuse(why.to_owned());
    }
    Ok(())
}

/// Writes a file of mode 0600 whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let beside = path.with_extension(UNFINISHED);
    // One that was left there would keep its mode.
    let _ = std::fs::remove_file(&beside);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let written = (|| {
        let mut file = File::from(rustix::fs::open(&beside, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(text)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    })();
    written.map_err(|error: std::io::Error| {
        // Part of a key, perhaps, where the disk is full.
        let _ = std::fs::remove_file(&beside);
        failed("write", path, &error)
    })?;
    path.parent().map_or(Ok(()), sync)
}

fn sync(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(|error| failed("sync", folder, &error))
}
