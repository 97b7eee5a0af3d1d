//! What the preload library (`bywash-async`) and the OpenSSL provider tell each other: two tables of C functions.
//!
//! Neither is built against the other, and either works alone: the provider looks for the symbol [`SYMBOL`] in the process and, where it is
//! missing, computes every operation in place. All functions of both tables speak of the calling thread alone; nothing in them is shared by
//! threads.
#![no_std]

use bywash_unwinder as _;
use core::ffi::{CStr, c_int};

/// The symbol under which the preload library shows its [`Waiter`].
pub const SYMBOL: &CStr = c"bywash_async_v1";
/// What [`Waiter::version`] must be.
pub const VERSION: u32 = 1;
/// A [`Waiter::company`] that nobody knows, because the thread has not waited for anything yet.
pub const COMPANY_UNKNOWN: u32 = u32::MAX;

/// What the preload library can do: suspend the handshake in which an operation arose.
#[repr(C)]
pub struct Waiter {
    /// [`VERSION`].
    pub version: u32,
    /// Tells it who computes. The table lives as long as the process.
    pub attach: unsafe extern "C" fn(computer: &'static Computer),
    /// The fiber on which this thread is, if it may be suspended just now; 0 if not.
    pub fiber: unsafe extern "C" fn() -> u64,
    /// Suspends the fiber that [`fiber`](Self::fiber) has named until it is woken. Answers 1 when it was, 0 when its handshake was given up: the operation is
    /// then to fail.
    pub suspend: unsafe extern "C" fn() -> c_int,
    /// The operation for which a fiber of this thread was suspended is done.
    pub wake: unsafe extern "C" fn(fiber: u64),
    /// How many connections seem to be busy in this thread, the asking one included; or [`COMPANY_UNKNOWN`].
    pub company: unsafe extern "C" fn() -> u32,
}

/// What the provider can do: compute what it has gathered in this thread.
#[repr(C)]
pub struct Computer {
    /// Computes what is best computed at this moment; answers how many operations that were. `fiber` counts for [`Moment::Demanded`] alone.
    pub fire: unsafe extern "C" fn(moment: Moment, fiber: u64) -> u32,
    /// How many operations wait.
    pub waiting: unsafe extern "C" fn() -> u32,
}

/// When [`Computer::fire`] is called.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// An operation has just been put off.
    Arrived = 0,
    /// The server has asked for events and got some: more operations may come soon.
    Busy = 1,
    /// The server is about to block: nothing more comes before something is computed.
    Blocking = 2,
    /// The server asks after this fiber's handshake although nothing has told it to.
    Demanded = 3,
}
