//! Clients: making, asking, freeing.

use crate::pointer::{borrow, hand_out, place, take_back, text, write};
use crate::status::{Failure, Status, argument, guard};
use bywash_client::{Client, Route};
use bywash_core::{Algorithm, Place};
use core::ffi::c_char;

/// The routing table decides.
pub const ROUTE_AUTO: u32 = 0;
/// Everything in the caller's place.
pub const ROUTE_HERE: u32 = 1;
/// Everything through the queue.
pub const ROUTE_QUEUE: u32 = 2;

/// What a client is told when it is made.
#[repr(C)]
pub struct Config {
    /// Path of the broker's socket; null works without a broker.
    pub socket: *const c_char,
    /// One of `BYWASH_ROUTE_AUTO`, `BYWASH_ROUTE_HERE`, `BYWASH_ROUTE_QUEUE`.
    pub route: u32,
    /// Names the run this process belongs to, for the broker's accounts; may be null.
    pub run: *const c_char,
}

/// A process's access to engines.
pub struct ClientHandle(pub(crate) Client);

impl Config {
    /// # Safety
    /// The strings must be valid, or null.
    unsafe fn read(&self) -> Result<bywash_client::Config, Failure> {
        let route = match self.route {
            ROUTE_AUTO => Route::Auto,
            ROUTE_HERE => Route::Here,
            ROUTE_QUEUE => Route::Queue,
            other => return argument(format!("route {other} is none of BYWASH_ROUTE_AUTO, _HERE, _QUEUE")),
        };
        let optional = |pointer: *const c_char, name| match pointer.is_null() {
            true => Ok(None),
            // SAFETY: the caller's promise, handed on.
            false => unsafe { text(pointer, name) }.map(|text| Some(text.to_owned())),
        };
        let (socket, run) = (optional(self.socket, "socket")?, optional(self.run, "run")?);
        Ok(bywash_client::Config { socket: socket.map(Into::into), route, run, ..bywash_client::Config::default() })
    }
}

/// Makes a client. A null configuration means what the environment says (`BYWASH_SOCKET`, `BYWASH_ROUTE`, `BYWASH_RUN`).
/// A broker that cannot be reached is no error: the work is then done in this process. Starts no thread.
///
/// # Safety
/// `config` must be null or valid, with valid strings; `client` must be valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_client_new(config: *const Config, client: *mut *mut ClientHandle) -> Status {
    guard(|| {
        place(client, "client")?;
        // SAFETY: the caller's promise.
        let config = match unsafe { config.as_ref() } {
            None => bywash_client::Config::from_env()?,
            // SAFETY: as above.
            Some(config) => unsafe { config.read() }?,
        };
        // SAFETY: checked by `place`; the caller's promise.
        unsafe { hand_out(client, ClientHandle(Client::new(config))) };
        Ok(Status::Ok)
    })
}

/// Frees a client; sessions opened on it go on working.
///
/// # Safety
/// `client` must be null or come from `bywash_client_new`, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_client_free(client: *mut ClientHandle) {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { take_back(client) };
        Ok(Status::Ok)
    });
}

/// Where an operation of this size would run: writes 0 for "here, in the calling thread" or 1 for "in the queue".
///
/// # Safety
/// `client`, `algorithm` and `where_` must be valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_place(client: *const ClientHandle, algorithm: *const c_char, bytes: usize, where_: *mut u32) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, algorithm) = unsafe { (borrow(client, "client")?, text(algorithm, "algorithm")?) };
        let answer = client.0.place(algorithm.parse::<Algorithm>()?, bytes) == Place::Queue;
        // SAFETY: the caller's promise.
        *unsafe { crate::pointer::borrow_mut(where_, "where") }? = u32::from(answer);
        Ok(Status::Ok)
    })
}

/// What a client has done.
#[repr(C)]
#[derive(Default)]
pub struct Stats {
    /// Operations of the algorithm run in the caller's place.
    pub here_operations: u64,
    /// Bytes of input of the algorithm run in the caller's place.
    pub here_bytes: u64,
    /// Operations of all algorithms that a queue completed.
    pub queued: u64,
    /// Operations of all algorithms given to a queue and run here after all: the broker died, hung or refused.
    pub reruns: u64,
    /// Operations of all algorithms meant for the queue and run here at once: no room in the ring, or no broker just then.
    pub overflows: u64,
    /// Connections to brokers made.
    pub connections: u64,
}

/// What this client has done so far, with one algorithm in place and with all in the queue.
///
/// # Safety
/// `client`, `algorithm` and `stats` must be valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_stats_of(client: *const ClientHandle, algorithm: *const c_char, stats: *mut Stats) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, algorithm) = unsafe { (borrow(client, "client")?, text(algorithm, "algorithm")?) };
        let (here_operations, here_bytes) = client.0.counted(algorithm.parse()?);
        // SAFETY: the caller's promise.
        let place = unsafe { crate::pointer::borrow_mut(stats, "stats") }?;
        let all = client.0.stats();
        let bywash_client::Stats { queued, reruns, overflows, connections, .. } = all;
        *place = Stats { here_operations, here_bytes, queued, reruns, overflows, connections };
        Ok(Status::Ok)
    })
}

/// How things stand with the broker, in words: connected, or why not and what would mend it. Writes at most `len` bytes with the final zero.
///
/// # Safety
/// `client` must be valid or null, `words` for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bywash_client_status(client: *const ClientHandle, words: *mut c_char, len: usize) -> Status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (client, place) = unsafe { (borrow(client, "client")?, write(words.cast::<u8>(), len, "words")?) };
        let Some((end, room)) = place.split_last_mut() else { return argument("len is 0: there is no room for words") };
        let status = client.0.status();
        let fits = (0..=room.len().min(status.len())).rev().find(|&end| status.is_char_boundary(end)).unwrap_or(0);
        room[..fits].copy_from_slice(&status.as_bytes()[..fits]);
        room[fits..].fill(0);
        *end = 0;
        Ok(Status::Ok)
    })
}
