//! Names of parameters. Libcrypto asks for some with every message, so most are compared at once, and the others up to the first difference.

use core::ffi::{CStr, c_char};

/// Names that are compared at once, with their NUL.
const AT_ONCE: usize = 8;
/// The smallest page there is.
const PAGE: usize = 4096;

/// Whether the string behind a pointer is this one.
///
/// # Safety
/// `name` points to a string that ends in NUL.
#[inline(always)]
pub(super) unsafe fn is(name: *const c_char, wanted: &CStr) -> bool {
    let wanted = wanted.to_bytes_with_nul();
    if wanted.len() <= AT_ONCE
        && name.addr() % PAGE <= PAGE - AT_ONCE
        // SAFETY: there is a first byte, and eight bytes from there on are of one page.
        && let Some(found) = unsafe { eight_bytes(name) }
    {
        let mut word = [0; AT_ONCE];
        word[..wanted.len()].copy_from_slice(wanted);
        let beyond = 8 * (AT_ONCE - wanted.len());
        return (found ^ u64::from_le_bytes(word)) << beyond == 0;
    }
    // SAFETY: the name ends in NUL, and no byte is read after one that differs, so none after that NUL.
    wanted.iter().enumerate().all(|(index, &byte)| unsafe { *name.cast::<u8>().add(index) } == byte)
}

/// The bytes of a short string and those behind it, of whatever kind, as a little-endian number; none where this is not known to be possible.
///
/// # Safety
/// The first byte can be read, and the eighth is in the same page.
#[inline(always)]
unsafe fn eight_bytes(at: *const c_char) -> Option<u64> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let found: u64;
        // SAFETY: the processor lets a page be read as a whole or not at all. In assembly, as in a C library's `strlen`, because a language's references end with the string.
        unsafe {
            core::arch::asm!("mov {}, qword ptr [{}]", out(reg) found, in(reg) at, options(nostack, preserves_flags, readonly, pure));
        }
        Some(found)
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let _ = at;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr;

    /// Everywhere at the end of a page behind which there is none, and before that.
    #[test]
    fn names_are_told_apart_wherever_they_lie() {
        let names = [c"", c"x", c"iv", c"ivlen", c"ivlem", c"ivle", c"keylen", c"padding", c"paddinh", c"tlsivfixed", c"tlsivfixee"];
        // SAFETY: two new pages, of which the second is made unreadable.
        let pages = unsafe {
            let pages =
                libc::mmap(ptr::null_mut(), 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(pages.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
            pages.cast::<u8>()
        };
        for there in names {
            let bytes = there.to_bytes_with_nul();
            for at in PAGE - 40..=PAGE - bytes.len() {
                // SAFETY: within the first page, and a string that ends in NUL.
                unsafe {
                    pages.write_bytes(0xA5, PAGE);
                    pages.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                    for wanted in names {
                        assert_eq!(is(pages.add(at).cast(), wanted), there == wanted, "{there:?} for {wanted:?}, {at} bytes into the page");
                    }
                }
            }
        }
        // SAFETY: mapped above, and nothing refers to them.
        assert_eq!(unsafe { libc::munmap(pages.cast(), 2 * PAGE) }, 0);
    }
}
