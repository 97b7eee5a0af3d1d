//! Whether a path names `/dev/crypto`.

use core::ffi::{CStr, c_char, c_int};
use core::mem;

const DEVICE: &CStr = c"/dev/crypto";
const FILE: &[u8] = b"crypto";

/// Whether a path that the kernel has just found nothing under names the device: in so many words, or as `crypto` in a folder that is `/dev` (`/dev//crypto`, a path
/// relative to `/dev`, a symbolic link to that folder). The kernel has read the path, so it can be read.
///
/// # Safety
/// `path` is a C string.
pub(crate) unsafe fn is_device(folder: c_int, path: *const c_char) -> bool {
    // SAFETY: passed on from the caller.
    let path = unsafe { CStr::from_ptr(path) };
    if path == DEVICE {
        return true;
    }
    let Some(before) = path.to_bytes().strip_suffix(FILE) else { return false };
    if !(before.is_empty() || before.ends_with(b"/")) {
        return false;
    }
    let mut name = [0_u8; 256];
    if before.len() + 2 > name.len() {
        return false;
    }
    // `/dev/` and the empty path both want a last component.
    name.iter_mut().zip(before.iter().chain(b".")).for_each(|(place, &byte)| *place = byte);
    is_same_folder(folder, &name)
}

fn is_same_folder(folder: c_int, name: &[u8]) -> bool {
    let identity = |folder: c_int, name: *const c_char| {
        // SAFETY: a struct of numbers.
        let mut status: libc::stat = unsafe { mem::zeroed() };
        // SAFETY: a C string and our own struct.
        (unsafe { crate::real::fstatat(folder, name, &raw mut status, 0) } == 0).then_some((status.st_dev, status.st_ino))
    };
    let there = identity(folder, name.as_ptr().cast());
    there.is_some() && there == identity(libc::AT_FDCWD, c"/dev".as_ptr())
}

/// Whether the kernel says that there is no such file, or a node without a driver.
pub(crate) fn is_missing(errno: c_int) -> bool {
    matches!(errno, libc::ENOENT | libc::ENXIO | libc::ENODEV)
}
