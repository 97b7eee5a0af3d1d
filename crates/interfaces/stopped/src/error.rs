//! What keeps a program from running under the filter.

use rustix::io::Errno;
use std::path::PathBuf;

/// What keeps a program from running under the filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no user notification, or a sandbox around us forbids it.
    #[error(
        "this kernel does not let a process answer another's system calls ({errno}); needed is Linux 5.19 or later with \
         CONFIG_SECCOMP_FILTER (best 6.18 or later, or 6.1.156, 6.6.112, 6.12.53 or 6.17.3: before, a signal may rarely repeat a call that was \
         answered), and no sandbox that forbids seccomp(2)"
    )]
    Unsupported {
        /// What it said.
        errno: Errno,
    },
    /// What a program has cannot be looked at.
    #[error(
        "nobody can look here into a program whose calls he answers: {what} fails ({errno}) even on a child of this process; needed in a container is \
         --cap-add SYS_PTRACE, or a seccomp profile that allows it, and elsewhere a ptrace_scope of 0 or 1 (/proc/sys/kernel/yama)"
    )]
    Unreachable {
        /// By what.
        what: &'static str,
        /// What the system said.
        errno: Errno,
    },
    /// There is a listener already above us.
    #[error(
        "a process can have one listener for its system calls, and there is one around this run: a run with it within another, or a \
         container whose calls are watched; leave out the inner {option}, or run outside of the container"
    )]
    Nested {
        /// What the user said to have it.
        option: &'static str,
    },
    /// The program's file gives it rights that the filter takes away.
    #[error(
        "{} is setuid or setgid: under a filter of system calls the kernel ignores that; run bywash as that user instead, or run the \
         program without {option}", .program.display()
    )]
    Privileged {
        /// What the user said to have it.
        option: &'static str,
        /// The program.
        program: PathBuf,
    },
    /// The command has not been started.
    #[error("the program has not been started; start the command first")]
    NotStarted,
    /// Something that the system refused.
    #[error("cannot have {what}: {errno}; see ulimit -a")]
    System {
        /// What was wanted.
        what: &'static str,
        /// What it said.
        errno: Errno,
    },
}
