//! What a forked child sees.

use bywash_protocol::{ForkGuard, Generation};
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

#[test]
fn a_child_is_of_another_generation_and_so_is_its_own_child() {
    let own = Generation::current();
    assert!(own.number() != 0 && own.is_current());
    assert!(std::thread::spawn(move || own.is_current()).join().unwrap(), "threads are of one");
    let mut command = Command::new("true");
    // SAFETY: the closure forks, waits and compares numbers without allocating, and its child leaves by `_exit`, which is safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            let child = Generation::current();
            let mut status = -1;
            match libc::fork() {
                0 => libc::_exit(i32::from(own.is_current() || child.is_current())),
                grandchild => libc::waitpid(grandchild, &raw mut status, 0),
            };
            if !own.is_current() && child.is_current() && status == 0 { Ok(()) } else { Err(rustix::io::Errno::IO.into()) }
        });
    }
    assert!(command.status().is_ok_and(|status| status.success()));
    assert!(own.is_current());
}
