#version 450
#extension GL_GOOGLE_include_directive : require
#include "dialect.glsl"
#include "../kernels/record.h"
#include "../kernels/poly1305.h"
#include "../kernels/tree.h"
#include "../kernels/poly_lane.h"

MAIN(poly_lane)
