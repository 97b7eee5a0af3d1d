//! Instructions of the kernel's packet filter, which sees a call's number and its arguments, but no memory.

use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};

/// `AUDIT_ARCH_*` of this build's own system calls (`linux/audit.h`: machine, 64 bits, little-endian).
#[cfg(target_arch = "x86_64")]
pub const ARCHITECTURE: u32 = 0xc000_003e;
/// `AUDIT_ARCH_*` of this build's own system calls (`linux/audit.h`: machine, 64 bits, little-endian).
#[cfg(target_arch = "aarch64")]
pub const ARCHITECTURE: u32 = 0xc000_00b7;

/// Offset of the call's number in `struct seccomp_data`.
pub const NUMBER: u32 = 0;
/// Offset of the architecture.
pub const ARCH: u32 = 4;

/// The call goes on.
pub const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
/// The call stops, and the listener is told.
pub const STOP: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// Offset of the low half of an argument, counted from 0.
pub const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// Any instruction but a jump.
pub const fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Loads what is at an offset of `struct seccomp_data`.
pub const fn load(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset)
}

/// Keeps these bits of what was loaded.
pub const fn mask(bits: u32) -> sock_filter {
    statement(BPF_ALU | BPF_AND | BPF_K, bits)
}

/// Ends with a verdict.
pub const fn give(verdict: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, verdict)
}

/// Skips `jt` instructions if what was loaded is `k`, `jf` if not.
pub const fn jump(k: u32, jt: usize, jf: usize) -> sock_filter {
    jump_by(BPF_JEQ, k, jt, jf)
}

/// The same for `k` or more, unsigned.
pub const fn jump_from(k: u32, jt: usize, jf: usize) -> sock_filter {
    jump_by(BPF_JGE, k, jt, jf)
}

/// The same for any bit of `k`.
pub const fn jump_bits(k: u32, jt: usize, jf: usize) -> sock_filter {
    jump_by(BPF_JSET, k, jt, jf)
}

const fn jump_by(how: u32, k: u32, jt: usize, jf: usize) -> sock_filter {
    assert!(jt <= u8::MAX as usize && jf <= u8::MAX as usize, "a jump of the filter is too long");
    sock_filter { code: (BPF_JMP | how | BPF_K) as u16, jt: jt as u8, jf: jf as u8, k }
}

/// What the kernel's interpreter answers to a call: for tests of filters.
///
/// # Panics
/// On an instruction that is none of the above.
pub fn interpret(program: &[sock_filter], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let (mut at, mut value) = (0, 0);
    loop {
        let step = program[at];
        at += 1;
        let mut branch = |is: bool| at += usize::from(if is { step.jt } else { step.jf });
        match u32::from(step.code) {
            code if code == BPF_LD | BPF_W | BPF_ABS => {
                value = match step.k {
                    NUMBER => number,
                    ARCH => arch,
                    offset => arguments[(offset as usize - 16) / 8].to_le_bytes()[offset as usize % 8..][..4]
                        .iter()
                        .rev()
                        .fold(0, |value, byte| value << 8 | u32::from(*byte)),
                }
            }
            code if code == BPF_ALU | BPF_AND | BPF_K => value &= step.k,
            code if code == BPF_JMP | BPF_JEQ | BPF_K => branch(value == step.k),
            code if code == BPF_JMP | BPF_JGE | BPF_K => branch(value >= step.k),
            code if code == BPF_JMP | BPF_JSET | BPF_K => branch(value & step.k != 0),
            code if code == BPF_RET | BPF_K => return step.k,
            other => panic!("an instruction {other}"),
        }
    }
}
