//! One broker a socket: a locked file beside it, which the kernel unlocks when its broker dies, however it dies.

use bywash_core::{Error, Result};
use bywash_protocol::Listener;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The place held: socket and lock file are removed when it is dropped.
pub(crate) struct Place {
    socket: PathBuf,
    lock: PathBuf,
    _locked: std::fs::File,
}

impl Place {
    /// Takes the place and listens; a dead broker's socket is replaced.
    pub(crate) fn take(socket: &Path, mode: u32) -> Result<(Self, Listener)> {
        if let Some(parent) = socket.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            make(parent)?;
        }
        let mut lock = socket.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let file = hold(socket, &lock)?;
        // Nothing is left of a place that could not be taken; the lock is held until this returns.
        let listener = remove_stale(socket).and_then(|()| Listener::bind(socket)).inspect_err(|_| _ = std::fs::remove_file(&lock))?;
        let place = Self { socket: socket.to_owned(), lock, _locked: file };
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(mode))
            .map_err(|error| failed("set the mode of", socket, error))?;
        Ok((place, listener))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Still locked here, so no other broker can have taken the place in between.
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.lock);
    }
}

/// Makes a socket's folder, but not the one that it is to be in: `/run` is empty after a start of the machine, and a path that was mistyped leads nowhere.
fn make(folder: &Path) -> Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = folder.parent().unwrap_or(folder);
            Err(Error::Unavailable { what: format!("there is no folder {} for the socket's; check the path, or make it", above.display()) })
        }
        made => made.map_err(|error| failed("make the folder", folder, error)),
    }
}

fn hold(socket: &Path, lock: &Path) -> Result<std::fs::File> {
    loop {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file: OwnedFd =
            rustix::fs::open(lock, flags, Mode::from_raw_mode(0o600)).map_err(|error| failed("open the lock file", lock, error.into()))?;
        check_lock(lock, &file)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let mut file = std::fs::File::from(file);
        if locked.is_err() {
            return Err(taken(socket, &mut file));
        }
        // Its last holder may have removed the file between our opening and locking it; then we hold a lock on nothing.
        if same_file(&file, lock) {
            let written = file.set_len(0).and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
            written.map_err(|error| failed("write the lock file", lock, error))?;
            return Ok(file);
        }
    }
}

/// In a folder that others may write, they may have put anything there before us.
fn check_lock(lock: &Path, file: &OwnedFd) -> Result<()> {
    let stat = rustix::fs::fstat(file).map_err(|error| failed("look at the lock file", lock, error.into()))?;
    let ours = stat.st_uid == rustix::process::geteuid().as_raw();
    if ours && stat.st_nlink <= 1 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        return Ok(());
    }
    let what =
        format!("{} is not this user's own file; remove it, or choose a --socket in a folder that only you may write", lock.display());
    Err(Error::Unavailable { what })
}

fn same_file(file: &std::fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

fn taken(socket: &Path, file: &mut std::fs::File) -> Error {
    let mut pid = String::new();
    // A file of the same user's, but no more of it is believed than that it may be a number.
    let read = file.take(16).read_to_string(&mut pid);
    let who = match pid.trim().parse::<u32>() {
        Ok(pid) if read.is_ok() => format!("the broker with pid {pid}"),
        _ => "another broker".to_owned(),
    };
    let what = format!("{} is in use by {who}; stop it first, or give this one another --socket", socket.display());
    Error::Unavailable { what }
}

/// We hold the lock, so a socket that is there belongs to a dead broker. Anything but a socket is somebody's file and stays.
fn remove_stale(socket: &Path) -> Result<()> {
    match std::fs::symlink_metadata(socket) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("look at", socket, error)),
        Ok(meta) if meta.file_type().is_socket() => {
            std::fs::remove_file(socket).map_err(|error| failed("replace the stale", socket, error))
        }
        Ok(_) => Err(Error::Unavailable { what: format!("{} exists and is not a socket; choose another --socket", socket.display()) }),
    }
}

fn failed(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::Unavailable { what: format!("cannot {what} {}: {error}", path.display()) }
}
