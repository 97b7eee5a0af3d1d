//! What a program wrote and cannot be taken. With a kernel that writes behind, its writer went on long before.
//!
//! The kernel tells whoever syncs or closes the file. But a program that fills a disk does neither, and would go on for as long as it has something to write. Before each write
//! the kernel looks at the file's mode, and asks for its attributes if it may not believe them any more, by the writer's handle: who is answered with an error then passes it on to the writer.

use crate::node::Node;
use crate::told;
use crate::tree::Tree;
use rustix::io::Errno;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// An attribute that the root has for who is about to unmount, and that nobody else sees: whether something is lost since that was asked last.
pub(crate) const LOST: &std::ffi::CStr = c"bywash.lost";
/// Its value if so.
pub(crate) const HAS_LOST: &[u8; 1] = b"1";

impl Tree {
    /// Something that a program wrote cannot be taken. Whether the kernel must not believe the file's attributes from now on, so that its writer's next write [is refused](Self::take_refusal).
    pub(crate) fn lose(&self, ino: u64, error: &io::Error) -> bool {
        self.has_lost.store(true, Relaxed);
        self.has_ever_lost.store(true, Relaxed);
        let Some(node) = self.nodes.known(ino) else { return false };
        let what = "something that was written to it is lost, as whoever writes on, syncs or closes it is told";
        let mut opened = node.opened();
        opened.lost.error(format!("{}: {what}", told::file(ino)), error);
        let number = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
        opened.refusal.replace(number).is_none()
    }

    /// The number of the error that a writer is to be told of, once.
    pub(crate) fn take_refusal(&self, node: &Node) -> Option<i32> {
        if self.has_ever_lost.load(Relaxed) { node.opened().refusal.take() } else { None }
    }

    /// Whether a writer is to be told of an error yet.
    pub(crate) fn has_refusal(&self, ino: u64) -> bool {
        self.has_ever_lost.load(Relaxed) && self.nodes.known(ino).is_some_and(|node| node.opened().refusal.is_some())
    }

    /// The value of [`LOST`].
    pub(crate) fn answer_lost(&self) -> Vec<u8> {
        if self.has_lost.swap(false, Relaxed) { HAS_LOST.to_vec() } else { b"0".to_vec() }
    }
}
