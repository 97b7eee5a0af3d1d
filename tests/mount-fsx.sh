#!/usr/bin/env bash
# Random file operations on mounted volumes, ours and gocryptfs', for as long as is asked, and power cuts at 1,000 points of what programs do to one:
#   tests/mount-fsx.sh [SECONDS] [SEED]
# A seed that fails is printed with what was done last; the same seed does the same again.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
seed=${2:-$RANDOM}
echo "mount-fsx: $seconds seconds each from seed $seed on"
BYWASH_FSX_SECONDS=$seconds BYWASH_FSX_SEED=$seed cargo test -p bywash-mount --test fsx -- --nocapture
BYWASH_CUTS=1000 BYWASH_SEED=$seed cargo test -p bywash-mount --test power -- --nocapture
