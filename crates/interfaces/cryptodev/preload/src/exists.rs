//! Programs that look for `/dev/crypto` before they open it, and at what they have opened: they find a character device that everybody may read and write.

use crate::path::{is_device, is_missing};
use crate::real::{self, errno, fail, set_errno};
use crate::{loader, table};
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{AT_EMPTY_PATH, AT_FDCWD, S_IFCHR, S_IFMT, size_t, ssize_t};

/// The major number of miscellaneous devices, to which the real module belongs; its minor number is given out as it comes.
const MISC_MAJOR: u32 = 10;
const MINOR: u32 = 255;
const MODE: u32 = S_IFCHR | 0o666;
/// What else is told of the device is told of this one, but for its number among the files of its folder.
const LIKE: *const c_char = c"/dev/null".as_ptr();
const INODE: u64 = u32::from_be_bytes(*b"bywh") as u64;

/// Describes the device; whether it could be done.
///
/// # Safety
/// The kernel has just written there, or found that it can.
unsafe fn describe(status: *mut libc::stat) -> bool {
    // SAFETY: a C string, and the program's struct, of which the kernel finds out whether it can be written.
    if unsafe { real::stat(LIKE, status) } != 0 {
        return false;
    }
    // SAFETY: libc has just written there.
    let status = unsafe { &mut *status };
    (status.st_mode, status.st_ino) = (MODE, INODE);
    status.st_rdev = libc::makedev(MISC_MAJOR, MINOR);
    true
}

/// The same in the newer struct.
///
/// # Safety
/// That of [`describe`].
unsafe fn describe_x(status: *mut libc::statx, mask: c_uint) -> bool {
    // SAFETY: as in `describe`.
    if unsafe { real::statx(AT_FDCWD, LIKE, 0, mask, status) } != 0 {
        return false;
    }
    // SAFETY: libc has just written there.
    let status = unsafe { &mut *status };
    (status.stx_mode, status.stx_ino) = (MODE as u16, INODE);
    (status.stx_rdev_major, status.stx_rdev_minor) = (MISC_MAJOR, MINOR);
    true
}

/// Whether a call that has failed was about the device.
///
/// # Safety
/// `path` is what the kernel was given.
unsafe fn is_about_device(answer: c_int, folder: c_int, path: *const c_char) -> bool {
    // SAFETY: a path that the kernel has found nothing under was read by it.
    answer < 0 && is_missing(errno()) && unsafe { is_device(folder, path) } && !loader::is_off()
}

/// Whether a call that has succeeded was about a descriptor of ours, which the kernel takes for a socket.
///
/// # Safety
/// `path` is what the kernel was given, and has read or not looked at.
unsafe fn is_about_descriptor(answer: c_int, fd: c_int, path: *const c_char, flags: c_int) -> bool {
    // SAFETY: passed on from the caller.
    answer == 0 && flags & AT_EMPTY_PATH != 0 && table::may_hold(fd) && (path.is_null() || unsafe { *path } == 0) && is_ours(fd)
}

fn is_ours(fd: c_int) -> bool {
    let held = table::take_verified(fd, None);
    if let Some(held) = held {
        held.release(None);
    }
    held.is_some()
}

macro_rules! accesses {
    ($(fn $name:ident([$($folder:ident: $folder_type:ty)?] path, mode $(, $flags:ident)?) at $at:expr;)*) => { $(
        /// access(2).
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($folder: $folder_type,)? path: *const c_char, mode: c_int $(, $flags: c_int)?) -> c_int {
            let before = errno();
            // SAFETY: the program's arguments.
            unsafe {
                let answer = real::$name($($folder,)? path, mode $(, $flags)?);
                if !is_about_device(answer, $at, path) {
                    return answer;
                }
            }
            if mode & libc::X_OK != 0 {
                return fail(libc::EACCES);
            }
            set_errno(before);
            0
        }
    )* };
}

accesses! {
    fn access([] path, mode) at AT_FDCWD;
    fn eaccess([] path, mode) at AT_FDCWD;
    fn euidaccess([] path, mode) at AT_FDCWD;
    fn faccessat([folder: c_int] path, mode, flags) at folder;
}

macro_rules! stats {
    ($(fn $name:ident([$($before:ident: $before_type:ty),*] path, status $(, $flags:ident)?) at $at:expr, with $with:expr;)*) => { $(
        /// stat(2), under the name that a program's headers gave it.
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($before: $before_type,)* path: *const c_char, status: *mut libc::stat $(, $flags: c_int)?) -> c_int {
            let before = errno();
            // SAFETY: the program's arguments.
            unsafe {
                let answer = real::$name($($before,)* path, status $(, $flags)?);
                let is_ours = is_about_device(answer, $at, path) || is_about_descriptor(answer, $at, path, $with);
                if !is_ours || !describe(status) {
                    return answer;
                }
            }
            set_errno(before);
            0
        }
    )* };
}

stats! {
    fn stat([] path, status) at AT_FDCWD, with 0;
    fn stat64([] path, status) at AT_FDCWD, with 0;
    fn lstat([] path, status) at AT_FDCWD, with 0;
    fn lstat64([] path, status) at AT_FDCWD, with 0;
    fn fstatat([folder: c_int] path, status, flags) at folder, with flags;
    fn fstatat64([folder: c_int] path, status, flags) at folder, with flags;
    fn __xstat([version: c_int] path, status) at AT_FDCWD, with 0;
    fn __xstat64([version: c_int] path, status) at AT_FDCWD, with 0;
    fn __lxstat([version: c_int] path, status) at AT_FDCWD, with 0;
    fn __lxstat64([version: c_int] path, status) at AT_FDCWD, with 0;
    fn __fxstatat([version: c_int, folder: c_int] path, status, flags) at folder, with flags;
    fn __fxstatat64([version: c_int, folder: c_int] path, status, flags) at folder, with flags;
}

/// statx(2).
///
/// # Safety
/// That of the function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, status: *mut libc::statx) -> c_int {
    let before = errno();
    // SAFETY: the program's arguments.
    unsafe {
        let answer = real::statx(folder, path, flags, mask, status);
        let is_ours = is_about_device(answer, folder, path) || is_about_descriptor(answer, folder, path, flags);
        if !is_ours || !describe_x(status, mask) {
            return answer;
        }
    }
    set_errno(before);
    0
}

macro_rules! fstats {
    ($(fn $name:ident([$($version:ident)?]);)*) => { $(
        /// fstat(2), under the name that a program's headers gave it.
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($version: c_int,)? fd: c_int, status: *mut libc::stat) -> c_int {
            // SAFETY: the program's arguments; libc has just written to the second.
            unsafe {
                let answer = real::$name($($version,)? fd, status);
                if answer == 0 && table::may_hold(fd) && is_ours(fd) && (*status).st_mode & S_IFMT == libc::S_IFSOCK {
                    real::keeping_errno(|| describe(status));
                }
                answer
            }
        }
    )* };
}

fstats! {
    fn fstat([]);
    fn fstat64([]);
    fn __fxstat([version]);
    fn __fxstat64([version]);
}

macro_rules! attributes {
    ($(fn $name:ident(path $(, $arg:ident: $type:ty)*) = $answer:expr;)*) => { $(
        /// The function of this name in getxattr(2) or listxattr(2): the device has none. `ls -l` asks.
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char $(, $arg: $type)*) -> ssize_t {
            let before = errno();
            // SAFETY: the program's arguments.
            unsafe {
                let answer = real::$name(path $(, $arg)*);
                if !is_about_device(if answer < 0 { -1 } else { 0 }, AT_FDCWD, path) {
                    return answer;
                }
            }
            set_errno(before);
            $answer
        }
    )* };
}

attributes! {
    fn getxattr(path, name: *const c_char, value: *mut c_void, size: size_t) = fail(libc::ENODATA) as ssize_t;
    fn lgetxattr(path, name: *const c_char, value: *mut c_void, size: size_t) = fail(libc::ENODATA) as ssize_t;
    fn listxattr(path, list: *mut c_char, size: size_t) = 0;
    fn llistxattr(path, list: *mut c_char, size: size_t) = 0;
}
