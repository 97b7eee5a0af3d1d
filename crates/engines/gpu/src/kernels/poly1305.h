// Poly1305 (RFC 8439 s2.5) in ten limbs of 13 bits, which needs products of 32 bits alone: many small GPUs have no others.
//
// A limb of `a` may have 14 bits, so that five products of it with one of 16 bits (five times a limb of `r`) are below 2^32; then they are carried.

// Little-endian words w0 to w4, of which the last has the two highest bits, into limbs.
FN void poly_limbs(UINT w0, UINT w1, UINT w2, UINT w3, UINT w4, ARRAY(h, 10)) {
    h[0] = w0 & 0x1fffu;
    h[1] = w0 >> 13 & 0x1fffu;
    h[2] = (w0 >> 26 | w1 << 6) & 0x1fffu;
    h[3] = w1 >> 7 & 0x1fffu;
    h[4] = (w1 >> 20 | w2 << 12) & 0x1fffu;
    h[5] = w2 >> 1 & 0x1fffu;
    h[6] = w2 >> 14 & 0x1fffu;
    h[7] = (w2 >> 27 | w3 << 5) & 0x1fffu;
    h[8] = w3 >> 8 & 0x1fffu;
    h[9] = (w3 >> 21 | w4 << 11) & 0x1fffu;
}

#define POLY_ROW(limb, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9) \
    d = carry + a[0] * r0 + a[1] * r1 + a[2] * r2 + a[3] * r3 + a[4] * r4; \
    carry = d >> 13; \
    d = (d & 0x1fffu) + a[5] * r5 + a[6] * r6 + a[7] * r7 + a[8] * r8 + a[9] * r9; \
    carry += d >> 13; \
    UINT limb = d & 0x1fffu;

// a = a * r mod 2^130 - 5, each limb of 13 bits but for the second, which may be one more.
FN void poly_multiply(ARRAY(a, 10), CONST_ARRAY(r, 10)) {
    UINT s1 = 5u * r[1], s2 = 5u * r[2], s3 = 5u * r[3], s4 = 5u * r[4], s5 = 5u * r[5], s6 = 5u * r[6], s7 = 5u * r[7], s8 = 5u * r[8], s9 = 5u * r[9];
    UINT d, carry = 0u;
    POLY_ROW(d0, r[0], s9, s8, s7, s6, s5, s4, s3, s2, s1)
    POLY_ROW(d1, r[1], r[0], s9, s8, s7, s6, s5, s4, s3, s2)
    POLY_ROW(d2, r[2], r[1], r[0], s9, s8, s7, s6, s5, s4, s3)
    POLY_ROW(d3, r[3], r[2], r[1], r[0], s9, s8, s7, s6, s5, s4)
    POLY_ROW(d4, r[4], r[3], r[2], r[1], r[0], s9, s8, s7, s6, s5)
    POLY_ROW(d5, r[5], r[4], r[3], r[2], r[1], r[0], s9, s8, s7, s6)
    POLY_ROW(d6, r[6], r[5], r[4], r[3], r[2], r[1], r[0], s9, s8, s7)
    POLY_ROW(d7, r[7], r[6], r[5], r[4], r[3], r[2], r[1], r[0], s9, s8)
    POLY_ROW(d8, r[8], r[7], r[6], r[5], r[4], r[3], r[2], r[1], r[0], s9)
    POLY_ROW(d9, r[9], r[8], r[7], r[6], r[5], r[4], r[3], r[2], r[1], r[0])
    // The carry out of the top is below 2^20: times five it goes around in 13 bits and the rest.
    d = d0 + 5u * carry;
    a[0] = d & 0x1fffu;
    a[1] = d1 + (d >> 13);
    a[2] = d2; a[3] = d3; a[4] = d4; a[5] = d5; a[6] = d6; a[7] = d7; a[8] = d8; a[9] = d9;
}

// Limbs of 13 bits again after an addition, but for the second as above: what is stored and added to another sum must not be larger.
FN void poly_carry(ARRAY(a, 10)) {
    UINT carry = 0u;
    UNROLL for (int i = 0; i < 10; i++) {
        a[i] += carry;
        carry = a[i] >> 13;
        a[i] &= 0x1fffu;
    }
    a[0] += 5u * carry;
    a[1] += a[0] >> 13;
    a[0] &= 0x1fffu;
}
