//! Counter mode and GHASH in one pass.

use super::Expanded;
use crate::narrow::ghash::{Run, Sums, load_part};
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
        let mut run = Run::<V>::new(&self.key.powers, self.y);
        // A pair of registers is hashed beside two rounds.
        let [k0, k1, k2, k3, k4, k5, k6, k7] = beside else { unreachable!("as many as were split off") };
        round_beside::<V, HASH, 0, 0>(&mut state, k0, &mut run, hashed);
        round_beside::<V, HASH, 4, 0>(&mut state, k1, &mut run, hashed);
        round_beside::<V, HASH, 0, 2>(&mut state, k2, &mut run, hashed);
        round_beside::<V, HASH, 4, 2>(&mut state, k3, &mut run, hashed);
        round_beside::<V, HASH, 0, 4>(&mut state, k4, &mut run, hashed);
        round_beside::<V, HASH, 4, 4>(&mut state, k5, &mut run, hashed);
        round_beside::<V, HASH, 0, 6>(&mut state, k6, &mut run, hashed);
        round_beside::<V, HASH, 4, 6>(&mut state, k7, &mut run, hashed);
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
            self.y = run.reduced();
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
        let mut given = [W::splat(&[0; BLOCK]); N];
        for (register, part) in given.iter_mut().zip(self.text.given(range.clone()).chunks(W::BYTES)) {
            *register = load_part(part);
        }
        let mut cipher = rounds::<W, N, false>(&self.key.schedule, W::count(&mut self.next), given);
        let blocks = range.len().div_ceil(BLOCK) + usize::from(last.is_some());
        let registers = range.len().div_ceil(W::BYTES).min(N);
        for (i, room) in self.text.room(range).chunks_mut(W::BYTES).enumerate().take(N) {
            let stored = store_part(cipher[i], room);
            cipher[i] = if SEAL { stored } else { given[i] }.reversed();
        }
        cipher[0] = cipher[0].xor(W::of_one(self.y));
        let mut sums = Sums::zero();
        sums.add_all(&self.key.powers, blocks, &cipher[..registers]);
        let mut sums = sums.of_lanes();
        if let Some(last) = last {
            sums.add(&self.key.powers, 1, last);
        }
        self.y = sums.reduced();
    }
}

/// A round, and beside it four parts of hashing a pair of registers, the `PART`th first. Written out, so that the parts are known when this is compiled.
#[inline(always)]
fn round_beside<V: Registers, const HASH: bool, const PART: usize, const AT: usize>(
    state: &mut [V; STEP],
    key: &[u8; BLOCK],
    run: &mut Run<'_, V>,
    bytes: &[u8],
) {
    let key = V::splat(key);
    let [a, b, c, d] = state.as_chunks_mut::<2>().0 else { unreachable!("four pairs") };
    encrypt_two(a, key);
    run.part_if::<HASH>(PART, AT, bytes);
    encrypt_two(b, key);
    run.part_if::<HASH>(PART + 1, AT, bytes);
    encrypt_two(c, key);
    run.part_if::<HASH>(PART + 2, AT, bytes);
    encrypt_two(d, key);
    run.part_if::<HASH>(PART + 3, AT, bytes);
}

#[inline(always)]
fn encrypt_two<V: Registers>(two: &mut [V; 2], key: V) {
    for register in two {
        *register = register.encrypt_in_order(key);
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
