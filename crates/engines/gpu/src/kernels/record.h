// What a launch is told: records of 16 words in the control buffer, which src/launch.rs writes. Operations of many keys and lengths share a launch; each has as many
// lanes (invocations) as it needs, and a lane finds its record by the number of its first lane.
//
// BUFFERS are further parameters where buffers are no globals. The text that includes this says how the buffers are reached: CONTROL(word), READ_CONTROL, READ_INPUT(block, a, b, c, d), READ_OUTPUT and WRITE_OUTPUT, whose blocks are 16 bytes, and READ_SUM and WRITE_SUM, which
// reach the stream's own output buffer where READ_OUTPUT and WRITE_OUTPUT may reach other memory.

#define RECORD_WORDS 16u
#define FIRST_LANE 0u
#define LANES 1u
#define SOURCE 2u
#define TARGET 3u
#define BLOCKS 4u
#define KEYS 5u
#define ROUNDS 6u
#define FLAGS 7u
#define COUNTER 8u
#define TWEAKS 12u

// The last of `count` records whose first lane is not beyond `lane`.
FN UINT find_record(UINT lane, UINT records, UINT count BUFFERS) {
    UINT low = 0u, high = count;
    LOOP while (high - low > 1u) {
        UINT middle = (low + high) >> 1;
        if (CONTROL(records + RECORD_WORDS * middle + FIRST_LANE) <= lane) low = middle; else high = middle;
    }
    return records + RECORD_WORDS * low;
}

#ifndef SWAP_BYTES
#define SWAP_BYTES(x) ((ROTR(x, 8) & 0xff00ff00u) | (ROTR(x, 24) & 0x00ff00ffu))
#endif

// Thirty-two lanes share 256 blocks in turn, so that neighbours touch neighbouring blocks; the last such group of an operation may be narrower.
#define GROUP 32u
#define SPREAD \
    UINT lanes = CONTROL(at + LANES), blocks = CONTROL(at + BLOCKS), unit = lane - CONTROL(at + FIRST_LANE); \
    UINT group = unit / GROUP, within = unit % GROUP, width = min(GROUP, lanes - GROUP * group), first = 8u * GROUP * group + within;
