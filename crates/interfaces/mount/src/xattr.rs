//! Extended attributes of lower entries, by a descriptor that may do nothing but name one.

use crate::lower::own_path;
use rustix::io::{Errno, Result};
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;

/// Longest value or list of extended attributes, in bytes.
const BYTES_MAX: usize = 1 << 16;
/// Most values are no longer.
const BYTES_FEW: usize = 256;

/// A value.
pub(crate) fn value(entry: BorrowedFd<'_>, name: &CStr) -> Result<Vec<u8>> {
    let path = own_path(entry);
    // The kernel asks every file that is written to for one, which hardly any has.
    let mut short = [0; BYTES_FEW];
    match rustix::fs::getxattr(&path, name, &mut short) {
        Err(Errno::RANGE) => {}
        outcome => return Ok(short[..outcome?].to_vec()),
    }
    let mut value = vec![0; BYTES_MAX];
    let len = rustix::fs::getxattr(&path, name, &mut value[..])?;
    value.truncate(len);
    Ok(value)
}

/// All names.
pub(crate) fn names(entry: BorrowedFd<'_>) -> Result<Vec<CString>> {
    let mut names = vec![0; BYTES_MAX];
    let len = rustix::fs::listxattr(own_path(entry), &mut names[..])?;
    let each = names[..len].split_inclusive(|byte| *byte == 0);
    Ok(each.filter_map(|name| CStr::from_bytes_with_nul(name).ok()).map(CStr::to_owned).collect())
}
