//! Four states side by side: a block of each in each register.

use crate::memory::{self, Text, WIDE};
use core::arch::x86_64::*;
pub(super) use core::arch::x86_64::{__m512i as Register, _mm512_aesenc_epi128 as round, _mm512_xor_si512 as xor};

/// Bytes in a register.
pub(super) const WIDTH: usize = WIDE;

/// `len` bytes of text, or as many as fit, zeros behind them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn load(text: &Text<'_>, at: usize, len: usize) -> Register {
    text.load_part(at, len.min(WIDTH))
}

/// The first `len` bytes, or as many as there are.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn store(text: &mut Text<'_>, at: usize, len: usize, register: Register) {
    text.store_part(at, len.min(WIDTH), register);
}

/// Bytes from a place on, zeros behind them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn bytes(bytes: &[u8], at: usize) -> Register {
    memory::bytes(bytes, at.min(bytes.len()))
}

/// Writes a register's bytes from a place on.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn set_bytes(bytes: &mut [u8], at: usize, register: Register) {
    let place = bytes[at..].first_chunk_mut().expect("there is room for a register");
    memory::set_register(place, register);
}

/// Zeros from byte `len` on.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn masked(register: Register, len: usize) -> Register {
    _mm512_maskz_mov_epi8(memory::mask64(len), register)
}

/// A block in each lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn broadcast(block: __m128i) -> Register {
    _mm512_broadcast_i32x4(block)
}

/// What tells the lanes apart when a state is made (the draft's ctx, s4.1): the lane's number and the highest one.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn contexts() -> Register {
    _mm512_set_epi64(0, 0x0303, 0, 0x0302, 0, 0x0301, 0, 0x0300)
}

/// The lanes xored together.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn folded(register: Register) -> __m128i {
    let two = _mm256_xor_si256(_mm512_castsi512_si256(register), _mm512_extracti64x4_epi64::<1>(register));
    _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256::<1>(two))
}

/// `a ^ b ^ c`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn xor3(a: Register, b: Register, c: Register) -> Register {
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

/// `a & b ^ c`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn and_xor(a: Register, b: Register, c: Register) -> Register {
    _mm512_ternarylogic_epi64::<0x6A>(a, b, c)
}
