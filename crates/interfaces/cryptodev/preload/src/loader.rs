//! The other half: loaded at the first open of `/dev/crypto`, from the folder in which this library lies.

use crate::{gate, memory, signals, tell};
use bywash_cryptodev_link::{Answer, FILE, Loaded, Process, SYMBOL, VERSION};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::SeqCst};

static LOADED: AtomicPtr<Loaded> = AtomicPtr::new(ptr::null_mut());
static PROCESS: Process = Process { read: memory::read, write: memory::write, tell: tell::from_loaded };

fn loaded() -> Option<&'static Loaded> {
    // SAFETY: null, or the table of a library that is never unloaded.
    unsafe { LOADED.load(SeqCst).as_ref() }
}

/// Makes a device.
///
/// # Errors
/// `ENOENT`, as without us, if the user has turned us off; `ENXIO` if the other half cannot be had, which is told on standard error.
pub(crate) fn open() -> Result<*mut c_void, c_int> {
    if is_off() {
        return Err(libc::ENOENT);
    }
    if gate::is_broken() {
        tell::line(&[b"/dev/crypto cannot be opened: this process was forked while another thread's request had not ended after 10 s"]);
        return Err(libc::ENXIO);
    }
    let table = match loaded() {
        Some(table) => table,
        None => load()?,
    };
    // SAFETY: a function of the table.
    let device = unsafe { (table.open)(&PROCESS) };
    if device.is_null() { Err(libc::ENXIO) } else { Ok(device) }
}

unsafe extern "C" {
    /// secure_getenv(3): null in a program with borrowed rights, whose environment is a stranger's.
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// Whether the user has turned the library off for this program.
pub(crate) fn is_off() -> bool {
    // SAFETY: a C string; what comes back is one too, or null.
    unsafe {
        let value = secure_getenv(c"BYWASH_CRYPTODEV".as_ptr());
        !value.is_null() && CStr::from_ptr(value) == c"off"
    }
}

/// Two threads may come here at once: the loader gives both the same library.
fn load() -> Result<&'static Loaded, c_int> {
    let mut path = [0; libc::PATH_MAX as usize];
    if beside_this_library(&mut path).is_none() {
        tell::line(&[b"/dev/crypto cannot be opened: the path of Bywash's library is too long"]);
        return Err(libc::ENXIO);
    }
    // SAFETY: a path that ends in NUL; the library's constructors are harmless.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE) };
    if library.is_null() {
        // SAFETY: dlerror's text is this thread's, until its next failure.
        let why = unsafe { libc::dlerror() };
        // SAFETY: not null after a failure of dlopen; tested nevertheless.
        let why = if why.is_null() { c"unknown" } else { unsafe { CStr::from_ptr(why) } };
        tell::line(&[b"/dev/crypto cannot be opened: ", why.to_bytes(), b"; install Bywash's libraries in one folder"]);
        return Err(libc::ENXIO);
    }
    // SAFETY: a C string; the symbol's type goes by its name.
    let table = unsafe { libc::dlsym(library, SYMBOL.as_ptr()).cast::<Loaded>().as_ref() }.filter(|table| table.version == VERSION);
    let Some(table) = table else {
        tell::line(&[
            b"/dev/crypto cannot be opened: ",
            FILE.to_bytes(),
            b" is of another version than the library that was preloaded; install both anew",
        ]);
        return Err(libc::ENXIO);
    };
    signals::guard();
    LOADED.store(ptr::from_ref(table).cast_mut(), SeqCst);
    Ok(table)
}

/// The path of the other half.
fn beside_this_library(path: &mut [c_char]) -> Option<()> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: an address within this library and room for the answer, which zeroes are valid for.
    let (told, info) = unsafe { (libc::dladdr((&raw const LOADED).cast(), found.as_mut_ptr()), found.assume_init()) };
    if told == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's string.
    let own = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    let folder = own.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let whole = own.iter().take(folder).chain(FILE.to_bytes_with_nul());
    if folder + FILE.to_bytes_with_nul().len() > path.len() {
        return None;
    }
    path.iter_mut().zip(whole).for_each(|(place, &byte)| *place = byte as c_char);
    Some(())
}

/// Asks a device.
#[inline]
pub(crate) fn request(device: *mut c_void, number: u32, argument: u64) -> Answer {
    let mut answer = Answer { errno: libc::EIO, ..Answer::default() };
    if let Some(table) = loaded().filter(|_| !device.is_null() && !gate::is_broken()) {
        // SAFETY: a device that its caller holds, and our own place for the answer.
        unsafe { (table.request)(device, number, argument, &mut answer) };
    }
    answer
}

/// What poll(2) is to find.
pub(crate) fn readiness(device: *mut c_void) -> u32 {
    // SAFETY: as above.
    loaded().map_or(bywash_cryptodev_link::WRITABLE, |table| unsafe { (table.readiness)(device) })
}

/// Ends a device.
pub(crate) fn close(device: *mut c_void) {
    if let Some(table) = loaded().filter(|_| !device.is_null() && !gate::is_broken()) {
        // SAFETY: its last user ends it, once.
        unsafe { (table.close)(device) };
    }
}

/// The device is the copy of a parent's now.
pub(crate) fn copied(device: *mut c_void) {
    if let Some(table) = loaded().filter(|_| !device.is_null()) {
        // SAFETY: a device of the table; nobody else is there in the child.
        unsafe { (table.copied)(device) };
    }
}
