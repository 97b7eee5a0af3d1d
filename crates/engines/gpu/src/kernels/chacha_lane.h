// ChaCha20: one block of 64 bytes a lane, four of those that records count.

#define CHACHA_WORD 12

FN void chacha_lane(UINT lane, UINT records, UINT count BUFFERS) {
    UINT at = find_record(lane, records, count BUFFERS_AS_THEY_ARE);
    UINT unit = lane - CONTROL(at + FIRST_LANE), keys = CONTROL(at + KEYS), blocks = CONTROL(at + BLOCKS);
    UINT k[16], x[16];
    UNROLL for (int i = 0; i < 16; i++) k[i] = CONTROL(keys + UINT(i));
    k[CHACHA_WORD] = CONTROL(at + COUNTER) + unit;
    chacha_block(k, x);
    UINT source = CONTROL(at + SOURCE), target = CONTROL(at + TARGET);
    UNROLL for (int b = 0; b < 4; b++) {
        UINT index = 4u * unit + UINT(b);
        if (index < blocks) {
            UINT w0, w1, w2, w3;
            READ_INPUT(source + index, w0, w1, w2, w3)
            WRITE_OUTPUT(target + index, w0 ^ x[4 * b], w1 ^ x[4 * b + 1], w2 ^ x[4 * b + 2], w3 ^ x[4 * b + 3])
        }
    }
}
