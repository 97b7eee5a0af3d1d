//! Opening `/dev/crypto`. The kernel is asked first: a device that it has is left to it, and a pointer that it cannot read has failed there.

use crate::path::{is_device, is_missing};
use crate::real::{self, errno, fail, set_errno};
use crate::{gate, loader, socket, table};
use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use libc::{AT_FDCWD, FILE, mode_t};

/// What the program is to see of an open that the kernel has answered.
///
/// # Safety
/// `path` is what the kernel was given.
#[inline]
unsafe fn after(answer: c_int, before: c_int, folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: a path that the kernel has found nothing under was read by it.
    if answer >= 0 || !is_missing(errno()) || flags & libc::O_PATH != 0 || !unsafe { is_device(folder, path) } {
        return answer;
    }
    if flags & libc::O_DIRECTORY == libc::O_DIRECTORY {
        return fail(libc::ENOTDIR);
    }
    match device(flags) {
        Ok(fd) => {
            set_errno(before);
            fd
        }
        Err(number) => fail(number),
    }
}

/// Whether a path names the device where there is no such file: asked before an open that would make one. Who asks the kernel learns whether it can read the path, too.
///
/// # Safety
/// `path` is what the kernel is to be given.
unsafe fn is_absent_device(folder: c_int, path: *const c_char) -> bool {
    // SAFETY: a path that the kernel has found nothing under was read by it.
    real::keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_faccessat, folder, path, libc::F_OK) < 0 && is_missing(errno()) && is_device(folder, path)
    })
}

/// What the kernel would say of a file that is not there, and not made; of one that must be new and is a device, that it is there.
fn unmade(flags: c_int) -> c_int {
    fail(if flags & libc::O_EXCL == 0 { libc::ENOENT } else { libc::EEXIST })
}

/// A descriptor of a new description. Not for a signal handler in the midst of a request: the tables may be half changed below it.
fn device(flags: c_int) -> Result<c_int, c_int> {
    gate::within(|inside| device_within(flags, inside)).unwrap_or(Err(libc::EBUSY))
}

fn device_within(flags: c_int, inside: &gate::Inside) -> Result<c_int, c_int> {
    // Refused to a child of vfork, which POSIX allows to execute a program and nothing else.
    if !gate::may_change(inside) {
        return Err(libc::EBUSY);
    }
    table::sweep(inside);
    table::end_abandoned(inside);
    let device = loader::open()?;
    let undo = |number| {
        loader::close(device);
        number
    };
    let fd = socket::make(flags).map_err(undo)?;
    table::add(fd, device, inside).map_err(|number| {
        // SAFETY: our own descriptor, which nobody has seen.
        unsafe { real::close(fd) };
        undo(number)
    })?;
    Ok(fd)
}

/// Takes a descriptor over that a program has inherited from another by `exec`, with a device that has no sessions.
#[cold]
pub(crate) fn adopt(fd: c_int) -> bool {
    real::keeping_errno(|| socket::is_one(fd) && gate::within(|inside| adopt_within(fd, inside)).unwrap_or(false))
}

fn adopt_within(fd: c_int, inside: &gate::Inside) -> bool {
    // Held by a thread for some microseconds; only within the gate, so that no child of fork finds it held for ever.
    static ADOPTING: AtomicBool = AtomicBool::new(false);
    let Some(device) = gate::may_change(inside).then(loader::open).and_then(Result::ok) else { return false };
    while ADOPTING.swap(true, SeqCst) {
        // SAFETY: gives the processor away.
        unsafe { libc::sched_yield() };
    }
    // Of threads that ask at once one takes it over: the sessions of all of them are opened on its device.
    let was_faster = table::may_hold(fd);
    let added = !was_faster && socket::renew(fd) && table::add(fd, device, inside).is_ok();
    ADOPTING.store(false, SeqCst);
    if !added {
        loader::close(device);
    }
    added || was_faster
}

macro_rules! opens {
    ($(fn $name:ident([$($folder:ident: $folder_type:ty)?] path, flags $(, $mode:ident: $mode_type:ty)?) at $at:expr;)*) => { $(
        /// open(2), under the name that a program's headers gave it.
        ///
        /// # Safety
        /// That of the function. (A third argument that was not given is passed on as it is, and not looked at.)
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($folder: $folder_type,)? path: *const c_char, flags: c_int $(, $mode: $mode_type)?) -> c_int {
            let before = errno();
            // SAFETY: the program's arguments.
            unsafe {
                let makes = flags & libc::O_CREAT != 0 && is_absent_device($at, path);
                let answer = if makes { unmade(flags) } else { real::$name($($folder,)? path, flags $(, $mode)?) };
                after(answer, before, $at, path, flags)
            }
        }
    )* };
}

opens! {
    fn open([] path, flags, mode: mode_t) at AT_FDCWD;
    fn open64([] path, flags, mode: mode_t) at AT_FDCWD;
    fn openat([folder: c_int] path, flags, mode: mode_t) at folder;
    fn openat64([folder: c_int] path, flags, mode: mode_t) at folder;
    fn __open_2([] path, flags) at AT_FDCWD;
    fn __open64_2([] path, flags) at AT_FDCWD;
    fn __openat_2([folder: c_int] path, flags) at folder;
    fn __openat64_2([folder: c_int] path, flags) at folder;
}

macro_rules! makes {
    ($($name:ident)*) => { $(
        /// creat(2), under the name that a program's headers gave it.
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: mode_t) -> c_int {
            let before = errno();
            // SAFETY: the program's arguments.
            unsafe { if is_absent_device(AT_FDCWD, path) { after(unmade(0), before, AT_FDCWD, path, 0) } else { real::$name(path, mode) } }
        }
    )* };
}

makes!(creat creat64);

macro_rules! streams {
    ($($name:ident)*) => { $(
        /// fopen(3), under the name that a program's headers gave it: libc opens the file without `open`.
        ///
        /// # Safety
        /// That of the function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            let before = errno();
            // SAFETY: the program's arguments; libc has read both.
            unsafe {
                let letters = CStr::from_ptr(mode).to_bytes();
                if letters.starts_with(b"r") || !is_absent_device(AT_FDCWD, path) {
                    let stream = real::$name(path, mode);
                    if !stream.is_null() || !is_missing(errno()) || !is_device(AT_FDCWD, path) {
                        return stream;
                    }
                }
                let flags = if letters.contains(&b'e') { libc::O_CLOEXEC } else { 0 };
                unmade(if letters.contains(&b'x') { libc::O_EXCL } else { 0 });
                let fd = after(-1, before, AT_FDCWD, path, flags);
                if fd < 0 { ptr::null_mut() } else { libc::fdopen(fd, mode) }
            }
        }
    )* };
}

streams!(fopen fopen64);
