//! `bywash encrypt`, `decrypt`, `info`, `rekey`, `fsck`, `keygen`, `mount` and `umount`: files that only their readers read.
//!
//! | module | what it knows |
//! |---|---|
//! | [`keys`], [`descriptor`], [`asked`] | passphrases, key files, recipients and identities as the command line names them; a passphrase that is typed |
//! | [`tree`] | which files are meant, and where each goes |
//! | [`stream`] | stdin and stdout instead of files |
//! | [`engines`] | who computes |
//! | [`work`] | many files at once, progress, the report |
//! | [`removal`] | sources that go once their results are there |
//! | [`volume`], [`daemon`], [`private`] | a volume mounted: from here, from a process of its own, for one program alone |
//! | [`hooked`] | a volume for one program alone, without a mount |
//! | [`clear`] | what would be clear text beside its ciphertext |
//! | [`stored`] | what such a program wrote last, where there is no room for it |
//! | [`encrypt`], [`decrypt`], [`info`], [`rekey`], [`fsck`], [`keygen`], [`mount`], [`umount`] | the commands |

mod asked;
mod clear;
mod daemon;
pub(crate) mod decrypt;
mod descriptor;
pub(crate) mod encrypt;
mod engines;
pub(crate) mod fsck;
pub(crate) mod hooked;
pub(crate) mod info;
pub(crate) mod keygen;
mod keys;
pub(crate) mod mount;
pub(crate) mod private;
pub(crate) mod rekey;
mod removal;
pub(crate) mod stored;
mod stream;
mod tree;
pub(crate) mod umount;
mod volume;
mod work;

pub(crate) use keys::KeyArgs;

use crate::failure::{Exit, Failure};
use crate::shown::Shown;
use bywash_client::Client;
use bywash_files::disk::{Access, Disk, FolderJournals, Journals};
use bywash_files::place::Spot;
use bywash_files::{Error, Header};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// With less room than this, in bytes, on a file system nothing more is tried there.
const ROOM_BYTES: u64 = 1 << 20;
/// What encrypted files end in.
const SUFFIX: &str = "bywash";

/// A client as the environment says, which needs no broker.
fn client() -> Result<Client, Failure> {
    Ok(Client::new(bywash_client::Config::from_env()?))
}

/// What stopped the work on a file, with the exit code for its cause.
fn failure(path: &Path, error: &Error) -> Failure {
    let exit = match error {
        Error::WrongPassphrase | Error::NoKeyFits { .. } => Exit::NoKey,
        Error::NotEncrypted | Error::DamagedArmor { .. } | Error::DamagedHeader { .. } | Error::Truncated { .. } | Error::Damaged(_) => {
            Exit::Damaged
        }
        Error::Io(error) => return io_failure(path, error),
        _ => Exit::Failed,
    };
    Failure::new(exit, format!("{}: {error}", path.shown()))
}

/// What stopped the work on a file: what its result has no room for, or nobody takes, is said of the result.
fn failure_between(source: &Path, target: &Path, error: &Error) -> Failure {
    match error {
        Error::Io(error) if is_of_result(error.kind()) => io_failure(target, error),
        error => failure(source, error),
    }
}

/// Whether only what is written to fails so.
fn is_of_result(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge | ErrorKind::BrokenPipe)
}

/// What the operating system refused, with the way out.
fn io_failure(path: &Path, error: &std::io::Error) -> Failure {
    let (exit, way_out) = match error.kind() {
        ErrorKind::PermissionDenied => (Exit::Permission, "mend its permissions, or choose another place"),
        ErrorKind::ReadOnlyFilesystem => (Exit::Permission, "choose another place (a volume on it can be mounted with --read-only)"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (Exit::Failed, "free some, or choose another place; its source is as it was"),
        ErrorKind::InvalidFilename => {
            (Exit::Failed, "with .bywash it has at most 255 bytes: rename it, or choose a shorter one for this file alone with -o")
        }
        ErrorKind::AlreadyExists => (Exit::Failed, "give --force to replace it, or choose another name with -o"),
        ErrorKind::NotADirectory => (Exit::Failed, "choose another place, or remove what is there"),
        ErrorKind::InvalidInput => (Exit::Failed, "choose another name with -o"),
        ErrorKind::ResourceBusy => (Exit::Failed, "try again when it is closed"),
        ErrorKind::BrokenPipe => (Exit::Failed, "whoever read it went away"),
        ErrorKind::NotFound => (Exit::Failed, "check the path"),
        ErrorKind::UnexpectedEof => (Exit::Failed, "it became shorter while it was read; try again when nobody writes to it"),
        // Not among the stable kinds.
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            (Exit::Failed, "its symbolic links lead in a circle, or it is one where none is followed; name the file itself")
        }
        _ => (Exit::Failed, "check the path and its file system"),
    };
    let failure = Failure::new(exit, format!("{}: {error}; {way_out}", path.shown()));
    let is_for_all = match error.kind() {
        ErrorKind::QuotaExceeded => true,
        // What has no room for a large file may have some for the next.
        ErrorKind::StorageFull => bywash_files::place::room(path).is_none_or(|room| room < ROOM_BYTES),
        _ => false,
    };
    Failure { is_for_all, ..failure }
}

/// Keeps writers away from a file, or all others from who writes to it, and then, so that none makes it in between, looks for the journal of one that was interrupted.
fn lock_and_look(file: &File, access: Access, spot: Spot<'_>, header: &Header) -> Result<Option<FolderJournals>, Error> {
    Disk::lock(file, access)?;
    let journals = FolderJournals::beside(spot)?;
    Ok(journals.find(header.salt())?.map(|_| journals))
}

/// A file of which what its bytes say is not all.
fn left_a_journal(path: &Path) -> Failure {
    let why = "its writer was interrupted and left a journal; run `bywash fsck --recover` first";
    Failure::new(Exit::Damaged, format!("{}: {why}", path.shown()))
}

/// What is there where a result is to be, and is not replaced by one.
fn is_no_file(target: &Path) -> Failure {
    let why = "it is there already and no regular file, which no result replaces; choose another name with -o";
    Failure::failed(format!("{}: {why}", target.shown()))
}

/// A result that is there already, and is not what this run would make.
fn is_other(target: &Path) -> Failure {
    let why = "it is there already, and its time or length is not that of this source; give --force to replace it, or choose another name with -o";
    Failure::failed(format!("{}: {why}", target.shown()))
}
