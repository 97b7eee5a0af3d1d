//! S-boxes with the key addition before them, for encryption: nine or ten gates instead of seven or eight and four.
//!
//! What a gate reads besides key words need not be an input with its key: a sum of two inputs takes the sum of their keys, a function of one input and
//! something else takes the key in the gate itself, and an input that is only added to what comes out may stay without its key. The output then lacks that
//! key, and so does, through the linear transformation, the round after it, whose keys make up for it ([`prepare`]). Found by a search over all circuits that begin with three or
//! four sums of one or two inputs and their keys and have two gates before the outputs, or three drawn at random. It found nothing shorter for S1, S3 and S7, which
//! have their keys added as usual.

use super::linear;
use crate::words::Words;

/// Key words of a round as its S-box takes them.
pub(super) type Mixed = [u32; 5];

/// Sums of key words, bit 0 for the first word, that an S-box takes; and, where an output lacks key words, which one and which.
type Takes = (&'static [u8], Option<(usize, u8)>);

const TAKES: [Takes; 8] = [
    (&[0b0101, 0b1000, 0b1001, 0b0010, 0b0110], Some((2, 0b0010))),
    (PLAIN, None),
    (&[0b0010, 0b0101, 0b0110, 0b1000], None),
    (PLAIN, None),
    (&[0b0010, 0b0011, 0b1001, 0b1100], Some((1, 0b0100))),
    (&[0b0011, 0b1000, 0b1010, 0b0101], Some((3, 0b0100))),
    (&[0b0110, 0b1000, 0b1001, 0b1100, 0b0010], None),
    (PLAIN, None),
];
/// The four words one by one.
const PLAIN: &[u8] = &[0b0001, 0b0010, 0b0100, 0b1000];

/// The sum of the words whose bits are set.
fn sum(words: &[u32; 4], which: u8) -> u32 {
    words.iter().enumerate().fold(0, |sum, (i, word)| sum ^ word & 0u32.wrapping_sub(u32::from(which >> i & 1)))
}

/// Makes the keys of all rounds but the last from those of the key schedule.
pub(super) fn prepare(keys: &[[u32; 4]; 33], prepared: &mut [Mixed; 32]) {
    let mut missing = [0; 4];
    for (round, mixed) in prepared.iter_mut().enumerate() {
        let (takes, lacks) = TAKES[round % 8];
        let words = std::array::from_fn(|i| keys[round][i] ^ missing[i]);
        let mut without = [0; 4];
        if let Some((output, which)) = lacks {
            without[output] = sum(&words, which);
        }
        missing = linear(without);
        for (mixed, which) in mixed.iter_mut().zip(takes) {
            *mixed = sum(&words, *which);
        }
    }
}

/// 10 gates. Keys: ka ^ kc, kd, ka ^ kd, kb, kb ^ kc.
#[inline(always)]
pub(super) fn s0<W: Words>([a, b, c, d]: [W; 4], keys: &[u32; 5]) -> [W; 4] {
    let t0 = W::gate::<0x96>(c, W::splat(keys[0]), a);
    let t1 = W::xor(d, W::splat(keys[1]));
    let t2 = W::gate::<0x96>(d, W::splat(keys[2]), a);
    let t3 = W::gate::<0x82>(b, W::splat(keys[3]), t2);
    let t4 = W::gate::<0x1e>(b, t2, t1);
    let t5 = W::gate::<0x96>(t4, W::splat(keys[4]), c);
    let t6 = W::gate::<0x06>(t3, t1, t0);
    let t7 = W::gate::<0x87>(t6, t5, t0);
    let t8 = W::gate::<0x92>(t7, t3, t0);
    let t9 = W::gate::<0xe1>(t4, t8, t7);
    [t8, t7, t9, t5]
}

/// 10 gates. Keys: kb, ka ^ kc, kb ^ kc, kd.
#[inline(always)]
pub(super) fn s2<W: Words>([a, b, c, d]: [W; 4], keys: &[u32; 5]) -> [W; 4] {
    let t0 = W::xor(b, W::splat(keys[0]));
    let t1 = W::gate::<0x96>(c, W::splat(keys[1]), a);
    let t2 = W::gate::<0x96>(c, W::splat(keys[2]), b);
    let t3 = W::gate::<0xe2>(t2, t1, t0);
    let t4 = W::gate::<0x96>(t3, W::splat(keys[3]), d);
    let t5 = W::xor(t4, t2);
    let t6 = W::gate::<0x39>(t5, t1, t0);
    let t7 = W::gate::<0x56>(t4, t2, t0);
    let t8 = W::gate::<0x8b>(t7, t6, t5);
    let t9 = W::gate::<0x59>(t7, t6, t5);
    [t4, t9, t8, t6]
}

/// 9 gates. Keys: kb, ka ^ kb, ka ^ kd, kc ^ kd.
#[inline(always)]
pub(super) fn s4<W: Words>([a, b, c, d]: [W; 4], keys: &[u32; 5]) -> [W; 4] {
    let t0 = W::xor(b, W::splat(keys[0]));
    let t1 = W::gate::<0x96>(b, W::splat(keys[1]), a);
    let t2 = W::gate::<0x96>(d, W::splat(keys[2]), a);
    let t3 = W::gate::<0xd2>(c, t2, t1);
    let t4 = W::gate::<0x69>(t3, W::splat(keys[3]), d);
    let t5 = W::gate::<0x63>(t4, t2, t0);
    let t6 = W::gate::<0x65>(t4, t1, t0);
    let t7 = W::gate::<0xd2>(t6, t5, t2);
    let t8 = W::gate::<0x1e>(t3, t6, t5);
    [t4, t8, t7, t5]
}

/// 9 gates. Keys: ka ^ kb, kd, kb ^ kd, ka ^ kc.
#[inline(always)]
pub(super) fn s5<W: Words>([a, b, c, d]: [W; 4], keys: &[u32; 5]) -> [W; 4] {
    let t0 = W::gate::<0x96>(b, W::splat(keys[0]), a);
    let t1 = W::xor(d, W::splat(keys[1]));
    let t2 = W::gate::<0x96>(d, W::splat(keys[2]), b);
    let t3 = W::gate::<0x1e>(c, t2, t0);
    let t4 = W::gate::<0x69>(t3, W::splat(keys[3]), a);
    let t5 = W::gate::<0x9a>(t4, t1, t0);
    let t6 = W::gate::<0x6a>(t4, t2, t1);
    let t7 = W::gate::<0x87>(t3, t6, t5);
    let t8 = W::gate::<0x87>(t6, t5, t0);
    [t4, t5, t8, t7]
}

/// 10 gates. Keys: kb ^ kc, kd, ka ^ kd, kc ^ kd, kb.
#[inline(always)]
pub(super) fn s6<W: Words>([a, b, c, d]: [W; 4], keys: &[u32; 5]) -> [W; 4] {
    let t0 = W::gate::<0x96>(c, W::splat(keys[0]), b);
    let t1 = W::xor(d, W::splat(keys[1]));
    let t2 = W::gate::<0x96>(d, W::splat(keys[2]), a);
    let t3 = W::gate::<0x96>(d, W::splat(keys[3]), c);
    let t4 = W::gate::<0xca>(t2, t1, t0);
    let t5 = W::gate::<0x56>(t4, t3, t2);
    let t6 = W::gate::<0x59>(t2, t1, t0);
    let t7 = W::gate::<0x69>(t5, W::splat(keys[4]), b);
    let t8 = W::gate::<0x96>(t6, t5, t4);
    let t9 = W::gate::<0x9a>(t8, t7, t4);
    [t8, t6, t7, t9]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serpent::sboxes::SBOXES;

    type Circuit = fn([u32; 4], &Mixed) -> [u32; 4];

    /// Bit x of input i is bit i of x: all inputs at once, under each of the sixteen keys.
    #[test]
    fn circuits_are_the_s_boxes_after_the_key_but_for_what_they_lack() {
        let inputs = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];
        let circuits: [(usize, Circuit); 5] = [(0, s0), (2, s2), (4, s4), (5, s5), (6, s6)];
        for ((n, circuit), key) in circuits.into_iter().flat_map(|circuit| (0..16).map(move |key| (circuit, key))) {
            let words = std::array::from_fn(|i| 0u32.wrapping_sub(key >> i & 1));
            let mut mixed = [0; 5];
            for (mixed, which) in mixed.iter_mut().zip(TAKES[n].0) {
                *mixed = sum(&words, *which);
            }
            let mut outputs = circuit(inputs, &mixed);
            if let Some((output, which)) = TAKES[n].1 {
                outputs[output] ^= sum(&words, which);
            }
            for x in 0..16 {
                let value = (0..4).fold(0, |value, bit| value | ((outputs[bit] >> x & 1) as u8) << bit);
                assert_eq!(value, SBOXES[n][x ^ key as usize], "S{n} at {x} with key {key}");
            }
        }
    }
}
