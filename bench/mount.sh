#!/bin/sh
# `bywash mount` beside gocryptfs, both with their ciphertext in memory (/dev/shm): 1 GiB written, read from cold caches, 4,000 files of 4 KiB made, a source tree unpacked and built.
# The rivals in turn, medians of each round's ratio.
#
#   bench/mount.sh [rounds] [path of bywash] [source.tar]
#
# Without a tar of sources, the C sources of 60 small programs are made up for "untar and build".
set -eu
rounds=${1:-5}
here=$(cd "$(dirname "$0")/.." && pwd)
bywash=${2:-$here/target/release/bywash}
tar=${3:-}
[ -x "$bywash" ] || { echo "$bywash is not there: cargo build --release -p bywash-cli" >&2; exit 1; }
[ -c /dev/fuse ] || { echo "left out: there is no /dev/fuse here"; exit 0; }
command -v gocryptfs >/dev/null || { echo "left out: gocryptfs is not installed (apt install gocryptfs)"; exit 0; }
work=$(mktemp -d /dev/shm/bywash-mount.XXXXXX)
leave() { for name in bywash gocryptfs; do fusermount3 -u "$work/$name.plain" 2>/dev/null || true; done; sleep 1; rm -rf "$work"; }
trap leave EXIT
export BYWASH_SOCKET=none

printf 'correct horse\n' > "$work/passphrase"; chmod 600 "$work/passphrase"
"$bywash" keygen --key-file "$work/key"
mkdir "$work/bywash.plain" "$work/gocryptfs" "$work/gocryptfs.plain"
"$bywash" mount --init -k "$work/key" "$work/bywash" 2>/dev/null
gocryptfs -q -init -passfile "$work/passphrase" "$work/gocryptfs"
attach() {
    case $1 in
    bywash) "$bywash" mount -k "$work/key" "$work/bywash" "$work/bywash.plain" ;;
    gocryptfs) gocryptfs -q -passfile "$work/passphrase" "$work/gocryptfs" "$work/gocryptfs.plain" ;;
    esac
}
detach() {
    case $1 in
    bywash) "$bywash" umount "$work/bywash.plain" ;;
    gocryptfs) fusermount3 -u "$work/gocryptfs.plain"; sleep 0.3 ;;
    esac
}
head -c 1073741824 /dev/urandom > "$work/large"
if [ -z "$tar" ]; then
    mkdir "$work/source"
    for number in $(seq 60); do
        mkdir "$work/source/$number"
        printf '#include <stdio.h>\n#include <string.h>\nint main(void) { char text[%s]; memset(text, 0, sizeof text); return puts("%s") < 0; }\n' "$number" "$number" > "$work/source/$number/main.c"
        printf 'all: main\nmain: main.o\n\tcc -o main main.o\nmain.o: main.c\n\tcc -O1 -c main.c\n' > "$work/source/$number/Makefile"
    done
    tar=$work/source.tar
    tar -C "$work" -cf "$tar" source
fi
echo "machine: $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg), $(uname -r), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)"

# Memory that was free for two seconds goes back to the host where a virtual machine reports it, and costs twice the time when it is used again, whoever uses it.
warm() { python3 -c 'import mmap; mmap.mmap(-1, 3 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)' 2>/dev/null || true; }
seconds() { # of a command, on the wall
    warm
    begun=$(date +%s.%N); "$@" >/dev/null; ended=$(date +%s.%N)
    echo "$begun $ended" | awk '{ printf "%.4f\n", $2 - $1 }'
}
small_files() { python3 - "$1" <<'PY'
import os, sys
os.mkdir(sys.argv[1])
text = os.urandom(4096)
for number in range(4000):
    with open(f"{sys.argv[1]}/{number}", "wb") as file:
        file.write(text)
PY
}
build() {
    mkdir "$1" && tar -C "$1" -xf "$tar"
    for folder in "$1"/*/*/; do [ ! -f "$folder/Makefile" ] || make -s -C "$folder"; done
}
medians() { # of seconds, and of gocryptfs' time over ours in the same round
    awk '{ time[$2, $1] = $3; if ($1 > rounds) rounds = $1 }
        function middle(list, n,   i, j, swap) { for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (list[j] < list[i]) { swap = list[i]; list[i] = list[j]; list[j] = swap }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2 }
        END { for (round = 1; round <= rounds; round++) { ours[round] = time["bywash", round]; theirs[round] = time["gocryptfs", round]; ratio[round] = theirs[round] / ours[round] }
            printf "  bywash %.3f s, gocryptfs %.3f s: %.2f times as fast (%d rounds)\n", middle(ours, rounds), middle(theirs, rounds), middle(ratio, rounds), rounds }'
}
round() { # number, rival
    attach "$2"
    plain=$work/$2.plain
    echo "$1 $2 $(seconds cp "$work/large" "$plain/large")" >> "$work/write"
    detach "$2"; attach "$2"
    echo "$1 $2 $(seconds cat "$plain/large")" >> "$work/read"
    rm "$plain/large"
    echo "$1 $2 $(seconds small_files "$plain/small")" >> "$work/small"
    rm -r "$plain/small"
    echo "$1 $2 $(seconds build "$plain/built")" >> "$work/build"
    rm -r "$plain/built"
    detach "$2"
}
for number in $(seq "$rounds"); do
    round "$number" bywash
    round "$number" gocryptfs
done
echo "1 GiB written by cp:"; medians < "$work/write"
echo "1 GiB read by cat, after a new mount:"; medians < "$work/read"
echo "4,000 files of 4 KiB:"; medians < "$work/small"
echo "untar and build:"; medians < "$work/build"
echo "load at the end: $(cut -d' ' -f1-3 /proc/loadavg)"
