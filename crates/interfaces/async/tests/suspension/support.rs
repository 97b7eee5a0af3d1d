//! Real libssl handshakes over socket pairs, whose "operation" is a message callback in the midst of the server's flight.

use bywash_async::thread::bywash_async_v1;
use bywash_async_link::{Computer, Moment};
use corosensei::Coroutine;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Once;

pub(crate) type Ssl = *mut c_void;
type Callback = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, usize, Ssl, *mut c_void);

#[link(name = "ssl")]
#[link(name = "crypto")]
unsafe extern "C" {
    fn TLS_method() -> *const c_void;
    fn SSL_CTX_new(method: *const c_void) -> *mut c_void;
    fn SSL_CTX_ctrl(context: *mut c_void, command: c_int, number: c_long, pointer: *mut c_void) -> c_long;
    fn SSL_CTX_use_certificate_file(context: *mut c_void, file: *const c_char, kind: c_int) -> c_int;
    fn SSL_CTX_use_PrivateKey_file(context: *mut c_void, file: *const c_char, kind: c_int) -> c_int;
    fn SSL_CTX_set_msg_callback(context: *mut c_void, callback: Callback);
    fn SSL_new(context: *mut c_void) -> Ssl;
    fn SSL_set_fd(ssl: Ssl, fd: c_int) -> c_int;
    fn SSL_set_accept_state(ssl: Ssl);
    fn SSL_set_connect_state(ssl: Ssl);
    pub(crate) fn SSL_is_init_finished(ssl: Ssl) -> c_int;
    fn ERR_peek_error() -> core::ffi::c_ulong;
    fn BIO_meth_new(kind: c_int, name: *const c_char) -> *mut c_void;
    fn BIO_meth_set_read(method: *mut c_void, read: unsafe extern "C" fn(*mut c_void, *mut c_char, c_int) -> c_int);
    fn BIO_meth_set_write(method: *mut c_void, write: unsafe extern "C" fn(*mut c_void, *const c_char, c_int) -> c_int);
    fn BIO_meth_set_ctrl(method: *mut c_void, control: unsafe extern "C" fn(*mut c_void, c_int, c_long, *mut c_void) -> c_long);
    fn BIO_new(method: *const c_void) -> *mut c_void;
    fn BIO_set_init(bio: *mut c_void, init: c_int);
    fn BIO_set_data(bio: *mut c_void, data: *mut c_void);
    fn BIO_get_data(bio: *mut c_void) -> *mut c_void;
    fn BIO_set_flags(bio: *mut c_void, flags: c_int);
    fn BIO_clear_flags(bio: *mut c_void, flags: c_int);
    fn SSL_set_bio(ssl: Ssl, read: *mut c_void, write: *mut c_void);
}

pub(crate) use bywash_async::ssl::{SSL_clear, SSL_do_handshake, SSL_free, SSL_get_error, SSL_want};

/// `SSL3_RT_ALERT` of ssl3.h.
const ALERT: c_int = 21;
const SERVER_KEY_EXCHANGE: u8 = 12;
pub(crate) const WANT_READ: c_int = 2;

thread_local! {
    /// Fibers whose operation waits, oldest first.
    static WAITING: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    pub(crate) static OUTCOMES: RefCell<Vec<c_int>> = const { RefCell::new(Vec::new()) };
    pub(crate) static FIRED: RefCell<Vec<Moment>> = const { RefCell::new(Vec::new()) };
    pub(crate) static BEFORE: Cell<Before> = const { Cell::new(Before::Nothing) };
    /// Alerts that the application was shown.
    pub(crate) static ALERTS: Cell<u32> = const { Cell::new(0) };
    /// Operations that were found not to be put off.
    pub(crate) static IN_PLACE: Cell<u32> = const { Cell::new(0) };
    /// Where the application's last callback had its stack.
    pub(crate) static STACK: Cell<usize> = const { Cell::new(0) };
    /// Reads of own channels that found nothing.
    pub(crate) static REFUSED: Cell<u32> = const { Cell::new(0) };
}

/// What the application's callback does before the operation asks whether it may wait.
#[derive(Clone, Copy)]
pub(crate) enum Before {
    Nothing,
    /// Needs as much stack as a deep recursion.
    Descend,
    /// Goes to a stack of its own.
    SwitchStacks,
}

/// An address on the stack of who asks.
#[inline(never)]
pub(crate) fn here() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// Whether the application's last callback ran on the stack of the thread that shook hands, which is called here from not far below.
pub(crate) fn was_called_in_place() -> bool {
    STACK.get().abs_diff(here()) < 512 << 10
}

#[inline(never)]
fn descend(ask: impl Fn() -> u64) -> u64 {
    let mut deep = [0_u8; 6 << 20];
    std::hint::black_box(&mut deep);
    ask()
}

/// The provider's part: computes the oldest operation when the thread is about to block or somebody insists.
unsafe extern "C" fn fire(moment: Moment, fiber: u64) -> u32 {
    FIRED.with_borrow_mut(|fired| fired.push(moment));
    let chosen = WAITING.with_borrow_mut(|waiting| match moment {
        Moment::Arrived | Moment::Busy => None,
        Moment::Blocking => (!waiting.is_empty()).then(|| waiting.remove(0)),
        Moment::Demanded => waiting.iter().position(|&other| other == fiber).map(|index| waiting.remove(index)),
    });
    chosen.map_or(0, |fiber| {
        unsafe { (bywash_async_v1.wake)(fiber) };
        1
    })
}

unsafe extern "C" fn waiting() -> u32 {
    WAITING.with_borrow(|waiting| waiting.len() as u32)
}

static COMPUTER: Computer = Computer { fire, waiting };

unsafe extern "C" fn message(is_sent: c_int, _: c_int, kind: c_int, bytes: *const c_void, length: usize, _: Ssl, _: *mut c_void) {
    ALERTS.set(ALERTS.get() + u32::from(kind == ALERT));
    STACK.set(here());
    if is_sent != 1 || length < 4 || unsafe { *bytes.cast::<u8>() } != SERVER_KEY_EXCHANGE {
        return;
    }
    let ask = || unsafe { (bywash_async_v1.fiber)() };
    let fiber = match BEFORE.get() {
        Before::Nothing => ask(),
        Before::Descend => descend(ask),
        Before::SwitchStacks => {
            let mut other = Coroutine::<(), (), u64>::new(move |_, ()| ask());
            other.resume(()).as_return().unwrap()
        }
    };
    if fiber == 0 {
        IN_PLACE.set(IN_PLACE.get() + 1);
        return;
    }
    WAITING.with_borrow_mut(|waiting| waiting.push(fiber));
    let outcome = unsafe { (bywash_async_v1.suspend)() };
    WAITING.with_borrow_mut(|waiting| waiting.retain(|&other| other != fiber));
    OUTCOMES.with_borrow_mut(|outcomes| outcomes.push(outcome));
}

/// `BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY` and `BIO_CTRL_FLUSH` of bio.h.
const READ_LATER: c_int = 0x09;
const FLUSH: c_int = 11;

unsafe extern "C" fn read_by_recv(bio: *mut c_void, bytes: *mut c_char, room: c_int) -> c_int {
    let fd = unsafe { BIO_get_data(bio) }.addr() as c_int;
    let got = unsafe { bywash_async::waits::recv(fd, bytes.cast(), room as usize, 0) } as c_int;
    if got < 0 {
        assert_eq!(std::io::Error::last_os_error().kind(), std::io::ErrorKind::WouldBlock);
        REFUSED.set(REFUSED.get() + 1);
    }
    unsafe { if got < 0 { BIO_set_flags(bio, READ_LATER) } else { BIO_clear_flags(bio, READ_LATER) } };
    got
}

unsafe extern "C" fn write_by_send(bio: *mut c_void, bytes: *const c_char, length: c_int) -> c_int {
    (unsafe { libc::send(BIO_get_data(bio).addr() as c_int, bytes.cast(), length as usize, 0) }) as c_int
}

unsafe extern "C" fn control(_: *mut c_void, command: c_int, _: c_long, _: *mut c_void) -> c_long {
    c_long::from(command == FLUSH)
}

/// The server speaks by a channel of its own, of this name.
pub(crate) fn own_channel(connection: &Connection, name: &std::ffi::CStr) {
    unsafe {
        let method = BIO_meth_new(0x666, name.as_ptr());
        BIO_meth_set_read(method, read_by_recv);
        BIO_meth_set_write(method, write_by_send);
        BIO_meth_set_ctrl(method, control);
        let bio = BIO_new(method);
        BIO_set_data(bio, std::ptr::without_provenance_mut(connection.fd() as usize));
        BIO_set_init(bio, 1);
        SSL_set_bio(connection.server, bio, bio);
    }
}

/// One context for all: TLS 1.2, a self-signed certificate.
fn context() -> *mut c_void {
    static ONCE: Once = Once::new();
    static CONTEXT: std::sync::atomic::AtomicPtr<c_void> = std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
    ONCE.call_once(|| {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=test",
                "-days",
                "2",
                "-keyout",
                "key",
                "-out",
                "certificate",
            ])
            .current_dir(folder.path())
            .output()
            .expect("openssl runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let file = |name| CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
        unsafe {
            let context = SSL_CTX_new(TLS_method());
            SSL_CTX_ctrl(context, 124, 0x303, std::ptr::null_mut()); // SSL_CTRL_SET_MAX_PROTO_VERSION: TLS 1.2
            assert_eq!(SSL_CTX_use_certificate_file(context, file("certificate").as_ptr(), 1), 1);
            assert_eq!(SSL_CTX_use_PrivateKey_file(context, file("key").as_ptr(), 1), 1);
            SSL_CTX_set_msg_callback(context, message);
            CONTEXT.store(context, std::sync::atomic::Ordering::Release);
            (bywash_async_v1.attach)(&COMPUTER);
        }
    });
    CONTEXT.load(std::sync::atomic::Ordering::Acquire)
}

/// A connection with both its ends in this thread.
pub(crate) struct Connection {
    pub(crate) server: Ssl,
    pub(crate) client: Ssl,
    pub(crate) server_end: UnixStream,
    pub(crate) client_end: UnixStream,
}

impl Connection {
    /// The client has said hello.
    pub(crate) fn new() -> Self {
        Self::with_ends(UnixStream::pair().unwrap())
    }

    /// The same, the server's descriptor being the first free one from this on: far from those that other tests open and close meanwhile.
    pub(crate) fn from_number(lowest: RawFd) -> Self {
        let (server_end, client_end) = UnixStream::pair().unwrap();
        let moved = unsafe { libc::fcntl(server_end.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) };
        assert!(moved >= lowest);
        Self::with_ends((unsafe { UnixStream::from_raw_fd(moved) }, client_end))
    }

    fn with_ends((server_end, client_end): (UnixStream, UnixStream)) -> Self {
        let context = context();
        server_end.set_nonblocking(true).unwrap();
        client_end.set_nonblocking(true).unwrap();
        unsafe {
            let (server, client) = (SSL_new(context), SSL_new(context));
            assert_eq!((SSL_set_fd(server, server_end.as_raw_fd()), SSL_set_fd(client, client_end.as_raw_fd())), (1, 1));
            SSL_set_accept_state(server);
            SSL_set_connect_state(client);
            let connection = Self { server, client, server_end, client_end };
            connection.step_client();
            connection
        }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.server_end.as_raw_fd()
    }

    pub(crate) fn step_client(&self) {
        unsafe { SSL_do_handshake(self.client) };
    }

    pub(crate) fn step_server(&self) -> c_int {
        unsafe { SSL_do_handshake(self.server) }
    }

    /// The server's call has ended as one that waits for the client.
    pub(crate) fn assert_wants_to_read(&self, result: c_int) {
        assert_eq!(result, -1);
        assert_eq!(unsafe { SSL_get_error(self.server, result) }, WANT_READ);
        assert_eq!(unsafe { SSL_want(self.server) }, 3);
        assert_eq!(unsafe { ERR_peek_error() }, 0, "it has left an error behind");
    }

    /// Both ends go on until the handshake is done.
    pub(crate) fn finish(&self) {
        for _ in 0..4 {
            self.step_client();
            self.step_server();
        }
        self.step_client();
        assert_eq!(unsafe { (SSL_is_init_finished(self.server), SSL_is_init_finished(self.client)) }, (1, 1));
    }

    /// The server's end is freed, as a program would.
    pub(crate) fn free(self) -> UnixStream {
        unsafe {
            SSL_free(self.server);
            SSL_free(self.client);
        }
        drop(self.server_end);
        self.client_end
    }
}
