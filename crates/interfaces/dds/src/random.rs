//! Random bytes that are ready: drawn some hundred at a time by each thread, wiped as they are given out.
//!
//! They come from AWS-LC's generator (CTR_DRBG of SP 800-90A, one a thread), which seeds itself from the system, again after so many requests,
//! and again in a forked child. What a thread has in store is its own; a forked child throws its copy of the parent's store away, which it notices by a
//! page that the kernel wipes. On a kernel without that, nothing is stored. A virtual machine that is copied while it runs has the same store twice:
//! at most [`STORE`] bytes a thread.

use crate::refusal::{Refusal, Result};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use bywash_client::ForkGuard;
use bywash_core::secret::wipe;
use once_cell::race::OnceBox;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Bytes that a thread has in store.
pub const STORE: usize = 512;

struct Store {
    bytes: [u8; STORE],
    /// How many of them, from the front, have been given out.
    used: usize,
    /// The process that they were drawn in.
    process: u64,
}

thread_local! {
    static STORED: RefCell<Store> = const { RefCell::new(Store { bytes: [0; STORE], used: STORE, process: 0 }) };
}

impl Drop for Store {
    fn drop(&mut self) {
        wipe(&mut self.bytes);
    }
}

/// What tells a forked child from its parent; none on a kernel that cannot (before Linux 4.14).
fn guard() -> Option<&'static ForkGuard> {
    // No lock: the child of a fork would wait for it for ever.
    static GUARD: OnceBox<Option<ForkGuard>> = OnceBox::new();
    GUARD.get_or_init(|| Box::new(ForkGuard::new().ok())).as_ref()
}

/// A number of this process among its ancestors that used this crate: a forked child has another. What must not be the same in parent and child is
/// drawn anew when it changes. Where the kernel does not tell, it is the process's own number, which a grandchild might have again.
pub fn process() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let Some(guard) = guard() else { return std::process::id().into() };
    if guard.has_forked() {
        // First the number: whoever then sees a page that is marked again sees the new number too. Several threads may count; it only has to change.
        NUMBER.fetch_add(1, SeqCst);
        guard.renew();
    }
    NUMBER.load(SeqCst)
}

/// Fills the buffer with random bytes.
///
/// # Errors
/// [`Refusal::Random`] if the system has none; the buffer is zeros then.
pub fn fill(buffer: &mut [u8]) -> Result<()> {
    if guard().is_none() || buffer.len() > STORE / 4 {
        return draw(buffer);
    }
    let process = process();
    // A thread that is ending has no store any more.
    let stored = STORED.try_with(|store| match store.try_borrow_mut() {
        Ok(mut store) => store.give(process, buffer),
        Err(_) => draw(buffer),
    });
    stored.unwrap_or_else(|_| draw(buffer))
}

/// Random bytes by value.
///
/// # Errors
/// Those of [`fill`].
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn draw(buffer: &mut [u8]) -> Result<()> {
    SystemRandom::new().fill(buffer).map_err(|_| {
        buffer.fill(0);
        Refusal::Random("the system's generator failed")
    })
}

impl Store {
    fn give(&mut self, process: u64, buffer: &mut [u8]) -> Result<()> {
        if self.process != process || STORE - self.used < buffer.len() {
            self.used = STORE;
            draw(&mut self.bytes)?;
            (self.used, self.process) = (0, process);
        }
        let given = &mut self.bytes[self.used..self.used + buffer.len()];
        buffer.copy_from_slice(given);
        wipe(given);
        self.used += buffer.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_wiped_and_never_given_again() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(bytes::<12>().unwrap()));
            STORED.with_borrow(|store| assert!(store.bytes[..store.used].iter().all(|byte| *byte == 0)));
        }
        let mut long = [0; STORE * 3];
        fill(&mut long).unwrap();
        assert!(long.iter().any(|byte| *byte != 0));
    }

    #[test]
    fn another_process_throws_the_store_away() {
        if guard().is_none() {
            return eprintln!("skipped: this kernel has no MADV_WIPEONFORK, so nothing is stored");
        }
        let here = process();
        bytes::<4>().unwrap();
        let before = STORED.with_borrow(|store| store.bytes);
        STORED.with_borrow_mut(|store| store.give(here + 1, &mut [0; 4]).unwrap());
        STORED.with_borrow(|store| {
            assert_eq!((store.used, store.process), (4, here + 1));
            assert_ne!(store.bytes[4..], before[4..]);
        });
    }
}
