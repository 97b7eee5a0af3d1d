//! Everything that goes between memory and registers, and all `unsafe` for it. Each function checks that it stays within its buffers.

pub(crate) use crate::checks::is_tag;
pub(crate) use crate::text::{BLOCK, Text, beyond};
pub(crate) use crate::wipe::wipe;
use core::arch::x86_64::*;

/// Bytes in a register.
pub(crate) const WIDE: usize = 64;

/// Overwrites a value with zeros, and what lies between its fields: where it was made on the stack, what lay there before came along.
///
/// # Safety
/// Zeros are a value of the type.
pub(crate) unsafe fn wipe_whole<T>(value: &mut T) {
    let place = core::ptr::from_mut(value);
    // SAFETY: one value's bytes, and zeros are a value as the caller says. The compiler has to assume that the instruction after it, which is none, reads them.
    unsafe {
        place.write_bytes(0, 1);
        core::arch::asm!("/* {} */", in(reg) place, options(nostack, preserves_flags, readonly));
    }
}

/// Texts in registers.
impl Text<'_> {
    /// Sixteen blocks.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn load_step(&self, at: usize) -> [__m512i; 4] {
        self.check(at, 4 * WIDE);
        // SAFETY: the bytes lie within the input, as checked.
        unsafe {
            let from = self.input.add(at).cast::<__m512i>();
            [_mm512_loadu_si512(from), _mm512_loadu_si512(from.add(1)), _mm512_loadu_si512(from.add(2)), _mm512_loadu_si512(from.add(3))]
        }
    }

    /// Sixteen blocks of result.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn store_step(&mut self, at: usize, blocks: [__m512i; 4]) {
        self.check(at, 4 * WIDE);
        // SAFETY: the bytes lie within the output, which is as long as the input at least.
        unsafe {
            let to = self.output.add(at).cast::<__m512i>();
            _mm512_storeu_si512(to, blocks[0]);
            _mm512_storeu_si512(to.add(1), blocks[1]);
            _mm512_storeu_si512(to.add(2), blocks[2]);
            _mm512_storeu_si512(to.add(3), blocks[3]);
        }
    }

    /// Four blocks.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn load(&self, at: usize) -> __m512i {
        self.check(at, WIDE);
        // SAFETY: the bytes lie within the input, as checked.
        unsafe { _mm512_loadu_si512(self.input.add(at).cast()) }
    }

    /// Four blocks of result.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn store(&mut self, at: usize, blocks: __m512i) {
        self.check(at, WIDE);
        // SAFETY: the bytes lie within the output, which is as long as the input at least.
        unsafe { _mm512_storeu_si512(self.output.add(at).cast(), blocks) }
    }

    /// Up to 64 bytes, zeros behind them. Read in the pieces in which [`store_part`](Self::store_part) writes, so that a text that was just
    /// written is read from the store buffer.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn load_part(&self, at: usize, len: usize) -> __m512i {
        self.check(at, len);
        // SAFETY: each piece lies within the `len` bytes at `at`, which lie within the input; a masked load touches only what its mask names.
        unsafe {
            let from = self.input.add(at);
            if len >= WIDE {
                return _mm512_loadu_si512(from.cast());
            }
            let (half, quarter) = (len & 32, len & 48);
            let mut blocks = match half {
                0 => _mm512_setzero_si512(),
                _ => _mm512_zextsi256_si512(_mm256_loadu_si256(from.cast())),
            };
            if len & 16 != 0 {
                let block = _mm_loadu_si128(from.add(half).cast());
                blocks = place(blocks, block, half / BLOCK);
            }
            if len & 15 != 0 {
                let block = _mm_maskz_loadu_epi8(mask16(len & 15), from.add(quarter).cast());
                blocks = place(blocks, block, quarter / BLOCK);
            }
            blocks
        }
    }

    /// Writes the first `len` bytes, at most 64.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn store_part(&mut self, at: usize, len: usize, mut blocks: __m512i) {
        self.check(at, len);
        // SAFETY: each piece lies within the `len` bytes at `at`, which lie within the output; a masked store touches only what its mask names.
        unsafe {
            let to = self.output.add(at);
            if len >= WIDE {
                return _mm512_storeu_si512(to.cast(), blocks);
            }
            if len & 32 != 0 {
                _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(blocks));
                blocks = _mm512_zextsi256_si512(_mm512_extracti64x4_epi64::<1>(blocks));
            }
            let mut block = _mm512_castsi512_si128(blocks);
            if len & 16 != 0 {
                _mm_storeu_si128(to.add(len & 32).cast(), block);
                block = _mm512_extracti32x4_epi32::<1>(blocks);
            }
            if len & 15 != 0 {
                _mm_mask_storeu_epi8(to.add(len & 48).cast(), mask16(len & 15), block);
            }
        }
    }

    /// A few blocks, each by itself.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn load_blocks<const N: usize>(&self, at: usize) -> [__m128i; N] {
        self.check(at, N * BLOCK);
        // SAFETY: the bytes lie within the input, as checked.
        core::array::from_fn(|i| unsafe { _mm_loadu_si128(self.input.add(at + i * BLOCK).cast()) })
    }

    /// A few blocks of result, each by itself.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn store_blocks<const N: usize>(&mut self, at: usize, blocks: [__m128i; N]) {
        self.check(at, N * BLOCK);
        for (i, block) in blocks.into_iter().enumerate() {
            // SAFETY: the bytes lie within the output, which is as long as the input at least.
            unsafe { _mm_storeu_si128(self.output.add(at + i * BLOCK).cast(), block) };
        }
    }

    /// One block or the beginning of one, zeros behind it. Where there is nothing, nothing is looked at: a load whose mask names no byte takes hundreds of cycles if there is no page
    /// where it points, as with an empty slice.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn load_block(&self, at: usize, len: usize) -> __m128i {
        self.check(at, len);
        // SAFETY: `len` bytes lie within the input at `at`; a masked load touches only what its mask names.
        unsafe {
            match len {
                BLOCK => _mm_loadu_si128(self.input.add(at).cast()),
                0 => _mm_setzero_si128(),
                _ => _mm_maskz_loadu_epi8(mask16(len), self.input.add(at).cast()),
            }
        }
    }

    /// One block or the beginning of one.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn store_block(&mut self, at: usize, len: usize, block: __m128i) {
        self.check(at, len);
        // SAFETY: `len` bytes lie within the output at `at`; a masked store touches only what its mask names.
        unsafe {
            match len {
                BLOCK => _mm_storeu_si128(self.output.add(at).cast(), block),
                0 => {}
                _ => _mm_mask_storeu_epi8(self.output.add(at).cast(), mask16(len), block),
            }
        }
    }
}

mod lanes;
pub(crate) use lanes::{Burst, LANES, Lanes};

/// A mask of the lowest `len` of 16 bytes.
#[inline(always)]
pub(crate) fn mask16(len: usize) -> __mmask16 {
    ((1u32 << (len & 31)) - 1) as __mmask16
}

/// A mask of the lowest `len` of 64 bytes, at most 64.
#[inline(always)]
pub(crate) fn mask64(len: usize) -> __mmask64 {
    if len >= WIDE { !0 } else { (1 << len) - 1 }
}

/// Puts a block into a lane, which is not the first twice.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
fn place(blocks: __m512i, block: __m128i, lane: usize) -> __m512i {
    match lane {
        0 => _mm512_zextsi128_si512(block),
        1 => _mm512_inserti32x4::<1>(blocks, block),
        2 => _mm512_inserti32x4::<2>(blocks, block),
        _ => _mm512_inserti32x4::<3>(blocks, block),
    }
}

/// A block from bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn block(bytes: &[u8; BLOCK]) -> __m128i {
    // SAFETY: 16 readable bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// A block's bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn set_block(bytes: &mut [u8; BLOCK], block: __m128i) {
    // SAFETY: 16 writable bytes.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), block) }
}

/// Writes a number in one piece: who reads it next does so as a register, and would wait for two halves to leave the store buffer.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn set_number(place: &mut u128, number: u128) {
    let register = _mm_set_epi64x((number >> 64) as i64, number as i64);
    // SAFETY: 16 writable bytes.
    unsafe { _mm_storeu_si128(core::ptr::from_mut(place).cast(), register) }
}

/// That a table has four blocks from this one on, whatever number it is.
#[inline]
fn check_four(blocks: &[[u8; BLOCK]], first: usize) {
    if blocks.len() < 4 || first > blocks.len() - 4 {
        beyond();
    }
}

/// Four blocks from the table, the first of them `blocks[first]`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn four(blocks: &[[u8; BLOCK]], first: usize) -> __m512i {
    check_four(blocks, first);
    // SAFETY: 64 readable bytes from `first` on, as checked.
    unsafe { _mm512_loadu_si512(blocks.as_ptr().add(first).cast()) }
}

/// Writes four blocks to the table, the first of them `blocks[first]`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn set_four(blocks: &mut [[u8; BLOCK]], first: usize, four: __m512i) {
    check_four(blocks, first);
    // SAFETY: 64 writable bytes from `first` on, as checked.
    unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().add(first).cast(), four) }
}

/// A register's width of bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn register(bytes: &[u8; WIDE]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// The bytes of a register.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn set_register(bytes: &mut [u8; WIDE], register: __m512i) {
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), register) }
}

/// Eight words.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn words(words: &[u64; WIDE / 8]) -> __m512i {
    // SAFETY: 64 readable bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Writes eight words.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn set_words(words: &mut [u64; WIDE / 8], register: __m512i) {
    // SAFETY: 64 writable bytes.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) }
}

/// Up to 64 bytes of `bytes` from `at` on, zeros behind them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn bytes(bytes: &[u8], at: usize) -> __m512i {
    let rest = &bytes[at..];
    // SAFETY: the mask names bytes of `rest` alone.
    unsafe { _mm512_maskz_loadu_epi8(mask64(rest.len()), rest.as_ptr().cast()) }
}

/// Writes the first bytes of a register, as many as there is room for, at most 64.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn set_bytes(bytes: &mut [u8], register: __m512i) {
    // SAFETY: the mask names bytes of `bytes` alone.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask64(bytes.len()), register) }
}

/// At most 16 bytes, zeros behind them.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn short(bytes: &[u8]) -> __m128i {
    // SAFETY: the mask names bytes of `bytes` alone.
    unsafe { _mm_maskz_loadu_epi8(mask16(bytes.len().min(BLOCK)), bytes.as_ptr().cast()) }
}

/// Writes the first bytes of a block, as many as there is room for, at most 16.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(crate) fn set_short(bytes: &mut [u8], block: __m128i) {
    match <&mut [u8; BLOCK]>::try_from(&mut *bytes) {
        Ok(bytes) => set_block(bytes, block),
        // SAFETY: the mask names bytes of `bytes` alone.
        Err(_) => unsafe { _mm_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask16(bytes.len().min(BLOCK)), block) },
    }
}

#[cfg(test)]
mod tests {
    /// Key material is wiped with what holds it: the memory is looked at after the drop, before anybody else gets it.
    #[test]
    fn keys_are_wiped_on_drop() {
        if !crate::is_supported() {
            return eprintln!("skipped: this processor has no VAES with AVX-512");
        }
        let mut place = Box::new(core::mem::MaybeUninit::<crate::aes::Schedule>::uninit());
        place.write(crate::aes::Schedule::empty());
        // SAFETY: the schedule has just been written, is used, dropped and not used again; its bytes stay readable in the box.
        let left = unsafe {
            place.assume_init_mut().expand(&[7; 32]).unwrap();
            place.assume_init_drop();
            core::slice::from_raw_parts(place.as_ptr().cast::<u8>(), 240).to_vec()
        };
        assert_eq!(left, [0; 240]);
    }
}
