//! Keys on their way into the vault.

use crate::failure::Failure;
use bywash_core::SecretBytes;
use std::io::Read;
use std::path::Path;

/// Longest key file read, in bytes; an RSA-4096 key with its certificates has less.
const BYTES_MAX: u64 = 256 << 10;

/// Reads a private key, as PKCS#8.
pub(super) fn read(from: &str, passphrase: Option<&Path>) -> Result<SecretBytes, Failure> {
    let passphrase = passphrase.map(first_line).transpose()?;
    let file = if from == "-" { contents(std::io::stdin().lock()) } else { std::fs::File::open(from).and_then(contents) };
    let file = file.map_err(|error| Failure::file("read", Path::new(from), &error))?;
    bywash_vault::source::to_pkcs8(&file, passphrase.as_deref()).map_err(|why| Failure::failed(format!("the key in {from}: {why}")))
}

fn contents(file: impl Read) -> std::io::Result<SecretBytes> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// The first line of a file, which is a passphrase.
pub(crate) fn first_line(path: &Path) -> Result<SecretBytes, Failure> {
    let file = std::fs::File::open(path).and_then(contents).map_err(|error| Failure::file("read", path, &error))?;
    let line = file.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(Failure::config(format!("{}: a passphrase is expected in its first line, which is empty", path.display())));
    }
    Ok(line.into())
}
