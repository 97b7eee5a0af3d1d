//! Texts side by side, a block of each at a time.

use super::{BLOCK, Text, beyond};
use core::arch::x86_64::*;
use core::marker::PhantomData;

/// Texts at a time, four in each of four registers.
pub(crate) const LANES: usize = 16;

/// Where each lane reads and writes next. A lane that has run out of texts repeats what another does, with the same result in the same place.
pub(crate) struct Lanes<'a> {
    lanes: [Lane; LANES],
    borrow: PhantomData<(&'a [u8], &'a mut [u8])>,
}

#[derive(Clone, Copy)]
struct Lane {
    input: *const u8,
    output: *mut u8,
    blocks: usize,
}

impl<'a> Lanes<'a> {
    /// Lanes without texts, which must be set before use.
    pub(crate) fn empty() -> Self {
        let lane = Lane { input: core::ptr::null(), output: core::ptr::null_mut(), blocks: 0 };
        Self { lanes: [lane; LANES], borrow: PhantomData }
    }

    /// Gives a text's whole blocks to a lane.
    pub(crate) fn set(&mut self, lane: usize, text: &mut Text<'a>) {
        self.lanes[lane] = Lane { input: text.input, output: text.output, blocks: text.len() / BLOCK };
    }

    /// Lets a lane repeat what another does from now on.
    pub(crate) fn mirror(&mut self, lane: usize, of: usize) {
        self.lanes[lane] = self.lanes[of];
    }

    /// Blocks that a lane has left.
    pub(crate) fn left(&self, lane: usize) -> usize {
        self.lanes[lane].blocks
    }

    /// As many blocks as every lane has left.
    pub(crate) fn burst(&mut self) -> Burst<'_, 'a> {
        let blocks = self.lanes.iter().fold(usize::MAX, |least, lane| least.min(lane.blocks));
        Burst { lanes: self, blocks }
    }
}

/// The next blocks of every lane, as many as all of them have.
pub(crate) struct Burst<'b, 'a> {
    lanes: &'b mut Lanes<'a>,
    blocks: usize,
}

impl Burst<'_, '_> {
    /// How many blocks of each lane.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Block `i` of each lane.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn load(&self, i: usize) -> [__m512i; 4] {
        if i >= self.blocks {
            beyond();
        }
        let mut blocks = [_mm512_setzero_si512(); 4];
        for (quad, lanes) in blocks.iter_mut().zip(self.lanes.lanes.as_chunks::<4>().0) {
            // SAFETY: every lane has block `i` left, as checked; texts are readable for all their blocks.
            unsafe {
                let [a, b, c, d] = lanes.map(|lane| _mm_loadu_si128(lane.input.add(i * BLOCK).cast()));
                let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
                let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
                *quad = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            }
        }
        blocks
    }

    /// The result of block `i` of each lane.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    pub(crate) fn store(&mut self, i: usize, blocks: [__m512i; 4]) {
        if i >= self.blocks {
            beyond();
        }
        for (quad, lanes) in blocks.into_iter().zip(self.lanes.lanes.as_chunks::<4>().0) {
            // SAFETY: as above; outputs are writable for as many blocks.
            unsafe {
                let [a, b, c, d] = lanes.map(|lane| lane.output.add(i * BLOCK).cast::<__m128i>());
                _mm_storeu_si128(a, _mm512_castsi512_si128(quad));
                _mm_storeu_si128(b, _mm512_extracti32x4_epi32::<1>(quad));
                _mm_storeu_si128(c, _mm512_extracti32x4_epi32::<2>(quad));
                _mm_storeu_si128(d, _mm512_extracti32x4_epi32::<3>(quad));
            }
        }
    }

    /// Moves every lane on behind the blocks.
    pub(crate) fn finish(self) {
        for lane in &mut self.lanes.lanes {
            // SAFETY: every lane has that many blocks left, in input and in output.
            unsafe {
                lane.input = lane.input.add(self.blocks * BLOCK);
                lane.output = lane.output.add(self.blocks * BLOCK);
            }
            lane.blocks -= self.blocks;
        }
    }
}
