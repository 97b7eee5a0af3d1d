//! What a program's process does under the filter before it is the program. `Command::spawn` returns when the program has been started, or when the child has said why not;
//! it says so with a write, whose descriptor has a number that may be one of ours where this process has very many open. Nobody else answers yet: `spawn` would never return.

use bywash_stopped::Error;
use bywash_stopped::attach::Attachment;
use bywash_stopped::listener::{Listener, Notification, Verdict};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A listener, and the first call that is the program's, if it has made one.
pub(crate) type Begun = (Listener, Option<Notification>);

/// Answers a child until it is the program.
pub(crate) struct Early {
    thread: Option<JoinHandle<Result<Begun, Error>>>,
    /// Readable once the start has succeeded or failed.
    started: Arc<OwnedFd>,
}

impl Early {
    /// From before the start on.
    ///
    /// # Errors
    /// [`Error::System`]
    pub(crate) fn start(attachment: Attachment) -> Result<Self, Error> {
        let started = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| Error::System { what: "a counter", errno })?);
        let heard = Arc::clone(&started);
        let thread = std::thread::Builder::new().name("hook-early".into()).spawn(move || attend(attachment, &heard));
        let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
        Ok(Self { thread: Some(thread.map_err(|error| Error::System { what: "a thread", errno: errno(error) })?), started })
    }

    /// The listener, once the start has succeeded; or why it has not, if the filter is at fault.
    ///
    /// # Errors
    /// As [`Attachment::listener`].
    pub(crate) fn end(mut self) -> Result<Begun, Error> {
        self.tell();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(Err(Error::NotStarted))
    }

    fn tell(&self) {
        // A counter that overflowed would be as readable.
        let _ = rustix::io::write(&self.started, &1u64.to_ne_bytes());
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.tell();
    }
}

fn attend(attachment: Attachment, started: &OwnedFd) -> Result<Begun, Error> {
    readable(&attachment, started);
    let listener = Listener::new(attachment.listener()?);
    while readable(&listener, started) {
        match listener.receive() {
            // No descriptor of a volume's file is there before a first open has been answered. What is executed is the program, which is looked for in one folder after the other.
            Ok(Some(call)) if matches!(call.call, libc::SYS_write | libc::SYS_close | libc::SYS_fcntl | libc::SYS_execve) => {
                listener.answer(call.id, Verdict::Continue);
            }
            Ok(first) => return Ok((listener, first)),
            Err(errno) => return Err(Error::System { what: "word of stopped calls", errno }),
        }
    }
    Ok((listener, None))
}

/// Waits for either; gives whether there is something to read on the first.
fn readable(first: &impl AsFd, started: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(first, PollFlags::IN), PollFd::new(started, PollFlags::IN)];
    while poll(&mut watched, None) == Err(Errno::INTR) {}
    watched[0].revents().contains(PollFlags::IN)
}
