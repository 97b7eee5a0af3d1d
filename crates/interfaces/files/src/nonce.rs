//! Numbers for chunk writes that never come twice.
//!
//! A *session* of writing begins with 16 random bytes from the kernel, and each of its writes has the next number. A chunk is sealed under
//! the session's own key (derived from file key and session) with the write's number as nonce. So nothing about nonces is ever read back from
//! the disk: a crash ends a session, and whoever opens the file next begins another. FORMAT.md has the bounds.

use crate::error::Result;
use crate::geometry::NONCE_BYTES;
use bywash_client::ForkGuard;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Writes in one session; then it is changed. With 1 MiB chunks 2^36 blocks under one key, far below what AES-GCM bears.
pub const SESSION_WRITES_MAX: u64 = 1 << 20;

/// The random number of a session of writing.
pub type SessionId = [u8; 16];

/// What one write of a chunk is sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nonce {
    /// Who wrote.
    pub session: SessionId,
    /// Which of his writes.
    pub write: u64,
}

impl Nonce {
    /// As it stands before the chunk's text.
    pub fn to_bytes(self) -> [u8; NONCE_BYTES] {
        let mut bytes = [0; NONCE_BYTES];
        bytes[..16].copy_from_slice(&self.session);
        bytes[16..].copy_from_slice(&self.write.to_le_bytes());
        bytes
    }

    /// From the bytes before a chunk's text.
    pub fn from_bytes(bytes: &[u8; NONCE_BYTES]) -> Self {
        let (mut session, mut write) = ([0; 16], [0; 8]);
        session.copy_from_slice(&bytes[..16]);
        write.copy_from_slice(&bytes[16..]);
        Self { session, write: u64::from_le_bytes(write) }
    }
}

/// Fills a buffer with random bytes from the kernel.
///
/// # Errors
/// The kernel's, where it has no `getrandom`.
pub fn random(bytes: &mut [u8]) -> Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    }
    Ok(())
}

/// Gives out nonces; shared by threads.
pub struct NonceSource {
    state: Mutex<Option<Nonce>>,
    /// A child of fork begins a session of its own. `None` where the kernel has no such page: then the source is not used across forks. It is made for the first nonce: a page for each file that is only read would cost more than the rest.
    fork: OnceLock<Option<ForkGuard>>,
}

impl Default for NonceSource {
    fn default() -> Self {
        Self::new()
    }
}

impl NonceSource {
    /// A source without a session as yet.
    pub fn new() -> Self {
        Self { state: Mutex::new(None), fork: OnceLock::new() }
    }

    /// The next one.
    ///
    /// # Errors
    /// Those of [`random`].
    pub fn next(&self) -> Result<Nonce> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.fork.get_or_init(|| ForkGuard::new().ok()).as_ref().is_some_and(ForkGuard::renew) {
            *state = None;
        }
        let nonce = match *state {
            Some(last) if last.write + 1 < SESSION_WRITES_MAX => Nonce { write: last.write + 1, ..last },
            _ => {
                let mut session = SessionId::default();
                random(&mut session)?;
                Nonce { session, write: 0 }
            }
        };
        *state = Some(nonce);
        Ok(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Ten million writes by sources that "crash" (are dropped) at random; per session the numbers are those from 0 on, each once.
    #[test]
    fn ten_million_writes_with_crashes_repeat_no_nonce() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut next_of: HashMap<SessionId, u64> = HashMap::new();
        let (mut source, mut crashes) = (NonceSource::new(), 0);
        for _ in 0..10_000_000 {
            if random.u32(..5000) == 0 {
                (source, crashes) = (NonceSource::new(), crashes + 1);
            }
            let nonce = source.next().unwrap();
            let next = next_of.entry(nonce.session).or_default();
            assert_eq!(nonce.write, *next, "{nonce:?} came before, or one was left out");
            *next += 1;
        }
        assert!(crashes > 1000 && next_of.len() > crashes, "{crashes} crashes, {} sessions", next_of.len());
    }

    #[test]
    fn threads_share_a_source_without_repeats() {
        let source = NonceSource::new();
        let drawn = |_| (0..50_000).map(|_| source.next().unwrap().to_bytes()).collect::<Vec<_>>();
        let mut all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|at| scope.spawn(move || drawn(at))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 200_000);
    }

    #[test]
    fn sessions_end_before_their_bound() {
        let source = NonceSource::new();
        let first = source.next().unwrap();
        let last = (1..=SESSION_WRITES_MAX).map(|_| source.next().unwrap()).last().unwrap();
        assert_ne!(first.session, last.session);
        assert_eq!(last.write, 0);
        assert_eq!(Nonce::from_bytes(&first.to_bytes()), first);
    }
}
