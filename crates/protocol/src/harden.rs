//! Keeping keys out of core dumps and swap.

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{DumpableBehavior, Resource, getrlimit, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, capabilities};

/// Forbids core dumps and tracing by other processes of the same user, and locks memory as it is touched.
/// Returns what could not be had, in words with the way out; it is for the caller to show them.
pub fn harden_process() -> Vec<String> {
    let mut missing = Vec::new();
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        missing.push(format!("core dumps stay possible: {error}"));
    }
    if !may_lock() {
        missing.push("keys may reach swap: locking memory is limited; lift it with `ulimit -l unlimited` or CAP_IPC_LOCK".to_owned());
    } else if let Err(error) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT) {
        missing.push(format!("keys may reach swap: locking memory failed: {error}"));
    }
    missing
}

/// Keeps descriptors above stderr from processes that this one starts from now on, whoever opened them: a daemon that has its caller's holds their locks, and their pipes
/// open, for as long as it lives. Before Linux 5.11 they are inherited.
pub fn keep_descriptors() {
    // SAFETY: it reads and writes no memory, and a descriptor's flag means nothing to who uses the descriptor.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Whether locking everything is without limit. Under a limit it would make later mappings fail, which is worse than swap.
fn may_lock() -> bool {
    let privileged = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    privileged || getrlimit(Resource::Memlock).current.is_none()
}
