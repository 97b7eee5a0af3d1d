//! Processes that a program leaves behind. Where Yama lets a process look into its descendants alone (`/proc/sys/kernel/yama/ptrace_scope` is 1), those whose parent has ended must stay
//! descendants of who answers their calls: they become its children, and not the first process's.

use crate::listener::check;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, set_child_subreaper};

/// Whoever loses his parent below this process becomes its child from now on, to be collected by [`wait`] and [`collect`]. So nothing else here may wait for children of its own meanwhile.
///
/// # Errors
/// The operating system's.
pub fn adopt() -> Result<(), Errno> {
    set_child_subreaper(Some(getpid()))
}

/// Waits until a child has ended, which it does not collect, and collects others that end meanwhile.
pub fn wait(child: Pid) {
    while let Some(ended) = ended(0).filter(|ended| *ended != child) {
        collect_one(ended);
    }
}

/// Collects all that have ended.
pub fn collect() {
    while let Some(ended) = ended(libc::WNOHANG) {
        collect_one(ended);
    }
}

fn collect_one(child: Pid) {
    // It has ended: there is nothing to wait for.
    let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
}

/// A child that has ended and is not collected; none without any.
fn ended(flags: libc::c_int) -> Option<Pid> {
    loop {
        // SAFETY: zeros are a value of this structure of integers.
        let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
        // SAFETY: the structure that is written outlives the call.
        let waited = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOWAIT | flags) };
        match check(waited) {
            // SAFETY: this call writes the child's number, or it is 0 as before.
            Ok(_) => return Pid::from_raw(unsafe { info.si_pid() }),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}
