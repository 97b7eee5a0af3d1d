//! What files are made with and opened with. Keys stay on this side: they are wiped when Python drops the object, and no part of one is ever shown.

use crate::engines::client;
use crate::error::{At, Failure, Result, detached};
use bywash_client::Client;
use bywash_core::{KeyReference, SecretBytes};
use bywash_files::ssh::{self, SshKey};
use bywash_files::{Argon2Cost, Identity, KEY_BYTES, Keyring, Lock, Recipient, nonce, write_secret};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

/// Longest file of keys that is read, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// What an identity's text begins with.
const IDENTITY: &str = "BYWASH-IDENTITY-";
/// And a recipient's.
const RECIPIENT: &str = "bywash-";

#[pyclass(frozen, module = "bywash")]
pub(crate) struct Keys {
    passphrase: Option<SecretBytes>,
    keys: Vec<Zeroizing<[u8; KEY_BYTES]>>,
    recipients: Vec<Recipient>,
    identities: usize,
    keyring: Keyring,
    /// Made when a file is first encrypted: that costs time, once for all files.
    locks: OnceLock<Arc<Vec<Lock>>>,
    /// The files that it was read from.
    files: Vec<PathBuf>,
}

#[pymethods]
impl Keys {
    #[new]
    #[pyo3(signature = (*, passphrase=None, passphrase_file=None, key=None, key_file=None, recipients=Vec::new(), identities=Vec::new()))]
    fn new(
        py: Python<'_>,
        passphrase: Option<Bound<'_, PyAny>>,
        passphrase_file: Option<PathBuf>,
        key: Option<Bound<'_, PyAny>>,
        key_file: Option<PathBuf>,
        recipients: Vec<Bound<'_, PyAny>>,
        identities: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let given = Given {
            passphrase: passphrase.map(|given| secret(&given)).transpose()?,
            passphrase_file,
            key: key.map(|given| bytes_of(&given)).transpose()?,
            key_file,
            recipients: recipients.iter().map(|given| Source::of(RECIPIENT, given)).collect::<PyResult<_>>()?,
            identities: identities.iter().map(|given| Source::of(IDENTITY, given)).collect::<PyResult<_>>()?,
        };
        detached(py, || given.read())
    }

    fn __repr__(&self) -> String {
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            number => Some(format!("{number} {many}")),
        };
        let parts = [
            count(usize::from(self.passphrase.is_some()), "passphrase", ""),
            count(self.keys.len(), "key", "keys"),
            count(self.recipients.len(), "recipient", "recipients"),
            count(self.identities, "identity", "identities"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("<bywash.Keys: {}>", if parts.is_empty() { "none".to_owned() } else { parts.join(", ") })
    }
}

impl Keys {
    /// What opens files.
    pub(crate) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// What files are made with.
    pub(crate) fn locks(&self) -> Result<Arc<Vec<Lock>>> {
        if let Some(locks) = self.locks.get() {
            return Ok(locks.clone());
        }
        // Made with no lock held, for that takes long and a process that forks meanwhile would hold it for ever.
        let passphrase = self.passphrase.iter().map(|passphrase| Lock::passphrase(passphrase, Argon2Cost::default()));
        let keys = self.keys.iter().map(|key| Ok(Lock::key_file(key)));
        let locks: Vec<Lock> =
            passphrase.chain(keys).chain(self.recipients.iter().map(Lock::recipient)).collect::<bywash_files::Result<_>>()?;
        if locks.is_empty() {
            return Err(bad("nobody could open it: give a passphrase, a key, a key file or a recipient"));
        }
        let locks = Arc::new(locks);
        // Another thread's are as good.
        let _ = self.locks.set(locks.clone());
        Ok(locks)
    }

    /// Whether a file is one that this was read from.
    pub(crate) fn is_file_of(&self, metadata: &Metadata) -> bool {
        // Looked at anew: what has the name now is the user's key, and a number is given to another file once a file is gone.
        let now = self.files.iter().filter_map(|path| std::fs::metadata(path).ok());
        now.into_iter().any(|file| (file.dev(), file.ino()) == (metadata.dev(), metadata.ino()))
    }
}

/// What [`Keys`] are made of, as Python gave it; files and the vault are read later, while Python's other threads run.
struct Given {
    passphrase: Option<Zeroizing<Vec<u8>>>,
    passphrase_file: Option<PathBuf>,
    key: Option<Zeroizing<Vec<u8>>>,
    key_file: Option<PathBuf>,
    recipients: Vec<Source>,
    identities: Vec<Source>,
}

/// A recipient or identity itself, one in the vault, or a file of them.
enum Source {
    Text(Zeroizing<String>),
    File(PathBuf),
}

impl Source {
    /// What one of these begins with is told apart from a path. A path may be shown in an error, so an identity never is one.
    fn of(begin: &str, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(text) = given.extract::<String>().map(Zeroizing::new) else { return given.extract().map(Self::File) };
        let itself = text.trim();
        if begin == RECIPIENT && itself.starts_with(IDENTITY) {
            return Err(bad("one of the recipients is an identity, which is secret; give its public half").into_exception(given.py()));
        }
        let is_of_ssh = begin == RECIPIENT && ssh::is_public(itself);
        match is_of_ssh || [begin, KeyReference::SCHEME].iter().any(|begin| itself.starts_with(begin)) {
            true => Ok(Self::Text(Zeroizing::new(itself.to_owned()))),
            false => given.extract().map(Self::File),
        }
    }
}

impl Given {
    fn read(self) -> Result<Keys> {
        let listed = self.recipients.iter().chain(&self.identities).filter_map(|source| match source {
            Source::File(path) => Some(path),
            Source::Text(_) => None,
        });
        let named = self.passphrase_file.iter().chain(&self.key_file).chain(listed);
        // Whatever folder the process works in later.
        let files = named.filter_map(|path| std::path::absolute(path).ok()).collect();
        let passphrase = match (self.passphrase, self.passphrase_file) {
            (Some(_), Some(_)) => return Err(bad("give passphrase or passphrase_file, not both")),
            (Some(given), None) => Some(SecretBytes::from(&given[..])),
            (None, Some(path)) => Some(first_line(&path)?),
            (None, None) => None,
        };
        if passphrase.as_ref().is_some_and(|passphrase| passphrase.is_empty()) {
            return Err(bad("an empty passphrase protects nothing"));
        }
        let given = self.key.iter().map(|given| checked(given, "it"));
        let read = self.key_file.iter().map(|path| read(path).and_then(|bytes| checked(&bytes, &path.display().to_string())));
        let keys: Vec<_> = given.chain(read).collect::<Result<_>>()?;
        let recipients: Vec<Vec<Recipient>> = self.recipients.iter().map(recipients_of).collect::<Result<_>>()?;
        let identities: Vec<Vec<Identity>> = self.identities.iter().map(identities_of).collect::<Result<_>>()?;
        let mut keyring = Keyring::new();
        passphrase.iter().for_each(|passphrase| keyring.add_passphrase(passphrase.clone()));
        keys.iter().for_each(|key| keyring.add_key_file(key));
        let count = identities.iter().map(Vec::len).sum();
        identities.into_iter().flatten().for_each(|identity| keyring.add_identity(identity));
        let recipients = recipients.into_iter().flatten().collect();
        Ok(Keys { passphrase, keys, recipients, identities: count, keyring, locks: OnceLock::new(), files })
    }
}

/// Makes an identity in a new file that this user alone reads; its recipient.
#[pyfunction]
#[pyo3(signature = (path, *, hybrid=false))]
pub(crate) fn generate_identity(py: Python<'_>, path: PathBuf, hybrid: bool) -> PyResult<String> {
    detached(py, || {
        let identity = Identity::generate(hybrid)?;
        // Only those that were not made here have no text.
        let secret = identity.to_secret_text().unwrap_or_default();
        let recipient = identity.recipient().to_string();
        let text = Zeroizing::new([b"# recipient: ", recipient.as_bytes(), b"\n", &secret[..], b"\n"].concat());
        write_secret(&path, &text).at(&path)?;
        Ok(recipient)
    })
}

/// Makes a key file, 32 random bytes, that this user alone reads.
#[pyfunction]
pub(crate) fn generate_key_file(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    detached(py, || {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        nonce::random(&mut *key)?;
        write_secret(&path, &*key).at(&path)
    })
}

fn bad(message: &str) -> Failure {
    Failure::Named("BadArgument", message.to_owned())
}

/// A passphrase as it is given: text, or whatever holds bytes. Python keeps its own copy as long as it likes.
fn secret(given: &Bound<'_, PyAny>) -> PyResult<Zeroizing<Vec<u8>>> {
    match given.cast::<PyString>() {
        // Python's own error would hold the passphrase.
        Ok(text) => match text.to_cow() {
            Ok(text) => Ok(Zeroizing::new(text.as_bytes().to_vec())),
            Err(_) => Err(bad("the passphrase has what is no character of Unicode; give its bytes (os.fsencode makes them)")
                .into_exception(given.py())),
        },
        Err(_) => bytes_of(given),
    }
}

/// A copy of what holds bytes.
pub(crate) fn bytes_of(given: &Bound<'_, PyAny>) -> PyResult<Zeroizing<Vec<u8>>> {
    if let Ok(buffer) = PyBuffer::<u8>::get(given) {
        return buffer.to_vec(given.py()).map(Zeroizing::new);
    }
    // Of another type than unsigned bytes, as ctypes and Arrow have them.
    let copy = PyMemoryView::from(given)?.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    Ok(Zeroizing::new(copy.as_bytes().to_vec()))
}

fn checked(bytes: &[u8], what: &str) -> Result<Zeroizing<[u8; KEY_BYTES]>> {
    let not = |_| bad(&format!("{what} is no key: it has {} bytes, not {KEY_BYTES}; generate_key_file makes one", bytes.len()));
    <[u8; KEY_BYTES]>::try_from(bytes).map(Zeroizing::new).map_err(not)
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    File::open(path).and_then(|file| file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)).at(path)?;
    Ok(bytes)
}

fn first_line(path: &Path) -> Result<SecretBytes> {
    let text = read(path)?;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(line.strip_suffix(b"\r").unwrap_or(line).into())
}

/// What `bywash:NAME` means, a key in the broker's vault.
fn in_vault<T>(given: &str, find: impl FnOnce(&Client, &str) -> bywash_files::Result<T>) -> Result<T> {
    Ok(find(&client(None)?, given.strip_prefix(KeyReference::SCHEME).unwrap_or(given))?)
}

/// A recipient itself, those in a file, or the one in the broker's vault.
fn recipients_of(given: &Source) -> Result<Vec<Recipient>> {
    let parse = |text: &str| text.parse::<Recipient>().map_err(Failure::from);
    match given {
        Source::Text(text) if text.starts_with(KeyReference::SCHEME) => {
            in_vault(text, Recipient::in_vault).map(|recipient| vec![recipient])
        }
        Source::Text(text) => parse(text).map(|recipient| vec![recipient]),
        Source::File(path) => each_line(path, "recipient", parse),
    }
}

/// An identity itself, those in a file, or the one in the broker's vault.
fn identities_of(given: &Source) -> Result<Vec<Identity>> {
    let parse = |text: &str| Identity::from_secret_text(text).map_err(Failure::from);
    match given {
        Source::Text(text) if text.starts_with(KeyReference::SCHEME) => in_vault(text, Identity::in_vault).map(|identity| vec![identity]),
        Source::Text(text) => parse(text).map(|identity| vec![identity]),
        Source::File(path) => match core::str::from_utf8(&read(path)?) {
            Ok(text) if ssh::is_private(text) => ssh_identity(path, text).map(|identity| vec![identity]),
            _ => each_line(path, "identity", parse),
        },
    }
}

/// SSH's key, which must not be encrypted: nobody is asked for its passphrase.
fn ssh_identity(path: &Path, text: &str) -> Result<Identity> {
    let named = |error: bywash_files::Error| bad(&format!("{}: {error}", path.display()));
    let key = SshKey::parse(text).map_err(named)?;
    match key.needs_passphrase().map_err(named)? {
        true => Err(bad(&format!("{}: it is encrypted; give a copy without a passphrase (`ssh-keygen -p -f COPY`)", path.display()))),
        false => key.identity(None).map_err(named),
    }
}

/// What the lines of a file are, but for empty ones and comments.
fn each_line<T>(path: &Path, what: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    let bytes = read(path)?;
    let text = core::str::from_utf8(&bytes).map_err(|_| bad(&format!("{}: it is no text", path.display())))?;
    let meant = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let parse = |(number, line): (usize, &str)| {
        parse(line.trim()).map_err(|failure| match failure {
            Failure::Files(error) => bad(&format!("{}:{number}: {error}", path.display())),
            other => other,
        })
    };
    let found: Vec<T> = meant.map(parse).collect::<Result<_>>()?;
    if found.is_empty() { Err(bad(&format!("{}: there is no {what} in it", path.display()))) } else { Ok(found) }
}
