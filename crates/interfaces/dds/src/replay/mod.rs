//! Messages that come twice.
//!
//! Nonces say little of a message's age, for each implementation counts as it likes, and none says how:
//!
//! | sender | sessions | numbers within a session |
//! |---|---|---|
//! | Bywash | go up by one, big-endian | go up by one, big-endian, and on from session to session |
//! | Cyclone DDS 0.10 | one | go up by one, the halves swapped where the machine is little-endian |
//! | OpenDDS 3 | go up by one every 1024 blocks, first byte lowest | go up by one, first byte lowest; each session begins anywhere |
//! | Fast DDS 2 and 3 | go up by one every 32 messages, in the machine's own order | are drawn at random |
//!
//! So it is learnt from what was accepted, and nothing is refused but a copy of what is remembered ([`Latest`]: the latest 256, however they are numbered), a number that was counted before all that
//! a bit is kept of ([`Counter`]), and a session that was counted before all that is remembered ([`Run`]). What is no sender's next and nobody's last is new: senders that count
//! by themselves under one key, from anywhere, do not get in each other's way unless they begin by chance within 2^32 of each other (one in 2^31 pairs).

mod counter;
mod latest;
mod run;
#[cfg(test)]
mod tests;

use crate::wire::{ACKNACK, Header, NACK_FRAG};
use counter::Counter;
use latest::Latest;
use run::Run;
use std::sync::{Mutex, PoisonError};

/// Sessions (or senders within one) of which it is known how they count. Each has 144 bytes.
const COUNTERS: usize = 32;
/// Senders of which it is known how their sessions count. There is one under a key, unless the key came with a fork.
const RUNS: usize = 4;

/// Which messages were accepted under one key, for all [openers](crate::Opener) that have it.
#[derive(Default)]
pub struct Accepted {
    /// A writer's submessages, or messages, and a reader's submessages: the two of a key exchange have one key, and Fast DDS has both begin with session 0.
    senders: Mutex<[Seen; 2]>,
}

impl Accepted {
    /// Notes a message that has proved authentic, with its text; whether it is new.
    pub(crate) fn note(&self, header: &Header, text: &[u8]) -> bool {
        let is_readers = matches!(text.first(), Some(&(ACKNACK | NACK_FRAG)));
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders[usize::from(is_readers)].note(header.session, header.suffix)
    }
}

/// What is remembered of one sender.
#[derive(Default)]
struct Seen {
    latest: Latest,
    /// The latest used first.
    counters: Vec<Counter>,
    /// Likewise.
    runs: Vec<Run>,
    /// The session of the latest message.
    session: Option<u32>,
}

impl Seen {
    /// Notes a message; whether it is new.
    fn note(&mut self, session: u32, suffix: u64) -> bool {
        let is_new = self.counted(session, suffix).unwrap_or_else(|| self.is_otherwise_new(session, suffix));
        if is_new {
            self.follow(session);
            if let Some(dropped) = self.latest.put(session, suffix) {
                self.runs.iter_mut().for_each(|run| run.forget(dropped));
            }
        }
        is_new
    }

    /// Whether it is new to the one that counts so, if anybody does.
    fn counted(&mut self, session: u32, suffix: u64) -> Option<bool> {
        let (at, is_new) = self.counters.iter_mut().enumerate().find_map(|(at, counter)| Some((at, counter.take(session, suffix)?)))?;
        if is_new && at > 0 {
            self.counters[..=at].rotate_right(1);
        }
        Some(is_new)
    }

    /// Whether it is new where nobody is known to count so; from its neighbour it is learnt who does.
    fn is_otherwise_new(&mut self, session: u32, suffix: u64) -> bool {
        let has_neighbours = self.latest.may_have_neighbours(suffix) && self.latest.has_session(session);
        if has_neighbours && self.latest.has(session, suffix) || self.runs.iter().find_map(|run| run.is_left(session)) == Some(true) {
            return false;
        }
        if has_neighbours && let Some(counter) = Counter::learnt(session, suffix, self.latest.of(session)) {
            self.counters.truncate(COUNTERS - 1);
            self.counters.insert(0, counter);
        }
        true
    }

    /// Learns how sessions count, from two that come one after the other.
    fn follow(&mut self, session: u32) {
        let Some(before) = self.session.replace(session) else { return };
        if before == session {
            return;
        }
        if let Some(at) = self.runs.iter_mut().position(|run| run.take(session)) {
            self.runs[..=at].rotate_right(1);
        } else if let Some(run) = Run::learnt(before, session) {
            self.runs.truncate(RUNS - 1);
            self.runs.insert(0, run);
        }
    }
}
