#version 450
#extension GL_GOOGLE_include_directive : require
#include "dialect.glsl"
#include "../kernels/record.h"
#include "../kernels/chacha.h"
#include "../kernels/chacha_lane.h"

MAIN(chacha_lane)
