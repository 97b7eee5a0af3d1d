//! Keys on their way into the vault.

use super::token::{self, TokenArgs};
use crate::failure::{Exit, Failure};
use bywash_core::SecretBytes;
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest key file read, in bytes; an RSA-4096 key with its certificates has less.
const BYTES_MAX: usize = 256 << 10;

/// Reads a private key, as PKCS#8.
pub(super) fn read(from: &str, passphrase: Option<&Path>, token: &TokenArgs) -> Result<SecretBytes, Failure> {
    if token::is_uri(from) {
        return token::read(from, token);
    }
    let passphrase = passphrase.map(|file| first_line("a passphrase", file)).transpose()?;
    let file = if from == "-" { contents(std::io::stdin().lock()) } else { File::open(from).and_then(contents) };
    let file = file.map_err(|error| Failure::file("read", Path::new(from), &error))?;
    bywash_vault::source::to_pkcs8(&file, passphrase.as_deref()).map_err(|why| Failure::failed(format!("the key in {from}: {why}")))
}

fn contents(file: impl Read) -> std::io::Result<SecretBytes> {
    // All the room at once: a vector that grows leaves copies behind.
    let mut bytes = Vec::with_capacity(BYTES_MAX);
    let read = file.take(BYTES_MAX as u64).read_to_end(&mut bytes);
    let bytes = SecretBytes::from(bytes);
    read.map(|_| bytes)
}

/// The first line of a file that nobody else may read: a passphrase, a PIN.
pub(crate) fn first_line(what: &str, path: &Path) -> Result<SecretBytes, Failure> {
    let failed = |error: &std::io::Error| Failure::file("read", path, error);
    let file = File::open(path).map_err(|error| failed(&error))?;
    let stat = fstat(&file).map_err(|error| failed(&error.into()))?;
    if FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_mode & 0o006 != 0 {
        let why = format!("{} holds {what} and is open to everybody; `chmod 600` it", path.display());
        return Err(Failure::new(Exit::Permission, why));
    }
    let text = contents(file).map_err(|error| failed(&error))?;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(Failure::config(format!("{}: {what} is expected in its first line, which is empty", path.display())));
    }
    Ok(line.into())
}
