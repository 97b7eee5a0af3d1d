//! The program's memory, reached by pointers that it gives and that may be bad: the real module answers `EFAULT` then, and so do we.
//!
//! Two ways. As long as the program handles no `SIGSEGV` and no `SIGBUS` itself, we do ([`signals`](crate::signals)), and copy at a few nanoseconds; a fault in the midst of the
//! copy goes on at its end, as in a kernel. Otherwise the kernel copies (`process_vm_readv`), at some 0.3 us.

use crate::signals;
use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use libc::iovec;

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.bywash_cryptodev_copy,\"ax\",@progbits",
    ".globl bywash_cryptodev_copy, bywash_cryptodev_copy_end",
    ".hidden bywash_cryptodev_copy, bywash_cryptodev_copy_end",
    ".type bywash_cryptodev_copy,@function",
    "bywash_cryptodev_copy:", // rdi: to, rsi: from, rdx: bytes
    "mov rcx, rdx",
    "cmp rdx, 128",
    "jae 3f",
    "2:",
    "cmp rcx, 8",
    "jb 3f",
    "mov rax, [rsi]",
    "mov [rdi], rax",
    "add rsi, 8",
    "add rdi, 8",
    "sub rcx, 8",
    "jmp 2b",
    "3:",
    "test rcx, rcx",
    "jz 4f",
    "rep movsb",
    "4:",
    "xor eax, eax",
    "ret",
    "bywash_cryptodev_copy_end:",
    "mov eax, 1",
    "ret",
    ".size bywash_cryptodev_copy, . - bywash_cryptodev_copy",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.bywash_cryptodev_copy,\"ax\",@progbits",
    ".globl bywash_cryptodev_copy, bywash_cryptodev_copy_end",
    ".hidden bywash_cryptodev_copy, bywash_cryptodev_copy_end",
    ".type bywash_cryptodev_copy,@function",
    "bywash_cryptodev_copy:", // x0: to, x1: from, x2: bytes
    "2:",
    "cmp x2, #16",
    "b.lo 3f",
    "ldp x3, x4, [x1], #16",
    "stp x3, x4, [x0], #16",
    "sub x2, x2, #16",
    "b 2b",
    "3:",
    "cbz x2, 4f",
    "ldrb w3, [x1], #1",
    "strb w3, [x0], #1",
    "sub x2, x2, #1",
    "b 3b",
    "4:",
    "mov w0, #0",
    "ret",
    "bywash_cryptodev_copy_end:",
    "mov w0, #1",
    "ret",
    ".size bywash_cryptodev_copy, . - bywash_cryptodev_copy",
    ".popsection",
);

unsafe extern "C" {
    /// Copies; answers 0, or 1 if a fault has ended it.
    fn bywash_cryptodev_copy(to: *mut u8, from: *const u8, length: usize) -> c_int;
    /// Where a fault within the function goes on.
    fn bywash_cryptodev_copy_end();
}

/// Where an instruction that has faulted is to go on, if it is one of the copy's.
pub(crate) fn landing(instruction: usize) -> Option<usize> {
    let start = bywash_cryptodev_copy as *const () as usize;
    let end = bywash_cryptodev_copy_end as *const () as usize;
    (start..end).contains(&instruction).then_some(end)
}

/// [`bywash_cryptodev_link::Process::read`].
///
/// # Safety
/// Room for `length` bytes at `into`. The address may be anything.
pub(crate) unsafe extern "C" fn read(address: u64, into: *mut u8, length: usize) -> c_int {
    if length == 0 {
        return 0;
    }
    if signals::are_guarded() {
        // SAFETY: the caller's room; a fault at the program's address ends the copy.
        return if unsafe { bywash_cryptodev_copy(into, address as *const u8, length) } == 0 { 0 } else { libc::EFAULT };
    }
    remote(libc::process_vm_readv, into.cast(), address, length)
}

/// [`bywash_cryptodev_link::Process::write`].
///
/// # Safety
/// `length` bytes at `from`. The address may be anything.
pub(crate) unsafe extern "C" fn write(address: u64, from: *const u8, length: usize) -> c_int {
    if length == 0 {
        return 0;
    }
    if signals::are_guarded() {
        // SAFETY: as above.
        return if unsafe { bywash_cryptodev_copy(address as *mut u8, from, length) } == 0 { 0 } else { libc::EFAULT };
    }
    remote(libc::process_vm_writev, from.cast_mut().cast(), address, length)
}

type Copy = unsafe extern "C" fn(libc::pid_t, *const iovec, libc::c_ulong, *const iovec, libc::c_ulong, libc::c_ulong) -> isize;

fn remote(copy: Copy, own: *mut c_void, address: u64, length: usize) -> c_int {
    let own = iovec { iov_base: own, iov_len: length };
    let theirs = iovec { iov_base: address as *mut c_void, iov_len: length };
    crate::real::keeping_errno(|| {
        // SAFETY: our own memory on one side; the kernel tests the other.
        let done = unsafe { copy(libc::getpid(), &raw const own, 1, &raw const theirs, 1, 0) };
        if done == length as isize { 0 } else { libc::EFAULT }
    })
}
