//! The states: how they begin, what a message does to them, what they encipher with, and the tag.

use super::lanes::{Lanes, WIDEST};
use crate::text::BLOCK;

/// The Fibonacci sequence modulo 256, from which every state begins (C0 and C1 of s2).
const CONSTANTS: [[u8; BLOCK]; 2] = [
    [0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0D, 0x15, 0x22, 0x37, 0x59, 0x90, 0xE9, 0x79, 0x62],
    [0xDB, 0x3D, 0x18, 0x55, 0x6D, 0xC2, 0x2F, 0xF1, 0x20, 0x11, 0x31, 0x42, 0x73, 0xB5, 0x28, 0xDD],
];

/// What tells four lanes apart when a state is made (ctx, s5.1): the lane's number and the highest one.
const CONTEXTS: [u8; WIDEST] = {
    let mut contexts = [0; WIDEST];
    let mut lane = 0;
    while lane < 4 {
        (contexts[lane * BLOCK], contexts[lane * BLOCK + 1]) = (lane as u8, 3);
        lane += 1;
    }
    contexts
};

/// Bytes of the largest state.
pub(super) const STATE_MAX: usize = 8 * WIDEST;

/// A state. It goes by value through loops, so that it stays in registers.
pub trait State<L: Lanes>: Copy {
    /// What goes into the state at once.
    type Block: Lanes;

    fn begin(key: &[u8], nonce: &[u8]) -> Self;
    fn load(bytes: &[u8]) -> Self;
    fn store(self, bytes: &mut [u8]);
    /// Takes a block of text in.
    fn update(&mut self, block: Self::Block);
    /// What enciphers the next block.
    fn stream(&self) -> Self::Block;
    /// Ends the message. The tag has 16 bytes, or 32 if it is to be long.
    fn tag(self, lengths: &[u8; BLOCK], long: bool) -> [u8; 2 * BLOCK];
}

#[inline(always)]
fn block_of(bytes: &[u8], at: usize) -> &[u8; BLOCK] {
    bytes[at..].first_chunk().expect("keys and nonces are whole blocks")
}

#[inline(always)]
fn load<L: Lanes, const N: usize>(bytes: &[u8]) -> [L; N] {
    <[L; N] as Lanes>::load(bytes)
}

/// The tag: two sums, or both in one.
#[inline(always)]
fn tag<L: Lanes>(first: L, second: L, long: bool) -> [u8; 2 * BLOCK] {
    let mut tag = [0; 2 * BLOCK];
    let (low, high) = tag.split_at_mut(BLOCK);
    if long {
        low.copy_from_slice(&first.sum());
        high.copy_from_slice(&second.sum());
    } else {
        low.copy_from_slice(&first.xor(second).sum());
    }
    tag
}

/// AEGIS-128L, and as many of them as there are lanes (s3, s5.3).
#[derive(Clone, Copy)]
pub struct State128<L>([L; 8]);

impl<L: Lanes> State<L> for State128<L> {
    type Block = [L; 2];

    #[inline(always)]
    fn begin(key: &[u8], nonce: &[u8]) -> Self {
        let (key, nonce, c0, c1) =
            (L::splat(block_of(key, 0)), L::splat(block_of(nonce, 0)), L::splat(&CONSTANTS[0]), L::splat(&CONSTANTS[1]));
        let (both, first, second) = (key.xor(nonce), key.xor(c0), key.xor(c1));
        let mut state = Self([both, c1, c0, c1, both, first, second, first]);
        for _ in 0..10 {
            if L::BYTES > BLOCK {
                let contexts = L::load(&CONTEXTS);
                state.0[3] = state.0[3].xor(contexts);
                state.0[7] = state.0[7].xor(contexts);
            }
            state.update([nonce, key]);
        }
        state
    }

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        Self(load(bytes))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        Lanes::store(self.0, bytes);
    }

    #[inline(always)]
    fn update(&mut self, [first, second]: [L; 2]) {
        let s = self.0;
        self.0 = L::rounds(
            [s[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6]],
            [s[0].xor(first), s[1], s[2], s[3], s[4].xor(second), s[5], s[6], s[7]],
        );
    }

    #[inline(always)]
    fn stream(&self) -> [L; 2] {
        let s = &self.0;
        [s[1].xor(s[6]).xor(s[2].and(s[3])), s[5].xor(s[2]).xor(s[6].and(s[7]))]
    }

    #[inline(always)]
    fn tag(mut self, lengths: &[u8; BLOCK], long: bool) -> [u8; 2 * BLOCK] {
        let last = self.0[2].xor(L::splat(lengths));
        for _ in 0..7 {
            self.update([last, last]);
        }
        let s = &self.0;
        let (first, second) = (s[0].xor(s[1]).xor(s[2].xor(s[3])), s[4].xor(s[5]).xor(s[6]));
        // The short tag leaves the last block out.
        tag(first, if long { second.xor(s[7]) } else { second }, long)
    }
}

/// AEGIS-256 (s4).
#[derive(Clone, Copy)]
pub struct State256<L>([L; 6]);

impl<L: Lanes> State<L> for State256<L> {
    type Block = [L; 1];

    #[inline(always)]
    fn begin(key: &[u8], nonce: &[u8]) -> Self {
        let (k0, k1) = (L::splat(block_of(key, 0)), L::splat(block_of(key, BLOCK)));
        let (n0, n1) = (L::splat(block_of(nonce, 0)), L::splat(block_of(nonce, BLOCK)));
        let (c0, c1) = (L::splat(&CONSTANTS[0]), L::splat(&CONSTANTS[1]));
        let (first, second) = (k0.xor(n0), k1.xor(n1));
        let mut state = Self([first, second, c1, c0, k0.xor(c0), k1.xor(c1)]);
        for _ in 0..4 {
            state.update([k0]);
            state.update([k1]);
            state.update([first]);
            state.update([second]);
        }
        state
    }

    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        Self(load(bytes))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        Lanes::store(self.0, bytes);
    }

    #[inline(always)]
    fn update(&mut self, [block]: [L; 1]) {
        let s = self.0;
        self.0 = L::rounds([s[5], s[0], s[1], s[2], s[3], s[4]], [s[0].xor(block), s[1], s[2], s[3], s[4], s[5]]);
    }

    #[inline(always)]
    fn stream(&self) -> [L; 1] {
        let s = &self.0;
        [s[1].xor(s[4]).xor(s[5]).xor(s[2].and(s[3]))]
    }

    #[inline(always)]
    fn tag(mut self, lengths: &[u8; BLOCK], long: bool) -> [u8; 2 * BLOCK] {
        let last = self.0[3].xor(L::splat(lengths));
        for _ in 0..7 {
            self.update([last]);
        }
        let s = &self.0;
        tag(s[0].xor(s[1]).xor(s[2]), s[3].xor(s[4]).xor(s[5]), long)
    }
}
