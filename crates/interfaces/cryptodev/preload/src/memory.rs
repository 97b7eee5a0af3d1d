//! The program's memory, reached by pointers that it gives and that may be bad: the real module answers `EFAULT` then, and so do we.
//!
//! Two ways. As long as the program handles no `SIGSEGV` and no `SIGBUS` itself, we do ([`signals`](crate::signals)), and copy at a few nanoseconds; a fault in the midst of the
//! copy goes on at its end, as in a kernel. Otherwise the kernel copies (`process_vm_readv`), at some 0.3 us.

use crate::signals;
use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use libc::iovec;

/// From so many bytes on the wider registers gain more than the way to them costs.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 256;

// Not `rep movsb`: where one end is not aligned as the other is, processors by AMD take ten times as long for it.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.bywash_cryptodev_copy,\"ax\",@progbits",
    ".globl bywash_cryptodev_copy, bywash_cryptodev_copy_wide, bywash_cryptodev_copy_end",
    ".hidden bywash_cryptodev_copy, bywash_cryptodev_copy_wide, bywash_cryptodev_copy_end",
    ".type bywash_cryptodev_copy_wide,@function",
    "bywash_cryptodev_copy_wide:", // rdi: to, rsi: from, rdx: bytes, 128 or more
    "2:",
    "vmovups ymm0, [rsi]",
    "vmovups ymm1, [rsi + 32]",
    "vmovups ymm2, [rsi + 64]",
    "vmovups ymm3, [rsi + 96]",
    "vmovups [rdi], ymm0",
    "vmovups [rdi + 32], ymm1",
    "vmovups [rdi + 64], ymm2",
    "vmovups [rdi + 96], ymm3",
    "sub rsi, -128",
    "sub rdi, -128",
    "add rdx, -128",
    "cmp rdx, 128",
    "jae 2b",
    "vzeroupper",
    ".size bywash_cryptodev_copy_wide, . - bywash_cryptodev_copy_wide", // and goes on
    ".type bywash_cryptodev_copy,@function",
    "bywash_cryptodev_copy:", // rdi: to, rsi: from, rdx: bytes
    "sub rdx, 16",
    "jb 4f",
    "3:",
    "movups xmm0, [rsi]",
    "movups [rdi], xmm0",
    "add rsi, 16",
    "add rdi, 16",
    "sub rdx, 16",
    "jae 3b",
    "4:",
    "add rdx, 16",
    "jz 6f",
    "5:",
    "mov al, [rsi]",
    "mov [rdi], al",
    "inc rsi",
    "inc rdi",
    "dec rdx",
    "jnz 5b",
    "6:",
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

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    /// The same for 128 bytes or more, on a processor with AVX. (After a fault the upper halves of its registers stay as they are, which costs the next code without AVX
    /// some time and nothing else.)
    fn bywash_cryptodev_copy_wide(to: *mut u8, from: *const u8, length: usize) -> c_int;
}

/// Copies as wide as it can; answers 0 or `EFAULT`.
///
/// # Safety
/// One of both ends is the caller's own; the signals are guarded.
#[inline]
unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> c_int {
    #[cfg(target_arch = "x86_64")]
    if length >= WIDE && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: passed on from the caller; a fault at the program's address ends the copy.
        return if unsafe { bywash_cryptodev_copy_wide(to, from, length) } == 0 { 0 } else { libc::EFAULT };
    }
    // SAFETY: as above.
    if unsafe { bywash_cryptodev_copy(to, from, length) } == 0 { 0 } else { libc::EFAULT }
}

/// Where an instruction that has faulted is to go on, if it is one of the copy's.
pub(crate) fn landing(instruction: usize) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    let start = bywash_cryptodev_copy_wide as *const () as usize;
    #[cfg(not(target_arch = "x86_64"))]
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
        // SAFETY: the caller's room.
        return unsafe { copy(into, address as *const u8, length) };
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
        // SAFETY: the caller's bytes.
        return unsafe { copy(address as *mut u8, from, length) };
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
