//! A program with borrowed rights, for tests that start one.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// Any user but root.
const OTHER: u32 = 65534;

/// A copy of the running program in that folder, which runs with another user's rights; `None`, with a word of it, where that cannot be made.
pub(crate) fn copy_with_borrowed_rights(folder: &Path) -> Option<PathBuf> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: only root can make a set-user-ID program of another user");
        return None;
    }
    let borrowed = folder.join("borrowed");
    std::fs::copy(std::env::current_exe().unwrap(), &borrowed).unwrap();
    chown(&borrowed, Some(OTHER), None).unwrap();
    set_permissions(&borrowed, Permissions::from_mode(0o4755)).unwrap();
    set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    Some(borrowed)
}
