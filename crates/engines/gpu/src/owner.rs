//! The process that opened a device. A child of fork has the driver's handles without its threads, and may share with its parent the memory that they mean: it leaves alone what it inherited.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::mm::{Advice, MapFlags, ProtFlags};

const PAGE: usize = 4096;

/// Known by a page that the kernel fills with zeros in a child, so that looking takes one load; where it does not do that (Linux before 4.14), by the process's number.
pub(crate) struct Owner {
    page: Option<NonNull<AtomicU32>>,
    process: u32,
}

// SAFETY: the page stays mapped for the life of the value, and is reached as an atomic alone.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Owner {
    /// This process.
    pub(crate) fn this_process() -> Self {
        let page = wiped_on_fork();
        if let Some(word) = page {
            // SAFETY: just mapped, and aligned to a page.
            unsafe { word.as_ref() }.store(1, Ordering::Relaxed);
        }
        Self { page, process: std::process::id() }
    }

    /// Whether it is the process that asks.
    pub(crate) fn is_here(&self) -> bool {
        match self.page {
            // SAFETY: mapped as long as `self` lives.
            Some(word) => unsafe { word.as_ref() }.load(Ordering::Relaxed) != 0,
            None => self.process == std::process::id(),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(word) = self.page {
            // SAFETY: it was mapped by `this_process`, and nobody else has the address.
            let _ = unsafe { rustix::mm::munmap(word.as_ptr().cast(), PAGE) };
        }
    }
}

fn wiped_on_fork() -> Option<NonNull<AtomicU32>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing, and the advice changes only what a child sees of it.
    unsafe {
        let page: *mut c_void = rustix::mm::mmap_anonymous(core::ptr::null_mut(), PAGE, access, MapFlags::PRIVATE).ok()?;
        if rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork).is_err() {
            let _ = rustix::mm::munmap(page, PAGE);
            return None;
        }
        NonNull::new(page.cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::in_a_child;

    #[test]
    fn a_child_is_another_process_and_its_parent_is_not() {
        let owners = [Owner::this_process(), Owner { page: None, process: std::process::id() }];
        assert!(owners.iter().all(Owner::is_here));
        assert!(in_a_child(|| owners.iter().all(|owner| !owner.is_here()) && Owner::this_process().is_here()));
        assert!(owners.iter().all(Owner::is_here));
    }
}
