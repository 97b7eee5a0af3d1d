//! The functions that this library stands in front of, and the few others of libssl and libcrypto that it calls.
//!
//! The preload library is linked to neither libssl nor libcrypto, since it is loaded into every process of a run: what is needed is looked up on first use,
//! as the next definition in the search order, or in a libssl that was loaded privately (Python's `_ssl` does that).
#![allow(non_snake_case, missing_docs, reason = "the manual pages are the documentation; the names are theirs")]

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval};

/// libssl's `SSL` and libcrypto's `BIO`; never looked into.
pub(crate) type Ssl = *mut c_void;
pub(crate) type Bio = *mut c_void;
/// liburing's `struct io_uring`.
pub(crate) type Ring = *mut c_void;

/// Libraries in which TLS may live when it is not in the program's own scope.
const LIBRARIES: [&CStr; 2] = [c"libssl.so.3", c"libssl.so.4"];

/// The address of a function that is not ours; null if the process has none of that name.
#[cold]
pub(crate) fn address_of(name: &CStr) -> *mut c_void {
    // SAFETY: dlsym and dlopen take C strings; RTLD_NOLOAD finds what is there and runs nothing.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if !next.is_null() {
            return next;
        }
        let handles = LIBRARIES.map(|library| libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY));
        let found = handles.into_iter().filter(|handle| !handle.is_null()).map(|handle| libc::dlsym(handle, name.as_ptr()));
        found.into_iter().find(|symbol| !symbol.is_null()).unwrap_or(ptr::null_mut())
    }
}

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty = $missing:expr)?;)*) => { $(
        /// The function of this name that is not ours; answers as failed if the process has none.
        ///
        /// # Safety
        /// That of the function.
        pub(crate) unsafe fn $name($($arg: $type),*) $(-> $result)? {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
            let mut found = FOUND.load(Relaxed);
            if found.is_null() {
                let name = concat!(stringify!($name), "\0");
                found = address_of(CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default());
                if found.is_null() {
                    return $($missing)?;
                }
                FOUND.store(found, Relaxed);
            }
            // SAFETY: the function of that name has this type, by its manual page; its duties are the caller's.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(found)($($arg),*) }
        }
    )* };
}

functions! {
    fn epoll_ctl(set: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int = -1;
    fn epoll_wait(set: c_int, events: *mut epoll_event, room: c_int, timeout: c_int) -> c_int = -1;
    fn epoll_pwait(set: c_int, events: *mut epoll_event, room: c_int, timeout: c_int, mask: *const sigset_t) -> c_int = -1;
    fn epoll_pwait2(set: c_int, events: *mut epoll_event, room: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int = -1;
    fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = -1;
    fn ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int = -1;
    fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int = -1;
    fn pselect(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec, mask: *const sigset_t
    ) -> c_int = -1;
    fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t = -1;
    fn close(fd: c_int) -> c_int = -1;
    fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = -1;
    fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int = -1;

    fn io_uring_get_events(ring: Ring) -> c_int = -libc::ENOSYS;
    fn io_uring_submit_and_wait(ring: Ring, wanted: c_uint) -> c_int = -libc::ENOSYS;
    fn io_uring_submit_and_wait_timeout(
        ring: Ring, completion: *mut *mut c_void, wanted: c_uint, timeout: *mut c_void, mask: *mut sigset_t
    ) -> c_int = -libc::ENOSYS;
    fn io_uring_wait_cqes(
        ring: Ring, completion: *mut *mut c_void, wanted: c_uint, timeout: *mut c_void, mask: *mut sigset_t
    ) -> c_int = -libc::ENOSYS;
    fn io_uring_wait_cqe_timeout(ring: Ring, completion: *mut *mut c_void, timeout: *mut c_void) -> c_int = -libc::ENOSYS;
    fn __io_uring_get_cqe(ring: Ring, completion: *mut *mut c_void, submit: c_uint, wanted: c_uint, mask: *mut sigset_t) -> c_int = -libc::ENOSYS;

    fn SSL_do_handshake(ssl: Ssl) -> c_int = -1;
    fn SSL_accept(ssl: Ssl) -> c_int = -1;
    fn SSL_get_error(ssl: Ssl, result: c_int) -> c_int = 1;
    fn SSL_want(ssl: Ssl) -> c_int = 1;
    fn SSL_read(ssl: Ssl, buffer: *mut c_void, length: c_int) -> c_int = -1;
    fn SSL_read_ex(ssl: Ssl, buffer: *mut c_void, length: size_t, done: *mut size_t) -> c_int = 0;
    fn SSL_read_early_data(ssl: Ssl, buffer: *mut c_void, length: size_t, done: *mut size_t) -> c_int = 0;
    fn SSL_peek(ssl: Ssl, buffer: *mut c_void, length: c_int) -> c_int = -1;
    fn SSL_peek_ex(ssl: Ssl, buffer: *mut c_void, length: size_t, done: *mut size_t) -> c_int = 0;
    fn SSL_write(ssl: Ssl, buffer: *const c_void, length: c_int) -> c_int = -1;
    fn SSL_write_ex(ssl: Ssl, buffer: *const c_void, length: size_t, done: *mut size_t) -> c_int = 0;
    fn SSL_shutdown(ssl: Ssl) -> c_int = -1;
    fn SSL_clear(ssl: Ssl) -> c_int = 0;
    fn SSL_free(ssl: Ssl);

    fn SSL_in_init(ssl: Ssl) -> c_int = 0;
    fn SSL_is_server(ssl: Ssl) -> c_int = 0;
    fn SSL_get_finished(ssl: Ssl, buffer: *mut c_void, length: size_t) -> size_t = 0;
    fn SSL_ctrl(ssl: Ssl, command: c_int, number: c_long, pointer: *mut c_void) -> c_long = 0;
    fn OpenSSL_version_num() -> c_ulong = 0;
    fn SSL_version(ssl: Ssl) -> c_int = 0;
    fn SSL_get_state(ssl: Ssl) -> c_int = 0;
    fn SSL_get_early_data_status(ssl: Ssl) -> c_int = 0;
    fn SSL_get_rfd(ssl: Ssl) -> c_int = -1;
    fn SSL_get_rbio(ssl: Ssl) -> Bio = ptr::null_mut();
    fn SSL_get_wbio(ssl: Ssl) -> Bio = ptr::null_mut();
    fn SSL_set_bio(ssl: Ssl, read: Bio, write: Bio);
    fn SSL_set_info_callback(ssl: Ssl, callback: Option<unsafe extern "C" fn(Ssl, c_int, c_int)>);
    fn SSL_get_info_callback(ssl: Ssl) -> Option<unsafe extern "C" fn(Ssl, c_int, c_int)> = None;
    fn SSL_set_msg_callback(ssl: Ssl, callback: Option<unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, size_t, Ssl, *mut c_void)>);
    fn BIO_s_null() -> *const c_void = ptr::null();
    fn BIO_method_name(bio: Bio) -> *const c_char = ptr::null();
    fn BIO_read(bio: Bio, buffer: *mut c_void, length: c_int) -> c_int = -1;
    fn BIO_new(method: *const c_void) -> Bio = ptr::null_mut();
    fn BIO_up_ref(bio: Bio) -> c_int = 0;
    fn ERR_peek_error() -> c_ulong = 0;
    fn ERR_clear_error();
}
