//! Runtimes that watch the stacks of their threads.
//!
//! Ruby compares where it is with where its thread's stack lies: a callback on another (`servername_cb`, `alpn_select_cb`) raises `SystemStackError`, "stack level too deep", which ends the
//! handshake, and a collection of garbage in one would look for objects from there to its thread's stack. Whether a context has such callbacks cannot be asked, so in a process with Ruby no
//! handshake is begun on a stack of its own.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A function of each that no program without it has.
const WATCHERS: [&CStr; 1] = [c"ruby_init_stack"];

const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
const SOME: u8 = 2;

/// Whether the process has one: looked up once, since who shakes hands under one has started it before.
pub(crate) fn watches_stacks() -> bool {
    static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);
    if FOUND.load(Relaxed) == UNKNOWN {
        // SAFETY: looks names up.
        let is_there = |name: &CStr| unsafe { !libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).is_null() };
        FOUND.store(if WATCHERS.into_iter().any(is_there) { SOME } else { NONE }, Relaxed);
    }
    FOUND.load(Relaxed) == SOME
}
