//! Counter mode and GHASH in one pass.

use super::Expanded;
use crate::narrow::ghash::{Sums, load_part};
use crate::narrow::modes::{load, rounds, store};
use crate::narrow::registers::{Registers, STEP};
use crate::text::{BLOCK, Text};
use crate::wipe;
use core::ops::Range;

/// How far a message has come.
pub(super) struct Pass<'a, 't, V: Registers, const SEAL: bool> {
    pub(super) key: &'a Expanded,
    pub(super) text: &'a mut Text<'t>,
    /// The next counter block, byte-reversed.
    pub(super) next: V::One,
    /// The hash so far.
    pub(super) y: V::One,
}

impl<V: Registers, const SEAL: bool> Pass<'_, '_, V, SEAL> {
    /// A range of the text, of whole blocks unless the text ends with it; and `last`, if there is one, hashed behind it.
    #[inline(always)]
    pub(super) fn run(&mut self, range: Range<usize>, last: Option<V::One>) {
        let (mut at, bytes) = (range.start, STEP * V::BYTES);
        let steps = range.len().saturating_sub(1) / bytes;
        if steps > 0 {
            if SEAL {
                // The hash follows one step behind the cipher.
                self.step::<false>(at);
            }
            for i in usize::from(SEAL)..steps {
                self.step::<true>(at + i * bytes);
            }
            at += steps * bytes;
            if SEAL {
                self.hash_behind(at);
            }
        }
        let rest = at..range.end;
        match rest.len().div_ceil(V::BYTES) {
            0 => {
                if let Some(last) = last {
                    self.y = self.key.powers.absorb_block::<V::One>(self.y.xor(last));
                }
            }
            1 if rest.len() <= BLOCK => self.end::<V::One, 1>(rest, last),
            1 => self.end::<V, 1>(rest, last),
            2 => self.end::<V, 2>(rest, last),
            3 => self.end::<V, 3>(rest, last),
            4 => self.end::<V, 4>(rest, last),
            5 | 6 => self.end::<V, 6>(rest, last),
            _ => self.end::<V, STEP>(rest, last),
        }
    }

    /// Enciphers a step, and meanwhile, if asked to, hashes one: when encrypting the step before.
    #[inline(always)]
    fn step<const HASH: bool>(&mut self, at: usize) {
        let schedule = &self.key.schedule;
        let [first, inner @ .., last] = schedule.keys() else { unreachable!("an expanded key has eleven or more") };
        let mut state = V::count::<STEP>(&mut self.next);
        let key = V::splat(first);
        for register in &mut state {
            *register = register.xor(key);
        }
        let (beside, alone) = inner.split_at(STEP);
        let hashed = self.hashed(at, HASH);
        let mut sums = Sums::<V>::zero();
        let mut before = V::of_one(self.y);
        for (i, key) in beside.iter().enumerate() {
            let key = V::splat(key);
            for register in &mut state {
                *register = register.encrypt_in_order(key);
            }
            if HASH {
                sums.add(V::load(&hashed[i * V::BYTES..]).reversed().xor(before), self.key.powers.from((STEP - i) * V::BLOCKS));
                before = V::splat(&[0; BLOCK]);
            }
        }
        for key in alone {
            let key = V::splat(key);
            for register in &mut state {
                *register = register.encrypt_in_order(key);
            }
        }
        let key = V::splat(last);
        let range = at..at + STEP * V::BYTES;
        let given = load::<V, STEP>(self.text.given(range.clone()));
        for (register, given) in state.iter_mut().zip(given) {
            *register = register.encrypt_last(key.xor(given));
        }
        store(state, self.text.room(range));
        if HASH {
            self.y = sums.of_lanes().reduced();
        }
    }

    /// What is hashed with the step at `at`, if anything is.
    #[inline(always)]
    fn hashed(&self, at: usize, any: bool) -> &[u8] {
        let len = STEP * V::BYTES;
        match (any, SEAL) {
            (false, _) => &[],
            (true, true) => self.text.done(at - len..at),
            (true, false) => self.text.given(at..at + len),
        }
    }

    /// Hashes the step before `at`.
    #[inline(always)]
    fn hash_behind(&mut self, at: usize) {
        self.y = self.key.powers.absorb::<V>(self.y, self.text.done(at - STEP * V::BYTES..at));
    }

    /// The rest, which is not empty and fits into `N` registers.
    #[inline(always)]
    fn end<W: Registers<One = V::One>, const N: usize>(&mut self, range: Range<usize>, last: Option<V::One>) {
        let powers = &self.key.powers;
        let mut power = range.len().div_ceil(BLOCK) + usize::from(last.is_some());
        let mut given = [W::splat(&[0; BLOCK]); N];
        for (register, part) in given.iter_mut().zip(self.text.given(range.clone()).chunks(W::BYTES)) {
            *register = load_part(part);
        }
        let done = rounds::<W, N, false>(&self.key.schedule, W::count(&mut self.next), given);
        let (mut sums, mut before) = (Sums::<W>::zero(), W::of_one(self.y));
        for (i, room) in self.text.room(range).chunks_mut(W::BYTES).enumerate().take(N) {
            let stored = store_part(done[i], room);
            let cipher = if SEAL { stored } else { given[i] };
            sums.add(cipher.reversed().xor(before), powers.from(power));
            before = W::splat(&[0; BLOCK]);
            power = power.saturating_sub(W::BLOCKS);
        }
        let mut sums = sums.of_lanes();
        if let Some(last) = last {
            sums.add(last, powers.from(1));
        }
        self.y = sums.reduced();
    }
}

/// As many bytes as there is room for, one or more and at most a register's; returns them, and zeros behind them.
#[inline(always)]
fn store_part<V: Registers>(register: V, room: &mut [u8]) -> V {
    match room.len() {
        len if len == V::BYTES => {
            register.store(room);
            register
        }
        BLOCK => {
            let first = register.first();
            first.store(room);
            V::of_one(first)
        }
        len => {
            let mut bytes = [0; 2 * BLOCK];
            register.store(&mut bytes);
            bytes[len..].fill(0);
            room.copy_from_slice(&bytes[..len]);
            let part = V::load(&bytes);
            wipe(&mut bytes);
            part
        }
    }
}
