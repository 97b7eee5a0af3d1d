//! Programs that look for `/dev/crypto` before they open it, and at what they have opened: they find a character device that everybody may read and write.

use crate::path::{is_device, is_missing};
use crate::real::{self, errno, set_errno};
use crate::table;
use core::ffi::{c_char, c_int};
use libc::{AT_FDCWD, S_IFCHR, S_IFMT};

/// The major number of miscellaneous devices, to which the real module belongs; its minor number is given out as it comes.
const MISC_MAJOR: u32 = 10;
const MINOR: u32 = 255;
const PERMISSIONS: u32 = 0o666;

fn as_device(status: &mut libc::stat) {
    status.st_mode = S_IFCHR | PERMISSIONS;
    status.st_rdev = libc::makedev(MISC_MAJOR, MINOR);
    (status.st_size, status.st_blocks) = (0, 0);
}

/// Whether a call that has failed was about the device.
///
/// # Safety
/// `path` is what the kernel was given.
unsafe fn is_about_device(answer: c_int, folder: c_int, path: *const c_char) -> bool {
    // SAFETY: a path that the kernel has found nothing under was read by it.
    answer < 0 && is_missing(errno()) && unsafe { is_device(folder, path) }
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
                return real::fail(libc::EACCES);
            }
            set_errno(before);
            0
        }
    )* };
}

accesses! {
    fn access([] path, mode) at AT_FDCWD;
    fn faccessat([folder: c_int] path, mode, flags) at folder;
}

macro_rules! stats {
    ($(fn $name:ident([$($folder:ident: $folder_type:ty)?] path, status $(, $flags:ident)?) at $at:expr;)*) => { $(
        /// stat(2).
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($folder: $folder_type,)? path: *const c_char, status: *mut libc::stat $(, $flags: c_int)?) -> c_int {
            let before = errno();
            // SAFETY: the program's arguments; what stands for the device is described into the program's own struct by the same call.
            unsafe {
                let answer = real::$name($($folder,)? path, status $(, $flags)?);
                if !is_about_device(answer, $at, path) || real::stat(c"/dev/null".as_ptr(), status) != 0 {
                    return answer;
                }
                as_device(&mut *status);
            }
            set_errno(before);
            0
        }
    )* };
}

stats! {
    fn stat([] path, status) at AT_FDCWD;
    fn stat64([] path, status) at AT_FDCWD;
    fn lstat([] path, status) at AT_FDCWD;
    fn lstat64([] path, status) at AT_FDCWD;
    fn fstatat([folder: c_int] path, status, flags) at folder;
    fn fstatat64([folder: c_int] path, status, flags) at folder;
}

macro_rules! fstats {
    ($($name:ident)*) => { $(
        /// fstat(2).
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, status: *mut libc::stat) -> c_int {
            // SAFETY: the program's arguments.
            let answer = unsafe { real::$name(fd, status) };
            if answer == 0 && table::may_hold(fd) && let Some(held) = table::take_verified(fd, None) {
                held.release(None);
                // SAFETY: libc has just written there.
                let status = unsafe { &mut *status };
                if status.st_mode & S_IFMT == libc::S_IFSOCK {
                    as_device(status);
                }
            }
            answer
        }
    )* };
}

fstats!(fstat fstat64);
