//! Which system calls stop: a program for the kernel's packet filter, which sees a call's number and its arguments, but no memory.

use bywash_cryptodev_abi::LETTER;
#[cfg(test)]
use bywash_cryptodev_abi::{freebsd, linux};
use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, sock_filter};

/// `AUDIT_ARCH_*` of this build's own system calls (`linux/audit.h`: machine, 64 bits, little-endian).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The calls that open a file by its path.
#[cfg(target_arch = "x86_64")]
const OPENS: &[c_long] = &[libc::SYS_open, libc::SYS_openat, libc::SYS_openat2];
#[cfg(target_arch = "aarch64")]
const OPENS: &[c_long] = &[libc::SYS_openat, libc::SYS_openat2];

/// Offsets in `struct seccomp_data`: the number, the architecture, the low half of the second argument.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const SECOND: u32 = 24;

const fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

const fn jump(k: u32, jt: usize, jf: usize) -> sock_filter {
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: jt as u8, jf: jf as u8, k }
}

/// The filter that stops opens of files and ioctl requests with our letter, and lets everything else through: also every call of a
/// 32-bit or x32 program, whose structures are laid out differently.
///
/// The whole letter, not the known requests one by one: what is unknown on `/dev/crypto` is EINVAL there, and a socket would say ENOTTY.
pub(crate) fn program() -> Vec<sock_filter> {
    let load = |offset| statement(BPF_LD | BPF_W | BPF_ABS, offset);
    let opens = OPENS.len();
    // Behind the opens: is it an ioctl, its request, the letter of it, is it ours; then the two verdicts.
    let mut program = vec![load(ARCH), jump(ARCHITECTURE, 0, 1 + opens + 4), load(NUMBER)];
    for (index, call) in OPENS.iter().enumerate() {
        program.push(jump(*call as u32, opens - index - 1 + 4 + 1, 0));
    }
    program.push(jump(libc::SYS_ioctl as u32, 0, 3));
    program.push(load(SECOND));
    program.push(statement(BPF_ALU | BPF_AND | BPF_K, 0xff00));
    program.push(jump(u32::from(LETTER) << 8, 1, 0));
    program.push(statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW));
    program.push(statement(BPF_RET | BPF_K, libc::SECCOMP_RET_USER_NOTIF));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel's interpreter would answer.
    fn verdict(arch: u32, number: c_long, second: u32) -> u32 {
        let (program, mut at, mut value) = (program(), 0, 0);
        loop {
            let step = program[at];
            at += 1;
            match u32::from(step.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = match step.k {
                        NUMBER => number as u32,
                        ARCH => arch,
                        SECOND => second,
                        other => panic!("a load of {other}"),
                    }
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => value &= step.k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => at += usize::from(if value == step.k { step.jt } else { step.jf }),
                code if code == BPF_RET | BPF_K => return step.k,
                other => panic!("an instruction {other}"),
            }
        }
    }

    #[test]
    fn opens_and_our_requests_stop_and_nothing_else() {
        const STOP: u32 = libc::SECCOMP_RET_USER_NOTIF;
        const PASS: u32 = libc::SECCOMP_RET_ALLOW;
        for call in OPENS {
            assert_eq!(verdict(ARCHITECTURE, *call, 0), STOP);
            assert_eq!(verdict(0x4000_0003, *call, 0), PASS, "of a 32-bit program");
            assert_eq!(verdict(ARCHITECTURE, *call | 0x4000_0000, 0), PASS, "of an x32 program");
        }
        let requests = linux::REQUESTS.iter().chain(&freebsd::REQUESTS).map(|(number, _)| *number);
        for request in requests.chain([0x6300, 0x63ff, 0xffff_63ff]) {
            assert_eq!(verdict(ARCHITECTURE, libc::SYS_ioctl, request), STOP, "{request:#x}");
            assert_eq!(verdict(ARCHITECTURE, libc::SYS_read, request), PASS, "{request:#x}");
            assert_eq!(verdict(0x4000_0003, libc::SYS_ioctl, request), PASS, "{request:#x}");
        }
        for other in [0x5401, 0x6200, 0x6400, 0x63, 0x63_0000] {
            assert_eq!(verdict(ARCHITECTURE, libc::SYS_ioctl, other), PASS, "{other:#x}");
        }
        assert_eq!(verdict(ARCHITECTURE, libc::SYS_execve, 0), PASS);
    }
}
