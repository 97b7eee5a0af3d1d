//! The state of AEGIS-256 (s4).

pub(super) use super::narrow as lanes;
use super::narrow::Register;
use super::narrow::{and_xor, round, xor, xor3};
use super::state::CONSTANTS;
use crate::memory;
use core::arch::x86_64::*;

/// Bytes of a key, and of a nonce.
pub(super) const KEY: usize = 32;
/// Registers of text that go into the state at once.
pub(super) const REGISTERS: usize = 1;

#[derive(Clone, Copy)]
pub(super) struct State([Register; 6]);

impl State {
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn begin(key: &[u8; KEY], nonce: &[u8; KEY]) -> Self {
        let [c0, c1] = [memory::block(&CONSTANTS[0]), memory::block(&CONSTANTS[1])];
        let [k0, k1, n0, n1] = [lanes::bytes(key, 0), lanes::bytes(key, 16), lanes::bytes(nonce, 0), lanes::bytes(nonce, 16)];
        let (first, second) = (xor(k0, n0), xor(k1, n1));
        let mut state = Self([first, second, c1, c0, xor(k0, c0), xor(k1, c1)]);
        for _ in 0..4 {
            state.update([k0]);
            state.update([k1]);
            state.update([first]);
            state.update([second]);
        }
        state
    }

    /// Takes a block of text in.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn update(&mut self, [block]: [Register; REGISTERS]) {
        let s = self.0;
        self.0 =
            [round(s[5], xor(s[0], block)), round(s[0], s[1]), round(s[1], s[2]), round(s[2], s[3]), round(s[3], s[4]), round(s[4], s[5])];
    }

    /// What enciphers the next block.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn stream(&self) -> [Register; REGISTERS] {
        let s = &self.0;
        [xor3(s[1], s[4], and_xor(s[2], s[3], s[5]))]
    }

    /// Ends the message. The tag has 16 bytes, or 32 if it is to be long.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn tag(mut self, lengths: __m128i, long: bool) -> [__m128i; 2] {
        let last = xor(self.0[3], lengths);
        for _ in 0..7 {
            self.update([last]);
        }
        let s = self.0;
        let (first, second) = (xor3(s[0], s[1], s[2]), xor3(s[3], s[4], s[5]));
        if long { [first, second] } else { [xor(first, second), _mm_setzero_si128()] }
    }

    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(super) fn wipe(&mut self) {
        memory::wipe_as(&mut self.0, _mm_setzero_si128());
    }
}
