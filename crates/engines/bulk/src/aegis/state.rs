//! The states of AEGIS-128L and AEGIS-128X: how they begin, what a message does to them, what they encipher with, and the tag.

/// The Fibonacci sequence modulo 256, from which every state begins (C0 and C1 of s2).
pub(super) const CONSTANTS: [[u8; 16]; 2] = [
    [0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0D, 0x15, 0x22, 0x37, 0x59, 0x90, 0xE9, 0x79, 0x62],
    [0xDB, 0x3D, 0x18, 0x55, 0x6D, 0xC2, 0x2F, 0xF1, 0x20, 0x11, 0x31, 0x42, 0x73, 0xB5, 0x28, 0xDD],
];

/// The module of a state (s3 and s5.3), with as many lanes as the registers of `$lanes` have.
macro_rules! state128 {
    ($lanes:ident) => {
        use crate::aegis::state::CONSTANTS;
        pub(super) use crate::aegis::$lanes as lanes;
        use crate::aegis::$lanes::Register;
        use crate::aegis::$lanes::{and_xor, round, xor, xor3};
        use crate::memory;
        use core::arch::x86_64::*;

        /// Bytes of a key, and of a nonce.
        pub(super) const KEY: usize = 16;
        /// Registers of text that go into the state at once.
        pub(super) const REGISTERS: usize = 2;

        #[derive(Clone, Copy)]
        pub(super) struct State([Register; 8]);

        impl State {
            #[inline]
            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            pub(super) fn begin(key: &[u8; KEY], nonce: &[u8; KEY]) -> Self {
                let [key, nonce, c0, c1] = [key, nonce, &CONSTANTS[0], &CONSTANTS[1]].map(|block| lanes::broadcast(memory::block(block)));
                let (both, first, second) = (xor(key, nonce), xor(key, c0), xor(key, c1));
                let mut state = Self([both, c1, c0, c1, both, first, second, first]);
                for _ in 0..10 {
                    state.0[3] = xor(state.0[3], lanes::contexts());
                    state.0[7] = xor(state.0[7], lanes::contexts());
                    state.update([nonce, key]);
                }
                state
            }

            /// Takes a block of text in.
            #[inline]
            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            pub(super) fn update(&mut self, [first, second]: [Register; REGISTERS]) {
                let s = self.0;
                self.0 = [
                    round(s[7], xor(s[0], first)),
                    round(s[0], s[1]),
                    round(s[1], s[2]),
                    round(s[2], s[3]),
                    round(s[3], xor(s[4], second)),
                    round(s[4], s[5]),
                    round(s[5], s[6]),
                    round(s[6], s[7]),
                ];
            }

            /// What enciphers the next block.
            #[inline]
            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            pub(super) fn stream(&self) -> [Register; REGISTERS] {
                let s = &self.0;
                [xor(s[1], and_xor(s[2], s[3], s[6])), xor(s[5], and_xor(s[6], s[7], s[2]))]
            }

            /// Ends the message. The tag has 16 bytes, or 32 if it is to be long.
            #[inline]
            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            pub(super) fn tag(mut self, lengths: __m128i, long: bool) -> [__m128i; 2] {
                let last = xor(self.0[2], lanes::broadcast(lengths));
                for _ in 0..7 {
                    self.update([last, last]);
                }
                let s = self.0;
                let (first, middle) = (xor(xor3(s[0], s[1], s[2]), s[3]), xor3(s[4], s[5], s[6]));
                match long {
                    false => [lanes::folded(xor(first, middle)), _mm_setzero_si128()],
                    true => [lanes::folded(first), lanes::folded(xor(middle, s[7]))],
                }
            }

            #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
            pub(super) fn wipe(&mut self) {
                memory::wipe_as(&mut self.0, lanes::broadcast(_mm_setzero_si128()));
            }
        }
    };
}
pub(super) use state128;
