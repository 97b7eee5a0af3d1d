//! The S-boxes and their inverses as gates of three inputs, found by `examples/circuits.rs`; the test proves them right on all 16 inputs.
//!
//! Input `a` is the least significant of the four bits, output 0 as well.

use crate::word::Gates;
// Printed by `cargo run --release -p bywash-legacy --example circuits -- serpent 3 3`.

/// 7 gates.
#[inline(always)]
pub(crate) fn s0<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0xe1>(b, d, a);
    let t1 = W::gate::<0xa5>(c, a, t0);
    let t2 = W::gate::<0x95>(a, d, b);
    let t3 = W::gate::<0x2d>(d, t0, t2);
    let t4 = W::gate::<0xac>(t1, t2, t3);
    let t5 = W::gate::<0x72>(t3, t2, t1);
    let t6 = W::gate::<0x56>(t4, t5, t0);
    [t5, t4, t6, t1]
}

/// 7 gates.
#[inline(always)]
pub(crate) fn s0_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x56>(a, b, c);
    let t1 = W::gate::<0xa5>(d, c, t0);
    let t2 = W::gate::<0x96>(b, d, a);
    let t3 = W::gate::<0x4b>(b, t2, d);
    let t4 = W::gate::<0xac>(t0, t3, t2);
    let t5 = W::gate::<0xb1>(t3, t2, t0);
    let t6 = W::gate::<0xe4>(t0, t2, t3);
    [t4, t6, t1, t5]
}

/// 7 gates.
#[inline(always)]
pub(crate) fn s1<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0xb4>(c, b, a);
    let t1 = W::gate::<0x99>(a, d, t0);
    let t2 = W::gate::<0x5c>(d, b, a);
    let t3 = W::gate::<0x96>(a, t1, b);
    let t4 = W::gate::<0xac>(t0, t3, t2);
    let t5 = W::gate::<0x49>(t2, t4, t3);
    let t6 = W::gate::<0x65>(t5, t4, t0);
    [t6, t4, t1, t5]
}

/// 7 gates.
#[inline(always)]
pub(crate) fn s1_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x4b>(a, d, b);
    let t1 = W::gate::<0xa5>(c, b, t0);
    let t2 = W::gate::<0x96>(d, b, t0);
    let t3 = W::gate::<0x65>(t2, c, d);
    let t4 = W::gate::<0xac>(t1, t3, t2);
    let t5 = W::gate::<0xa6>(t3, t1, t2);
    let t6 = W::gate::<0xc6>(t5, t0, t4);
    [t5, t4, t6, t1]
}

/// 7 gates.
#[inline(always)]
pub(crate) fn s2<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x25>(c, b, a);
    let t1 = W::gate::<0x9a>(b, d, t0);
    let t2 = W::gate::<0x87>(d, c, a);
    let t3 = W::gate::<0x78>(b, t2, a);
    let t4 = W::gate::<0xac>(t1, t2, t3);
    let t5 = W::gate::<0x4e>(t2, t3, t1);
    let t6 = W::gate::<0x69>(c, t2, b);
    [t6, t4, t5, t1]
}

/// 7 gates.
#[inline(always)]
pub(crate) fn s2_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0xb1>(d, c, b);
    let t1 = W::gate::<0xa5>(a, b, t0);
    let t2 = W::gate::<0x8b>(b, d, c);
    let t3 = W::gate::<0x1d>(c, b, d);
    let t4 = W::gate::<0xac>(t1, t2, t3);
    let t5 = W::gate::<0x6c>(t1, t3, t2);
    let t6 = W::gate::<0x96>(t2, t5, a);
    [t1, t6, t5, t4]
}

/// 8 gates.
#[inline(always)]
pub(crate) fn s3<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x3e>(a, d, c);
    let t1 = W::gate::<0x25>(d, t0, c);
    let t2 = W::gate::<0xac>(b, t0, t1);
    let t3 = W::gate::<0x26>(d, b, a);
    let t4 = W::gate::<0x96>(c, t3, t2);
    let t5 = W::gate::<0xac>(t1, t4, t3);
    let t6 = W::gate::<0x94>(t0, d, t4);
    let t7 = W::gate::<0xe9>(t6, t3, t1);
    [t5, t7, t6, t2]
}

/// 8 gates.
#[inline(always)]
pub(crate) fn s3_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0xb5>(b, d, c);
    let t1 = W::gate::<0xa9>(a, d, t0);
    let t2 = W::gate::<0x76>(c, d, a);
    let t3 = W::gate::<0xa6>(b, t1, t2);
    let t4 = W::gate::<0x34>(b, a, t3);
    let t5 = W::gate::<0xa6>(d, c, t4);
    let t6 = W::gate::<0x94>(t0, t2, t5);
    let t7 = W::gate::<0x95>(t4, d, t6);
    [t1, t7, t3, t5]
}

/// 8 gates.
#[inline(always)]
pub(crate) fn s4<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0xd4>(b, d, a);
    let t1 = W::gate::<0xa5>(c, a, t0);
    let t2 = W::gate::<0x39>(b, d, t1);
    let t3 = W::gate::<0x66>(t0, a, t2);
    let t4 = W::gate::<0xb4>(b, t3, t2);
    let t5 = W::gate::<0xa6>(c, t0, t4);
    let t6 = W::gate::<0x61>(c, t3, t5);
    let t7 = W::gate::<0x29>(t0, t2, t6);
    [t1, t5, t7, t3]
}

/// 8 gates.
#[inline(always)]
pub(crate) fn s4_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x79>(a, b, d);
    let t1 = W::gate::<0xa9>(c, d, t0);
    let t2 = W::gate::<0x7c>(c, a, b);
    let t3 = W::gate::<0x9a>(t0, d, t2);
    let t4 = W::gate::<0x2e>(c, a, t1);
    let t5 = W::gate::<0x94>(b, t0, t4);
    let t6 = W::gate::<0x56>(a, t5, b);
    let t7 = W::gate::<0x95>(d, c, t6);
    [t5, t7, t3, t1]
}

/// 8 gates.
#[inline(always)]
pub(crate) fn s5<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x8e>(a, d, b);
    let t1 = W::gate::<0xa5>(c, b, t0);
    let t2 = W::gate::<0x59>(d, t1, b);
    let t3 = W::gate::<0x25>(a, t0, t2);
    let t4 = W::gate::<0xa1>(t3, t1, d);
    let t5 = W::gate::<0x9a>(t1, b, t4);
    let t6 = W::gate::<0x7e>(t5, t1, t3);
    let t7 = W::gate::<0x29>(t2, t4, t6);
    [t1, t3, t5, t7]
}

/// 8 gates.
#[inline(always)]
pub(crate) fn s5_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x16>(a, d, b);
    let t1 = W::gate::<0xa6>(c, b, t0);
    let t2 = W::gate::<0xda>(a, d, c);
    let t3 = W::gate::<0xa6>(t0, b, t2);
    let t4 = W::gate::<0x53>(a, t1, c);
    let t5 = W::gate::<0x69>(d, t0, t4);
    let t6 = W::gate::<0x49>(b, c, a);
    let t7 = W::gate::<0xa6>(d, a, t6);
    [t1, t5, t3, t7]
}

/// 7 gates.
#[inline(always)]
pub(crate) fn s6<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x78>(c, d, a);
    let t1 = W::gate::<0xa5>(b, a, t0);
    let t2 = W::gate::<0x96>(d, a, t1);
    let t3 = W::gate::<0x53>(t1, d, a);
    let t4 = W::gate::<0xac>(t0, t3, t2);
    let t5 = W::gate::<0x5c>(t0, t2, t3);
    let t6 = W::gate::<0x74>(t0, t3, t2);
    [t5, t1, t4, t6]
}

/// 7 gates.
#[inline(always)]
pub(crate) fn s6_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x9c>(c, d, a);
    let t1 = W::gate::<0x99>(a, b, t0);
    let t2 = W::gate::<0xd1>(a, t0, c);
    let t3 = W::gate::<0x96>(c, a, t0);
    let t4 = W::gate::<0xac>(b, t2, t3);
    let t5 = W::gate::<0xd1>(t2, b, t3);
    let t6 = W::gate::<0x6a>(t5, t4, t0);
    [t5, t1, t6, t4]
}

/// 8 gates.
#[inline(always)]
pub(crate) fn s7<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0x34>(b, c, a);
    let t1 = W::gate::<0x9a>(a, d, t0);
    let t2 = W::gate::<0xb9>(b, d, a);
    let t3 = W::gate::<0xa9>(t1, c, t2);
    let t4 = W::gate::<0x34>(c, d, t3);
    let t5 = W::gate::<0x95>(b, a, t4);
    let t6 = W::gate::<0x16>(t5, a, t1);
    let t7 = W::gate::<0xa9>(d, c, t6);
    [t5, t3, t7, t1]
}

/// 9 gates.
#[inline(always)]
pub(crate) fn s7_inverse<W: Gates>([a, b, c, d]: [W; 4]) -> [W; 4] {
    let t0 = W::gate::<0xc2>(b, d, c);
    let t1 = W::gate::<0x65>(d, c, t0);
    let t2 = W::gate::<0xac>(a, t1, t0);
    let t3 = W::gate::<0xd3>(a, t0, c);
    let t4 = W::gate::<0x92>(b, t1, t3);
    let t5 = W::gate::<0x1c>(c, b, t4);
    let t6 = W::gate::<0xa6>(a, t3, t5);
    let t7 = W::gate::<0x43>(b, t6, a);
    let t8 = W::gate::<0xa9>(d, t2, t7);
    [t6, t2, t4, t8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serpent::sboxes::SBOXES;

    type Circuit = fn([u64; 4]) -> [u64; 4];

    const CIRCUITS: [(Circuit, Circuit); 8] = [
        (s0, s0_inverse),
        (s1, s1_inverse),
        (s2, s2_inverse),
        (s3, s3_inverse),
        (s4, s4_inverse),
        (s5, s5_inverse),
        (s6, s6_inverse),
        (s7, s7_inverse),
    ];

    /// What a circuit makes of each of the 16 inputs: bit x of input i is bit i of x.
    fn values(circuit: Circuit) -> [u8; 16] {
        let inputs: [u64; 4] = std::array::from_fn(|i| (0..16).filter(|x| x >> i & 1 == 1).fold(0, |bits, x: u64| bits | 1 << x));
        let outputs = circuit(inputs);
        std::array::from_fn(|x| (0..4).fold(0, |value, bit| value | ((outputs[bit] >> x & 1) as u8) << bit))
    }

    #[test]
    fn circuits_are_the_s_boxes_and_their_inverses_on_every_input() {
        for (n, (sbox, (forward, backward))) in SBOXES.iter().zip(CIRCUITS).enumerate() {
            assert_eq!(values(forward), *sbox, "S{n}");
            let inverse = values(backward);
            for (x, y) in sbox.iter().enumerate() {
                assert_eq!(usize::from(inverse[usize::from(*y)]), x, "inverse of S{n} at {y}");
            }
        }
    }
}
