//! `/dev/crypto` for programs that nothing can be loaded into: statically linked ones, and those of Go and Rust.
//!
//! The program runs under a filter of system calls (`seccomp_unotify(2)`). An open of a file and a request of cryptodev's letter stop in the
//! kernel, which tells this process; everything else costs what it did. An open of exactly `/dev/crypto` is answered with a descriptor, every other goes on to the
//! kernel. A request on such a descriptor is answered by [`bywash_cryptodev::Device`], which reads and writes the program's memory through
//! the kernel; one on another descriptor goes on.
//!
//! ```no_run
//! use bywash_client::{Clients, Config};
//! use bywash_cryptodev_supervisor::Supervision;
//!
//! let mut command = std::process::Command::new("./statically-linked");
//! let supervision = Supervision::prepare(&mut command)?;
//! let mut child = command.spawn()?; // Should this fail, `supervision.why()` may know better.
//! let supervisor = supervision.begin(Clients::new(Config::default())?, None)?;
//! child.wait()?;
//! supervisor.wait(); // until the last process under the filter is gone
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Descriptors
//!
//! A descriptor is one end of a socket pair, so poll and epoll work on it, and it is shared by dup, fork and exec like any other. Sessions belong to the
//! pair; they end when the last copy of the program's end is closed, by whatever way. Which pair a number means is asked of
//! the kernel at every request, for closes and dups are not seen.
//!
//! # This is emulation, not a security boundary
//!
//! When a call goes on to the kernel, the kernel reads its arguments from the program's memory again; another thread may have changed them since we
//! looked (`seccomp_unotify(2)`, "Caveats regarding the use of SECCOMP_USER_NOTIF_FLAG_CONTINUE"). A program can thereby only open what it could have opened
//! anyway. Nothing is forbidden to a program here, so nothing can be got around.
//!
//! # What a program may notice
//!
//! - *Privileges.* The filter demands `PR_SET_NO_NEW_PRIVS`: the setuid and setgid bits and file capabilities of programs that it executes are ignored
//!   from there on. [`Supervision::prepare`] refuses a program that has such bits and would need them; `sudo` and `su` inside say so themselves.
//! - *Filters of its own.* A program may install more filters. Where one of them forbids a call, that holds; what they allow comes here. The kernel
//!   has one listener for all filters of a process, so a program that wants one too is told EBUSY, and a run within a run is [`Error::Nested`].
//! - *32-bit and x32 programs* go on untouched: for them there is no `/dev/crypto`.
//! - *Other ways to open a file* (`io_uring`, `open_by_handle_at`) and other names of the device (links, `/dev/../dev/crypto`, relative ones) are not seen. Nor are
//!   `stat` and `access`, for which there is no such file.
//! - *The descriptor is a socket* to fstat and `/proc`, and non-blocking. Where the device has EINVAL for `read` and `write`, `read` gives EAGAIN or zeros and `write` is swallowed or
//!   EAGAIN. What they take from or put into the socket is what poll goes by: it is right again after the next asynchronous request. Requests of
//!   other letters than cryptodev's are answered as by a socket.
//! - *Memory that we may not read*: of a program that has made itself undumpable or, where `kernel.yama.ptrace_scope` is 1 or more,
//!   of one that is not a descendant any more (a daemon adopted by init). There the device does not exist (ENOENT); requests on a descriptor that is
//!   still there get ENOTTY.
//! - *Signals.* A handler waits until a request that has been taken up is answered. (Kernels before 5.19 would make the request anew after it, a text enciphered twice; there nothing
//!   is supervised. Kernels from 5.19 on still may, where the signal comes at the moment of the answer: this is believed to be mended in 6.1.156, 6.6.112, 6.12.53, 6.17.3 and 6.18, upstream by
//!   cce436aafc2a, and older ones are not refused.) One without SA_RESTART that comes before the request is taken up makes it fail with EINTR, opens of whatever file included.
//! - *A program executed in the midst of a request*, by another thread: what is written in the moment between asking whether the call still waits and writing, 64 KiB at most, may
//!   reach the new program. The kernel has no write that is bound to the old one and keeps to what may be written there.
//! - *When this process dies*, by `kill -9` say, the kernel answers every stopped call and every later one with ENOSYS, opens of whatever file included. No
//!   program hangs, but none opens a file any more. So whoever supervises goes on until the last process under the filter is gone.
//!
//! # Threads
//!
//! One thread waits for calls and answers those of microseconds itself; where a call takes long, another one takes its place ([`bywash_stopped::pool`]). Up to 64 calls are
//! answered at the same time. The thread that is woken runs where the caller ran, from Linux 6.6 on.
#![warn(rustdoc::broken_intra_doc_links)]

mod description;
mod filter;
mod memory;
mod pieces;
mod server;

pub use bywash_stopped::Error;
pub use bywash_stopped::attach::support;

use bywash_client::Clients;
use bywash_stopped::attach::Attachment;
use bywash_stopped::listener::Listener;
use bywash_stopped::pool::Pool;
use bywash_stopped::raise_descriptor_limit;
use description::Descriptions;
use server::Server;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Is told in words what was wrong with a request.
pub type Explain = Box<dyn Fn(&str) + Send + Sync>;

/// A command that will run under the filter.
#[derive(Debug)]
pub struct Supervision {
    attachment: Attachment,
}

impl Supervision {
    /// Has `command` start under the filter.
    ///
    /// # Errors
    /// [`Error::Unsupported`] by this kernel; [`Error::Privileged`] for a program that would lose the rights that its file gives it; [`Error::System`].
    pub fn prepare(command: &mut Command) -> Result<Self, Error> {
        Ok(Self { attachment: Attachment::prepare(command, filter::program(), "--static")? })
    }

    /// After a failed start: why, if it was the filter's fault and not the program's.
    pub fn why(self) -> Option<Error> {
        self.attachment.listener().err().filter(|error| !matches!(error, Error::NotStarted))
    }

    /// Answers the program from now on, with sessions of `clients`: what a process opens is that process's, also for those that inherit it. To be called as soon as the command is started: until then its calls wait.
    /// `explain` is told in words what was wrong with a request that is refused.
    ///
    /// # Errors
    /// [`Error::System`]; then the program's opens fail with ENOSYS, and it should be ended.
    pub fn begin(self, clients: Clients, explain: Option<Explain>) -> Result<Supervisor, Error> {
        let listener = Listener::new(self.attachment.listener()?);
        raise_descriptor_limit();
        let system = |what| move |errno| Error::System { what, errno };
        let descriptions = Arc::new(Descriptions::new().map_err(system("a list of open descriptions"))?);
        let threads = |error: std::io::Error| Error::System {
            what: "a thread",
            errno: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN),
        };
        let clients = Arc::new(clients);
        let (watched, living) = (Arc::clone(&descriptions), Arc::clone(&clients));
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let started = thread("cryptodev-ends").spawn(move || watched.watch_ends());
        let started = started.and_then(|_| thread("cryptodev-exits").spawn(move || living.watch_ends()));
        let server = Server { listener, descriptions: Arc::clone(&descriptions), clients: Arc::clone(&clients), explain };
        match started.and_then(|_| Pool::start("cryptodev", server)) {
            Ok(pool) => Ok(Supervisor { pool }),
            Err(error) => {
                descriptions.stop();
                clients.stop();
                Err(threads(error))
            }
        }
    }
}

/// Answers the programs under one filter, in threads of this process, until there are none left.
pub struct Supervisor {
    pool: Arc<Pool<Server>>,
}

impl Supervisor {
    /// Waits until no process is left under the filter.
    pub fn wait(&self) {
        self.pool.wait(None);
    }

    /// Waits as long, but at most so long; gives whether no process is left.
    pub fn wait_for(&self, at_most: Duration) -> bool {
        self.pool.wait(Some(at_most))
    }

    /// Whether no process is left under the filter.
    pub fn is_over(&self) -> bool {
        self.pool.is_over()
    }

    /// How many descriptions are open.
    pub fn open_descriptions(&self) -> usize {
        self.pool.work().descriptions.len()
    }
}

impl core::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Supervisor").field("open_descriptions", &self.open_descriptions()).finish_non_exhaustive()
    }
}
