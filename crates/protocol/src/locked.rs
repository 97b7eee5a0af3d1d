//! Room for keys: memory of its own pages, kept out of swap and core dumps, wiped before it is given back.

use crate::mapping::Mapping;
use bywash_core::{Error, Result};

/// Secret bytes on pages of their own. They are reached by copying out into [`SecretBytes`](bywash_core::SecretBytes) for as long as a use lasts.
pub struct LockedBytes {
    map: Mapping,
    len: usize,
    locked: bool,
}

impl LockedBytes {
    /// Copies a secret into locked memory; whoever holds the original wipes it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is no memory. A limit on locking (`ulimit -l`) is no error: see [`is_locked`](Self::is_locked).
    pub fn new(secret: &[u8]) -> Result<Self> {
        let failed = |error| Error::Unavailable { what: format!("no memory for a key: {error}") };
        let (map, locked) = Mapping::private_locked(secret.len().max(1)).map_err(failed)?;
        map.write(0, secret);
        Ok(Self { map, len: secret.len(), locked })
    }

    /// Whether the system keeps it out of swap.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// A copy, wiped when it is dropped.
    pub fn secret(&self) -> bywash_core::SecretBytes {
        let mut copy = bywash_core::SecretBytes::zeroed(self.len);
        self.map.read(0, &mut copy);
        copy
    }
}

impl Drop for LockedBytes {
    fn drop(&mut self) {
        self.map.write(0, &vec![0; self.len]);
    }
}

impl core::fmt::Debug for LockedBytes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "[secret, {} bytes]", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_is_not_printed() {
        let locked = LockedBytes::new(b"a key").unwrap();
        assert_eq!(&*locked.secret(), b"a key");
        assert_eq!(format!("{locked:?}"), "[secret, 5 bytes]");
        assert_eq!(&*LockedBytes::new(b"").unwrap().secret(), b"");
    }
}
