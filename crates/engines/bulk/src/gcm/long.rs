//! Texts of more than 256 bytes: counter mode, and beside its rounds GHASH.
//!
//! Units of eight registers, then of four, then what is left. When sealing, a unit's rounds stand beside the hash of the unit before, whose ciphertext is known; when opening, beside that of its own.

use super::Expanded;
use super::kernel::Counter;
use crate::aes::rounds;
use crate::first_round::FirstRound;
use crate::ghash::{PARTS, POWERS, Run, reversed, reversed_block};
use crate::memory::{self, BLOCK, Text, WIDE};
use crate::ordered;
use core::arch::x86_64::*;

/// Registers of the shorter units.
const FOUR: usize = 4;
/// And their bytes.
pub(super) const STEP: usize = FOUR * WIDE;

/// Repeats a block for the registers of an array, with their number, of which there are eight at most: written out, as [`rounds`] is.
macro_rules! each {
    ($len:ident, $i:ident, $body:block) => {
        each!(@ $len $i $body 0 1 2 3 4 5 6 7)
    };
    (@ $len:ident $i:ident $body:block $($number:literal)*) => {
        $(if $number < $len {
            let $i: usize = $number;
            $body
        })*
    };
}

/// All rounds of `N` registers but the first and the last, and beside them, evenly, so many parts of something else.
macro_rules! rounds_beside {
    ($key:expr, $state:ident, [$rounds:ident, $len:ident], $parts:expr, $part:ident => $beside:expr) => {
        rounds!(after_first $rounds, round, {
            let round_key = $key.schedule.wide(round);
            each!($len, i, {
                $state[i] = ordered::encrypt_round($state[i], round_key);
                let (slot, slots) = ((round - 2) * $len + i, ($rounds - 2) * $len);
                let ($part, next) = (slot * $parts / slots, (slot + 1) * $parts / slots);
                if $part < next {
                    $beside;
                }
                let $part = $part + 1;
                if $part < next {
                    $beside;
                }
            });
        });
    };
}

/// What goes on from unit to unit.
struct Long<'a> {
    key: &'a Expanded,
    counter: Counter,
    first: FirstRound,
    run: Run<'a>,
    /// Blocks that are hashed after the run.
    after_run: usize,
    text: Text<'a>,
    /// Where the next unit begins.
    at: usize,
}

impl<'a> Long<'a> {
    /// `first` is the next counter block in each lane; so many blocks are to be hashed.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn new(key: &'a Expanded, counter: Counter, first: __m512i, y: __m128i, text: Text<'a>, at: usize, blocks: usize) -> Self {
        let first = FirstRound::new(&key.schedule, first);
        let mut new = Self { key, counter, first, run: Run::new(&key.powers, &key.crossed, y, 0), after_run: blocks, text, at };
        new.begin_run(y);
        new
    }

    /// As many blocks with one reduction as there are powers for: all that are left, or those of one or two units.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn begin_run(&mut self, y: __m128i) {
        let left = self.after_run;
        let blocks = if left <= POWERS { left } else { left.min(128) / 64 * 32 };
        self.run = Run::new(&self.key.powers, &self.key.crossed, y, blocks);
        self.after_run -= blocks;
    }

    /// So many blocks are hashed.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn hashed(&mut self, blocks: usize) {
        self.run.advance(blocks);
        if self.run.is_over() {
            self.begin_run(self.run.reduced());
        }
    }

    /// `N` registers of text, and meanwhile the hash of `P` others before them: those that are given, or when opening the `N` themselves. Returns the ciphertext. `PLACE` is there to have
    /// one function for each place that calls it, which the compiler then inlines.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn unit<const R: usize, const N: usize, const P: usize, const PLACE: usize>(&mut self, hashed: &[__m512i; P]) -> [__m512i; N] {
        let key = ordered::again(self.key);
        let mut state = [_mm512_setzero_si512(); N];
        state[..4].copy_from_slice(&self.first.sixteen_counted(&key.schedule, &mut self.counter));
        if N > 4 {
            state[4..].copy_from_slice(&self.first.sixteen_counted(&key.schedule, &mut self.counter));
        }
        rounds_beside!(key, state, [R, N], PARTS * P / 2, part => self.run.part(part, hashed));
        let last = key.schedule.wide(R);
        self.last::<N, 0>(last, &mut state);
        if N > 4 {
            self.last::<N, 4>(last, &mut state);
        }
        self.at += N * WIDE;
        if P > 0 {
            self.hashed(4 * P);
        }
        state
    }

    /// The last round of four registers, with their text.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn last<const N: usize, const FROM: usize>(&mut self, key: __m512i, state: &mut [__m512i; N]) {
        let at = self.at + FROM * WIDE;
        let given = self.text.load_step(at);
        let mut done = [_mm512_setzero_si512(); FOUR];
        each!(FOUR, i, { done[i] = _mm512_aesenclast_epi128(state[FROM + i], _mm512_xor_si512(key, given[i])) });
        self.text.store_step(at, done);
        state[FROM..FROM + FOUR].copy_from_slice(&done);
    }

    /// So many registers of text as they are given.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn given<const N: usize>(&self) -> [__m512i; N] {
        let mut given = [_mm512_setzero_si512(); N];
        given[..4].copy_from_slice(&self.text.load_step(self.at));
        if N > 4 {
            given[4..].copy_from_slice(&self.text.load_step(self.at + STEP));
        }
        given
    }

    /// So many [`STEP`]s, one at least. Returns what has yet to be hashed when sealing: the last four registers of ciphertext.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn steps<const R: usize, const SEAL: bool>(&mut self, steps: usize) -> [__m512i; FOUR] {
        let mut four = [_mm512_setzero_si512(); FOUR];
        // One or two of them go alone, so that little is left to be hashed after the last rounds.
        let eights = (steps - 1) / 2;
        if !SEAL {
            for _ in 0..eights {
                self.unit::<R, 8, 8, 0>(&self.given());
            }
            for _ in 2 * eights..steps {
                self.unit::<R, 4, 4, 1>(&self.given());
            }
            return four;
        }
        if eights > 0 {
            let mut eight = self.unit::<R, 8, 0, 2>(&[]);
            for _ in 1..eights {
                eight = self.unit::<R, 8, 8, 3>(&eight);
            }
            four = self.unit::<R, 4, 8, 4>(&eight);
        } else {
            four = self.unit::<R, 4, 0, 5>(&[]);
        }
        if steps.is_multiple_of(2) {
            four = self.unit::<R, 4, 4, 6>(&four);
        }
        four
    }

    /// The last one to four registers, which end the message; the result is the tag. It takes what masks the tag, the block that ends the hash, and what has yet to be hashed
    /// `before`.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn end<const R: usize, const N: usize, const SEAL: bool>(self, [mask, lengths]: [__m128i; 2], before: &[__m512i; FOUR]) -> __m128i {
        let Self { mut counter, mut first, mut run, mut text, at, .. } = self;
        let key = ordered::again(self.key);
        let rest = text.len() - at - (N - 1) * WIDE;
        let blocks = (text.len() - at).div_ceil(BLOCK) + 1;
        let mut given = [_mm512_setzero_si512(); N];
        each!(N, i, { given[i] = if i + 1 < N { text.load(at + i * WIDE) } else { text.load_part(at + i * WIDE, rest) } });
        let hashed = if SEAL { 4 * FOUR } else { 0 };
        run.one(hashed + blocks - 1, _mm512_zextsi128_si512(lengths));
        if !SEAL {
            run.registers::<R, N, 0>(given);
        }
        let sixteen = first.sixteen_counted(&key.schedule, &mut counter);
        let mut state: [__m512i; N] = core::array::from_fn(|i| sixteen[i]);
        rounds_beside!(key, state, [R, N], if SEAL { PARTS * FOUR / 2 } else { 0 }, part => run.part(part, before));
        let last = key.schedule.wide(R);
        each!(N, i, {
            state[i] = _mm512_aesenclast_epi128(state[i], _mm512_xor_si512(last, given[i]));
            let at = at + i * WIDE;
            if i + 1 < N {
                text.store(at, state[i]);
            } else {
                text.store_part(at, rest, state[i]);
                state[i] = _mm512_maskz_mov_epi8(memory::mask64(rest), state[i]);
            }
        });
        if SEAL {
            run.advance(hashed);
            run.registers::<R, N, 1>(state);
        }
        _mm_xor_si128(reversed_block(run.reduced()), mask)
    }
}

impl Run<'_> {
    /// Adds up to four registers of blocks as they stand in memory, the next of the run. `R` and `PLACE` as in [`Long::unit`].
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
    fn registers<const R: usize, const N: usize, const PLACE: usize>(&mut self, blocks: [__m512i; N]) {
        let mut all = blocks.map(|blocks| reversed(blocks));
        all[0] = _mm512_xor_si512(all[0], self.y());
        match N {
            1 => self.one(0, all[0]),
            2 => self.two(0, all[0], all[1]),
            3 => {
                self.two(0, all[0], all[1]);
                self.one(8, all[2]);
            }
            _ => {
                self.two(0, all[0], all[1]);
                self.two(8, all[2], all[3]);
            }
        }
    }
}

/// A text of more than [`STEP`] bytes, which ends the message; the result is the tag.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn whole<const R: usize, const SEAL: bool>(
    key: &Expanded,
    before: __m128i,
    is_public: bool,
    y: __m128i,
    text: &mut Text<'_>,
    lengths: __m128i,
) -> __m128i {
    let (steps, blocks) = ((text.len() - 1) / STEP, text.len().div_ceil(BLOCK) + 1);
    // Not by way of a counter in a word, for which it would wait.
    let first = reversed_block(_mm_add_epi32(reversed_block(before), _mm_set_epi32(0, 0, 0, 1)));
    let (counter, first) = (Counter::after(before, is_public), _mm512_broadcast_i32x4(first));
    let mut long = Long::new(key, counter, first, y, text.borrowed(), 0, blocks);
    // Early, where least is beside it.
    let mask = ordered::again(key).schedule.encrypt_block_in(R, before);
    let four = long.steps::<R, SEAL>(steps);
    match (long.text.len() - long.at).div_ceil(WIDE) {
        1 => long.end::<R, 1, SEAL>([mask, lengths], &four),
        2 => long.end::<R, 2, SEAL>([mask, lengths], &four),
        3 => long.end::<R, 3, SEAL>([mask, lengths], &four),
        _ => long.end::<R, 4, SEAL>([mask, lengths], &four),
    }
}

/// So many steps of a text that comes in pieces, one at least, from `at` on. Returns the hash, continued from `y`.
#[inline(never)]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq")]
pub(super) fn steps<const R: usize, const SEAL: bool>(
    key: &Expanded,
    counter: &mut Counter,
    y: __m128i,
    text: &mut Text<'_>,
    at: usize,
    steps: usize,
) -> __m128i {
    let from = Counter { base: counter.base, next: counter.next, is_public: counter.is_public };
    let first = reversed(from.same(from.next));
    let mut long = Long::new(key, from, first, y, text.borrowed(), at, steps * STEP / BLOCK);
    let four = long.steps::<R, SEAL>(steps);
    counter.next = long.counter.next;
    if !SEAL {
        return _mm512_castsi512_si128(long.run.y());
    }
    long.run.registers::<R, FOUR, 2>(four);
    long.run.reduced()
}
