//! The run's own corner of the file system: its `openssl.cnf` and, when it hosts a broker, that broker's socket.
//!
//! Servers read their configuration as root and compute as `www-data`, so both must be reachable by whoever a worker becomes. But a
//! stranger on the machine has no business here. So the outer folder can be passed through but not listed, and the inner one
//! has a name that cannot be guessed: who was not told the path does not find the `openssl.cnf`, which holds the run's token.
//!
//! The socket lies outside of the inner folder, for the kernel shows the path of every bound socket to everybody
//! (`/proc/net/unix`). Its path lets nobody in; the token does.

use crate::failure::{Exit, Failure};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The longest path that a Unix socket can have, its terminating zero included.
const SOCKET_PATH_MAX: usize = 108;

/// A folder that goes away with the run.
#[derive(Debug)]
pub(crate) struct Workspace {
    outer: TempDir,
    /// The inner folder's name.
    name: String,
    token: String,
}

impl Workspace {
    /// Makes it, below `TMPDIR` or `/tmp`.
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Result<Self, Failure> {
        let parent = if parent.as_os_str().len() + 64 > SOCKET_PATH_MAX { Path::new("/tmp") } else { parent };
        let fail = |error: std::io::Error| {
            Failure::new(Exit::Failed, format!("cannot make a folder in {}: {error}; set TMPDIR to a writable place", parent.display()))
        };
        let outer = tempfile::Builder::new().prefix("bywash-").tempdir_in(parent).map_err(fail)?;
        let (name, token) = (random_token().map_err(fail)?, random_token().map_err(fail)?);
        let workspace = Self { outer, name, token };
        fs::create_dir(workspace.inner()).map_err(fail)?;
        for folder in [workspace.outer.path(), &workspace.inner()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).map_err(fail)?;
        }
        Ok(workspace)
    }

    /// The run's 128-bit name, which its private broker demands of every client.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Where a private broker's socket goes. Everybody on the machine can learn this path.
    pub(crate) fn socket(&self) -> PathBuf {
        self.outer.path().join("socket")
    }

    /// Writes the run's `openssl.cnf`.
    pub(crate) fn write_conf(&self, text: &str) -> Result<PathBuf, Failure> {
        let path = self.inner().join("openssl.cnf");
        fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).map_err(|error| Failure::file("open to readers", &path, &error))?;
        Ok(path)
    }

    /// Writes a file that this user's processes alone can read.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.inner().join(name);
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(bytes)).map_err(|error| Failure::file("write", &path, &error))?;
        Ok(path)
    }

    fn inner(&self) -> PathBuf {
        self.outer.path().join(&self.name)
    }
}

fn random_token() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_can_pass_but_not_list_and_all_goes_away() {
        let workspace = Workspace::new().unwrap();
        let conf = workspace.write_conf("x = 1").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(workspace.outer.path()), mode(&workspace.inner()), mode(&conf)), (0o711, 0o711, 0o644));
        assert_eq!(workspace.token().len(), 32);
        assert!(workspace.socket().as_os_str().len() < SOCKET_PATH_MAX);
        drop(workspace);
        assert!(!conf.exists());
    }

    #[test]
    fn what_the_kernel_shows_of_a_socket_leads_neither_to_the_token_nor_to_its_file() {
        let workspace = Workspace::new().unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(workspace.socket()).unwrap();
        let shown = fs::read_to_string("/proc/net/unix").unwrap();
        assert!(shown.contains(&*workspace.socket().to_string_lossy()), "the kernel shows it indeed");
        assert!(!shown.contains(workspace.token()) && !shown.contains(&workspace.name));
        assert_ne!(workspace.token(), workspace.name);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = Workspace::within(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/nowhere") && error.contains("TMPDIR"), "{error}");
    }
}
