#!/bin/sh
# The two mechanisms of `bywash run --files` beside each other: a mount that one program sees, and the hook, which answers its system calls. Blocks of 4 KiB, 64 KiB and 1 MiB
# written and read, small files made, opened and looked at, and calls that concern no encrypted file; ciphertext in memory.
#
#   bench/hook.sh [rounds]
set -eu
cd "$(dirname "$0")/.."
echo "machine: $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg), $(uname -r), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)"
TMPDIR=/dev/shm cargo bench -q -p bywash-hook --bench mechanisms -- "${1:-3}"
echo "load at the end: $(cut -d' ' -f1-3 /proc/loadavg)"
