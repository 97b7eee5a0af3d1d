// All kernels, in the order of their names in device.rs. NVRTC compiles this at run time, with the files it includes given by name.
#include "dialect.h"
#include "record.h"
#include "aes.h"
#include "ctr.h"
#include "xts.h"
#include "chacha.h"
#include "chacha_lane.h"
#include "tree.h"
#include "ghash.h"
#include "ghash_lane.h"
#include "poly1305.h"
#include "poly_lane.h"

KERNEL(ghash, ghash_lane)
KERNEL(poly1305, poly_lane)
KERNEL(ctr, ctr_lane)
KERNEL(xts_encrypt, xts_encrypt_lane)
KERNEL(xts_decrypt, xts_decrypt_lane)
KERNEL(chacha20, chacha_lane)
