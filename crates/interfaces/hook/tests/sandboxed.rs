//! Where a sandbox around the run, as of containers, forbids some calls.

mod common;

use bywash_stopped::bpf::{ALLOW, NUMBER, give, jump, load};
use common::Fixture;

/// Does something in a thread, and those that it starts, in which a call fails with that number.
fn without(call: libc::c_long, errno: i32, work: impl FnOnce() + Send) {
    let forbid = || {
        let program = [load(NUMBER), jump(call as u32, 0, 1), give(libc::SECCOMP_RET_ERRNO | errno as u32), give(ALLOW)];
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        rustix::thread::set_no_new_privs(true).unwrap();
        // SAFETY: the kernel reads the program, which outlives the call, and writes nothing.
        let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    };
    std::thread::scope(|scope| {
        let sandboxed = || {
            forbid();
            work();
        };
        scope.spawn(sandboxed).join().unwrap();
    });
}

#[test]
fn files_are_told_apart_where_descriptors_cannot_be_compared() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        without(libc::SYS_kcmp, errno, || {
            let Some(fixture) = Fixture::new() else { return };
            let script = "echo one > $DIR/one; echo two > $DIR/two; exec 3< $DIR/one 2>&1; cat $DIR/one $DIR/two | sort -r; cmp $DIR/one $DIR/two; exec < $DIR/one > $DIR/three; cat; cat $DIR/two";
            let printed = fixture.shell(script);
            assert!(printed.stdout().starts_with("two\none\n"), "{}{}", printed.stdout(), printed.stderr());
            assert_eq!(fixture.shell("cat $DIR/three; paste $DIR/one $DIR/two $DIR/three").ok(), "one\ntwo\none\ttwo\tone\n\t\ttwo\n");
            fixture.check();
        });
    }
}

#[test]
fn what_there_is_no_other_way_for_is_said_before_anything_is_done() {
    if let Err(reason) = bywash_hook::support() {
        return eprintln!("skipped: {reason}");
    }
    for (call, name) in [(libc::SYS_process_vm_readv, "process_vm_readv(2)"), (libc::SYS_pidfd_getfd, "pidfd_getfd(2)")] {
        without(call, libc::EPERM, || {
            let said = bywash_hook::support().unwrap_err().to_string();
            assert!(said.contains(name) && said.contains("SYS_PTRACE"), "{said}");
        });
    }
}
