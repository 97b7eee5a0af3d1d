// AES-XTS (IEEE 1619-2018): eight blocks a lane. The control buffer has the tweak of each group of 256 blocks; a lane multiplies on from there.

// t = t * x^n for n below 32, little-endian words.
FN void xts_times(ARRAY(t, 4), UINT n) {
    UINT back = 31u - n;
    UINT carry = t[3] >> 1 >> back;
    t[3] = t[3] << n | t[2] >> 1 >> back;
    t[2] = t[2] << n | t[1] >> 1 >> back;
    t[1] = (t[1] << n | t[0] >> 1 >> back) ^ carry >> 31 ^ carry >> 30 ^ carry >> 25;
    t[0] = t[0] << n ^ carry ^ carry << 1 ^ carry << 2 ^ carry << 7;
}

FN void xts_times_word(ARRAY(t, 4)) {
    UINT carry = t[3];
    t[3] = t[2];
    t[2] = t[1];
    t[1] = t[0] ^ carry >> 31 ^ carry >> 30 ^ carry >> 25;
    t[0] = carry ^ carry << 1 ^ carry << 2 ^ carry << 7;
}

#define XTS_NEXT { if (width == GROUP) { xts_times_word(t); } else { xts_times(t, width); } }
#define XTS_START { UNROLL for (int i = 0; i < 4; i++) t[i] = CONTROL(tweaks + UINT(i)); xts_times(t, within); }

// `CIPHER(rounds)` is AES_ENCRYPT or AES_DECRYPT.
#define XTS_LANE(CIPHER) { \
    UINT at = find_record(lane, records, count BUFFERS_AS_THEY_ARE); \
    SPREAD \
    UINT keys = CONTROL(at + KEYS), rounds = CONTROL(at + ROUNDS), tweaks = CONTROL(at + TWEAKS) + 4u * group; \
    UINT source = CONTROL(at + SOURCE), target = CONTROL(at + TARGET); \
    UINT s[32], t[4]; \
    XTS_START \
    UNROLL for (int b = 0; b < 8; b++) { \
        UINT index = first + UINT(b) * width, w0 = 0u, w1 = 0u, w2 = 0u, w3 = 0u; \
        if (index < blocks) READ_INPUT(source + index, w0, w1, w2, w3) \
        s[b] = w0 ^ t[0]; s[8 + b] = w1 ^ t[1]; s[16 + b] = w2 ^ t[2]; s[24 + b] = w3 ^ t[3]; \
        XTS_NEXT \
    } \
    aes_slice(s); \
    CIPHER(rounds) \
    aes_unslice(s); \
    XTS_START \
    UNROLL for (int b = 0; b < 8; b++) { \
        UINT index = first + UINT(b) * width; \
        if (index < blocks) WRITE_OUTPUT(target + index, s[b] ^ t[0], s[8 + b] ^ t[1], s[16 + b] ^ t[2], s[24 + b] ^ t[3]) \
        XTS_NEXT \
    } \
}

#define KEY(i) CONTROL(keys + (i))
FN void xts_encrypt_lane(UINT lane, UINT records, UINT count BUFFERS) XTS_LANE(AES_ENCRYPT)
FN void xts_decrypt_lane(UINT lane, UINT records, UINT count BUFFERS) XTS_LANE(AES_DECRYPT)
#undef KEY
