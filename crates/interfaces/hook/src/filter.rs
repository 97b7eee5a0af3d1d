//! Which system calls stop: those that take a path, and those on a descriptor whose number can be one of ours.
//!
//! The kernel's filter cannot tell descriptors apart, but it can compare their numbers. So ours have high ones, and 0, 1 and 2 for what a shell redirects;
//! reads and writes of all others run at full speed, and never come here.

use bywash_stopped::bpf::{ALLOW, ARCH, ARCHITECTURE, NUMBER, STOP, argument, give, jump, jump_bits, jump_from, load};
use bywash_stopped::sock_filter;
use libc::{self as c, c_long};

/// Descriptors below this may be ours: what shells redirect.
pub(crate) const STANDARD: u32 = 3;
/// System calls from this number on are of Linux 6.13 or later, and take paths and descriptors in ways that this filter does not know. The program is told what an
/// older kernel would tell it.
const UNKNOWN: u32 = 463;
/// Numbers of the x32 way of calling.
const X32: u32 = 0x4000_0000;

/// Why a call stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stops {
    /// Always.
    Always,
    /// If the argument of that index is a descriptor that may be ours.
    On(u32),
    /// If either is.
    OnEither(u32, u32),
    /// If the argument of index 4 is, and the mapping is of a file.
    Map,
}

use Stops::{Always, Map, On, OnEither};

/// A call that may stop: its number, its name, why.
pub(crate) type Row = (c_long, &'static str, Stops);

/// Calls of every architecture.
#[rustfmt::skip]
const CALLS: &[Row] = &[
    (c::SYS_openat, "openat", Always), (c::SYS_openat2, "openat2", Always),
    (c::SYS_newfstatat, "newfstatat", Always), (c::SYS_statx, "statx", Always),
    (c::SYS_faccessat, "faccessat", Always), (c::SYS_faccessat2, "faccessat2", Always),
    (c::SYS_readlinkat, "readlinkat", Always), (c::SYS_unlinkat, "unlinkat", Always), (c::SYS_mkdirat, "mkdirat", Always),
    (c::SYS_renameat2, "renameat2", Always), (c::SYS_renameat, "renameat", Always), (c::SYS_linkat, "linkat", Always),
    (c::SYS_symlinkat, "symlinkat", Always), (c::SYS_fchmodat, "fchmodat", Always), (452, "fchmodat2", Always),
    (c::SYS_fchownat, "fchownat", Always), (c::SYS_utimensat, "utimensat", Always), (c::SYS_truncate, "truncate", Always),
    (c::SYS_mknodat, "mknodat", Always), (c::SYS_chdir, "chdir", Always), (c::SYS_statfs, "statfs", Always),
    (c::SYS_execve, "execve", Always), (c::SYS_execveat, "execveat", Always),
    (c::SYS_getxattr, "getxattr", Always), (c::SYS_lgetxattr, "lgetxattr", Always), (c::SYS_setxattr, "setxattr", Always),
    (c::SYS_lsetxattr, "lsetxattr", Always), (c::SYS_listxattr, "listxattr", Always), (c::SYS_llistxattr, "llistxattr", Always),
    (c::SYS_removexattr, "removexattr", Always), (c::SYS_lremovexattr, "lremovexattr", Always),
    (c::SYS_inotify_add_watch, "inotify_add_watch", Always), (c::SYS_name_to_handle_at, "name_to_handle_at", Always),
    (c::SYS_bind, "bind", Always),
    // What would lead around all of this.
    (c::SYS_io_uring_setup, "io_uring_setup", Always), (c::SYS_open_by_handle_at, "open_by_handle_at", Always),
    (c::SYS_chroot, "chroot", Always), (c::SYS_pivot_root, "pivot_root", Always), (c::SYS_mount, "mount", Always),
    (c::SYS_move_mount, "move_mount", Always), (c::SYS_setns, "setns", Always),
    // A stand-in is not ready when a file would be.
    (c::SYS_ppoll, "ppoll", Always), (c::SYS_pselect6, "pselect6", Always),
    (c::SYS_read, "read", On(0)), (c::SYS_readv, "readv", On(0)), (c::SYS_pread64, "pread64", On(0)),
    (c::SYS_preadv, "preadv", On(0)), (c::SYS_preadv2, "preadv2", On(0)),
    (c::SYS_write, "write", On(0)), (c::SYS_writev, "writev", On(0)), (c::SYS_pwrite64, "pwrite64", On(0)),
    (c::SYS_pwritev, "pwritev", On(0)), (c::SYS_pwritev2, "pwritev2", On(0)),
    (c::SYS_lseek, "lseek", On(0)), (c::SYS_fstat, "fstat", On(0)), (c::SYS_ftruncate, "ftruncate", On(0)),
    (c::SYS_fsync, "fsync", On(0)), (c::SYS_fdatasync, "fdatasync", On(0)), (c::SYS_syncfs, "syncfs", On(0)),
    (c::SYS_fallocate, "fallocate", On(0)), (c::SYS_getdents64, "getdents64", On(0)), (c::SYS_close, "close", On(0)),
    (c::SYS_dup, "dup", On(0)), (c::SYS_dup3, "dup3", OnEither(0, 1)), (c::SYS_fcntl, "fcntl", On(0)), (c::SYS_ioctl, "ioctl", On(0)),
    (c::SYS_fchmod, "fchmod", On(0)), (c::SYS_fchown, "fchown", On(0)), (c::SYS_fadvise64, "fadvise64", On(0)),
    (c::SYS_readahead, "readahead", On(0)), (c::SYS_sync_file_range, "sync_file_range", On(0)), (c::SYS_flock, "flock", On(0)),
    (c::SYS_fgetxattr, "fgetxattr", On(0)), (c::SYS_fsetxattr, "fsetxattr", On(0)), (c::SYS_flistxattr, "flistxattr", On(0)),
    (c::SYS_fremovexattr, "fremovexattr", On(0)), (c::SYS_fchdir, "fchdir", On(0)), (c::SYS_fstatfs, "fstatfs", On(0)),
    (c::SYS_sendfile, "sendfile", OnEither(0, 1)), (c::SYS_splice, "splice", OnEither(0, 2)),
    (c::SYS_copy_file_range, "copy_file_range", OnEither(0, 2)), (c::SYS_tee, "tee", OnEither(0, 1)),
    (c::SYS_shutdown, "shutdown", On(0)), (c::SYS_vmsplice, "vmsplice", On(0)), (c::SYS_epoll_ctl, "epoll_ctl", On(2)), (c::SYS_mmap, "mmap", Map),
];

/// Those that only x86-64 has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD_CALLS: &[Row] = &[
    (c::SYS_open, "open", Always), (c::SYS_creat, "creat", Always), (c::SYS_stat, "stat", Always), (c::SYS_lstat, "lstat", Always),
    (c::SYS_access, "access", Always), (c::SYS_readlink, "readlink", Always), (c::SYS_unlink, "unlink", Always),
    (c::SYS_rmdir, "rmdir", Always), (c::SYS_mkdir, "mkdir", Always), (c::SYS_rename, "rename", Always), (c::SYS_link, "link", Always),
    (c::SYS_symlink, "symlink", Always), (c::SYS_chmod, "chmod", Always), (c::SYS_chown, "chown", Always),
    (c::SYS_lchown, "lchown", Always), (c::SYS_utime, "utime", Always), (c::SYS_utimes, "utimes", Always),
    (c::SYS_futimesat, "futimesat", Always), (c::SYS_mknod, "mknod", Always),
    (c::SYS_poll, "poll", Always), (c::SYS_select, "select", Always),
    (c::SYS_dup2, "dup2", OnEither(0, 1)), (c::SYS_getdents, "getdents", On(0)),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[Row] = &[];

/// All calls that may stop.
pub(crate) fn calls() -> impl Iterator<Item = &'static Row> {
    CALLS.iter().chain(OLD_CALLS)
}

/// What a call is named.
pub(crate) fn name(number: c_long) -> &'static str {
    calls().find(|(call, ..)| *call == number).map_or("a system call", |(_, name, _)| name)
}

/// The filter for a program whose descriptors from `limit` on may be ours. A program of another kind than this one's stops at every call.
pub(crate) fn program(limit: u32) -> Vec<sock_filter> {
    let mut program = vec![load(ARCH), jump(ARCHITECTURE, 1, 0), give(STOP), load(NUMBER)];
    program.extend([jump_from(X32, 0, 1), give(STOP), jump_from(UNKNOWN, 0, 1), give(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32)]);
    // Whether an argument is one of ours: stops, or goes on behind.
    let stops = |index| [load(argument(index)), jump_from(limit, 1, 0), jump_from(STANDARD, 1, 0), give(STOP)];
    for (number, _, why) in calls() {
        let mut block = Vec::new();
        match *why {
            Always => block.push(give(STOP)),
            On(index) => block.extend(stops(index)),
            OnEither(one, other) => block.extend(stops(one).into_iter().chain(stops(other))),
            Map => {
                block.extend([load(argument(3)), jump_bits(libc::MAP_ANONYMOUS as u32, 0, 1), give(ALLOW)]);
                block.extend(stops(4));
            }
        }
        block.push(give(ALLOW));
        program.push(jump(*number as u32, 0, block.len()));
        program.extend(block);
    }
    program.push(give(ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_stopped::bpf::interpret;

    fn verdict(number: c_long, arguments: [u64; 6]) -> u32 {
        interpret(&program(512), ARCHITECTURE, number as u32, arguments)
    }

    #[test]
    fn only_numbers_that_may_be_ours_stop() {
        for (number, name, why) in calls() {
            let at = |index: u32, fd: u64| {
                let mut arguments = [100; 6];
                arguments[3] = libc::MAP_PRIVATE as u64;
                arguments[index as usize] = fd;
                verdict(*number, arguments)
            };
            let numbers = [(0, STOP), (2, STOP), (3, ALLOW), (511, ALLOW), (512, STOP), (1023, STOP)];
            let all = |index| numbers.iter().for_each(|(fd, expected)| assert_eq!(at(index, *fd), *expected, "{name} of {fd}"));
            match *why {
                On(index) => all(index),
                OnEither(one, other) => {
                    all(one);
                    all(other);
                }
                Always => assert_eq!(at(0, 100), STOP, "{name}"),
                Map => assert_eq!((at(4, 1000), at(4, 5)), (STOP, ALLOW)),
            }
        }
        assert_eq!(verdict(libc::SYS_mmap, [0, 4096, 3, libc::MAP_ANONYMOUS as u64, u64::MAX, 0]), ALLOW);
        assert_eq!(verdict(libc::SYS_futex, [0; 6]), ALLOW);
        assert_eq!(verdict(500, [0; 6]), libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    }

    #[test]
    fn programs_of_another_kind_stop_at_every_call() {
        assert_eq!(interpret(&program(512), 0x4000_0003, 20, [0; 6]), STOP);
        assert_eq!(interpret(&program(512), ARCHITECTURE, X32 | 39, [0; 6]), STOP);
    }
}
