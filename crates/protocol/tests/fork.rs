//! What a forked child sees.

use bywash_protocol::ForkGuard;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// Whether a child sees the fork, told by the one thing that runs between fork and exec.
fn child_notices(guard: &Arc<ForkGuard>) -> bool {
    let guard = guard.clone();
    let mut command = Command::new("true");
    // SAFETY: the closure loads one word and makes an error without allocating, which is safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if guard.has_forked() && guard.renew() && !guard.has_forked() { Ok(()) } else { Err(rustix::io::Errno::IO.into()) }
        });
    }
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn a_child_notices_and_its_parent_does_not() {
    let guard = Arc::new(ForkGuard::new().unwrap());
    assert!(!guard.has_forked());
    assert!(!guard.renew());
    assert!(child_notices(&guard));
    assert!(!guard.has_forked());
}
