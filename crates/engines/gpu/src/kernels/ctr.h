// AES-CTR: eight blocks a lane.

// GCM's counter has 32 bits (SP 800-38D s6.2); that of CTR has all 128.
#define COUNTER_OF_32_BITS 1u

FN void ctr_lane(UINT lane, UINT records, UINT count BUFFERS) {
    UINT at = find_record(lane, records, count BUFFERS_AS_THEY_ARE);
    SPREAD
    UINT keys = CONTROL(at + KEYS), rounds = CONTROL(at + ROUNDS), wraps = CONTROL(at + FLAGS) & COUNTER_OF_32_BITS;
    UINT c0 = CONTROL(at + COUNTER), c1 = CONTROL(at + COUNTER + 1u), c2 = CONTROL(at + COUNTER + 2u), c3 = CONTROL(at + COUNTER + 3u);
    UINT s[32];
    UNROLL for (int b = 0; b < 8; b++) {
        UINT index = first + UINT(b) * width, low = c3 + index;
        UINT carry = (low < index && wraps == 0u) ? 1u : 0u;
        UINT middle = c2 + carry;
        carry = middle < carry ? 1u : 0u;
        UINT high = c1 + carry;
        carry = high < carry ? 1u : 0u;
        UINT top = c0 + carry;
        s[b] = SWAP_BYTES(top);
        s[8 + b] = SWAP_BYTES(high);
        s[16 + b] = SWAP_BYTES(middle);
        s[24 + b] = SWAP_BYTES(low);
    }
#define KEY(i) CONTROL(keys + (i))
    aes_slice(s);
    AES_ENCRYPT(rounds)
    aes_unslice(s);
#undef KEY
    UINT source = CONTROL(at + SOURCE), target = CONTROL(at + TARGET);
    UNROLL for (int b = 0; b < 8; b++) {
        UINT index = first + UINT(b) * width;
        if (index < blocks) {
            UINT w0, w1, w2, w3;
            READ_INPUT(source + index, w0, w1, w2, w3)
            WRITE_OUTPUT(target + index, w0 ^ s[b], w1 ^ s[8 + b], w2 ^ s[16 + b], w3 ^ s[24 + b])
        }
    }
}
