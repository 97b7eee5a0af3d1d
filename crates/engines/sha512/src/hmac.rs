//! HMAC (RFC 2104).

use crate::compress::BLOCK;
use crate::{Hash, Kind, SIZE_MAX, wipe};

/// HMAC under one key, whose pads are hashed once for all messages; wiped when dropped.
pub struct Hmac {
    inner: Hash,
    outer: Hash,
    state: Hash,
}

impl Hmac {
    /// Without a key, until [`set_key`](Self::set_key).
    ///
    /// # Panics
    /// Where [`is_supported`](crate::is_supported) says no.
    pub fn new(kind: Kind) -> Self {
        Self { inner: Hash::new(kind), outer: Hash::new(kind), state: Hash::new(kind) }
    }

    /// Takes a key of any length. It is hashed where it is to stay: a value that is moved would leave a copy behind.
    pub fn set_key(&mut self, key: &[u8]) {
        let mut block = [0; BLOCK];
        match block.get_mut(..key.len()) {
            Some(front) => front.copy_from_slice(key),
            None => {
                self.state.reset();
                self.state.update(key);
                self.state.finish(&mut block);
            }
        }
        block.iter_mut().for_each(|byte| *byte ^= 0x36);
        self.inner.reset();
        self.inner.update(&block);
        block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5C);
        self.outer.reset();
        self.outer.update(&block);
        wipe(&mut block);
    }

    /// The MAC of these parts, one after the other, at the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than a value.
    pub fn of(&mut self, parts: &[&[u8]], out: &mut [u8]) {
        let mut value = [0; SIZE_MAX];
        self.state.copy_from(&self.inner);
        parts.iter().for_each(|part| self.state.update(part));
        self.state.finish(&mut value);
        self.state.copy_from(&self.outer);
        self.state.update(&value[..self.state.kind().size()]);
        self.state.finish(out);
        wipe(&mut value);
    }
}
