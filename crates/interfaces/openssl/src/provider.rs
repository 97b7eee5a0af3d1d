//! The provider itself: entry point, configuration, and the table of what it offers.

use crate::delegate::Delegate;
use crate::errors::{REASON_STRINGS, Reason, connect, disconnect, raise};
use crate::ffi::ids::{core as id, operation};
use crate::ffi::libcrypto;
use crate::ffi::{AlgorithmEntry, Callback, CoreHandle, DispatchEntry, Function, Param, ParamsMut, Table, guard};
use crate::{ciphers, kdf, keys, pkey};
use bywash_client::{Client, Config, Route, parse_keep};
use bywash_core::Algorithm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::{ptr, slice};
use once_cell::race::OnceBox;

/// One loaded provider: what every context of ours holds on to.
///
/// libcrypto keeps a provider until the last object fetched from it is freed, so contexts may hold a plain reference: see [`Provider::from_ptr`].
pub struct Provider {
    /// Tells it from all others of this process, also from one that was here before.
    number: u64,
    handle: *const CoreHandle,
    config: Config,
    /// Made when something is first computed: most programs that load libcrypto's configuration compute nothing of ours. No lock: the child of
    /// a fork would wait for ever for the thread that was making it.
    client: OnceBox<Option<Client>>,
    bio_gets: Option<BioGets>,
    bio_read: Option<BioRead>,
    thread_start: Option<ThreadStart>,
}

/// The core's `BIO_gets`, for what a decoder reads from.
pub type BioGets = unsafe extern "C" fn(bio: *mut c_void, line: *mut c_char, size: c_int) -> c_int;
/// The core's `BIO_read_ex`.
pub type BioRead = unsafe extern "C" fn(bio: *mut c_void, data: *mut c_void, size: usize, read: *mut usize) -> c_int;
/// What is called when a thread stops.
pub type ThreadStops = unsafe extern "C" fn(*mut c_void);
/// The core's `core_thread_start`. Releases before 3.1 hand the function the provider's context whatever `arg` is.
type ThreadStart = unsafe extern "C" fn(handle: *const CoreHandle, stops: ThreadStops, arg: *mut c_void) -> c_int;

// SAFETY: the handle is only compared and handed back to the core; the rest is shareable.
unsafe impl Send for Provider {}
// SAFETY: as above.
unsafe impl Sync for Provider {}

impl Provider {
    fn new(handle: *const CoreHandle, config: Config, bio_gets: Option<BioGets>, bio_read: Option<BioRead>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Self { number: NUMBER.fetch_add(1, Relaxed), handle, config, client: OnceBox::new(), bio_gets, bio_read, thread_start: None }
    }

    /// The provider behind the pointer that libcrypto hands to constructors.
    ///
    /// # Safety
    /// `provctx` is what [`OSSL_provider_init`] gave out, not torn down. The reference is called static because libcrypto tears the provider
    /// down only when nothing made from it is left.
    #[inline]
    pub unsafe fn from_ptr(provctx: *mut c_void) -> Option<&'static Self> {
        // SAFETY: passed on from the caller.
        unsafe { provctx.cast::<Self>().as_ref() }
    }

    /// Its number: not 0, and no other's.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many keyed ciphers a thread may keep for its next contexts.
    pub(crate) fn keeps_most(&self) -> usize {
        self.config.keep
    }

    /// Has the core call a function when this thread stops; false if it cannot be had.
    pub(crate) fn tell_when_thread_stops(&self, stops: ThreadStops) -> bool {
        // SAFETY: the core's function and its own handle; the function looks at no argument, and is in a module that the core does not unload before it has forgotten it.
        self.thread_start.is_some_and(|start| unsafe { start(self.handle, stops, ptr::null_mut()) } == 1)
    }

    /// Access to engines; none if it could not be had.
    pub fn client(&self) -> Option<&Client> {
        self.client.get_or_init(|| Box::new(guard(None, || Some(Client::new(self.config.clone()))))).as_ref()
    }

    /// Whether there is a client, as far as is known. Where there is none, nothing is offered (any more).
    fn is_able(&self) -> bool {
        !matches!(self.client.get(), Some(None))
    }

    /// Whether operations may leave this process, as far as can be told before anything is computed.
    fn may_leave(&self) -> bool {
        self.config.route == Route::Queue || self.config.socket.as_ref().is_some_and(|socket| socket.exists())
    }

    /// How a decoder reads lines, where the core offers that.
    pub fn bio_gets(&self) -> Option<BioGets> {
        self.bio_gets
    }

    /// How a decoder reads bytes, where the core offers that.
    pub fn bio_read(&self) -> Option<BioRead> {
        self.bio_read
    }

    /// The default provider in a private library context, made when it is first needed.
    pub fn delegate(&self) -> Option<&'static Delegate> {
        let delegate = Delegate::get();
        if delegate.is_none() {
            raise(Reason::InternalError, "bywash: OpenSSL's default provider cannot be loaded; check the installation of libssl3");
        }
        delegate
    }
}

impl Provider {
    /// One that no program has loaded, for tests of what is made from it.
    #[cfg(test)]
    pub(crate) fn of_no_program(route: bywash_client::Route) -> Self {
        Self::new(ptr::null(), Config { route, ..Config::default() }, None, None)
    }

    /// Sets how many keyed ciphers a thread may keep.
    #[cfg(test)]
    pub(crate) fn keep(&mut self, most: usize) {
        self.config.keep = most;
    }

    /// What this process computed in its own place, one line for each algorithm used.
    fn log_usage(&self) {
        let Some(client) = self.client.get().and_then(Option::as_ref).filter(|_| wants_log()) else { return };
        for &algorithm in Algorithm::ALL {
            let (operations, bytes) = client.counted(algorithm);
            if operations > 0 {
                log(&format_args!("used here: {algorithm}: {operations} operations, {bytes} bytes"));
            }
        }
    }
}

/// A parameter of the provider's section in openssl.cnf.
fn configured(handle: *const CoreHandle, get_params: Option<Function>, key: &CStr) -> Option<String> {
    type GetParams = unsafe extern "C" fn(*const CoreHandle, *mut Param) -> c_int;
    // SAFETY: core_dispatch.h fixes the type that goes with the id.
    let get_params = unsafe { transmute::<Function, GetParams>(get_params?) };
    let mut text: *const c_char = ptr::null();
    let mut request = [Param::new(key, crate::ffi::abi::UTF8_PTR, (&raw mut text).cast(), size_of::<*const c_char>()), Param::END];
    // SAFETY: a live handle and an array that is ended; the core sets `text` to a string of its own or leaves it alone.
    if unsafe { get_params(handle, request.as_mut_ptr()) } != 1 || text.is_null() {
        return None;
    }
    // SAFETY: the core's strings end in NUL and live as long as the provider.
    unsafe { CStr::from_ptr(text) }.to_str().ok().map(str::to_owned)
}

/// The configuration: the environment's, overridden by the provider's section. What cannot be read is left at its default, because a
/// provider that refuses to load would break the program.
fn configuration(handle: *const CoreHandle, get_params: Option<Function>) -> Config {
    let mut config = Config::from_env_telling(|error| log(&error));
    if let Some(socket) = configured(handle, get_params, c"socket") {
        config.socket = (!socket.is_empty() && socket != "none").then(|| socket.into());
    }
    if let Some(route) = configured(handle, get_params, c"route") {
        match route.parse() {
            Ok(route) => config.route = route,
            Err(error) => log(&error),
        }
    }
    if let Some(run) = configured(handle, get_params, c"run") {
        config.run = Some(run);
    }
    if let Some(keep) = configured(handle, get_params, c"keep") {
        match parse_keep(&keep) {
            Ok(keep) => config.keep = keep,
            Err(error) => log(&error),
        }
    }
    config
}

/// Whether the user wants to hear from us.
fn wants_log() -> bool {
    bywash_client::variable("BYWASH_LOG").is_some()
}

/// Tells the user, if the user asked for it.
fn log(what: &dyn core::fmt::Display) {
    if wants_log() {
        eprintln!("bywash: {what}");
    }
}

/// Prints nothing, whatever happens, unless the user asked for it.
fn be_quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if !wants_log() {
            std::panic::set_hook(Box::new(|_| {}));
        }
    });
}

/// Entry point: what libcrypto calls when the module is loaded.
///
/// It does not fail where libcrypto's functions can be found: a first-listed provider that fails to load would break every program under this configuration. What
/// cannot be had is not offered, and libcrypto goes on to the next provider.
///
/// # Safety
/// Called by libcrypto, with the arguments that provider(7) describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OSSL_provider_init(
    handle: *const CoreHandle,
    input: *const DispatchEntry,
    output: *mut *const DispatchEntry,
    provctx: *mut *mut c_void,
) -> c_int {
    be_quiet();
    guard(0, || {
        // SAFETY: libcrypto's table ends with id 0.
        let length = (0..1024).take_while(|&index| unsafe { (*input.add(index)).id } != 0).count();
        // SAFETY: so many entries are there.
        let entries = unsafe { slice::from_raw_parts(input, length) };
        let core = entries.iter().find_map(|entry| entry.function);
        if !libcrypto::attach(core.map_or(ptr::null(), |function| function as *const c_void)) {
            return 0;
        }
        // SAFETY: the entries come with the handle.
        unsafe { connect(handle, entries) };
        let offered = |id| entries.iter().find(|entry| entry.id == id).and_then(|entry| entry.function);
        let get_params = offered(id::GET_PARAMS);
        let config = configuration(handle, get_params);
        pkey::attach();
        // SAFETY: core_dispatch.h fixes the type that goes with the id.
        let bio_gets = offered(id::BIO_GETS).map(|gets| unsafe { transmute::<Function, BioGets>(gets) });
        // SAFETY: as above.
        let bio_read = offered(id::BIO_READ).map(|read| unsafe { transmute::<Function, BioRead>(read) });
        let mut provider = Box::new(Provider::new(handle, config, bio_gets, bio_read));
        // SAFETY: as above.
        provider.thread_start = offered(id::THREAD_START).map(|start| unsafe { transmute::<Function, ThreadStart>(start) });
        // SAFETY: libcrypto gives room for both results.
        unsafe {
            *provctx = Box::into_raw(provider).cast();
            *output = DISPATCH.0.as_ptr();
        }
        1
    })
}

macro_rules! function {
    ($function:expr, $type:ty) => {
        // SAFETY: a function pointer is stored under the id whose type it has; libcrypto casts it back to that type.
        Some(unsafe { transmute::<$type, Function>($function) })
    };
}

static DISPATCH: Table<[DispatchEntry; 7]> = Table([
    DispatchEntry { id: id::PROVIDER_TEARDOWN, function: function!(teardown, unsafe extern "C" fn(*mut c_void)) },
    DispatchEntry { id: id::PROVIDER_GETTABLE_PARAMS, function: function!(gettable_params, extern "C" fn(*mut c_void) -> *const Param) },
    DispatchEntry { id: id::PROVIDER_GET_PARAMS, function: function!(get_params, unsafe extern "C" fn(*mut c_void, *mut Param) -> c_int) },
    DispatchEntry {
        id: id::PROVIDER_QUERY_OPERATION,
        function: function!(query_operation, unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const AlgorithmEntry),
    },
    DispatchEntry {
        id: id::PROVIDER_GET_CAPABILITIES,
        function: function!(get_capabilities, unsafe extern "C" fn(*mut c_void, *const c_char, Callback, *mut c_void) -> c_int),
    },
    DispatchEntry { id: id::PROVIDER_GET_REASON_STRINGS, function: function!(reason_strings, extern "C" fn(*mut c_void) -> *const c_void) },
    DispatchEntry::END,
]);

unsafe extern "C" fn teardown(provctx: *mut c_void) {
    guard((), || {
        if provctx.is_null() {
            return;
        }
        // SAFETY: made by `OSSL_provider_init` and torn down once, when nothing refers to it any more.
        let provider = unsafe { Box::from_raw(provctx.cast::<Provider>()) };
        disconnect(provider.handle);
        ciphers::unload();
        provider.log_usage();
    });
}

static GETTABLE: Table<[Param; 5]> = Table([
    Param::declare(c"name", crate::ffi::abi::UTF8_PTR, 0),
    Param::declare(c"version", crate::ffi::abi::UTF8_PTR, 0),
    Param::declare(c"buildinfo", crate::ffi::abi::UTF8_PTR, 0),
    Param::declare_int(c"status"),
    Param::END,
]);

extern "C" fn gettable_params(_provctx: *mut c_void) -> *const Param {
    GETTABLE.0.as_ptr()
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

unsafe extern "C" fn get_params(provctx: *mut c_void, params: *mut Param) -> c_int {
    guard(0, || {
        // SAFETY: libcrypto hands us its array for the time of the call.
        let mut params = unsafe { ParamsMut::new(params) };
        // SAFETY: libcrypto hands us our own context.
        let running = unsafe { Provider::from_ptr(provctx) }.is_some_and(|provider| provider.is_able());
        let done = params.answer(c"name", |param| param.set_utf8(c"Bywash cryptographic offload"))
            && params.answer(c"version", |param| param.set_utf8(VERSION))
            && params.answer(c"buildinfo", |param| param.set_utf8(VERSION))
            && params.answer_number(c"status", u64::from(running));
        c_int::from(done)
    })
}

unsafe extern "C" fn query_operation(provctx: *mut c_void, wanted: c_int, no_cache: *mut c_int) -> *const AlgorithmEntry {
    if !no_cache.is_null() {
        // SAFETY: room for an int, by the interface.
        unsafe { *no_cache = 0 };
    }
    // SAFETY: libcrypto hands us our own context.
    let Some(provider) = unsafe { Provider::from_ptr(provctx) }.filter(|provider| provider.is_able()) else { return ptr::null() };
    match wanted {
        operation::CIPHER => ciphers::offered(provider.may_leave() || Client::has_solo(Algorithm::ChaCha20Poly1305)).as_ptr(),
        operation::KDF => kdf::KDF.0.as_ptr(),
        operation::KEYMGMT => pkey::KEYMGMT.0.as_ptr(),
        operation::SIGNATURE => pkey::SIGNATURE.0.as_ptr(),
        operation::ASYM_CIPHER => pkey::ASYM_CIPHER.0.as_ptr(),
        operation::KEYEXCH => pkey::KEYEXCH.0.as_ptr(),
        operation::DECODER => keys::DECODER.0.as_ptr(),
        operation::STORE => keys::STORE.0.as_ptr(),
        _ => ptr::null(),
    }
}

/// What belongs to our algorithms and is asked for apart from them: the TLS groups of our key managers.
unsafe extern "C" fn get_capabilities(provctx: *mut c_void, capability: *const c_char, callback: Callback, arg: *mut c_void) -> c_int {
    guard(0, || {
        // SAFETY: libcrypto hands us our own context.
        let able = unsafe { Provider::from_ptr(provctx) }.is_some_and(|provider| provider.is_able());
        // Without any it is no failure, for which libssl would make no context. SAFETY: libcrypto's arguments, handed on.
        if able { unsafe { pkey::offer_groups(capability, callback, arg) } } else { 1 }
    })
}

extern "C" fn reason_strings(_provctx: *mut c_void) -> *const c_void {
    REASON_STRINGS.0.as_ptr().cast()
}
