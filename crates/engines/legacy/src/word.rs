//! What bit-sliced code needs of a register: bitwise gates, and 64-bit lanes to turn blocks into slices and back.

use core::arch::x86_64::*;

/// Bits side by side.
///
/// Every method must end up inside the `#[target_feature]` function that called it, hence `inline(always)` throughout.
pub(crate) trait Gates: Copy {
    fn xor(a: Self, b: Self) -> Self;
    /// Any function of three bits: bit `4a + 2b + c` of `TABLE`.
    fn gate<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self;
}

/// Bits side by side in lanes of 64.
pub(crate) trait Word: Gates {
    /// Lanes of 64 bits.
    const LANES: usize;
    /// Bytes in memory.
    const BYTES: usize = 8 * Self::LANES;

    /// The same number in every lane.
    fn splat(lane: u64) -> Self;
    /// From the first [`Self::BYTES`] bytes, little-endian.
    fn load(bytes: &[u8]) -> Self;
    /// To the first [`Self::BYTES`] bytes.
    fn store(self, bytes: &mut [u8]);
    /// From the first [`Self::LANES`] numbers.
    fn load_lanes(lanes: &[u64]) -> Self;
    /// To the first [`Self::LANES`] numbers.
    fn store_lanes(self, lanes: &mut [u64]);
    /// Each lane shifted left.
    fn shl<const BITS: u32>(self) -> Self;
    /// Each lane shifted right.
    fn shr<const BITS: u32>(self) -> Self;
}

/// All ones if the sum of products of the function `table` has the product of the inputs in `inputs` (bit 2: a, bit 1: b, bit 0: c).
const fn product(table: i32, inputs: i32) -> u64 {
    let (mut at, mut odd) = (0, 0);
    while at < 8 {
        if at & !inputs == 0 {
            odd ^= table >> at & 1;
        }
        at += 1;
    }
    0u64.wrapping_sub(odd as u64)
}

/// The portable form: one lane.
impl Gates for u64 {
    #[inline(always)]
    fn xor(a: u64, b: u64) -> u64 {
        a ^ b
    }

    /// A sum of products (Reed-Muller form): which of the eight it has is known at compile time.
    #[inline(always)]
    fn gate<const TABLE: i32>(a: u64, b: u64, c: u64) -> u64 {
        let some = const { product(TABLE, 0) } ^ c & const { product(TABLE, 1) } ^ b & const { product(TABLE, 2) };
        let more = a & const { product(TABLE, 4) } ^ b & c & const { product(TABLE, 3) } ^ a & c & const { product(TABLE, 5) };
        some ^ more ^ a & b & const { product(TABLE, 6) } ^ a & b & c & const { product(TABLE, 7) }
    }
}

impl Word for u64 {
    const LANES: usize = 1;

    #[inline(always)]
    fn splat(lane: u64) -> u64 {
        lane
    }

    #[inline(always)]
    fn load(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        *bytes.first_chunk_mut().expect("eight bytes") = self.to_le_bytes();
    }

    #[inline(always)]
    fn load_lanes(lanes: &[u64]) -> u64 {
        lanes[0]
    }

    #[inline(always)]
    fn store_lanes(self, lanes: &mut [u64]) {
        lanes[0] = self;
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> u64 {
        self << BITS
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> u64 {
        self >> BITS
    }
}

/// Registers. Code that uses them is entered only where [`crate::Form::is_vector`] says so: on that rest all the `unsafe` blocks below.
macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident($type:ty) of $lanes:literal: $set:ident $load:ident $store:ident $xor:ident $gate:ident $shl:ident $shr:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(crate) struct $name(pub(crate) $type);

        impl Gates for $name {
            #[inline(always)]
            fn xor(a: Self, b: Self) -> Self {
                // SAFETY: the processor has AVX-512, as the type demands.
                Self(unsafe { $xor(a.0, b.0) })
            }

            #[inline(always)]
            fn gate<const TABLE: i32>(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the processor has AVX-512, as the type demands.
                Self(unsafe { $gate::<TABLE>(a.0, b.0, c.0) })
            }
        }

        impl Word for $name {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(lane: u64) -> Self {
                // SAFETY: the processor has AVX-512, as the type demands.
                Self(unsafe { $set(lane as i64) })
            }

            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                let bytes = &bytes[..Self::BYTES];
                // SAFETY: the slice has the register's bytes, which need no alignment.
                Self(unsafe { $load(bytes.as_ptr().cast()) })
            }

            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                let bytes = &mut bytes[..Self::BYTES];
                // SAFETY: the slice has the register's bytes, which need no alignment.
                unsafe { $store(bytes.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn load_lanes(lanes: &[u64]) -> Self {
                let lanes = &lanes[..Self::LANES];
                // SAFETY: the slice has the register's numbers.
                Self(unsafe { $load(lanes.as_ptr().cast()) })
            }

            #[inline(always)]
            fn store_lanes(self, lanes: &mut [u64]) {
                let lanes = &mut lanes[..Self::LANES];
                // SAFETY: the slice has the register's numbers.
                unsafe { $store(lanes.as_mut_ptr().cast(), self.0) }
            }

            #[inline(always)]
            fn shl<const BITS: u32>(self) -> Self {
                // SAFETY: the processor has AVX-512, as the type demands.
                Self(unsafe { $shl(self.0, _mm_cvtsi32_si128(BITS as i32)) })
            }

            #[inline(always)]
            fn shr<const BITS: u32>(self) -> Self {
                // SAFETY: the processor has AVX-512, as the type demands.
                Self(unsafe { $shr(self.0, _mm_cvtsi32_si128(BITS as i32)) })
            }
        }
    )*};
}

registers! {
    /// Eight lanes: an AVX-512 register.
    Zmm(__m512i) of 8: _mm512_set1_epi64 _mm512_loadu_si512 _mm512_storeu_si512 _mm512_xor_si512 _mm512_ternarylogic_epi64 _mm512_sll_epi64 _mm512_srl_epi64;
    /// Four lanes: half of one, for half the time where the processor computes halves.
    Ymm(__m256i) of 4: _mm256_set1_epi64x _mm256_loadu_si256 _mm256_storeu_si256 _mm256_xor_si256 _mm256_ternarylogic_epi64 _mm256_sll_epi64 _mm256_srl_epi64;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All eight inputs of a gate are in these bits.
    const INPUTS: [u64; 3] = [0xf0, 0xcc, 0xaa];

    fn check<const TABLE: i32>() {
        let [a, b, c] = INPUTS;
        assert_eq!(u64::gate::<TABLE>(a, b, c) & 0xff, TABLE as u64, "{TABLE:#x}");
    }

    #[test]
    fn portable_gates_are_their_tables() {
        check::<0x00>();
        check::<0x96>();
        check::<0xca>();
        check::<0xe8>();
        check::<0x1b>();
        check::<0x0f>();
        check::<0xff>();
        check::<0x6d>();
    }
}
