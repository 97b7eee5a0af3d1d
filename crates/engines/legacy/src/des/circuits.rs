//! The S-boxes as gates of three inputs, found by `examples/circuits.rs`; the test proves them right on all 64 inputs.
//!
//! Input `a` is the least significant of the six bits, output 0 the least significant of the four.

use crate::word::Gates;
// Printed by `cargo run --release -p bywash-legacy --example circuits -- des 90 7`.

/// 31 gates.
#[inline(always)]
pub(crate) fn s1<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0xe9>(c, f, d);
    let t1 = W::gate::<0x3a>(b, d, t0);
    let t2 = W::gate::<0xa4>(c, d, t1);
    let t3 = W::gate::<0x95>(f, b, t2);
    let t4 = W::gate::<0xac>(a, t3, t1);
    let t5 = W::gate::<0x96>(a, b, c);
    let t6 = W::gate::<0x8e>(t1, c, t5);
    let t7 = W::gate::<0x2b>(b, t1, t4);
    let t8 = W::gate::<0x96>(t6, a, t7);
    let t9 = W::gate::<0xac>(f, t8, t6);
    let t10 = W::gate::<0xac>(e, t9, t4);
    let t11 = W::gate::<0x69>(f, d, t5);
    let t12 = W::gate::<0xa9>(e, t8, t11);
    let t13 = W::gate::<0x1e>(t11, d, b);
    let t14 = W::gate::<0xac>(t10, t13, t12);
    let t15 = W::gate::<0x36>(c, e, t11);
    let t16 = W::gate::<0x85>(t8, t2, t15);
    let t17 = W::gate::<0x14>(d, t14, e);
    let t18 = W::gate::<0xa5>(t11, t5, t17);
    let t19 = W::gate::<0xac>(b, t18, t16);
    let t20 = W::gate::<0xac>(a, t19, t14);
    let t21 = W::gate::<0x26>(t11, t15, t6);
    let t22 = W::gate::<0x70>(t12, t21, d);
    let t23 = W::gate::<0xac>(a, t22, t21);
    let t24 = W::gate::<0xc9>(t3, t15, t10);
    let t25 = W::gate::<0xac>(c, t24, t23);
    let t26 = W::gate::<0xd7>(t24, t22, t7);
    let t27 = W::gate::<0x89>(c, t18, t26);
    let t28 = W::gate::<0x19>(b, t10, t19);
    let t29 = W::gate::<0x96>(t25, e, t28);
    let t30 = W::gate::<0xac>(a, t29, t27);
    [t30, t10, t20, t25]
}

/// 28 gates.
#[inline(always)]
pub(crate) fn s2<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0xa9>(c, b, f);
    let t1 = W::gate::<0xa5>(e, f, t0);
    let t2 = W::gate::<0x69>(b, c, f);
    let t3 = W::gate::<0xac>(d, t1, t2);
    let t4 = W::gate::<0x16>(f, b, d);
    let t5 = W::gate::<0x9a>(t1, t2, t4);
    let t6 = W::gate::<0xac>(e, t2, t5);
    let t7 = W::gate::<0xac>(a, t6, t3);
    let t8 = W::gate::<0xd7>(d, t6, e);
    let t9 = W::gate::<0x86>(c, f, t8);
    let t10 = W::gate::<0x86>(e, d, t9);
    let t11 = W::gate::<0xa9>(t0, t5, t10);
    let t12 = W::gate::<0xac>(a, t9, t11);
    let t13 = W::gate::<0x29>(e, d, a);
    let t14 = W::gate::<0xad>(t0, t9, t13);
    let t15 = W::gate::<0xac>(t4, t12, t14);
    let t16 = W::gate::<0x27>(t11, t1, a);
    let t17 = W::gate::<0x96>(t4, c, t16);
    let t18 = W::gate::<0x8e>(t1, t15, t9);
    let t19 = W::gate::<0x96>(t5, a, t18);
    let t20 = W::gate::<0xac>(b, t19, t17);
    let t21 = W::gate::<0x1d>(t19, a, t3);
    let t22 = W::gate::<0x95>(t9, t6, t21);
    let t23 = W::gate::<0x29>(t9, t2, a);
    let t24 = W::gate::<0xac>(d, t23, t22);
    let t25 = W::gate::<0xf9>(t5, t23, d);
    let t26 = W::gate::<0x8a>(t3, t6, t25);
    let t27 = W::gate::<0xac>(e, t26, t24);
    [t15, t27, t7, t20]
}

/// 28 gates.
#[inline(always)]
pub(crate) fn s3<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0xca>(b, d, c);
    let t1 = W::gate::<0x96>(a, e, t0);
    let t2 = W::gate::<0xda>(a, d, t1);
    let t3 = W::gate::<0x3a>(c, t1, t2);
    let t4 = W::gate::<0xa7>(d, a, t3);
    let t5 = W::gate::<0x92>(t2, e, t4);
    let t6 = W::gate::<0xac>(b, t5, t3);
    let t7 = W::gate::<0xac>(f, t1, t6);
    let t8 = W::gate::<0xc4>(b, c, a);
    let t9 = W::gate::<0x96>(f, d, t8);
    let t10 = W::gate::<0x3c>(a, b, t9);
    let t11 = W::gate::<0xa3>(e, t9, t10);
    let t12 = W::gate::<0x95>(a, c, t9);
    let t13 = W::gate::<0xac>(f, t11, t12);
    let t14 = W::gate::<0xac>(t1, t9, t13);
    let t15 = W::gate::<0x36>(t1, t8, b);
    let t16 = W::gate::<0x6b>(t10, t15, t9);
    let t17 = W::gate::<0xa9>(t1, b, t16);
    let t18 = W::gate::<0xac>(t6, t15, t17);
    let t19 = W::gate::<0x3d>(t11, t10, t17);
    let t20 = W::gate::<0xca>(t7, t9, t17);
    let t21 = W::gate::<0xac>(e, t19, t20);
    let t22 = W::gate::<0xac>(f, t21, t18);
    let t23 = W::gate::<0x5c>(t6, t13, t10);
    let t24 = W::gate::<0xa4>(t21, t4, t23);
    let t25 = W::gate::<0xd3>(a, t8, t12);
    let t26 = W::gate::<0xb5>(t24, t23, t25);
    let t27 = W::gate::<0xac>(d, t26, t24);
    [t7, t22, t14, t27]
}

/// 20 gates.
#[inline(always)]
pub(crate) fn s4<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0x49>(f, b, d);
    let t1 = W::gate::<0xa9>(c, b, t0);
    let t2 = W::gate::<0x94>(c, b, f);
    let t3 = W::gate::<0xae>(t1, d, t2);
    let t4 = W::gate::<0xac>(e, t1, t3);
    let t5 = W::gate::<0x71>(t1, e, b);
    let t6 = W::gate::<0x96>(d, c, t5);
    let t7 = W::gate::<0x39>(c, e, t5);
    let t8 = W::gate::<0x96>(t6, b, t7);
    let t9 = W::gate::<0xac>(f, t8, t6);
    let t10 = W::gate::<0xac>(a, t9, t4);
    let t11 = W::gate::<0xc5>(a, t9, t4);
    let t12 = W::gate::<0x96>(e, f, t3);
    let t13 = W::gate::<0xa9>(d, t8, t12);
    let t14 = W::gate::<0x6a>(t12, t3, d);
    let t15 = W::gate::<0xac>(b, t13, t14);
    let t16 = W::gate::<0xc7>(t1, t13, t3);
    let t17 = W::gate::<0x96>(t0, t8, t16);
    let t18 = W::gate::<0xac>(a, t15, t17);
    let t19 = W::gate::<0x5c>(a, t17, t15);
    [t11, t10, t19, t18]
}

/// 31 gates.
#[inline(always)]
pub(crate) fn s5<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0x14>(d, a, b);
    let t1 = W::gate::<0x5b>(t0, d, c);
    let t2 = W::gate::<0xac>(f, t0, t1);
    let t3 = W::gate::<0x2c>(c, f, d);
    let t4 = W::gate::<0xa4>(a, t1, t3);
    let t5 = W::gate::<0xac>(b, t2, t4);
    let t6 = W::gate::<0x97>(d, t3, a);
    let t7 = W::gate::<0x2d>(t5, c, t6);
    let t8 = W::gate::<0xac>(e, t7, t5);
    let t9 = W::gate::<0xda>(e, d, t2);
    let t10 = W::gate::<0xa5>(c, t8, t9);
    let t11 = W::gate::<0xe8>(t6, c, t8);
    let t12 = W::gate::<0x94>(e, t2, t11);
    let t13 = W::gate::<0xac>(b, t12, t10);
    let t14 = W::gate::<0xb2>(t11, t10, t3);
    let t15 = W::gate::<0x39>(t8, t6, c);
    let t16 = W::gate::<0xa9>(e, t9, t15);
    let t17 = W::gate::<0xac>(b, t14, t16);
    let t18 = W::gate::<0xac>(a, t13, t17);
    let t19 = W::gate::<0xc9>(t4, t13, t5);
    let t20 = W::gate::<0x2e>(t7, t0, t19);
    let t21 = W::gate::<0x3d>(t7, t19, f);
    let t22 = W::gate::<0xa8>(t10, t0, t21);
    let t23 = W::gate::<0x1d>(t15, c, t19);
    let t24 = W::gate::<0xac>(d, t22, t23);
    let t25 = W::gate::<0xac>(t3, t24, t20);
    let t26 = W::gate::<0x94>(t22, e, t1);
    let t27 = W::gate::<0x27>(t20, t6, t26);
    let t28 = W::gate::<0x6b>(t25, t2, t18);
    let t29 = W::gate::<0x96>(t8, t9, t28);
    let t30 = W::gate::<0xac>(d, t29, t27);
    [t30, t25, t8, t18]
}

/// 31 gates.
#[inline(always)]
pub(crate) fn s6<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0x97>(d, f, b);
    let t1 = W::gate::<0x99>(b, c, t0);
    let t2 = W::gate::<0xb9>(b, f, c);
    let t3 = W::gate::<0x9a>(t0, d, t2);
    let t4 = W::gate::<0xac>(e, t1, t3);
    let t5 = W::gate::<0x59>(d, f, t4);
    let t6 = W::gate::<0xa6>(c, b, t5);
    let t7 = W::gate::<0x9a>(b, t0, t2);
    let t8 = W::gate::<0xac>(e, t7, t6);
    let t9 = W::gate::<0xac>(a, t4, t8);
    let t10 = W::gate::<0x93>(t1, e, t2);
    let t11 = W::gate::<0xab>(f, t4, t10);
    let t12 = W::gate::<0x4b>(t10, t2, c);
    let t13 = W::gate::<0xac>(a, t12, t11);
    let t14 = W::gate::<0x7a>(e, c, t13);
    let t15 = W::gate::<0xa4>(t5, t11, t14);
    let t16 = W::gate::<0x0e>(t6, t12, t7);
    let t17 = W::gate::<0xa8>(t14, t13, t16);
    let t18 = W::gate::<0xac>(f, t17, t15);
    let t19 = W::gate::<0xac>(d, t18, t13);
    let t20 = W::gate::<0x4f>(t3, f, t13);
    let t21 = W::gate::<0xac>(t19, t10, t3);
    let t22 = W::gate::<0xac>(a, t20, t21);
    let t23 = W::gate::<0x69>(d, t12, a);
    let t24 = W::gate::<0xa4>(b, t14, t23);
    let t25 = W::gate::<0xac>(c, t24, t22);
    let t26 = W::gate::<0x6b>(a, t3, t12);
    let t27 = W::gate::<0x95>(t2, t13, t26);
    let t28 = W::gate::<0xe1>(a, d, e);
    let t29 = W::gate::<0xa7>(t1, t15, t28);
    let t30 = W::gate::<0xac>(b, t27, t29);
    [t19, t9, t25, t30]
}

/// 29 gates.
#[inline(always)]
pub(crate) fn s7<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0x53>(f, c, d);
    let t1 = W::gate::<0x86>(d, f, c);
    let t2 = W::gate::<0xac>(b, t1, t0);
    let t3 = W::gate::<0x4d>(f, t0, t2);
    let t4 = W::gate::<0x96>(c, b, t3);
    let t5 = W::gate::<0xac>(a, t4, t2);
    let t6 = W::gate::<0x69>(d, t4, a);
    let t7 = W::gate::<0xea>(f, t3, t6);
    let t8 = W::gate::<0xac>(e, t7, t5);
    let t9 = W::gate::<0x56>(c, e, t7);
    let t10 = W::gate::<0x2d>(e, f, d);
    let t11 = W::gate::<0xe4>(c, t0, t10);
    let t12 = W::gate::<0xac>(b, t11, t9);
    let t13 = W::gate::<0xe1>(t6, t0, t8);
    let t14 = W::gate::<0xa5>(t11, t8, t13);
    let t15 = W::gate::<0xe5>(t10, e, t7);
    let t16 = W::gate::<0xac>(b, t14, t15);
    let t17 = W::gate::<0xac>(a, t12, t16);
    let t18 = W::gate::<0x24>(a, t16, t10);
    let t19 = W::gate::<0x87>(t9, t0, t18);
    let t20 = W::gate::<0xb4>(t2, a, t9);
    let t21 = W::gate::<0x96>(t8, t11, t20);
    let t22 = W::gate::<0xac>(c, t19, t21);
    let t23 = W::gate::<0x83>(t0, t16, t6);
    let t24 = W::gate::<0xca>(e, t20, t23);
    let t25 = W::gate::<0x96>(c, t24, t21);
    let t26 = W::gate::<0xeb>(t8, t0, t25);
    let t27 = W::gate::<0xac>(b, t26, t25);
    let t28 = W::gate::<0xac>(a, t24, t27);
    [t8, t17, t22, t28]
}

/// 32 gates.
#[inline(always)]
pub(crate) fn s8<W: Gates>([a, b, c, d, e, f]: [W; 6]) -> [W; 4] {
    let t0 = W::gate::<0xcb>(d, e, a);
    let t1 = W::gate::<0x21>(f, c, t0);
    let t2 = W::gate::<0x87>(d, a, f);
    let t3 = W::gate::<0xa5>(e, t0, t2);
    let t4 = W::gate::<0xac>(c, t1, t3);
    let t5 = W::gate::<0xc8>(t4, a, d);
    let t6 = W::gate::<0x9e>(f, c, t5);
    let t7 = W::gate::<0x59>(t2, f, c);
    let t8 = W::gate::<0xac>(e, t7, t6);
    let t9 = W::gate::<0xac>(b, t4, t8);
    let t10 = W::gate::<0x9c>(a, t4, e);
    let t11 = W::gate::<0x94>(t6, t7, t9);
    let t12 = W::gate::<0x2e>(t8, t10, t11);
    let t13 = W::gate::<0xac>(b, t12, t10);
    let t14 = W::gate::<0x6b>(t4, b, t6);
    let t15 = W::gate::<0xa9>(t1, t12, t14);
    let t16 = W::gate::<0xa4>(t15, c, t6);
    let t17 = W::gate::<0xac>(e, t15, t16);
    let t18 = W::gate::<0xac>(d, t13, t17);
    let t19 = W::gate::<0x12>(t3, t10, t16);
    let t20 = W::gate::<0x94>(t14, t5, t19);
    let t21 = W::gate::<0x45>(t7, t13, t16);
    let t22 = W::gate::<0x1c>(t7, t5, t19);
    let t23 = W::gate::<0xa5>(t17, t19, t22);
    let t24 = W::gate::<0xac>(a, t21, t23);
    let t25 = W::gate::<0xac>(b, t20, t24);
    let t26 = W::gate::<0x69>(t18, t25, t9);
    let t27 = W::gate::<0x86>(t25, t17, t7);
    let t28 = W::gate::<0xac>(c, t27, t26);
    let t29 = W::gate::<0xd0>(b, t18, t12);
    let t30 = W::gate::<0x39>(t1, t26, t29);
    let t31 = W::gate::<0xac>(e, t28, t30);
    [t25, t9, t31, t18]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::des::sboxes::{SBOXES, sbox};

    #[test]
    fn circuits_are_the_s_boxes_on_every_input() {
        // Bit x of input i is bit i of x: all 64 inputs side by side.
        let inputs: [u64; 6] = std::array::from_fn(|i| (0..64).filter(|x| x >> i & 1 == 1).fold(0, |bits, x: u64| bits | 1 << x));
        for (n, circuit) in [s1, s2, s3, s4, s5, s6, s7, s8].into_iter().enumerate() {
            let outputs = circuit(inputs);
            for x in 0..64 {
                let value = (0..4).fold(0, |value, bit| value | ((outputs[bit] >> x & 1) as u8) << bit);
                assert_eq!(value, sbox(&SBOXES[n], x), "S{} at {x}", n + 1);
            }
        }
    }
}
