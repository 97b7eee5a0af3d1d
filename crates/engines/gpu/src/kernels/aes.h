// AES on bit planes, for GLSL, CUDA C and C++ alike: dialect.h and its GLSL twin say what UINT, INOUT and ARRAY mean.
//
// One invocation holds eight blocks in 32 words: plane 8r + i has bit i of row r of the state; its byte c is column c, whose bit b belongs to block b.
// So ShiftRows is one rotation of a word, MixColumns adds words of other rows and moves nothing, and SubBytes is a circuit that runs once for each row. No
// memory is indexed by what is secret.
//
// The circuit is that of Boyar and Peralta ("A small depth-16 circuit for the AES S-box", 2011, in their form of 113 gates), without its four inversions: the constant 0x63 is
// in the round keys 1 to N, which host/aes.rs prepares. It passes through MixColumns and its inverse as it is.

// Bits of `a` under `mask << n` change places with those of `b` under `mask`.
#ifndef SWAPMOVE
#define SWAPMOVE(a, b, mask, n) { UINT swapped = (((a) >> n) ^ (b)) & mask; b = (b) ^ swapped; a = (a) ^ (swapped << n); }
#endif

FN void aes_sbox(INOUT(q0), INOUT(q1), INOUT(q2), INOUT(q3), INOUT(q4), INOUT(q5), INOUT(q6), INOUT(q7)) {
    UINT y14 = q4 ^ q2, y13 = q7 ^ q1, y9 = q7 ^ q4, y8 = q7 ^ q2, t0 = q6 ^ q5;
    UINT y1 = t0 ^ q0, y4 = y1 ^ q4, y12 = y13 ^ y14, y2 = y1 ^ q7, y5 = y1 ^ q1, y3 = y5 ^ y8;
    UINT t1 = q3 ^ y12, y15 = t1 ^ q2, y20 = t1 ^ q6, y6 = y15 ^ q0, y10 = y15 ^ t0, y11 = y20 ^ y9;
    UINT y7 = q0 ^ y11, y17 = y10 ^ y11, y19 = y10 ^ y8, y16 = t0 ^ y11, y21 = y13 ^ y16, y18 = q7 ^ y16;

    UINT t2 = y12 & y15, t4 = (y3 & y6) ^ t2, t6 = (y4 & q0) ^ t2;
    UINT t7 = y13 & y16, t9 = (y5 & y1) ^ t7, t11 = (y2 & y7) ^ t7;
    UINT t12 = y9 & y11, t14 = (y14 & y17) ^ t12, t16 = (y8 & y10) ^ t12;
    UINT t21 = t4 ^ t14 ^ y20, t22 = t6 ^ t16 ^ y19, t23 = t9 ^ t14 ^ y21, t24 = t11 ^ t16 ^ y18;
    UINT t25 = t21 ^ t22, t26 = t21 & t23, t27 = t24 ^ t26, t29 = (t25 & t27) ^ t22;
    UINT t30 = t23 ^ t24, t31 = t22 ^ t26, t33 = (t31 & t30) ^ t24;
    UINT t36 = t24 & (t27 ^ t33), t37 = t36 ^ t23 ^ t33, t38 = t27 ^ t36, t40 = t25 ^ (t29 & t38);
    UINT t41 = t40 ^ t37, t42 = t29 ^ t33, t43 = t29 ^ t40, t44 = t33 ^ t37, t45 = t42 ^ t41;

    UINT z0 = t44 & y15, z1 = t37 & y6, z2 = t33 & q0, z3 = t43 & y16, z4 = t40 & y1, z5 = t29 & y7;
    UINT z6 = t42 & y11, z7 = t45 & y17, z8 = t41 & y10, z9 = t44 & y12, z10 = t37 & y3, z11 = t33 & y4;
    UINT z12 = t43 & y13, z13 = t40 & y5, z14 = t29 & y2, z15 = t42 & y9, z16 = t45 & y14, z17 = t41 & y8;

    UINT t46 = z15 ^ z16, t48 = z5 ^ z13, t53 = z0 ^ z3, t57 = z2 ^ z12 ^ t53, t58 = z4 ^ t46, t59 = z3 ^ z6 ^ z7;
    UINT t61 = z14 ^ t57, t62 = z7 ^ z8 ^ t58, t63 = z9 ^ z10 ^ t58, t64 = z4 ^ t59, t65 = t61 ^ t62, t66 = z1 ^ t63;
    UINT s3 = t53 ^ t66;
    q7 = t59 ^ t63;
    q6 = t64 ^ s3;
    q5 = z16 ^ z17 ^ t64 ^ t65;
    q4 = s3;
    q3 = z2 ^ z5 ^ t66;
    q2 = z10 ^ z11 ^ t65;
    q1 = z12 ^ t48 ^ t62;
    q0 = t48 ^ t46 ^ t57;
}

// The inverse of the linear half of the S-box: FIPS 197 s5.3.2 without its constant.
FN void aes_unaffine(INOUT(q0), INOUT(q1), INOUT(q2), INOUT(q3), INOUT(q4), INOUT(q5), INOUT(q6), INOUT(q7)) {
    UINT a0 = q0, a1 = q1, a2 = q2, a3 = q3, a4 = q4, a5 = q5, a6 = q6, a7 = q7;
    q0 = a2 ^ a5 ^ a7;
    q1 = a3 ^ a6 ^ a0;
    q2 = a4 ^ a7 ^ a1;
    q3 = a5 ^ a0 ^ a2;
    q4 = a6 ^ a1 ^ a3;
    q5 = a7 ^ a2 ^ a4;
    q6 = a0 ^ a3 ^ a5;
    q7 = a1 ^ a4 ^ a6;
}

#define AES_ROW(F, r) F(s[8 * r], s[8 * r + 1], s[8 * r + 2], s[8 * r + 3], s[8 * r + 4], s[8 * r + 5], s[8 * r + 6], s[8 * r + 7])

FN void aes_sub(ARRAY(s, 32)) {
    AES_ROW(aes_sbox, 0);
    AES_ROW(aes_sbox, 1);
    AES_ROW(aes_sbox, 2);
    AES_ROW(aes_sbox, 3);
}

FN void aes_unsub(ARRAY(s, 32)) {
    AES_ROW(aes_unaffine, 0);
    AES_ROW(aes_unaffine, 1);
    AES_ROW(aes_unaffine, 2);
    AES_ROW(aes_unaffine, 3);
    aes_sub(s);
    AES_ROW(aes_unaffine, 0);
    AES_ROW(aes_unaffine, 1);
    AES_ROW(aes_unaffine, 2);
    AES_ROW(aes_unaffine, 3);
}

#define AES_TURN(r, n) { UNROLL for (int i = 0; i < 8; i++) s[8 * r + i] = ROTR(s[8 * r + i], n); }

FN void aes_shift_rows(ARRAY(s, 32)) {
    AES_TURN(1, 8)
    AES_TURN(2, 16)
    AES_TURN(3, 24)
}

FN void aes_unshift_rows(ARRAY(s, 32)) {
    AES_TURN(1, 24)
    AES_TURN(2, 16)
    AES_TURN(3, 8)
}

// One bit of MixColumns in all four rows: `x0` to `x3` are the sums of neighbours one bit lower, with those of the highest bit where the polynomial has a 1.
#define AES_MIX(i, x0, x1, x2, x3) { \
    UINT t = s[i] ^ s[8 + i] ^ s[16 + i] ^ s[24 + i]; \
    UINT n0 = s[i] ^ s[8 + i], n1 = s[8 + i] ^ s[16 + i], n2 = s[16 + i] ^ s[24 + i], n3 = s[24 + i] ^ s[i]; \
    s[i] = s[i] ^ t ^ x0; \
    s[8 + i] = s[8 + i] ^ t ^ x1; \
    s[16 + i] = s[16 + i] ^ t ^ x2; \
    s[24 + i] = s[24 + i] ^ t ^ x3; \
    p0 = n0; p1 = n1; p2 = n2; p3 = n3; \
}
#define AES_MIX_PLAIN(i) AES_MIX(i, p0, p1, p2, p3)
#define AES_MIX_REDUCED(i) AES_MIX(i, (p0 ^ h0), (p1 ^ h1), (p2 ^ h2), (p3 ^ h3))

FN void aes_mix(ARRAY(s, 32)) {
    UINT h0 = s[7] ^ s[15], h1 = s[15] ^ s[23], h2 = s[23] ^ s[31], h3 = s[31] ^ s[7];
    UINT p0 = h0, p1 = h1, p2 = h2, p3 = h3;
    AES_MIX_PLAIN(0)
    AES_MIX_REDUCED(1)
    AES_MIX_PLAIN(2)
    AES_MIX_REDUCED(3)
    AES_MIX_REDUCED(4)
    AES_MIX_PLAIN(5)
    AES_MIX_PLAIN(6)
    AES_MIX_PLAIN(7)
}

// Four times (a + b) is added to both.
#define AES_QUADRUPLE(a, b) { \
    UINT x0 = s[a] ^ s[b], x1 = s[a + 1] ^ s[b + 1], x2 = s[a + 2] ^ s[b + 2], x3 = s[a + 3] ^ s[b + 3]; \
    UINT x4 = s[a + 4] ^ s[b + 4], x5 = s[a + 5] ^ s[b + 5], x6 = s[a + 6] ^ s[b + 6], x7 = s[a + 7] ^ s[b + 7], x67 = x6 ^ x7; \
    s[a] ^= x6; s[a + 1] ^= x67; s[a + 2] ^= x0 ^ x7; s[a + 3] ^= x1 ^ x6; \
    s[a + 4] ^= x2 ^ x67; s[a + 5] ^= x3 ^ x7; s[a + 6] ^= x4; s[a + 7] ^= x5; \
    s[b] ^= x6; s[b + 1] ^= x67; s[b + 2] ^= x0 ^ x7; s[b + 3] ^= x1 ^ x6; \
    s[b + 4] ^= x2 ^ x67; s[b + 5] ^= x3 ^ x7; s[b + 6] ^= x4; s[b + 7] ^= x5; \
}

// The inverse matrix is MixColumns times the circulant (5, 0, 4, 0).
FN void aes_unmix(ARRAY(s, 32)) {
    AES_QUADRUPLE(0, 16)
    AES_QUADRUPLE(8, 24)
    aes_mix(s);
}

// Between blocks and planes, and back: word c of block b is s[8c + b].
#define AES_BITS(r) { \
    SWAPMOVE(s[8 * r], s[8 * r + 1], 0x55555555u, 1) SWAPMOVE(s[8 * r + 2], s[8 * r + 3], 0x55555555u, 1) \
    SWAPMOVE(s[8 * r + 4], s[8 * r + 5], 0x55555555u, 1) SWAPMOVE(s[8 * r + 6], s[8 * r + 7], 0x55555555u, 1) \
    SWAPMOVE(s[8 * r], s[8 * r + 2], 0x33333333u, 2) SWAPMOVE(s[8 * r + 1], s[8 * r + 3], 0x33333333u, 2) \
    SWAPMOVE(s[8 * r + 4], s[8 * r + 6], 0x33333333u, 2) SWAPMOVE(s[8 * r + 5], s[8 * r + 7], 0x33333333u, 2) \
    SWAPMOVE(s[8 * r], s[8 * r + 4], 0x0f0f0f0fu, 4) SWAPMOVE(s[8 * r + 1], s[8 * r + 5], 0x0f0f0f0fu, 4) \
    SWAPMOVE(s[8 * r + 2], s[8 * r + 6], 0x0f0f0f0fu, 4) SWAPMOVE(s[8 * r + 3], s[8 * r + 7], 0x0f0f0f0fu, 4) \
}
#ifndef AES_BYTES
#define AES_BYTES(b) { \
    SWAPMOVE(s[b], s[8 + b], 0x00ff00ffu, 8) SWAPMOVE(s[16 + b], s[24 + b], 0x00ff00ffu, 8) \
    SWAPMOVE(s[b], s[16 + b], 0x0000ffffu, 16) SWAPMOVE(s[8 + b], s[24 + b], 0x0000ffffu, 16) \
}
#endif

FN void aes_bytes(ARRAY(s, 32)) {
    AES_BYTES(0) AES_BYTES(1) AES_BYTES(2) AES_BYTES(3) AES_BYTES(4) AES_BYTES(5) AES_BYTES(6) AES_BYTES(7)
}

FN void aes_slice(ARRAY(s, 32)) {
    aes_bytes(s);
    AES_BITS(0) AES_BITS(1) AES_BITS(2) AES_BITS(3)
}

FN void aes_unslice(ARRAY(s, 32)) {
    AES_BITS(0) AES_BITS(1) AES_BITS(2) AES_BITS(3)
    aes_bytes(s);
}

#ifndef AES_ADD_KEY
#define AES_ADD_KEY(round) { UNROLL for (int i = 0; i < 32; i++) s[i] ^= KEY(32u * UINT(round) + UINT(i)); }
#endif

// `KEY(i)` is word i of the round keys as planes, and `rounds` how many rounds there are, in the text that uses these.
#define AES_ENCRYPT(rounds) { \
    AES_ADD_KEY(0) \
    LOOP for (UINT round = 1u; round < (rounds); round++) { aes_sub(s); aes_shift_rows(s); aes_mix(s); AES_ADD_KEY(round) } \
    aes_sub(s); aes_shift_rows(s); \
    AES_ADD_KEY(rounds) \
}
#define AES_DECRYPT(rounds) { \
    AES_ADD_KEY(rounds) \
    LOOP for (UINT round = (rounds) - 1u; round > 0u; round--) { aes_unshift_rows(s); aes_unsub(s); AES_ADD_KEY(round) aes_unmix(s); } \
    aes_unshift_rows(s); aes_unsub(s); \
    AES_ADD_KEY(0) \
}
