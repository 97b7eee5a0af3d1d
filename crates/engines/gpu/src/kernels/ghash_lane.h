FN void ghash_lane(UINT lane, UINT records, UINT count BUFFERS) {
    UINT at = find_record(lane, records, count BUFFERS_AS_THEY_ARE);
    CHUNK
    UINT h[4], a[4];
    UNROLL for (int i = 0; i < 4; i++) { h[i] = CONTROL(factor + UINT(i)); a[i] = 0u; }
    LOOP for (UINT i = begin; i < end; i++) {
        if ((flags & OF_TEXT) != 0u) {
            TEXT_BLOCK(i)
            a[0] ^= SWAP_BYTES(w0); a[1] ^= SWAP_BYTES(w1); a[2] ^= SWAP_BYTES(w2); a[3] ^= SWAP_BYTES(w3);
            ghash_multiply(a, h);
        } else {
            UINT w0, w1, w2, w3;
            READ_OUTPUT(source + i, w0, w1, w2, w3)
            ghash_multiply(a, h);
            a[0] ^= w0; a[1] ^= w1; a[2] ^= w2; a[3] ^= w3;
        }
    }
    WRITE_OUTPUT(target + unit, a[0], a[1], a[2], a[3])
}
