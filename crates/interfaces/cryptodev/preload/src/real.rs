//! The functions that this library stands in front of, looked up as the next definition in the search order; `errno`.
//!
//! dlsym(3) takes the loader's lock, which a thread holds while it runs constructors under dlopen(3), and is not async-signal-safe. So those that a signal handler may
//! call are looked up when this library is loaded, and the others on first use.
#![allow(non_snake_case, missing_docs, reason = "the manual pages are the documentation; the names are theirs")]

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{FILE, iovec, mode_t, pid_t, sighandler_t, size_t, ssize_t};

/// Address of the next definition of a function; null if the process has none.
#[cold]
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: dlsym takes a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Where a function is, once it was looked up.
struct Found {
    /// Ends in NUL.
    name: &'static str,
    at: AtomicPtr<c_void>,
}

impl Found {
    #[inline]
    fn get(&self) -> *mut c_void {
        let at = self.at.load(Relaxed);
        if at.is_null() { self.look() } else { at }
    }

    #[cold]
    fn look(&self) -> *mut c_void {
        let at = next(CStr::from_bytes_with_nul(self.name.as_bytes()).unwrap_or_default());
        self.at.store(at, Relaxed);
        at
    }
}

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $missing:expr;)*) => {
        #[allow(non_upper_case_globals, reason = "the names of the functions")]
        mod found {
            $(pub(super) static $name: super::Found =
                super::Found { name: concat!(stringify!($name), "\0"), at: super::AtomicPtr::new(super::ptr::null_mut()) };)*
        }
        $(
        /// The function of this name that is not ours; fails with `ENOSYS` if the process has none.
        ///
        /// # Safety
        /// That of the function.
        #[inline]
        pub(crate) unsafe fn $name($($arg: $type),*) -> $result {
            let found = found::$name.get();
            if found.is_null() {
                set_errno(libc::ENOSYS);
                return $missing;
            }
            // SAFETY: the function of that name has this type, by its manual page; its duties are the caller's.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(found)($($arg),*) }
        }
    )* };
}

/// Looks up what signal-safety(7) allows in a signal handler, and the others of which any thread makes use.
pub(crate) fn look_up_early() {
    use found::*;
    let early = [
        &open,
        &open64,
        &openat,
        &openat64,
        &creat,
        &creat64,
        &ioctl,
        &close,
        &dup,
        &dup2,
        &dup3,
        &fcntl,
        &fcntl64,
        &close_range,
        &read,
        &write,
        &readv,
        &writev,
        &_Fork,
        &sigaction,
        &signal,
        &access,
        &faccessat,
        &stat,
        &stat64,
        &lstat,
        &lstat64,
        &fstatat,
        &fstatat64,
        &fstat,
        &fstat64,
        &statx,
    ];
    for function in early {
        function.look();
    }
}

type Path = *const c_char;

functions! {
    fn open(path: Path, flags: c_int, mode: mode_t) -> c_int = -1;
    fn open64(path: Path, flags: c_int, mode: mode_t) -> c_int = -1;
    fn openat(folder: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int = -1;
    fn openat64(folder: c_int, path: Path, flags: c_int, mode: mode_t) -> c_int = -1;
    fn creat(path: Path, mode: mode_t) -> c_int = -1;
    fn creat64(path: Path, mode: mode_t) -> c_int = -1;
    fn __open_2(path: Path, flags: c_int) -> c_int = -1;
    fn __open64_2(path: Path, flags: c_int) -> c_int = -1;
    fn __openat_2(folder: c_int, path: Path, flags: c_int) -> c_int = -1;
    fn __openat64_2(folder: c_int, path: Path, flags: c_int) -> c_int = -1;
    fn fopen(path: Path, mode: Path) -> *mut FILE = ptr::null_mut();
    fn fopen64(path: Path, mode: Path) -> *mut FILE = ptr::null_mut();
    fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int = -1;
    fn close(fd: c_int) -> c_int = -1;
    fn dup(fd: c_int) -> c_int = -1;
    fn dup2(from: c_int, to: c_int) -> c_int = -1;
    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int = -1;
    fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = -1;
    fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int = -1;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int = -1;
    fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t = -1;
    fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t = -1;
    fn write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t = -1;
    fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t = -1;
    fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t = -1;
    fn _Fork() -> pid_t = -1;
    fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int = -1;
    fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t = libc::SIG_ERR;
    fn bsd_signal(signal: c_int, handler: sighandler_t) -> sighandler_t = libc::SIG_ERR;
    fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t = libc::SIG_ERR;
    fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t = libc::SIG_ERR;
    fn sigset(signal: c_int, handler: sighandler_t) -> sighandler_t = libc::SIG_ERR;
    fn access(path: Path, mode: c_int) -> c_int = -1;
    fn eaccess(path: Path, mode: c_int) -> c_int = -1;
    fn euidaccess(path: Path, mode: c_int) -> c_int = -1;
    fn faccessat(folder: c_int, path: Path, mode: c_int, flags: c_int) -> c_int = -1;
    fn stat(path: Path, status: *mut libc::stat) -> c_int = -1;
    fn stat64(path: Path, status: *mut libc::stat) -> c_int = -1;
    fn lstat(path: Path, status: *mut libc::stat) -> c_int = -1;
    fn lstat64(path: Path, status: *mut libc::stat) -> c_int = -1;
    fn fstatat(folder: c_int, path: Path, status: *mut libc::stat, flags: c_int) -> c_int = -1;
    fn fstatat64(folder: c_int, path: Path, status: *mut libc::stat, flags: c_int) -> c_int = -1;
    fn fstat(fd: c_int, status: *mut libc::stat) -> c_int = -1;
    fn fstat64(fd: c_int, status: *mut libc::stat) -> c_int = -1;
    fn __xstat(version: c_int, path: Path, status: *mut libc::stat) -> c_int = -1;
    fn __xstat64(version: c_int, path: Path, status: *mut libc::stat) -> c_int = -1;
    fn __lxstat(version: c_int, path: Path, status: *mut libc::stat) -> c_int = -1;
    fn __lxstat64(version: c_int, path: Path, status: *mut libc::stat) -> c_int = -1;
    fn __fxstatat(version: c_int, folder: c_int, path: Path, status: *mut libc::stat, flags: c_int) -> c_int = -1;
    fn __fxstatat64(version: c_int, folder: c_int, path: Path, status: *mut libc::stat, flags: c_int) -> c_int = -1;
    fn __fxstat(version: c_int, fd: c_int, status: *mut libc::stat) -> c_int = -1;
    fn __fxstat64(version: c_int, fd: c_int, status: *mut libc::stat) -> c_int = -1;
    fn statx(folder: c_int, path: Path, flags: c_int, mask: c_uint, status: *mut libc::statx) -> c_int = -1;
    fn getxattr(path: Path, name: Path, value: *mut c_void, size: size_t) -> ssize_t = -1;
    fn lgetxattr(path: Path, name: Path, value: *mut c_void, size: size_t) -> ssize_t = -1;
    fn listxattr(path: Path, list: *mut c_char, size: size_t) -> ssize_t = -1;
    fn llistxattr(path: Path, list: *mut c_char, size: size_t) -> ssize_t = -1;
}

/// The calling thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the address of this thread's errno is always good.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = number }
}

/// Does something and leaves `errno` as it was.
pub(crate) fn keeping_errno<R>(what: impl FnOnce() -> R) -> R {
    let before = errno();
    let result = what();
    set_errno(before);
    result
}

/// -1 with an `errno`.
pub(crate) fn fail(number: c_int) -> c_int {
    set_errno(number);
    -1
}
