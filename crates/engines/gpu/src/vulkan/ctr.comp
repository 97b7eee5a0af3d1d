#version 450
#extension GL_GOOGLE_include_directive : require
#include "dialect.glsl"
#include "../kernels/record.h"
#include "../kernels/aes.h"
#include "../kernels/ctr.h"

MAIN(ctr_lane)
