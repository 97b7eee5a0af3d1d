//! A volume as the commands have it: opened, mounted, and what can stand in the way of that.

use super::keys::KeyArgs;
use super::work::told;
use super::{client, failure, io_failure};
use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use bywash_client::Client;
use bywash_core::SecretBytes;
use bywash_files::Keyring;
use bywash_files::leftover::{GOCRYPTFS_FILE, Leftover, is_key_file, is_unfinished};
use bywash_files::place::{Draft, copy_metadata, open_locked, open_regular, sync_folder_of};
use bywash_mount::format::Format;
use bywash_mount::gocryptfs::{self, Config, Gocryptfs, config::CONFIG_BYTES_MAX};
use bywash_mount::native::{FOLDER_FILE, JOURNALS};
use bywash_mount::volume::{is_volume, is_whole_volume};
use bywash_mount::{MountOptions, Mounted, Native, Volume, mount};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is in a folder that gocryptfs shows encrypted (`gocryptfs -reverse`), and that is not.
const GOCRYPTFS_REVERSE: &str = ".gocryptfs.reverse.conf";
/// The identity of a folder in one.
const GOCRYPTFS_FOLDER: &str = "gocryptfs.diriv";

/// What opens a volume, and does: the volume file's text, or gocryptfs' passphrase.
pub(super) fn secret(folder: &Path, keys: &KeyArgs) -> Result<SecretBytes, Failure> {
    if !is_gocryptfs(folder) {
        return Ok(open(folder, &keys.keyring(&client()?)?)?.secret().clone());
    }
    let passphrase = keys.passphrase()?;
    unlock(folder, &passphrase, &client()?)?;
    Ok(passphrase)
}

/// Where the volume for one program is, without links in its path.
pub(super) fn find(folder: &Path) -> Result<PathBuf, Failure> {
    folder.canonicalize().map_err(|error| {
        let way_out = "check the path; `bywash mount --init FOLDER` makes an empty folder a volume";
        Failure::new(Exit::RunFailed, format!("--files {}: {error}; {way_out}", folder.shown()))
    })
}

/// Whether a folder is a volume of gocryptfs.
pub(super) fn is_gocryptfs(folder: &Path) -> bool {
    !is_volume(folder) && folder.join(GOCRYPTFS_FILE).is_file()
}

/// Whether a folder is a volume, and not one that a copy of the file with a volume's key was put into. A volume of gocryptfs in which names are sealed has its root's identity as well.
pub(super) fn is_whole(folder: &Path) -> bool {
    let is_bare = || !config(folder).is_ok_and(|config| config.has_folder_ids());
    is_whole_volume(folder) || (is_gocryptfs(folder) && (folder.join(GOCRYPTFS_FOLDER).is_file() || is_bare()))
}

/// Whether the file with a volume's key is in a folder.
pub(super) fn has_key(folder: &Path) -> bool {
    is_volume(folder) || is_gocryptfs(folder)
}

/// Whether a file is that, or one that such files are left as.
pub(super) fn is_part(name: &OsStr) -> bool {
    is_key_file(name) || is_unfinished(name)
}

/// Whether a folder is one within a volume.
pub(super) fn is_folder_of_one(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == JOURNALS) || folder.join(GOCRYPTFS_FOLDER).is_file() || folder.join(FOLDER_FILE).is_file()
}

/// What is said of a folder with a volume's key, but not its identity, and with more in it than files of ours.
pub(super) fn suspect(folder: &Path) -> Failure {
    let why = "a volume's key is in it and not the volume's identity (.bywash-folder, gocryptfs.diriv), so only what ends in .bywash was looked at";
    Failure::failed(format!("{}: {why}; if it is a volume, restore that from a copy", folder.shown()))
}

/// Whether the volume is meant by a folder that is named: with -R, one that only such a copy was put into is gone through.
pub(super) fn is_meant(folder: &Path, is_recursive: bool) -> bool {
    is_whole(folder) || (!is_recursive && has_key(folder))
}

/// Opens a volume of gocryptfs.
pub(super) fn unlock(folder: &Path, passphrase: &[u8], client: &Client) -> Result<Gocryptfs, Failure> {
    let (path, bytes) = read_config(folder)?;
    let opened = Config::parse(&bytes).and_then(|config| Gocryptfs::unlock(&config, passphrase, client));
    opened.map_err(|error| config_failure(&path, &error))
}

/// What a volume of gocryptfs is sealed with.
pub(super) fn config(folder: &Path) -> Result<Config, Failure> {
    let (path, bytes) = read_config(folder)?;
    Config::parse(&bytes).map_err(|error| config_failure(&path, &error))
}

/// Gives a volume of gocryptfs another passphrase; the file that has it. Nothing but this file has the volume's key, so what takes its place is tried first, and replaces nothing but what was
/// read.
pub(super) fn exchange_passphrase(folder: &Path, old: &[u8], new: &[u8], client: &Client) -> Result<PathBuf, Failure> {
    let path = folder.join(GOCRYPTFS_FILE);
    let failed = |error: io::Error| io_failure(&path, &error);
    let draft = Draft::new(&path).map_err(failed)?;
    if path.is_symlink() {
        let why = "it is a symbolic link, and what it leads to may be another volume's; `gocryptfs -passwd -config` names the file itself";
        return Err(Failure::failed(format!("{}: {why}", path.shown())));
    }
    // gocryptfs makes it such that nobody writes to it.
    let (file, metadata) = open_locked(&path, false, false).map_err(failed)?;
    if metadata.nlink() > 1 {
        return Err(several_names(&path));
    }
    let bytes = contents(&file).map_err(failed)?;
    let opens = |text: &[u8]| Config::parse(text).and_then(|config| Gocryptfs::unlock(&config, new, client));
    let text = match Config::with_passphrase(&bytes, old, new, client) {
        // An earlier run was interrupted after it was done.
        Err(gocryptfs::Error::WrongPassphrase) if opens(&bytes).is_ok() => bytes,
        text => text.map_err(|error| config_failure(&path, &error))?,
    };
    opens(&text).map_err(|error| config_failure(&path, &error))?;
    let write = || {
        draft.file.write_all_at(&text, 0)?;
        copy_metadata(&file, &metadata, &draft.file)?;
        draft.file.sync_all()
    };
    write().and_then(|()| draft.replace(&path, &file, &metadata)).and_then(|()| sync_folder_of(&path)).map_err(failed)?;
    Ok(path)
}

/// Removes what a run that was killed has left beside gocryptfs' key: copies that other passphrases open.
pub(super) fn remove_leftovers(config: &Path) -> Result<(), Failure> {
    let left = Leftover::remove_all(config, &HashSet::new()).map_err(|error| io_failure(config, &error))?;
    told(left).pop().map_or(Ok(()), |(_, failure)| Err(failure))
}

/// Why a file is not replaced by another.
pub(super) fn several_names(path: &Path) -> Failure {
    let why = "it has several names, and the file under the others would open as before; leave one of them";
    Failure::failed(format!("{}: {why}", path.shown()))
}

fn read_config(folder: &Path) -> Result<(PathBuf, Vec<u8>), Failure> {
    let path = folder.join(GOCRYPTFS_FILE);
    let read = open_regular(&path, true).and_then(|(file, _)| contents(&file));
    read.map(|bytes| (path.clone(), bytes)).map_err(|error| io_failure(&path, &error))
}

/// One byte more than is taken is enough to see that there are too many.
fn contents(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn config_failure(path: &Path, error: &gocryptfs::Error) -> Failure {
    let exit = match error {
        gocryptfs::Error::WrongPassphrase => Exit::NoKey,
        gocryptfs::Error::Damaged { .. } => Exit::Damaged,
        _ => Exit::Failed,
    };
    Failure::new(exit, format!("{}: {error}", path.shown()))
}

/// What the volume file of a folder says.
pub(super) fn open(folder: &Path, keyring: &Keyring) -> Result<Volume, Failure> {
    Volume::open(&client()?, folder, keyring).map_err(|error| match error {
        bywash_files::Error::Io(error) if error.kind() == ErrorKind::NotFound && folder.join(GOCRYPTFS_REVERSE).is_file() => {
            let why = "it is no volume but what gocryptfs shows as one: what is in it is not encrypted";
            let way_out = "`gocryptfs -reverse` shows it encrypted somewhere else, and that can be mounted with --read-only";
            Failure::failed(format!("{}: {why}; {way_out}", folder.shown()))
        }
        bywash_files::Error::Io(error) if error.kind() == ErrorKind::NotFound => {
            let way_out = format!("make one with `bywash mount --init -p {}`", folder.shown());
            Failure::failed(format!("{}: {error}; check the path, or {way_out}", folder.shown()))
        }
        error => failure(&folder.join(bywash_mount::VOLUME_FILE), &error),
    })
}

/// Why a volume cannot be read: what is on the disk is not what was written there, or the operating system's reason.
pub(super) fn damaged_or_refused(folder: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::InvalidData => Failure::new(Exit::Damaged, format!("{}: {error}", folder.shown())),
        _ => io_failure(folder, error),
    }
}

/// A volume's folder, before anything is mounted over it.
pub(super) fn root(folder: &Path) -> Result<OwnedFd, Failure> {
    bywash_mount::open_root(folder).map_err(|error| io_failure(folder, &error))
}

/// What the files of a volume are like, whose folder `root` is, and which is called `folder`.
pub(super) fn format(root: &OwnedFd, folder: &Path, secret: SecretBytes, is_read_only: bool) -> Result<Arc<dyn Format>, Failure> {
    let client = client()?;
    if is_gocryptfs(folder) {
        return Ok(Arc::new(unlock(folder, &secret, &client)?));
    }
    let volume = Volume::parse(secret).map_err(|error| failure(folder, &error))?;
    Ok(Arc::new(Native::new(&client, &volume, root.as_fd(), is_read_only).map_err(|error| damaged_or_refused(folder, &error))?))
}

/// Mounts a volume whose folder `root` is, and which is called `folder`.
pub(super) fn mount_at(
    root: OwnedFd,
    folder: &Path,
    secret: SecretBytes,
    target: &Path,
    options: &MountOptions,
) -> Result<Mounted, Failure> {
    let format = format(&root, folder, secret, options.is_read_only)?;
    mount(root, format, target, options).map_err(|error| refused(folder, target, &error))
}

/// The same over its own folder, in a namespace of this process: who is left there when it is gone finds nothing, and can write nothing where the ciphertext is.
pub(super) fn mount_over_itself(root: OwnedFd, folder: &Path, secret: SecretBytes, options: &MountOptions) -> Result<Mounted, Failure> {
    let format = format(&root, folder, secret, options.is_read_only)?;
    let mounted = bywash_mount::private::cover(folder).and_then(|()| mount(root, format, folder, options));
    mounted.map_err(|error| refused(folder, folder, &error))
}

fn refused(folder: &Path, target: &Path, error: &io::Error) -> Failure {
    let (folder, target) = (folder.shown(), target.shown());
    if let Err(device) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        let way_out = match device.kind() {
            ErrorKind::PermissionDenied => "let users read and write it (chmod 666 /dev/fuse)",
            _ => "the kernel needs FUSE (modprobe fuse), and a container the device /dev/fuse",
        };
        let way_out =
            format!("{way_out}; or have one program see the files without a mount: `bywash run --files {folder} --files-by hook -- CMD`");
        return Failure::new(Exit::Permission, format!("nothing can be mounted here: /dev/fuse: {device}; {way_out}"));
    }
    match error.kind() {
        ErrorKind::InvalidData => Failure::new(Exit::Damaged, format!("{folder}: {error}")),
        ErrorKind::NotFound => {
            let way_out = "install it (Debian: apt install fuse3), or mount as root";
            Failure::new(Exit::Permission, format!("{target}: users mount with fusermount3, which is not there ({error}); {way_out}"))
        }
        ErrorKind::PermissionDenied => Failure::new(Exit::Permission, format!("{target}: {error}; choose another place, or mount as root")),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            let way_out = "make some on the disk of the volume, or mount it with --read-only";
            Failure::failed(format!("{folder}: no room to mount it ({error}); {way_out}"))
        }
        _ => Failure::failed(format!("{target}: cannot mount here: {}; choose another place", error.to_string().trim())),
    }
}
