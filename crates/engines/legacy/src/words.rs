//! What ciphers of 32-bit words need of a register: one word of each of many blocks in its lanes.

use crate::cipher::{BLOCK_MAX, BadKey, BlockCipher, Form, assert_whole, in_groups, keep};
use crate::word::{Gates, Zmm};
use core::arch::x86_64::*;

/// Lanes of 32 bits. As with [`Gates`], everything must be inlined into a `#[target_feature]` function.
pub(crate) trait Words: Gates {
    /// Bytes of as many blocks of four words as there are lanes.
    const GROUP: usize;

    /// The same number in every lane.
    fn splat(word: u32) -> Self;
    fn add(a: Self, b: Self) -> Self;
    fn sub(a: Self, b: Self) -> Self;
    /// Low 32 bits of the product.
    fn mul(a: Self, b: Self) -> Self;
    fn shl<const BITS: u32>(self) -> Self;
    fn rotate_left<const BITS: i32>(self) -> Self;
    fn rotate_right<const BITS: i32>(self) -> Self;
    /// Each lane turned left by the low five bits of its lane of `by`.
    fn rotate_left_by(self, by: Self) -> Self;
    fn rotate_right_by(self, by: Self) -> Self;
    /// Word `i` of every block in register `i`, from [`Self::GROUP`] bytes of blocks of four little-endian words.
    fn load(blocks: &[u8]) -> [Self; 4];
    fn store(words: [Self; 4], blocks: &mut [u8]);
    /// Xors the blocks that [`Self::store`] would write into what is there.
    fn xor_into(words: [Self; 4], blocks: &mut [u8]);
    /// What [`Self::load`] makes of the blocks from `counter` on, big-endian.
    fn count(counter: u128) -> [Self; 4];
}

/// The portable form: one block.
impl Gates for u32 {
    #[inline(always)]
    fn xor(a: u32, b: u32) -> u32 {
        a ^ b
    }

    #[inline(always)]
    fn gate<const TABLE: i32>(a: u32, b: u32, c: u32) -> u32 {
        u64::gate::<TABLE>(a.into(), b.into(), c.into()) as u32
    }
}

impl Words for u32 {
    const GROUP: usize = 16;

    #[inline(always)]
    fn splat(word: u32) -> u32 {
        word
    }

    #[inline(always)]
    fn add(a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn sub(a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }

    #[inline(always)]
    fn mul(a: u32, b: u32) -> u32 {
        a.wrapping_mul(b)
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> u32 {
        self << BITS
    }

    #[inline(always)]
    fn rotate_left<const BITS: i32>(self) -> u32 {
        self.rotate_left(BITS as u32)
    }

    #[inline(always)]
    fn rotate_right<const BITS: i32>(self) -> u32 {
        self.rotate_right(BITS as u32)
    }

    #[inline(always)]
    fn rotate_left_by(self, by: u32) -> u32 {
        self.rotate_left(by & 31)
    }

    #[inline(always)]
    fn rotate_right_by(self, by: u32) -> u32 {
        self.rotate_right(by & 31)
    }

    #[inline(always)]
    fn load(blocks: &[u8]) -> [u32; 4] {
        let words = blocks.as_chunks().0;
        std::array::from_fn(|i| u32::from_le_bytes(words[i]))
    }

    #[inline(always)]
    fn store(words: [u32; 4], blocks: &mut [u8]) {
        for (word, bytes) in words.into_iter().zip(blocks.as_chunks_mut().0) {
            *bytes = word.to_le_bytes();
        }
    }

    #[inline(always)]
    fn xor_into(words: [u32; 4], blocks: &mut [u8]) {
        let there = Self::load(blocks);
        Self::store(std::array::from_fn(|i| words[i] ^ there[i]), blocks);
    }

    #[inline(always)]
    fn count(counter: u128) -> [u32; 4] {
        Self::load(&counter.to_be_bytes())
    }
}

/// Sixteen blocks. What [`Zmm`] says of `unsafe` holds here too.
impl Words for Zmm {
    const GROUP: usize = 256;

    #[inline(always)]
    fn splat(word: u32) -> Zmm {
        // SAFETY: the processor has AVX-512, as the type demands.
        Zmm(unsafe { _mm512_set1_epi32(word as i32) })
    }

    #[inline(always)]
    fn add(a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_add_epi32(a.0, b.0) })
    }

    #[inline(always)]
    fn sub(a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_sub_epi32(a.0, b.0) })
    }

    #[inline(always)]
    fn mul(a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_mullo_epi32(a.0, b.0) })
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_slli_epi32::<BITS>(self.0) })
    }

    #[inline(always)]
    fn rotate_left<const BITS: i32>(self) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_rol_epi32::<BITS>(self.0) })
    }

    #[inline(always)]
    fn rotate_right<const BITS: i32>(self) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_ror_epi32::<BITS>(self.0) })
    }

    #[inline(always)]
    fn rotate_left_by(self, by: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_rolv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn rotate_right_by(self, by: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_rorv_epi32(self.0, by.0) })
    }

    #[inline(always)]
    fn load(blocks: &[u8]) -> [Zmm; 4] {
        let blocks = &blocks[..Self::GROUP];
        let mut rows = [<Zmm as Words>::splat(0); 4];
        for (i, row) in rows.iter_mut().enumerate() {
            // SAFETY: the slice has the four times 64 bytes, which need no alignment.
            row.0 = unsafe { _mm512_loadu_si512(blocks[64 * i..].as_ptr().cast()) };
        }
        transpose(rows)
    }

    #[inline(always)]
    fn store(words: [Zmm; 4], blocks: &mut [u8]) {
        let blocks = &mut blocks[..Self::GROUP];
        for (i, row) in transpose(words).into_iter().enumerate() {
            // SAFETY: the slice has the four times 64 bytes, which need no alignment.
            unsafe { _mm512_storeu_si512(blocks[64 * i..].as_mut_ptr().cast(), row.0) }
        }
    }

    #[inline(always)]
    fn xor_into(words: [Zmm; 4], blocks: &mut [u8]) {
        let blocks = &mut blocks[..Self::GROUP];
        for (i, row) in transpose(words).into_iter().enumerate() {
            let there = blocks[64 * i..].as_mut_ptr();
            // SAFETY: the slice has the four times 64 bytes, which need no alignment.
            unsafe { _mm512_storeu_si512(there.cast(), _mm512_xor_si512(row.0, _mm512_loadu_si512(there.cast()))) }
        }
    }

    #[inline(always)]
    fn count(counter: u128) -> [Zmm; 4] {
        let ([a, b, c, _], low) = (u32::count(counter), counter as u32);
        if low > u32::MAX - 15 {
            return Self::load(count_with_carry(counter).as_flattened());
        }
        [<Zmm as Words>::splat(a), <Zmm as Words>::splat(b), <Zmm as Words>::splat(c), count_words(low)]
    }
}

/// The last words of 16 counters in the order of [`Words::load`], where lane `4 q + r` is block `4 r + q`.
#[inline(always)]
pub(crate) fn count_words(low: u32) -> Zmm {
    // SAFETY: the processor has AVX-512, as the type demands.
    unsafe {
        let steps = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        let turned = _mm512_set4_epi32(0x0c0d_0e0f, 0x0809_0a0b, 0x0405_0607, 0x0001_0203);
        Zmm(_mm512_shuffle_epi8(_mm512_add_epi32(_mm512_set1_epi32(low as i32), steps), turned))
    }
}

/// Counters of which some differ in more than the last word: once in 2^32 blocks.
#[cold]
#[inline(never)]
fn count_with_carry(counter: u128) -> [[u8; BLOCK]; 16] {
    std::array::from_fn(|i| counter.wrapping_add(i as u128).to_be_bytes())
}

/// Exchanges word `i` of row `j` and word `j` of row `i` in each quarter of the registers. Its own inverse.
#[inline(always)]
fn transpose([a, b, c, d]: [Zmm; 4]) -> [Zmm; 4] {
    // SAFETY: the processor has AVX-512, as the type demands.
    unsafe {
        let (low, high) = (_mm512_unpacklo_epi32(a.0, b.0), _mm512_unpackhi_epi32(a.0, b.0));
        let (low_2, high_2) = (_mm512_unpacklo_epi32(c.0, d.0), _mm512_unpackhi_epi32(c.0, d.0));
        let (first, second) = (_mm512_unpacklo_epi64(low, low_2), _mm512_unpackhi_epi64(low, low_2));
        [Zmm(first), Zmm(second), Zmm(_mm512_unpacklo_epi64(high, high_2)), Zmm(_mm512_unpackhi_epi64(high, high_2))]
    }
}

/// Bytes of a block of four words.
const BLOCK: usize = 16;
/// Bytes of the blocks in the lanes of four registers, which are a set.
const SET: usize = <Zmm as Words>::GROUP;
/// Sets side by side: the processor works on one while another waits for its results. Five leave room for keys and intermediate values in the 32 registers.
const WIDE: usize = 5;
const NARROW: usize = 4;
const PAIR: usize = 2;

/// A cipher whose blocks are four words, written once for any number of lanes.
pub(crate) trait WordCipher: Sized {
    /// See [`BlockCipher::NAME`].
    const NAME: &'static str;

    /// The key schedule, for a key of 16, 24 or 32 bytes.
    fn schedule(key: &[u8], form: Form) -> Self;
    fn form(&self) -> Form;
    /// Encrypts the blocks of several sets.
    fn encrypt<W: Words, const N: usize>(&self, sets: &mut [[W; 4]; N]);
    fn decrypt<W: Words, const N: usize>(&self, sets: &mut [[W; 4]; N]);
}

impl<C: WordCipher> BlockCipher for C {
    const NAME: &'static str = C::NAME;
    const BLOCK: usize = BLOCK;
    const KEYS: &'static [usize] = &[16, 24, 32];

    fn with_form(key: &[u8], form: Form) -> Result<Self, BadKey> {
        BadKey::check::<Self>(key)?;
        Ok(C::schedule(key, form))
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        assert_whole(blocks, BLOCK);
        run(self.form(), &mut Ecb::<Self, true>(self), blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        assert_whole(blocks, BLOCK);
        run(self.form(), &mut Ecb::<Self, false>(self), blocks);
    }

    fn xor_stream(&self, counter: u128, data: &mut [u8], open: &mut [u8; BLOCK_MAX]) {
        let len = data.len();
        run(self.form(), &mut Stream { cipher: self, counter, len, open }, data);
    }
}

/// What is done with one group of blocks after the other.
trait Work {
    /// The blocks of `N` sets.
    fn group<W: Words, const N: usize>(&mut self, blocks: &mut [u8]);

    /// What became of the zeros with which the last group was filled.
    fn behind(&mut self, _: &[u8]) {}
}

/// Each block by itself.
struct Ecb<'a, C, const ENCRYPT: bool>(&'a C);

impl<C: WordCipher, const ENCRYPT: bool> Work for Ecb<'_, C, ENCRYPT> {
    #[inline(always)]
    fn group<W: Words, const N: usize>(&mut self, blocks: &mut [u8]) {
        let mut sets = [[W::splat(0); 4]; N];
        for (i, set) in sets.iter_mut().enumerate() {
            *set = W::load(&blocks[i * W::GROUP..]);
        }
        if ENCRYPT {
            self.0.encrypt(&mut sets)
        } else {
            self.0.decrypt(&mut sets)
        }
        for (i, set) in sets.into_iter().enumerate() {
            W::store(set, &mut blocks[i * W::GROUP..]);
        }
    }
}

/// The key stream of counter mode.
struct Stream<'a, C> {
    cipher: &'a C,
    counter: u128,
    len: usize,
    open: &'a mut [u8; BLOCK_MAX],
}

impl<C: WordCipher> Work for Stream<'_, C> {
    #[inline(always)]
    fn group<W: Words, const N: usize>(&mut self, blocks: &mut [u8]) {
        let mut sets = [[W::splat(0); 4]; N];
        for set in &mut sets {
            *set = W::count(self.counter);
            self.counter = self.counter.wrapping_add((W::GROUP / BLOCK) as u128);
        }
        self.cipher.encrypt(&mut sets);
        for (i, set) in sets.into_iter().enumerate() {
            W::xor_into(set, &mut blocks[i * W::GROUP..]);
        }
    }

    #[inline(always)]
    fn behind(&mut self, behind: &[u8]) {
        keep(self.open, self.len, behind);
    }
}

/// All blocks, in the cipher's form.
fn run(form: Form, work: &mut impl Work, data: &mut [u8]) {
    match form.is_vector() {
        // SAFETY: the form says that the processor has been asked.
        true => unsafe { run_avx512(work, data) },
        false => in_groups!(BLOCK, data, |block| work.group::<u32, 1>(block), |behind| work.behind(behind)),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<T: Work>(work: &mut T, data: &mut [u8]) {
    let rest = whole_groups::<T, WIDE>(work, data);
    let rest = whole_groups::<T, NARROW>(work, rest);
    match whole_groups::<T, PAIR>(work, rest) {
        // Alone, as each block of a CBC encryption is, it is done sooner in plain registers.
        rest if rest.len() <= BLOCK => in_groups!(BLOCK, rest, |block| work.group::<u32, 1>(block), |behind| work.behind(behind)),
        rest if rest.len() <= SET => in_groups!(SET, rest, |blocks| work.group::<Zmm, 1>(blocks), |behind| work.behind(behind)),
        rest => in_groups!(PAIR * SET, rest, |blocks| work.group::<Zmm, PAIR>(blocks), |behind| work.behind(behind)),
    }
}

/// All groups of `N` sets; what is left is the caller's.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn whole_groups<'d, T: Work, const N: usize>(work: &mut T, data: &'d mut [u8]) -> &'d mut [u8] {
    let mut groups = data.chunks_exact_mut(N * SET);
    for blocks in &mut groups {
        group::<T, N>(work, blocks);
    }
    groups.into_remainder()
}

/// Not a part of its caller: the compiler finds too few registers then.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn group<T: Work, const N: usize>(work: &mut T, blocks: &mut [u8]) {
    work.group::<Zmm, N>(blocks);
}
