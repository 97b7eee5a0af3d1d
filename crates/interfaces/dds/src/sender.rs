//! A sender's sessions: nonces that never come twice, and a new key in time.

use crate::cache::Sessions;
use crate::derive::Purpose;
use crate::keyed::Keyed;
use crate::keymat::KeyMaterial;
use crate::random;
use crate::refusal::Result;
use crate::wire::Header;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// After so many blocks of 16 bytes a session has a new key: 64 GiB, far below what AES-GCM bears.
pub const BLOCKS_MAX: u64 = 1 << 32;

/// What a sender protects messages with: its master key, and the session that is under way. Shared by threads; what is locked is a handful of numbers.
pub struct Sender {
    material: KeyMaterial,
    blocks_max: u64,
    state: Mutex<State>,
}

struct State {
    id: u32,
    keyed: Keyed,
    suffix: u64,
    blocks: u64,
    process: u64,
    /// Session and suffix before the first message.
    first: (u32, u64),
}

impl Sender {
    /// A sender with a first session of a random number.
    ///
    /// # Errors
    /// [`Refusal::Random`](crate::Refusal::Random), [`Refusal::Engine`](crate::Refusal::Engine).
    pub fn new(material: KeyMaterial, blocks_max: u64) -> Result<Self> {
        let state = Mutex::new(State::draw(&material)?);
        Ok(Self { material, blocks_max: blocks_max.max(1), state })
    }

    /// Its master key.
    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// The header of the next message, of so many bytes, and what to protect it with.
    ///
    /// # Errors
    /// [`Refusal::Random`](crate::Refusal::Random), [`Refusal::Engine`](crate::Refusal::Engine).
    pub fn next(&self, bytes: usize) -> Result<(Header, Keyed)> {
        loop {
            let mut state = self.lock();
            let (is_forked, is_used_up) = (state.process != random::process(), state.blocks >= self.blocks_max);
            if is_forked || is_used_up {
                let id = state.id;
                drop(state);
                self.renew(id, is_forked)?;
                continue;
            }
            // A message is two blocks more for GCM: the tag's mask and the lengths. An empty one counts too.
            state.blocks += bytes.div_ceil(16) as u64 + 2;
            state.suffix = state.suffix.wrapping_add(1);
            let KeyMaterial { kind, sender_id: key_id, .. } = self.material;
            return Ok((Header { kind, key_id, session: state.id, suffix: state.suffix }, state.keyed.clone()));
        }
    }

    /// Makes the next session, without the lock, and begins it if nobody else has begun one. If there is no key for it, the session stays as it was.
    #[cold]
    fn renew(&self, id: u32, is_forked: bool) -> Result<()> {
        if is_forked {
            // A forked child has the same key and the same numbers: it begins sessions of its own.
            let new = State::draw(&self.material)?;
            let mut state = self.lock();
            if state.process != new.process {
                *state = new;
            }
            return Ok(());
        }
        let next = id.wrapping_add(1);
        let keyed = session(&self.material, next)?;
        let mut state = self.lock();
        if state.id == id && state.blocks >= self.blocks_max {
            (state.keyed, state.id, state.blocks) = (keyed, next, 0);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a message with this header is this sender's, where somebody else has the key too. Its sessions and its numbers are a range each: after s sessions and n messages, one of 2^96 / (s n)
    /// messages of another's random session and number is within both by chance, and that one alone is taken for ours. Of what was made before a fork the child knows nothing.
    pub fn has_made(&self, header: &Header) -> bool {
        let state = self.lock();
        let (first_id, before) = state.first;
        let is_session = header.session.wrapping_sub(first_id) <= state.id.wrapping_sub(first_id);
        let used = 1..=state.suffix.wrapping_sub(before);
        header.key_id == self.material.sender_id && is_session && used.contains(&header.suffix.wrapping_sub(before))
    }
}

impl State {
    fn draw(material: &KeyMaterial) -> Result<Self> {
        let (id, suffix) = (u32::from_be_bytes(random::bytes()?), u64::from_be_bytes(random::bytes()?));
        Ok(Self { id, keyed: session(material, id)?, suffix, blocks: 0, process: random::process(), first: (id, suffix) })
    }
}

/// Not kept in a table: nobody else has use for it, and it is wiped when the next one takes its place.
fn session(material: &KeyMaterial, id: u32) -> Result<Keyed> {
    let key = &material.sender_key[..material.kind.key_len()];
    Ok(Sessions::shared().find_or_make(material.kind, Purpose::Sender, key, material.master_salt(), id)?.0)
}
