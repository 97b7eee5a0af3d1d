// ChaCha20 (RFC 8439 s2.3): one block of 64 bytes of key stream from the 16 words of the state.

#define CHACHA_QUARTER(a, b, c, d) \
    a += b; d = ROTR(d ^ a, 16); c += d; b = ROTR(b ^ c, 20); a += b; d = ROTR(d ^ a, 24); c += d; b = ROTR(b ^ c, 25);

FN void chacha_block(CONST_ARRAY(k, 16), ARRAY(x, 16)) {
    UNROLL for (int i = 0; i < 16; i++) x[i] = k[i];
    LOOP for (int i = 0; i < 10; i++) {
        CHACHA_QUARTER(x[0], x[4], x[8], x[12])
        CHACHA_QUARTER(x[1], x[5], x[9], x[13])
        CHACHA_QUARTER(x[2], x[6], x[10], x[14])
        CHACHA_QUARTER(x[3], x[7], x[11], x[15])
        CHACHA_QUARTER(x[0], x[5], x[10], x[15])
        CHACHA_QUARTER(x[1], x[6], x[11], x[12])
        CHACHA_QUARTER(x[2], x[7], x[8], x[13])
        CHACHA_QUARTER(x[3], x[4], x[9], x[14])
    }
    UNROLL for (int i = 0; i < 16; i++) x[i] += k[i];
}
