//! The life of a connection, as all who use it see it.

use arc_swap::ArcSwapOption;
use bywash_protocol::{ControlSocket, Generation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Whether a connection may still be used, and the socket that tells.
pub(crate) struct Life {
    usable: AtomicBool,
    process: Generation,
    socket: ArcSwapOption<ControlSocket>,
    /// When the broker last completed anything.
    progress_ns: AtomicU64,
}

impl Life {
    pub(crate) fn new(socket: ControlSocket, now_ns: u64) -> Arc<Self> {
        let socket = ArcSwapOption::from_pointee(socket);
        Arc::new(Self { usable: AtomicBool::new(true), process: Generation::current(), socket, progress_ns: AtomicU64::new(now_ns) })
    }

    /// Whether nothing speaks against using it: one load.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.usable.load(Relaxed)
    }

    /// Looks whether the other end still lives: one system call.
    pub(crate) fn check(&self) -> bool {
        let alive = self.is_usable() && self.socket.load().as_ref().is_some_and(|socket| !socket.is_hung_up());
        if !alive {
            self.end();
        }
        alive
    }

    /// Whether this process made the connection, and did not inherit it.
    pub(crate) fn is_mine(&self) -> bool {
        self.process.is_current()
    }

    /// Ends it: nobody uses it any more, and the socket is closed. In a forked child this closes the child's copy and leaves
    /// the parent's connection alone.
    pub(crate) fn end(&self) {
        self.usable.store(false, Relaxed);
        drop(self.socket.swap(None));
    }

    pub(crate) fn socket(&self) -> Option<Arc<ControlSocket>> {
        self.socket.load_full()
    }

    pub(crate) fn progress(&self, now_ns: u64) {
        self.progress_ns.store(now_ns, Relaxed);
    }

    /// When the broker last completed anything.
    pub(crate) fn last_progress_ns(&self) -> u64 {
        self.progress_ns.load(Relaxed)
    }
}
