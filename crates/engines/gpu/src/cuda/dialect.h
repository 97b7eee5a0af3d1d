// CUDA C's words for ../kernels. The same text is C++ for the host, where BYWASH_TWIN is defined, to be tested without a GPU.
typedef unsigned int UINT;
#define INOUT(x) UINT &x
#define OUT(x) UINT &x
#define ARRAY(x, n) UINT (&x)[n]
#define CONST_ARRAY(x, n) const UINT (&x)[n]
#define BUFFERS , const UINT *control, const uint4 *text, uint4 *result
#define BUFFERS_AS_THEY_ARE , control, text, result
#define CONTROL(word) control[word]
#define READ_CONTROL(word, a, b, c, d) READ(((const uint4 *)control), (word) / 4u, a, b, c, d)
#define READ(from, block, a, b, c, d) { uint4 words = from[block]; a = words.x; b = words.y; c = words.z; d = words.w; }
#define READ_INPUT(block, a, b, c, d) READ(text, block, a, b, c, d)
#define READ_OUTPUT(block, a, b, c, d) READ(result, block, a, b, c, d)
#define WRITE_OUTPUT(block, a, b, c, d) { result[block] = make_uint4(a, b, c, d); }
#define READ_SUM READ_OUTPUT
#define WRITE_SUM WRITE_OUTPUT

#ifdef BYWASH_TWIN
struct uint4 { UINT x, y, z, w; };
static inline uint4 make_uint4(UINT x, UINT y, UINT z, UINT w) { return {x, y, z, w}; }
static inline UINT min(UINT a, UINT b) { return a < b ? a : b; }
#define MULTIPLY(a, b, high, low) { unsigned long long product = (unsigned long long)(a) * (b); high = (UINT)(product >> 32); low = (UINT)product; }
#define MULTIPLY_ADD(a, b, high, low) { unsigned long long product = (unsigned long long)(a) * (b); high += (UINT)(product >> 32); low += (UINT)product; }
#define FN static inline
#define UNROLL
#define LOOP
#define ROTR(x, n) ((x) >> (n) | (x) << (32 - (n)))
// Every lane in turn: none waits for another.
#define KERNEL(name, lane_function) \
    extern "C" void name(const UINT *control, const uint4 *text, uint4 *result, UINT records, UINT count, UINT lanes) { \
        for (UINT lane = 0; lane < lanes; lane++) lane_function(lane, records, count, control, text, result); \
    }
#else
#define FN static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define LOOP _Pragma("unroll 1")
#define ROTR(x, n) __funnelshift_r(x, x, n)
// By name: written as a product of 64 bits, the compiler adds a zero to the upper half of each.
#define MULTIPLY(a, b, high, low) { unsigned long long product; asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b)); high = (UINT)(product >> 32); low = (UINT)product; }
#define MULTIPLY_ADD(a, b, high, low) { unsigned long long sum = (unsigned long long)(high) << 32 | (low); asm("mad.wide.u32 %0, %1, %2, %0;" : "+l"(sum) : "r"(a), "r"(b)); high = (UINT)(sum >> 32); low = (UINT)sum; }
#define SWAP_BYTES(x) __byte_perm(x, x, 0x0123)
// Round keys four words at a time.
#define AES_ADD_KEY(round) { \
    const uint4 *planes = (const uint4 *)(control + keys) + 8u * (round); \
    UNROLL for (int i = 0; i < 8; i++) { uint4 k = planes[i]; s[4 * i] ^= k.x; s[4 * i + 1] ^= k.y; s[4 * i + 2] ^= k.z; s[4 * i + 3] ^= k.w; } \
}
// Two instructions each, where exclusive-ors take five: LOP3 has three operands.
#define SWAPMOVE(a, b, mask, n) { \
    UINT low = a; \
    a = (low & ~((mask) << (n))) | ((b << (n)) & ((mask) << (n))); \
    b = (b & ~(mask)) | ((low >> (n)) & (mask)); \
}
// Bytes change places by PRMT.
#define AES_BYTES(b) { \
    UINT a0 = __byte_perm(s[b], s[8 + b], 0x5140), a1 = __byte_perm(s[16 + b], s[24 + b], 0x5140); \
    UINT a2 = __byte_perm(s[b], s[8 + b], 0x7362), a3 = __byte_perm(s[16 + b], s[24 + b], 0x7362); \
    s[b] = __byte_perm(a0, a1, 0x5410); s[8 + b] = __byte_perm(a0, a1, 0x7632); \
    s[16 + b] = __byte_perm(a2, a3, 0x5410); s[24 + b] = __byte_perm(a2, a3, 0x7632); \
}
#define KERNEL(name, lane_function) \
    extern "C" __global__ void __launch_bounds__(128) name(const UINT *__restrict__ control, const uint4 *text, uint4 *result, UINT records, UINT count, UINT lanes) { \
        UINT lane = blockIdx.x * blockDim.x + threadIdx.x; \
        if (lane < lanes) lane_function(lane, records, count, control, text, result); \
    }
#endif
