#version 450
#extension GL_GOOGLE_include_directive : require
#include "dialect.glsl"
#include "../kernels/record.h"
#include "../kernels/ghash.h"
#include "../kernels/tree.h"
#include "../kernels/ghash_lane.h"

MAIN(ghash_lane)
