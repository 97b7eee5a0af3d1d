// Multiplication in the field of GHASH (SP 800-38D s6.3) from integer multiplications, in time that depends on nothing.
//
// An element is four words as they are loaded from big-endian bytes, most significant first, so that bit 31 of word 0 is the coefficient of x^0.
// Words are multiplied without carries by leaving holes: of each fourth bit alone at most eight products meet in one place, whose sum needs four bits.

FN void clmul32(UINT x, UINT y, OUT(hi), OUT(lo)) {
    UINT x0 = x & 0x11111111u, x1 = x & 0x22222222u, x2 = x & 0x44444444u, x3 = x & 0x88888888u;
    UINT y0 = y & 0x11111111u, y1 = y & 0x22222222u, y2 = y & 0x44444444u, y3 = y & 0x88888888u;
    UINT ha, la, hb, lb, hc, lc, hd, ld;
    MULTIPLY(x0, y0, ha, la); MULTIPLY(x1, y3, hb, lb); MULTIPLY(x2, y2, hc, lc); MULTIPLY(x3, y1, hd, ld);
    hi = (ha ^ hb ^ hc ^ hd) & 0x11111111u; lo = (la ^ lb ^ lc ^ ld) & 0x11111111u;
    MULTIPLY(x0, y1, ha, la); MULTIPLY(x1, y0, hb, lb); MULTIPLY(x2, y3, hc, lc); MULTIPLY(x3, y2, hd, ld);
    hi |= (ha ^ hb ^ hc ^ hd) & 0x22222222u; lo |= (la ^ lb ^ lc ^ ld) & 0x22222222u;
    MULTIPLY(x0, y2, ha, la); MULTIPLY(x1, y1, hb, lb); MULTIPLY(x2, y0, hc, lc); MULTIPLY(x3, y3, hd, ld);
    hi |= (ha ^ hb ^ hc ^ hd) & 0x44444444u; lo |= (la ^ lb ^ lc ^ ld) & 0x44444444u;
    MULTIPLY(x0, y3, ha, la); MULTIPLY(x1, y2, hb, lb); MULTIPLY(x2, y1, hc, lc); MULTIPLY(x3, y0, hd, ld);
    hi |= (ha ^ hb ^ hc ^ hd) & 0x88888888u; lo |= (la ^ lb ^ lc ^ ld) & 0x88888888u;
}

// (a1, a0) times (b1, b0) by three products (Karatsuba): z3 to z0, most significant first.
FN void clmul64(UINT a1, UINT a0, UINT b1, UINT b0, OUT(z3), OUT(z2), OUT(z1), OUT(z0)) {
    UINT mh, ml;
    clmul32(a1, b1, z3, z2);
    clmul32(a0, b0, z1, z0);
    clmul32(a1 ^ a0, b1 ^ b0, mh, ml);
    UINT cross = z2 ^ z1;
    z2 = cross ^ z3 ^ mh;
    z1 = cross ^ z0 ^ ml;
}

// a = a * b.
FN void ghash_multiply(ARRAY(a, 4), CONST_ARRAY(b, 4)) {
    UINT h3, h2, h1, h0, l3, l2, l1, l0, m3, m2, m1, m0;
    clmul64(a[0], a[1], b[0], b[1], h3, h2, h1, h0);
    clmul64(a[2], a[3], b[2], b[3], l3, l2, l1, l0);
    clmul64(a[0] ^ a[2], a[1] ^ a[3], b[0] ^ b[2], b[1] ^ b[3], m3, m2, m1, m0);
    m3 ^= h3 ^ l3; m2 ^= h2 ^ l2; m1 ^= h1 ^ l1; m0 ^= h0 ^ l0;
    h1 ^= m3; h0 ^= m2; l3 ^= m1; l2 ^= m0;
    // The product of two reflected elements is reflected in 255 bits: one place to the left makes it 256.
    UINT v7 = h3 << 1 | h2 >> 31, v6 = h2 << 1 | h1 >> 31, v5 = h1 << 1 | h0 >> 31, v4 = h0 << 1 | l3 >> 31;
    UINT v3 = l3 << 1 | l2 >> 31, v2 = l2 << 1 | l1 >> 31, v1 = l1 << 1 | l0 >> 31, v0 = l0 << 1;
    // x^128 = x^7 + x^2 + x + 1: what is in v3 to v0 goes up, the lowest word first, for it reaches into the next ones.
    v4 ^= v0 ^ v0 >> 1 ^ v0 >> 2 ^ v0 >> 7; v3 ^= v0 << 31 ^ v0 << 30 ^ v0 << 25;
    v5 ^= v1 ^ v1 >> 1 ^ v1 >> 2 ^ v1 >> 7; v4 ^= v1 << 31 ^ v1 << 30 ^ v1 << 25;
    v6 ^= v2 ^ v2 >> 1 ^ v2 >> 2 ^ v2 >> 7; v5 ^= v2 << 31 ^ v2 << 30 ^ v2 << 25;
    v7 ^= v3 ^ v3 >> 1 ^ v3 >> 2 ^ v3 >> 7; v6 ^= v3 << 31 ^ v3 << 30 ^ v3 << 25;
    a[0] = v7; a[1] = v6; a[2] = v5; a[3] = v4;
}
