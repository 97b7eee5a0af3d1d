// A sum of Poly1305 takes two blocks: five words of two limbs each.
FN void poly_lane(UINT lane, UINT records, UINT count BUFFERS) {
    UINT at = find_record(lane, records, count BUFFERS_AS_THEY_ARE);
    CHUNK
    UINT r[10], a[10];
    UNROLL for (int i = 0; i < 10; i++) { r[i] = CONTROL(factor + UINT(i)); a[i] = 0u; }
    LOOP for (UINT i = begin; i < end; i++) {
        if ((flags & OF_TEXT) != 0u) {
            UINT m[10];
            TEXT_BLOCK(i)
            // The bit above each block of 16 bytes: those of the AEAD are all whole (RFC 8439 s2.8).
            poly_limbs(w0, w1, w2, w3, 1u, m);
            UNROLL for (int j = 0; j < 10; j++) a[j] += m[j];
            poly_multiply(a, r);
        } else {
            UINT w0, w1, w2, w3, w4, unused;
            READ_SUM(source + 2u * i, w0, w1, w2, w3)
            READ_SUM(source + 2u * i + 1u, w4, unused, unused, unused)
            poly_multiply(a, r);
            a[0] += w0 & 0xffffu; a[1] += w0 >> 16; a[2] += w1 & 0xffffu; a[3] += w1 >> 16; a[4] += w2 & 0xffffu;
            a[5] += w2 >> 16; a[6] += w3 & 0xffffu; a[7] += w3 >> 16; a[8] += w4 & 0xffffu; a[9] += w4 >> 16;
        }
    }
    poly_carry(a);
    WRITE_SUM(target + 2u * unit, a[0] | a[1] << 16, a[2] | a[3] << 16, a[4] | a[5] << 16, a[6] | a[7] << 16)
    WRITE_SUM(target + 2u * unit + 1u, a[8] | a[9] << 16, 0u, 0u, 0u)
}
