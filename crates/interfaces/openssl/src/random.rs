//! Random bytes, of libcrypto's generator in the private library context.
//!
//! However short it is, a draw takes the generator half a microsecond, and a handshake needs three. So threads that draw often draw ahead what will be seen
//! by everyone in the end, salts and IVs; never keys. No byte is given away twice: a forked child drops what its parent had drawn.

use crate::ahead::Ahead;
use crate::delegate::Delegate;
use crate::ffi::libcrypto::{RAND_bytes_ex, RAND_priv_bytes_ex};
use core::cell::RefCell;

/// Bytes drawn ahead.
const AHEAD: usize = 512;
/// Longer draws are made by themselves.
const SHORT: usize = 64;

/// What a thread has drawn.
struct Drawn {
    ahead: Ahead,
    bytes: [u8; AHEAD],
    /// So many of them, from the front, are not given away yet.
    left: usize,
}

thread_local! {
    static DRAWN: RefCell<Drawn> = const { RefCell::new(Drawn { ahead: Ahead::new(), bytes: [0; AHEAD], left: 0 }) };
}

impl Drawn {
    /// Whether these were filled.
    fn take(&mut self, out: &mut [u8]) -> bool {
        if !self.ahead.ask() {
            self.left = 0;
        }
        if self.left < out.len() && self.ahead.is_worth_it() && self.ahead.may_keep() && draw(&mut self.bytes) {
            self.left = AHEAD;
        }
        let Some(rest) = self.left.checked_sub(out.len()) else { return false };
        let given = &mut self.bytes[rest..self.left];
        out.copy_from_slice(given);
        given.fill(0);
        self.left = rest;
        true
    }
}

fn draw(bytes: &mut [u8]) -> bool {
    // SAFETY: a live context; the slice gives pointer and length.
    Delegate::get().is_some_and(|delegate| unsafe { RAND_bytes_ex(delegate.context(), bytes.as_mut_ptr(), bytes.len(), 0) } == 1)
}

/// Fills with random bytes that will be seen: salts, IVs. False if the generator fails.
pub(crate) fn random(bytes: &mut [u8]) -> bool {
    let take = |bytes: &mut [u8]| DRAWN.try_with(|drawn| drawn.try_borrow_mut().is_ok_and(|mut drawn| drawn.take(bytes)));
    bytes.len() <= SHORT && take(bytes) == Ok(true) || draw(bytes)
}

/// Fills with random bytes that stay secret: keys. False if the generator fails.
pub(crate) fn random_secret(bytes: &mut [u8]) -> bool {
    // SAFETY: a live context; the slice gives pointer and length.
    Delegate::get().is_some_and(|delegate| unsafe { RAND_priv_bytes_ex(delegate.context(), bytes.as_mut_ptr(), bytes.len(), 0) } == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn salts(count: usize) -> Vec<[u8; 16]> {
        let mut salts = vec![[0; 16]; count];
        assert!(salts.iter_mut().all(|salt| random(salt)));
        salts
    }

    #[test]
    fn nothing_is_given_twice() {
        let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(|| salts(500))).collect();
        let mut seen: HashSet<[u8; 16]> = HashSet::new();
        assert!(threads.into_iter().flat_map(|thread| thread.join().unwrap()).all(|salt| seen.insert(salt)));
    }

    #[test]
    fn every_length_is_filled() {
        for length in 0..3 * AHEAD {
            let mut seen = vec![0; length];
            // That a byte is zero eight times in a row happens once in 2^64.
            for _ in 0..8 {
                let mut bytes = vec![0; length];
                assert!(random(&mut bytes));
                seen.iter_mut().zip(bytes).for_each(|(seen, byte)| *seen |= byte);
            }
            assert!(seen.iter().all(|&byte| byte != 0), "of {length}");
        }
    }

    /// In a process of its own, where no other test's thread holds the generator's locks when it forks.
    #[test]
    fn a_childs_are_not_its_parents() {
        const ALONE: &str = "BYWASH_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let name = ["--exact", "random::tests::a_childs_are_not_its_parents", "--test-threads=1"];
            let alone = std::process::Command::new(std::env::current_exe().unwrap()).args(name).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&alone.stdout).into_owned();
            assert!(alone.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        salts(10);
        let (from, to) = std::io::pipe().unwrap();
        // SAFETY: the child draws, writes to a pipe, and ends without running anything of its parent's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut theirs = [[0; 16]; 4];
            let drawn = theirs.iter_mut().all(|salt| random(salt));
            let written = std::io::Write::write_all(&mut { to }, theirs.as_flattened());
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!drawn || written.is_err())) };
        }
        drop(to);
        let mut theirs = Vec::new();
        std::io::Read::read_to_end(&mut { from }, &mut theirs).unwrap();
        let mut status = 1;
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((status, theirs.len()), (0, 64));
        assert!(salts(4).iter().all(|mine| theirs.chunks_exact(16).all(|their| their != mine)));
    }
}
