//! The modes: whole blocks with something xored in before or after, and counters.

use super::registers::{Registers, STEP, STEP_MAX, Work};
use super::schedule::Schedule;
use crate::text::{BLOCK, Text};
use crate::wipe;
use core::ops::Range;

/// Nothing is xored in.
pub(super) const ECB: u8 = 0;
/// The ciphertext block before is xored in afterwards.
pub(super) const CBC: u8 = 1;
/// A tweak is xored in before and afterwards.
pub(super) const XTS: u8 = 2;

/// All rounds; the masks are xored in with the last key, and so for nothing.
#[inline(always)]
pub(super) fn rounds<V: Registers, const N: usize, const DECRYPT: bool>(schedule: &Schedule, mut state: [V; N], masks: [V; N]) -> [V; N] {
    let [first, inner @ .., last] = schedule.keys() else { unreachable!("an expanded key has eleven or more") };
    let first = V::splat(first);
    for block in &mut state {
        *block = block.xor(first);
    }
    for key in inner {
        let key = V::splat(key);
        for block in &mut state {
            *block = if DECRYPT { block.decrypt(key) } else { block.encrypt(key) };
        }
    }
    let last = V::splat(last);
    for (block, mask) in state.iter_mut().zip(masks) {
        let last = last.xor(mask);
        *block = if DECRYPT { block.decrypt_last(last) } else { block.encrypt_last(last) };
    }
    state
}

#[inline(always)]
pub(super) fn load<V: Registers, const N: usize>(bytes: &[u8]) -> [V; N] {
    let bytes = &bytes[..N * V::BYTES];
    let mut state = [V::splat(&[0; BLOCK]); N];
    for (i, block) in state.iter_mut().enumerate() {
        *block = V::load(&bytes[i * V::BYTES..]);
    }
    state
}

#[inline(always)]
pub(super) fn store<V: Registers, const N: usize>(state: [V; N], bytes: &mut [u8]) {
    let bytes = &mut bytes[..N * V::BYTES];
    for (i, block) in state.into_iter().enumerate() {
        block.store(&mut bytes[i * V::BYTES..]);
    }
}

/// Whole blocks. `carry` is the block before the first of them (CBC) or the first one's tweak (XTS), and becomes that of what follows.
pub(super) struct Blocks<'a, 't, const MODE: u8, const DECRYPT: bool> {
    pub(super) schedule: &'a Schedule,
    pub(super) carry: &'a mut [u8; BLOCK],
    pub(super) text: &'a mut Text<'t>,
    pub(super) range: Range<usize>,
}

/// What is xored in next.
struct Carry<V> {
    /// CBC: the blocks before.
    before: V,
    /// XTS: the tweaks of a step.
    tweaks: [V; STEP],
}

impl<const MODE: u8, const DECRYPT: bool> Work for Blocks<'_, '_, MODE, DECRYPT> {
    #[inline(always)]
    fn run<V: Registers>(mut self) {
        if self.range.len() >= STEP * V::BYTES {
            self.steps::<V>();
        }
        // Groups of four do not wait for each other, and the processor has several at work.
        while !self.range.is_empty() {
            match self.range.len() / BLOCK {
                1 => self.few::<V::One, 1>(),
                2 => self.few::<V::One, 2>(),
                3 => self.few::<V::One, 3>(),
                _ => self.few::<V::One, 4>(),
            }
        }
    }
}

impl<const MODE: u8, const DECRYPT: bool> Blocks<'_, '_, MODE, DECRYPT> {
    /// All whole steps, of which there is one at least.
    #[inline(always)]
    fn steps<V: Registers>(&mut self) {
        let before = V::splat(self.carry);
        let mut carried = Carry { before, tweaks: if MODE == XTS { tweaks(self.carry) } else { [before; STEP] } };
        while self.range.len() >= STEP * V::BYTES {
            self.step::<V, STEP>(&mut carried);
            if MODE == XTS {
                // No `map`: it would be compiled without the target features.
                for tweak in &mut carried.tweaks {
                    *tweak = tweak.step_on();
                }
            }
        }
        let mut last = [0; STEP_MAX / STEP];
        match MODE {
            CBC => {
                store([carried.before], &mut last);
                self.carry.copy_from_slice(&last[V::BYTES - BLOCK..V::BYTES]);
            }
            XTS => {
                store([carried.tweaks[0]], &mut last);
                self.carry.copy_from_slice(&last[..BLOCK]);
            }
            _ => {}
        }
        wipe(&mut last);
    }

    /// The next few blocks, in registers of one.
    #[inline(always)]
    fn few<V: Registers, const N: usize>(&mut self) {
        let before = V::splat(self.carry);
        let mut carried = Carry { before, tweaks: [before; STEP] };
        if MODE == XTS {
            for tweak in &mut carried.tweaks[..N] {
                *tweak = V::load(self.carry);
                *self.carry = next_tweak(*self.carry);
            }
        }
        self.step::<V, N>(&mut carried);
        if MODE == CBC {
            carried.before.store(self.carry);
        }
    }

    /// The next registers of blocks.
    #[inline(always)]
    fn step<V: Registers, const N: usize>(&mut self, carried: &mut Carry<V>) {
        let next = self.range.start..self.range.start + N * V::BYTES;
        let given = load::<V, N>(self.text.given(next.clone()));
        let (mut blocks, mut masks) = (given, [V::splat(&[0; BLOCK]); N]);
        for (i, mask) in masks.iter_mut().enumerate() {
            match MODE {
                CBC => {
                    *mask = given[i].behind(carried.before);
                    carried.before = given[i];
                }
                XTS => {
                    *mask = carried.tweaks[i];
                    blocks[i] = given[i].xor(*mask);
                }
                _ => {}
            }
        }
        store(rounds::<V, N, DECRYPT>(self.schedule, blocks, masks), self.text.room(next.clone()));
        self.range.start = next.end;
    }
}

/// The tweaks of a step from the first.
#[inline(always)]
fn tweaks<V: Registers>(first: &[u8; BLOCK]) -> [V; STEP] {
    let (mut all, mut next) = ([0; STEP_MAX], *first);
    for tweak in all.as_chunks_mut::<BLOCK>().0.iter_mut().take(STEP * V::BLOCKS) {
        *tweak = next;
        next = next_tweak(next);
    }
    let tweaks = load(&all);
    wipe(&mut all);
    tweaks
}

/// The tweak of the block after: times x (IEEE 1619 s5.2).
#[inline(always)]
pub(super) fn next_tweak(tweak: [u8; BLOCK]) -> [u8; BLOCK] {
    let number = u128::from_le_bytes(tweak);
    (number << 1 ^ 0u128.wrapping_sub(number >> 127) & 0x87).to_le_bytes()
}

/// Registers of a step of CTR, which has no use for the others: more than hide the latency of a round where everything is as it should be, which it is not always.
const LONG: usize = 12;

/// CTR over a range of the text, whose first counter block is `next`, which becomes that of what follows.
pub(super) struct Ctr<'a, 't> {
    pub(super) schedule: &'a Schedule,
    pub(super) next: &'a mut u128,
    pub(super) text: &'a mut Text<'t>,
    pub(super) range: Range<usize>,
}

impl Work for Ctr<'_, '_> {
    #[inline(always)]
    fn run<V: Registers>(self) {
        let Self { schedule, next, text, range: Range { start: mut at, end } } = self;
        let (bytes, long) = (STEP * V::BYTES, LONG * V::BYTES);
        while end - at >= long {
            whole::<V, LONG>(schedule, next, text, at..at + long);
            at += long;
        }
        if end - at >= bytes {
            whole::<V, STEP>(schedule, next, text, at..at + bytes);
            at += bytes;
        }
        match end - at {
            0 => {}
            1..=BLOCK => part::<V::One, 1, BLOCK>(schedule, next, text, at..end),
            rest if rest <= 4 * BLOCK => part::<V::One, 4, { 4 * BLOCK }>(schedule, next, text, at..end),
            rest if rest <= bytes / 2 => part::<V, { STEP / 2 }, STEP_MAX>(schedule, next, text, at..end),
            _ => part::<V, STEP, STEP_MAX>(schedule, next, text, at..end),
        }
    }
}

/// As many registers of CTR.
#[inline(always)]
fn whole<V: Registers, const N: usize>(schedule: &Schedule, next: &mut u128, text: &mut Text<'_>, range: Range<usize>) {
    let given = load(text.given(range.clone()));
    store(rounds::<V, N, false>(schedule, counters(next), given), text.room(range));
}

/// What is left of CTR and fits into some registers, which have no more than `ROOM` bytes.
#[inline(always)]
fn part<V: Registers, const N: usize, const ROOM: usize>(schedule: &Schedule, next: &mut u128, text: &mut Text<'_>, range: Range<usize>) {
    let (len, mut after) = (range.len(), *next);
    *next = next.wrapping_add(len.div_ceil(BLOCK) as u128);
    if len == N * V::BYTES {
        let given = load(text.given(range.clone()));
        return store(rounds::<V, N, false>(schedule, counters(&mut after), given), text.room(range));
    }
    let mut last = [0; ROOM];
    last[..len].copy_from_slice(text.given(range.clone()));
    store(rounds::<V, N, false>(schedule, counters(&mut after), load(&last)), &mut last);
    text.room(range).copy_from_slice(&last[..len]);
    wipe(&mut last);
}

/// The next counter blocks.
#[inline(always)]
fn counters<V: Registers, const N: usize>(next: &mut u128) -> [V; N] {
    let (first, blocks) = (*next, N * V::BLOCKS);
    *next = first.wrapping_add(blocks as u128);
    if first as u64 > u64::MAX - blocks as u64 { load(&with_carry(first)) } else { V::counters(first) }
}

/// Counters that differ in more than the low 64 bits.
#[cold]
fn with_carry(first: u128) -> [u8; LONG * 2 * BLOCK] {
    let mut all = [0; LONG * 2 * BLOCK];
    for (i, block) in all.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        *block = first.wrapping_add(i as u128).to_be_bytes();
    }
    all
}
