// The products of a text's blocks with powers of H are summed before they are reduced, so that no block waits for another; in three passes, which leaves registers: over the blocks'
// high pairs of words, their low pairs, and the sums of both. TABLE says where H to H^16 are in the control buffer.
#define TABLE 8u

#define GHASH_PASS(z, p1, p0) { \
    CLMUL_PAIRS \
    LOOP for (UINT i = begin; i < end; i++) { \
        TEXT_BLOCK(i) \
        UINT a[4], b[4], power = table + 4u * (end - i - 1u); \
        a[0] = SWAP_BYTES(w0); a[1] = SWAP_BYTES(w1); a[2] = SWAP_BYTES(w2); a[3] = SWAP_BYTES(w3); \
        READ_CONTROL(power, b[0], b[1], b[2], b[3]) \
        CLMUL_PAIRS_ADD(p1(a), p0(a), p1(b), p0(b)) \
    } \
    CLMUL_PAIRS_END(z[0], z[1], z[2], z[3]) \
}
#define WORD_0(a) a[0]
#define WORD_1(a) a[1]
#define WORD_2(a) a[2]
#define WORD_3(a) a[3]
#define WORDS_0_2(a) (a[0] ^ a[2])
#define WORDS_1_3(a) (a[1] ^ a[3])

FN void ghash_lane(UINT lane, UINT records, UINT count BUFFERS) {
    UINT at = find_record(lane, records, count BUFFERS_AS_THEY_ARE);
    CHUNK
    UINT a[4];
    if ((flags & OF_TEXT) != 0u) {
        UINT table = CONTROL(at + TABLE), h[4], l[4], m[4];
        GHASH_PASS(h, WORD_0, WORD_1)
        GHASH_PASS(l, WORD_2, WORD_3)
        GHASH_PASS(m, WORDS_0_2, WORDS_1_3)
        ghash_reduce(h, l, m, a);
    } else {
        UINT h[4];
        READ_CONTROL(factor, h[0], h[1], h[2], h[3])
        UNROLL for (int i = 0; i < 4; i++) a[i] = 0u;
        LOOP for (UINT i = begin; i < end; i++) {
            UINT w0, w1, w2, w3;
            READ_SUM(source + i, w0, w1, w2, w3)
            ghash_multiply(a, h);
            a[0] ^= w0; a[1] ^= w1; a[2] ^= w2; a[3] ^= w3;
        }
    }
    WRITE_SUM(target + unit, a[0], a[1], a[2], a[3])
}
