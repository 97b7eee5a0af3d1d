//! What the two halves of the preload library for `/dev/crypto` tell each other: two tables of C functions.
//!
//! The thin half (`bywash-cryptodev-preload`) is in every process of a run and knows descriptors, memory, signals and forks. The other
//! (`bywash-cryptodev-loaded`) is loaded when a program first opens `/dev/crypto`, and knows sessions and engines. They are built and installed together, side
//! by side in one folder, and refuse each other if their [`VERSION`]s differ.
#![no_std]

use bywash_unwinder as _;
use core::ffi::{CStr, c_int, c_void};

/// The file name of the half that is loaded late.
pub const FILE: &CStr = c"libbywash_cryptodev_loaded.so";
/// The symbol under which it shows its [`Loaded`].
pub const SYMBOL: &CStr = c"bywash_cryptodev_loaded_v1";
/// What [`Loaded::version`] must be.
pub const VERSION: u32 = 1;

/// What the thin half can do: reach the memory of the program without crashing on a bad pointer.
#[repr(C)]
pub struct Process {
    /// Copies from the program's memory; answers 0 or an errno (`EFAULT`).
    pub read: unsafe extern "C" fn(address: u64, into: *mut u8, length: usize) -> c_int,
    /// Copies to the program's memory; answers 0 or an errno (`EFAULT`).
    pub write: unsafe extern "C" fn(address: u64, from: *const u8, length: usize) -> c_int,
    /// Writes a line to the standard error output that the process began with, if it is still there. Never raises `SIGPIPE`.
    pub tell: unsafe extern "C" fn(text: *const u8, length: usize),
}

/// What the late half can do.
#[repr(C)]
pub struct Loaded {
    /// [`VERSION`].
    pub version: u32,
    /// Makes a device: what one open file description is to the real module. Null if it could not be made.
    pub open: unsafe extern "C" fn(process: &'static Process) -> *mut c_void,
    /// Ends a device and all of its sessions.
    pub close: unsafe extern "C" fn(device: *mut c_void),
    /// Answers one ioctl.
    pub request: unsafe extern "C" fn(device: *mut c_void, number: u32, argument: u64, answer: &mut Answer),
    /// Whether poll(2) is to find the device readable (1) and writable (2).
    pub readiness: unsafe extern "C" fn(device: *mut c_void) -> u32,
    /// The process is a child that a fork has just made: the device's sessions are copies of its parent's. Takes no lock and allocates nothing.
    pub copied: unsafe extern "C" fn(device: *mut c_void),
}

/// [`Loaded::readiness`]: something that was asked asynchronously is done.
pub const READABLE: u32 = 1;
/// [`Loaded::readiness`]: there is room for another asynchronous request.
pub const WRITABLE: u32 = 2;

/// What [`Loaded::request`] answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// 0, or why it failed.
    pub errno: c_int,
    /// What `ioctl` is to answer if it did not.
    pub value: c_int,
    /// 1 if the answer is another descriptor of the same description, whose number goes to the ioctl's argument.
    pub new_descriptor: c_int,
}
