//! Encrypted files under a program whose system calls are answered: `bywash run --files VOLUME --files-by hook`.
//!
//! The second mechanism beside the mount (`bywash-mount`), after the system-call hook of takeda: it needs no FUSE, no namespace and no right, and reaches programs that
//! nothing can be loaded into. The program runs under a filter of system calls (seccomp user notification, `bywash-stopped`). Calls that name a path stop; one
//! that leads into the volume is answered here, by the same code as a mount's (`bywash_mount::direct`), so that both write one format and
//! keep one promise about crashes; every other goes on to the kernel.
//! Whoever answers looks into the program, which Yama may allow of descendants alone: [`orphans`] keeps processes that are left behind among them.
//!
//! # Descriptors
//! The kernel's filter sees numbers, not files. So a file of the volume gets a *high number* in the program (512 to 1023, where it may have that many): calls on
//! lower ones never stop, but for 0, 1 and 2, which shells redirect. Behind the number is one end of a socket pair that can be neither written nor, for
//! nothing ever comes, read: a call on it that we do not know of is an error (EPIPE, EAGAIN, ESPIPE, ENODEV) and never passes plaintext on. It is
//! shared by dup, fork and exec as any file is; what a number means is asked of the kernel at every call; when the last copy is closed, by whatever way,
//! the other end tells.
//!
//! # Why not syscall user dispatch
//! `PR_SET_SYSCALL_USER_DISPATCH` sends a signal to the thread itself, in whose memory the cipher would have to run: something must be loaded into the program, which is
//! what cannot be done to static ones; it is off after each exec, and each thread has to switch it on. A filter is inherited by both, and the key
//! stays in another process. What that costs is in `bench/README.md`: two changes of process for each call.
//!
//! # What is refused
//! With a number (errno), and one line that names the call, the file and the way out, mostly the mount: memory maps of files of the volume (ENODEV); locks (ENOLCK);
//! `io_uring` (ENOSYS), whose calls nobody sees; programs of 32 bits (ENOSYS); entering a folder of the volume other than its own (EACCES), for the kernel
//! keeps the working folder; moving one of its files to a descriptor other than 0, 1, 2 (EBADF);
//! `poll` and `select` that wait with one of its files and are asked of it for nothing that a file is (EINVAL); setting extended attributes (EOPNOTSUPP); pipes, sockets and devices; file handles and watches;
//! links in the volume that lead out of it (EXDEV); `chroot`, `mount`, `setns` (EPERM), after which paths would mean something else; other
//! users than the one who started the run (EACCES); starting programs that lie in the volume (EACCES), of which the kernel would start the ciphertext; moving the volume's folder, or one that it is in (EBUSY); programs that keep their memory to themselves (EPERM). Calls that are newer than Linux 6.12 do not exist (ENOSYS).
//! Without a line, as between file systems, because programs have another way: `copy_file_range`, `sendfile`, `splice`, hard links and renames across the volume's edge.
//!
//! Where the kernel writes core dumps into the folder that a program is in (`core_pattern` without a path or a program), there are none: they would lie beside the ciphertext.
//! A descriptor that is passed to another process over a socket, or taken by `pidfd_getfd`, is of no use there: its calls fail as above.
//!
//! # This is emulation, not a security boundary
//! When a call goes on to the kernel, that reads the path from the program's memory again, and another thread may have changed it. A program that means to
//! can so reach the ciphertext, which it could anyway.
#![warn(rustdoc::broken_intra_doc_links)]

mod calls;
mod data;
mod early;
mod ending;
mod file;
mod filter;
mod memory;
mod numbers;
mod open;
mod paths;
mod place;
mod refuse;
mod server;
mod stat;
mod wait;

pub use bywash_stopped::{Error, file_of, orphans};

use bywash_mount::direct::Direct;
use bywash_stopped::attach::Attachment;
use bywash_stopped::pairs::Pairs;
use bywash_stopped::pool::Pool;
use bywash_stopped::raise_descriptor_limit;
use early::Early;
use ending::Ending;
use file::File;
use numbers::Numbers;
use place::Root;
use refuse::Teller;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{END_AT_MOST, Server};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whether programs' calls can be answered here. To be asked before this process shuts itself off from others' looks.
///
/// # Errors
/// [`Error::Unsupported`] by this kernel; [`Error::Unreachable`] where a sandbox or a rule keeps us from looking into programs.
pub fn support() -> Result<(), Error> {
    bywash_stopped::attach::support()?;
    bywash_stopped::reach::support()
}

/// Is told in one line of what was refused.
pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// A command that will run under the filter.
pub struct Hook {
    early: Early,
    numbers: Numbers,
}

impl Hook {
    /// Has `command` start under the filter. A process may have several hooks. That its [program](file_of) does not lie in the volume is the caller's to see: the kernel would execute its ciphertext.
    ///
    /// # Errors
    /// [`Error::Unsupported`] by this kernel; [`Error::Privileged`] for a program that would lose the rights that its file gives it; [`Error::System`].
    pub fn prepare(command: &mut Command) -> Result<Self, Error> {
        let numbers = Numbers::new(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
        if dumps_where_a_program_is() {
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            // SAFETY: between fork and exec the closure makes one system call, and touches nothing but what it owns.
            unsafe { command.pre_exec(move || setrlimit(Resource::Core, none).map_err(Into::into)) };
        }
        let attachment = Attachment::prepare(command, filter::program(numbers.limit), "--files-by hook")?;
        Ok(Self { early: Early::start(attachment)?, numbers })
    }

    /// After a failed start: why, if it was the filter's fault and not the program's.
    pub fn why(self) -> Option<Error> {
        self.early.end().err().filter(|error| !matches!(error, Error::NotStarted))
    }

    /// Answers the program from now on, which sees `volume` at `folder`, a path without links. To be called as soon as the command is started: until then its calls wait.
    ///
    /// # Errors
    /// [`Error::System`]; then the program's calls fail with ENOSYS, and it should be ended.
    pub fn begin(self, volume: Arc<Direct>, folder: &Path, tell: Tell) -> Result<Hooked, Error> {
        let (listener, first) = self.early.end()?;
        raise_descriptor_limit();
        let files = Arc::new(Pairs::new().map_err(|errno| Error::System { what: "a list of open files", errno })?);
        let threads = |error: io::Error| Error::System {
            what: "a thread",
            errno: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN),
        };
        let folders = |errno| Error::System { what: "the volume's folder", errno };
        let root = Root::new(folder).map_err(folders)?;
        let gone = files.open(File::gone()).map_err(|errno| Error::System { what: "a pair of sockets", errno })?;
        let watched = Arc::clone(&files);
        let watch = std::thread::Builder::new().name("hook-ends".into()).spawn(move || watched.watch_ends()).map_err(threads)?;
        let server = Server {
            listener,
            first: Mutex::new(first),
            files: Arc::clone(&files),
            volume: volume.clone(),
            root,
            gone,
            numbers: self.numbers,
            teller: Teller::new(tell),
            is_root: rustix::process::geteuid().is_root(),
            ending: Ending::default(),
        };
        match Pool::start("hook", server) {
            Ok(pool) => Ok(Hooked { pool, files, watch: Some(watch), volume }),
            Err(error) => {
                files.stop();
                Err(threads(error))
            }
        }
    }
}

/// Whether the kernel writes what was in a crashed program's memory into the folder where that was: it could be the volume's, of which the kernel knows the ciphertext only (`core(5)`).
fn dumps_where_a_program_is() -> bool {
    let pattern = std::fs::read("/proc/sys/kernel/core_pattern").unwrap_or_default();
    !matches!(pattern.first(), Some(b'|' | b'/' | b'@'))
}

/// Answers the programs under one filter, in threads of this process, until there are none left.
pub struct Hooked {
    pool: Arc<Pool<Server>>,
    files: Arc<Pairs<File>>,
    watch: Option<JoinHandle<()>>,
    volume: Arc<Direct>,
}

impl Hooked {
    /// Waits until no process is left under the filter, at most so long; gives whether none is.
    pub fn wait_for(&self, at_most: Duration) -> bool {
        self.pool.wait(Some(at_most))
    }

    /// Answers no more: whoever is left under the filter can do nothing with files from now on (ENOSYS), and all files of the volume are closed.
    pub fn stop(&mut self) {
        if self.pool.is_over() {
            self.pool.wait(Some(END_AT_MOST));
        }
        self.pool.work().end();
        self.files.stop();
        if let Some(watch) = self.watch.take() {
            // A panic in it was printed.
            let _ = watch.join();
        }
    }

    /// [Stops](Self::stop), and ends as this process should now. All that was written is on the disk.
    ///
    /// # Errors
    /// If anything that was written is lost.
    pub fn finish(mut self) -> io::Result<()> {
        self.stop();
        self.volume.end()
    }
}
