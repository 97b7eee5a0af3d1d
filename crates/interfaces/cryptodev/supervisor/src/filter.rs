//! Which system calls stop: a program for the kernel's packet filter, which sees a call's number and its arguments, but no memory.

use bywash_cryptodev_abi::LETTER;
#[cfg(test)]
use bywash_cryptodev_abi::{freebsd, linux};
use bywash_stopped::bpf::{ALLOW, ARCH, ARCHITECTURE, NUMBER, STOP, argument, give, jump, load, mask};
use libc::{c_long, sock_filter};

/// The calls that open a file by its path.
#[cfg(target_arch = "x86_64")]
const OPENS: &[c_long] = &[libc::SYS_open, libc::SYS_creat, libc::SYS_openat, libc::SYS_openat2];
#[cfg(target_arch = "aarch64")]
const OPENS: &[c_long] = &[libc::SYS_openat, libc::SYS_openat2];

/// The filter that stops opens of files and ioctl requests with our letter, and lets everything else through: also every call of a
/// 32-bit or x32 program, whose structures are laid out differently.
///
/// The whole letter, not the known requests one by one: what is unknown on `/dev/crypto` is EINVAL there, and a socket would say ENOTTY.
pub(crate) fn program() -> Vec<sock_filter> {
    let opens = OPENS.len();
    // Behind the opens: is it an ioctl, its request, the letter of it, is it ours; then the two verdicts.
    let mut program = vec![load(ARCH), jump(ARCHITECTURE, 0, 1 + opens + 4), load(NUMBER)];
    for (index, call) in OPENS.iter().enumerate() {
        program.push(jump(*call as u32, opens - index - 1 + 4 + 1, 0));
    }
    program.push(jump(libc::SYS_ioctl as u32, 0, 3));
    program.push(load(argument(1)));
    program.push(mask(0xff00));
    program.push(jump(u32::from(LETTER) << 8, 1, 0));
    program.push(give(ALLOW));
    program.push(give(STOP));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(arch: u32, number: c_long, second: u32) -> u32 {
        bywash_stopped::bpf::interpret(&program(), arch, number as u32, [0, second.into(), 0, 0, 0, 0])
    }

    #[test]
    fn opens_and_our_requests_stop_and_nothing_else() {
        for call in OPENS {
            assert_eq!(verdict(ARCHITECTURE, *call, 0), STOP);
            assert_eq!(verdict(0x4000_0003, *call, 0), ALLOW, "of a 32-bit program");
            assert_eq!(verdict(ARCHITECTURE, *call | 0x4000_0000, 0), ALLOW, "of an x32 program");
        }
        let requests = linux::REQUESTS.iter().chain(&freebsd::REQUESTS).map(|(number, _)| *number);
        for request in requests.chain([0x6300, 0x63ff, 0xffff_63ff]) {
            assert_eq!(verdict(ARCHITECTURE, libc::SYS_ioctl, request), STOP, "{request:#x}");
            assert_eq!(verdict(ARCHITECTURE, libc::SYS_read, request), ALLOW, "{request:#x}");
            assert_eq!(verdict(0x4000_0003, libc::SYS_ioctl, request), ALLOW, "{request:#x}");
        }
        for other in [0x5401, 0x6200, 0x6400, 0x63, 0x63_0000] {
            assert_eq!(verdict(ARCHITECTURE, libc::SYS_ioctl, other), ALLOW, "{other:#x}");
        }
        assert_eq!(verdict(ARCHITECTURE, libc::SYS_execve, 0), ALLOW);
    }
}
