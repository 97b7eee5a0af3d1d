//! New files that hold keys.

use crate::place::sync_folder_of;
use std::fs::{File, remove_file};
use std::io::{ErrorKind, Result, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a file that this user alone reads. It is on the disk whole, and its name too where the system can say so, before anything is encrypted with it.
///
/// # Errors
/// `AlreadyExists`: a key is never replaced; the operating system's. Then there is no such file, but for one whose folder could not be synced: the key in it is whole, and a power cut may take its name.
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    // Half a key is none, and would be in the way of the next.
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| _ = remove_file(path))?;
    match sync_folder_of(path) {
        // Who may write to a folder and not read it cannot ask for that, and not each file system has it.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}
