//! What the preload library for `/dev/crypto` loads when a program first opens it: the dispatcher, a client, the engines.
//!
//! It shows one symbol, a table of functions ([`Loaded`]). No panic leaves any of them. The client is told by the environment
//! (`BYWASH_SOCKET`, `BYWASH_ROUTE`, `BYWASH_RUN`) as the OpenSSL provider's is. With `BYWASH_EXPLAIN` set (`bywash run --explain`), each request that is refused is told in a line on
//! standard error.

use bywash_client::{Client, Config, variable};
use bywash_cryptodev::{Answer, Device, Errno, Memory};
use bywash_cryptodev_link::{Answer as Reply, Loaded, Process, READABLE, VERSION, WRITABLE};
use core::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

/// What the kernel answers when something has gone wrong that is nobody's request.
const EIO: c_int = 5;

/// The table that the thin half looks for.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "it is known by this name, SYMBOL")]
pub static bywash_cryptodev_loaded_v1: Loaded = Loaded { version: VERSION, open, close, request, readiness, copied };

/// An open file description.
struct Open {
    device: Device,
    memory: Own,
    explains: bool,
}

/// The program's memory, which is this process's own.
struct Own(&'static Process);

impl Memory for Own {
    #[inline]
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        // SAFETY: room of the length that is told.
        outcome(unsafe { (self.0.read)(address, into.as_mut_ptr(), into.len()) })
    }

    #[inline]
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        // SAFETY: bytes of the length that is told.
        outcome(unsafe { (self.0.write)(address, from.as_ptr(), from.len()) })
    }
}

fn outcome(errno: c_int) -> Result<(), Errno> {
    if errno == 0 { Ok(()) } else { Err(Errno(errno)) }
}

fn tell(process: &Process, text: &str) {
    // SAFETY: text of the length that is told.
    unsafe { (process.tell)(text.as_ptr(), text.len()) };
}

/// The process's client, made at the first open. Settings that cannot be read are left at their defaults, as the provider leaves them.
fn client(process: &Process) -> Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    let made = || Client::new(Config::from_env_telling(|error| tell(process, &error.to_string())));
    CLIENT.get_or_init(made).clone()
}

unsafe extern "C" fn open(process: &'static Process) -> *mut c_void {
    let open = || {
        let explains = variable("BYWASH_EXPLAIN").is_some_and(|value| value != "0");
        Box::new(Open { device: Device::new(client(process)), memory: Own(process), explains })
    };
    catch_unwind(open).map_or(ptr::null_mut(), |open| Box::into_raw(open).cast())
}

unsafe extern "C" fn close(device: *mut c_void) {
    // SAFETY: a device of `open`'s, which its last user ends once.
    let open = unsafe { Box::from_raw(device.cast::<Open>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(open)));
}

/// # Safety
/// A device of [`open`]'s that its caller holds.
unsafe fn held<'a>(device: *mut c_void) -> &'a Open {
    // SAFETY: passed on from the caller.
    unsafe { &*device.cast() }
}

unsafe extern "C" fn request(device: *mut c_void, number: u32, argument: u64, reply: &mut Reply) {
    // SAFETY: passed on from the caller.
    let open = unsafe { held(device) };
    let answered = catch_unwind(AssertUnwindSafe(|| answer(open, number, argument)));
    *reply = answered.unwrap_or(Reply { errno: EIO, ..Reply::default() });
}

#[inline]
fn answer(open: &Open, number: u32, argument: u64) -> Reply {
    match open.device.explained(number, argument, &open.memory) {
        Ok(Answer::Value(value)) => Reply { value, ..Reply::default() },
        Ok(Answer::NewDescriptor) => Reply { new_descriptor: 1, ..Reply::default() },
        Err(refusal) => {
            if open.explains {
                tell(open.memory.0, &format!("/dev/crypto: {refusal}"));
            }
            Reply { errno: refusal.errno().0, ..Reply::default() }
        }
    }
}

unsafe extern "C" fn readiness(device: *mut c_void) -> u32 {
    // SAFETY: passed on from the caller.
    let open = unsafe { held(device) };
    let asked = catch_unwind(AssertUnwindSafe(|| open.device.readiness()));
    asked.map_or(WRITABLE, |ready| {
        [(ready.readable, READABLE), (ready.writable, WRITABLE)].iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum()
    })
}

/// The child's memory is a copy of its parent's, sessions and all. The device is told, so that both do not go on from one position of a keystream.
unsafe extern "C" fn copied(device: *mut c_void) {
    // SAFETY: passed on from the caller; it stores a number, and cannot panic.
    unsafe { held(device) }.device.became_child();
}
