// GLSL's words for ../kernels, and the four buffers.
#extension GL_EXT_control_flow_attributes : require

#define UINT uint
#define FN
#define INOUT(x) inout uint x
#define OUT(x) out uint x
#define ARRAY(x, n) inout uint x[n]
#define CONST_ARRAY(x, n) in uint x[n]
#define UNROLL [[unroll]]
#define LOOP [[dont_unroll]]
#define ROTR(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define MULTIPLY(a, b, high, low) umulExtended(a, b, high, low)
#define MULTIPLY_ADD(a, b, high, low) { uint more, less; umulExtended(a, b, more, less); high += more; low += less; }

layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Control { uint control[]; };
layout(std430, binding = 1) readonly buffer Input { uvec4 text[]; };
layout(std430, binding = 2) buffer Output { uvec4 result[]; };
layout(std430, binding = 3) buffer Sums { uvec4 sums[]; };
layout(push_constant) uniform Push { uint records, count, lanes; };

#define BUFFERS
#define BUFFERS_AS_THEY_ARE
#define CONTROL(word) control[word]
#define READ_CONTROL(word, a, b, c, d) { uint first = word; a = control[first]; b = control[first + 1u]; c = control[first + 2u]; d = control[first + 3u]; }
#define READ(from, block, a, b, c, d) { uvec4 words = from[block]; a = words.x; b = words.y; c = words.z; d = words.w; }
#define READ_INPUT(block, a, b, c, d) READ(text, block, a, b, c, d)
#define READ_OUTPUT(block, a, b, c, d) READ(result, block, a, b, c, d)
#define WRITE_OUTPUT(block, a, b, c, d) { result[block] = uvec4(a, b, c, d); }
#define READ_SUM(block, a, b, c, d) READ(sums, block, a, b, c, d)
#define WRITE_SUM(block, a, b, c, d) { sums[block] = uvec4(a, b, c, d); }
#define MAIN(lane_function) void main() { if (gl_GlobalInvocationID.x < lanes) lane_function(gl_GlobalInvocationID.x, records, count); }
