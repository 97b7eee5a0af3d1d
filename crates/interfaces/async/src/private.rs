//! Connections of another libssl than the one that this library stands in front of.
//!
//! A process may have several: a Python wheel brings one under a name of its own, for itself alone. Calls of both kinds come to us, since a preload library is found
//! first. Nothing is suspended for the others: their calls go where they would have gone.
//!
//! Who a connection belongs to is told by its table of methods (`SSL_METHOD`), which is a constant of its libssl and, in all releases from 1.1 on, among the first
//! words of an `SSL`. The caller's return address would not tell: a wrapper may have jumped.

use crate::real::{self, Ssl};
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::*};
use core::{mem, ptr};

/// The words of an `SSL` among which its methods are.
const WORDS: [usize; 3] = [1, 2, 3];

/// Where our libssl lies; 0 until it is known.
static START: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);

fn words(ssl: Ssl) -> [usize; 3] {
    // SAFETY: a live `SSL`, which has more words than these.
    WORDS.map(|index| unsafe { ssl.cast::<usize>().add(index).read() })
}

/// The function of this name in the libssl to which a connection belongs, if that is not ours.
#[inline]
pub(crate) fn function(ssl: Ssl, name: &CStr) -> Option<*mut c_void> {
    let (start, length) = (START.load(Relaxed), LENGTH.load(Relaxed));
    if ssl.is_null() || words(ssl).into_iter().any(|word| word.wrapping_sub(start) < length) { None } else { look_up(ssl, name) }
}

#[cold]
fn look_up(ssl: Ssl, name: &CStr) -> Option<*mut c_void> {
    let ours = real::address_of(c"SSL_new");
    if START.load(Relaxed) == 0 && !ours.is_null() {
        let mut place = Place { within: ours.addr(), start: 0, length: 0 };
        // SAFETY: the callback and what it is given fit together.
        unsafe { libc::dl_iterate_phdr(Some(is_there), (&raw mut place).cast()) };
        LENGTH.store(place.length, Relaxed);
        START.store(place.start, Relaxed);
        return function(ssl, name);
    }
    words(ssl).into_iter().find_map(|word| of_module(word, name)).filter(|found| *found != real::address_of(name))
}

/// The function of this name in the module in which an address lies.
fn of_module(address: usize, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: any address may be asked about; what is found is a loaded module's name, and nothing is loaded.
    unsafe {
        let mut module: libc::Dl_info = mem::zeroed();
        if libc::dladdr(ptr::without_provenance(address), &raw mut module) == 0 || module.dli_fname.is_null() {
            return None;
        }
        let handle = libc::dlopen(module.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if handle.is_null() {
            return None;
        }
        let found = libc::dlsym(handle, name.as_ptr());
        libc::dlclose(handle);
        let is_its_own = !found.is_null() && libc::dladdr(found, &raw mut module) != 0 && module.dli_fbase != own_base();
        is_its_own.then_some(found)
    }
}

/// Where this library lies: the main program's symbols are everybody's, and so ours among them.
fn own_base() -> *mut c_void {
    // SAFETY: as above.
    unsafe {
        let mut module: libc::Dl_info = mem::zeroed();
        libc::dladdr((&raw const START).cast(), &raw mut module);
        module.dli_fbase
    }
}

struct Place {
    within: usize,
    start: usize,
    length: usize,
}

unsafe extern "C" fn is_there(module: *mut libc::dl_phdr_info, _: usize, place: *mut c_void) -> c_int {
    // SAFETY: the loader's description of a module, and our own place.
    let (module, place) = unsafe { (&*module, &mut *place.cast::<Place>()) };
    // SAFETY: the loader's array.
    let parts = unsafe { core::slice::from_raw_parts(module.dlpi_phdr, usize::from(module.dlpi_phnum)) };
    let loaded = || parts.iter().filter(|part| part.p_type == libc::PT_LOAD);
    let base = module.dlpi_addr as usize;
    let start = loaded().map(|part| base + part.p_vaddr as usize).min().unwrap_or(0);
    let end = loaded().map(|part| base + (part.p_vaddr + part.p_memsz) as usize).max().unwrap_or(0);
    let is_it = (start..end).contains(&place.within);
    if is_it {
        (place.start, place.length) = (start, end - start);
    }
    c_int::from(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    unsafe fn call<R>(library: *mut c_void, name: &CStr, arg: *mut c_void) -> R {
        // SAFETY: passed on from the caller: the library has a function of that name, type and duties.
        unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> R>(libc::dlsym(library, name.as_ptr()))(arg) }
    }

    fn open(path: &CStr) -> *mut c_void {
        // SAFETY: loads a library whose constructors are harmless.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!library.is_null(), "{path:?}");
        library
    }

    fn connection(library: *mut c_void) -> Ssl {
        // SAFETY: libssl's functions of these names, each given what the one before has made.
        unsafe {
            let method = call(library, c"TLS_method", ptr::null_mut());
            let context = call(library, c"SSL_CTX_new", method);
            call(library, c"SSL_new", context)
        }
    }

    fn file_of(library: *mut c_void) -> String {
        // SAFETY: the loader's answer about a function of the library.
        unsafe {
            let mut module: libc::Dl_info = mem::zeroed();
            assert_ne!(libc::dladdr(libc::dlsym(library, c"SSL_new".as_ptr()), &raw mut module), 0);
            CStr::from_ptr(module.dli_fname).to_str().unwrap().into()
        }
    }

    #[test]
    fn a_connection_of_another_libssl_is_its_own() {
        let ours = open(c"libssl.so.3");
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("libssl-1234.so.3");
        std::fs::copy(file_of(ours), &copy).unwrap();
        let theirs = open(&CString::new(copy.to_str().unwrap()).unwrap());
        assert_ne!(ours, theirs);
        // SAFETY: a name of both.
        let theirs_read = unsafe { libc::dlsym(theirs, c"SSL_read".as_ptr()) };
        let (our_connection, their_connection) = (connection(ours), connection(theirs));
        for _ in 0..2 {
            assert_eq!(function(our_connection, c"SSL_read"), None);
            assert_eq!(function(their_connection, c"SSL_read"), Some(theirs_read));
        }
        assert_eq!(function(ptr::null_mut(), c"SSL_read"), None);
    }
}
