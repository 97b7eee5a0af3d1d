//! One state of 128-bit blocks: a block in each register.

use crate::memory::{self, BLOCK, Text};
use core::arch::x86_64::*;
pub(super) use core::arch::x86_64::{__m128i as Register, _mm_aesenc_si128 as round, _mm_xor_si128 as xor};

/// Bytes in a register.
pub(super) const WIDTH: usize = BLOCK;

/// `len` bytes of text, or as many as fit, zeros behind them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn load(text: &Text<'_>, at: usize, len: usize) -> Register {
    text.load_block(at, len.min(WIDTH))
}

/// The first `len` bytes, or as many as there are.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn store(text: &mut Text<'_>, at: usize, len: usize, register: Register) {
    text.store_block(at, len.min(WIDTH), register);
}

/// Bytes from a place on, zeros behind them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn bytes(bytes: &[u8], at: usize) -> Register {
    memory::short(&bytes[at.min(bytes.len())..])
}

/// Writes a register's bytes from a place on.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn set_bytes(bytes: &mut [u8], at: usize, register: Register) {
    memory::set_short(&mut bytes[at..at + WIDTH], register);
}

/// Zeros from byte `len` on.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn masked(register: Register, len: usize) -> Register {
    _mm_maskz_mov_epi8(memory::mask16(len.min(WIDTH)), register)
}

/// A block in each lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn broadcast(block: __m128i) -> Register {
    block
}

/// What tells the lanes apart when a state is made (the draft's ctx, s4.1): nothing in one lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn contexts() -> Register {
    _mm_setzero_si128()
}

/// The lanes xored together.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn folded(register: Register) -> __m128i {
    register
}

/// `a ^ b ^ c`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn xor3(a: Register, b: Register, c: Register) -> Register {
    _mm_ternarylogic_epi64::<0x96>(a, b, c)
}

/// `a & b ^ c`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn and_xor(a: Register, b: Register, c: Register) -> Register {
    _mm_ternarylogic_epi64::<0x6A>(a, b, c)
}
