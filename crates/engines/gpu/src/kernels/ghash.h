// Multiplication in the field of GHASH (SP 800-38D s6.3) from integer multiplications, in time that depends on nothing.
//
// An element is four words as they are loaded from big-endian bytes, most significant first, so that bit 31 of word 0 is the coefficient of x^0.
// Words are multiplied without carries by leaving holes: of each fourth bit alone at most eight products meet in one place, whose sum needs four bits.

// The sums of some products of two words. Of each four bits of words 0 and 1, the high and the low one, the lowest is a coefficient, of 2 and 3 the second, and so on; the rest is carries.
#define CLMUL_WORDS 8

// z = z + x * y.
FN void clmul_add(UINT x, UINT y, ARRAY(z, CLMUL_WORDS)) {
    UINT x0 = x & 0x11111111u, x1 = x & 0x22222222u, x2 = x & 0x44444444u, x3 = x & 0x88888888u;
    UINT y0 = y & 0x11111111u, y1 = y & 0x22222222u, y2 = y & 0x44444444u, y3 = y & 0x88888888u;
    UINT ha, la, hb, lb, hc, lc, hd, ld;
    // Products that reach their most, eight, in neighbouring places come to fifteen together: MULTIPLY_ADD, which may lose a carry from word to word, for that is no coefficient.
    MULTIPLY(x0, y0, ha, la); MULTIPLY_ADD(x1, y3, ha, la); MULTIPLY(x2, y2, hb, lb); MULTIPLY(x3, y1, hc, lc);
    z[0] ^= ha ^ hb ^ hc; z[1] ^= la ^ lb ^ lc;
    MULTIPLY(x0, y1, ha, la); MULTIPLY_ADD(x2, y3, ha, la); MULTIPLY(x1, y0, hb, lb); MULTIPLY_ADD(x3, y2, hb, lb);
    z[2] ^= ha ^ hb; z[3] ^= la ^ lb;
    MULTIPLY(x0, y2, ha, la); MULTIPLY_ADD(x3, y3, ha, la); MULTIPLY(x1, y1, hb, lb); MULTIPLY(x2, y0, hc, lc);
    z[4] ^= ha ^ hb ^ hc; z[5] ^= la ^ lb ^ lc;
    MULTIPLY(x0, y3, ha, la); MULTIPLY(x1, y2, hb, lb); MULTIPLY(x2, y1, hc, lc); MULTIPLY(x3, y0, hd, ld);
    z[6] ^= ha ^ hb ^ hc ^ hd; z[7] ^= la ^ lb ^ lc ^ ld;
}

FN void clmul_end(CONST_ARRAY(z, CLMUL_WORDS), OUT(hi), OUT(lo)) {
    hi = (z[0] & 0x11111111u) | (z[2] & 0x22222222u) | (z[4] & 0x44444444u) | (z[6] & 0x88888888u);
    lo = (z[1] & 0x11111111u) | (z[3] & 0x22222222u) | (z[5] & 0x44444444u) | (z[7] & 0x88888888u);
}

// The sums of some products of two pairs of words, by three products each (Karatsuba): of the high words, of the low ones, of both's sums.
#define CLMUL_PAIRS UINT high[CLMUL_WORDS], low[CLMUL_WORDS], both[CLMUL_WORDS]; \
    UNROLL for (int z = 0; z < CLMUL_WORDS; z++) { high[z] = 0u; low[z] = 0u; both[z] = 0u; }
#define CLMUL_PAIRS_ADD(a1, a0, b1, b0) { clmul_add(a1, b1, high); clmul_add(a0, b0, low); clmul_add((a1) ^ (a0), (b1) ^ (b0), both); }
// Four words, most significant first.
#define CLMUL_PAIRS_END(z3, z2, z1, z0) { \
    UINT mh, ml; \
    clmul_end(high, z3, z2); \
    clmul_end(low, z1, z0); \
    clmul_end(both, mh, ml); \
    UINT cross = z2 ^ z1; \
    z2 = cross ^ z3 ^ mh; \
    z1 = cross ^ z0 ^ ml; \
}

FN void clmul64(UINT a1, UINT a0, UINT b1, UINT b0, OUT(z3), OUT(z2), OUT(z1), OUT(z0)) {
    CLMUL_PAIRS
    CLMUL_PAIRS_ADD(a1, a0, b1, b0)
    CLMUL_PAIRS_END(z3, z2, z1, z0)
}

// An element from the products of the high pairs of words, of the low pairs, and of both's sums, whose words are overwritten.
FN void ghash_reduce(ARRAY(h, 4), ARRAY(l, 4), ARRAY(m, 4), ARRAY(a, 4)) {
    UNROLL for (int i = 0; i < 4; i++) m[i] ^= h[i] ^ l[i];
    h[2] ^= m[0]; h[3] ^= m[1]; l[0] ^= m[2]; l[1] ^= m[3];
    // The product of two reflected elements is reflected in 255 bits: one place to the left makes it 256.
    UINT v7 = h[0] << 1 | h[1] >> 31, v6 = h[1] << 1 | h[2] >> 31, v5 = h[2] << 1 | h[3] >> 31, v4 = h[3] << 1 | l[0] >> 31;
    UINT v3 = l[0] << 1 | l[1] >> 31, v2 = l[1] << 1 | l[2] >> 31, v1 = l[2] << 1 | l[3] >> 31, v0 = l[3] << 1;
    // x^128 = x^7 + x^2 + x + 1: what is in v3 to v0 goes up, the lowest word first, for it reaches into the next ones.
    v4 ^= v0 ^ v0 >> 1 ^ v0 >> 2 ^ v0 >> 7; v3 ^= v0 << 31 ^ v0 << 30 ^ v0 << 25;
    v5 ^= v1 ^ v1 >> 1 ^ v1 >> 2 ^ v1 >> 7; v4 ^= v1 << 31 ^ v1 << 30 ^ v1 << 25;
    v6 ^= v2 ^ v2 >> 1 ^ v2 >> 2 ^ v2 >> 7; v5 ^= v2 << 31 ^ v2 << 30 ^ v2 << 25;
    v7 ^= v3 ^ v3 >> 1 ^ v3 >> 2 ^ v3 >> 7; v6 ^= v3 << 31 ^ v3 << 30 ^ v3 << 25;
    a[0] = v7; a[1] = v6; a[2] = v5; a[3] = v4;
}

// a = a * b.
FN void ghash_multiply(ARRAY(a, 4), CONST_ARRAY(b, 4)) {
    UINT h[4], l[4], m[4];
    clmul64(a[0], a[1], b[0], b[1], h[0], h[1], h[2], h[3]);
    clmul64(a[2], a[3], b[2], b[3], l[0], l[1], l[2], l[3]);
    clmul64(a[0] ^ a[2], a[1] ^ a[3], b[0] ^ b[2], b[1] ^ b[3], m[0], m[1], m[2], m[3]);
    ghash_reduce(h, l, m, a);
}
