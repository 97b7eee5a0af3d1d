// Sums of powers as trees: a lane takes up to 16 items by Horner's rule. On level 0 the items are the text's blocks and the factor is the key H (or r); on level n they are the sums of the level before
// and the factor is H to the power 16^n. All chunks are full but the first, so that one factor fits them all.
//
// A hash record: BLOCKS is the number of items, KEYS where its level's factor is, BYTES the length of the text, whose last block is taken as ending in zeros.

#define BYTES 6u
#define FROM_OUTPUT 1u
#define OF_TEXT 2u
#define ITEMS 16u

#define CHUNK \
    UINT lanes = CONTROL(at + LANES), items = CONTROL(at + BLOCKS), unit = lane - CONTROL(at + FIRST_LANE); \
    UINT factor = CONTROL(at + KEYS), bytes = CONTROL(at + BYTES), flags = CONTROL(at + FLAGS); \
    UINT source = CONTROL(at + SOURCE), target = CONTROL(at + TARGET); \
    UINT before = lanes * ITEMS - items, end = (unit + 1u) * ITEMS - before, begin = unit == 0u ? 0u : end - ITEMS;

// A word of the text's last block, without the bytes that are not the text's.
FN UINT only_text(UINT word, UINT at, UINT bytes) {
    UINT left = bytes > at ? bytes - at : 0u;
    return left >= 4u ? word : word & ((1u << (8u * left)) - 1u);
}

#define TEXT_BLOCK(i) \
    UINT w0, w1, w2, w3; \
    if ((flags & FROM_OUTPUT) != 0u) { READ_OUTPUT(source + i, w0, w1, w2, w3) } else { READ_INPUT(source + i, w0, w1, w2, w3) } \
    if (16u * i + 16u > bytes) { \
        w0 = only_text(w0, 16u * i, bytes); w1 = only_text(w1, 16u * i + 4u, bytes); \
        w2 = only_text(w2, 16u * i + 8u, bytes); w3 = only_text(w3, 16u * i + 12u, bytes); \
    }
