//! Which configuration file the user's programs would read without us.

use super::parse::{Conf, Source, System, parse};
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where distributions build `openssl.cnf` into the library, asked when there is no `openssl` command to tell.
const USUAL_PLACES: [&str; 5] = [
    "/usr/lib/ssl/openssl.cnf",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/openssl.cnf",
    "/usr/local/ssl/openssl.cnf",
    "/usr/local/etc/openssl/openssl.cnf",
];

/// The user's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserConf {
    /// Its file.
    pub(crate) path: PathBuf,
    /// Its content.
    pub(crate) conf: Conf,
}

/// Finds and reads it. `None` if there is none, which OpenSSL takes for an empty one.
pub(crate) fn user_conf() -> Result<Option<UserConf>, Failure> {
    match std::env::var_os("OPENSSL_CONF") {
        Some(name) if name.is_empty() => Ok(None),
        Some(name) => load(&std::path::absolute(&name).unwrap_or_else(|_| name.into()), "OPENSSL_CONF names").map(Some),
        None => match system_path() {
            Some(path) => load(&path, "OpenSSL reads").map(Some),
            None => Ok(None),
        },
    }
}

/// The file built into the system's OpenSSL, if it is there.
pub(crate) fn system_path() -> Option<PathBuf> {
    let told = openssl_dir().map(|folder| folder.join("openssl.cnf"));
    told.into_iter().chain(USUAL_PLACES.map(PathBuf::from)).find(|path| path.exists())
}

/// What `openssl version -d` says.
fn openssl_dir() -> Option<PathBuf> {
    let output = Command::new("openssl").args(["version", "-d"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(text.trim().strip_prefix("OPENSSLDIR:")?.trim().trim_matches('"')))
}

fn load(path: &Path, who: &str) -> Result<UserConf, Failure> {
    let text = System.read(path).map_err(|error| Failure::config(unreadable(path, who, &error)))?;
    let conf = parse(path, &text, &System).map_err(|error| {
        Failure::config(format!("{error}\nOpenSSL would refuse this file too: mend it, or run with OPENSSL_CONF= to do without it"))
    })?;
    Ok(UserConf { path: path.to_owned(), conf })
}

fn unreadable(path: &Path, who: &str, error: &std::io::Error) -> String {
    let way_out = match error.kind() {
        std::io::ErrorKind::PermissionDenied => format!("make it readable (chmod a+r {}), or point OPENSSL_CONF elsewhere", path.display()),
        _ => "create it, point OPENSSL_CONF at another file, or unset OPENSSL_CONF for the system's own".to_owned(),
    };
    format!("cannot read the configuration that {who}, {}: {error}\n{way_out}", path.display())
}
