#!/bin/sh
# How long `bywash encrypt` takes for one file of 1 GiB and for 20,000 of 4 KiB, beside cp, age, `openssl enc` and gocryptfs: from and to memory (/dev/shm), the rivals in turn, medians of
# each round's ratio. What is not installed is left out and said.
#
#   bench/files.sh [rounds] [path of bywash]
#
# rounds: 5 for the large file; the small ones get 3 of ours and gocryptfs', and one of age's and openssl's loops, which take a minute each.
set -eu
rounds=${1:-5}
here=$(cd "$(dirname "$0")/.." && pwd)
bywash=${2:-$here/target/release/bywash}
[ -x "$bywash" ] || { echo "$bywash is not there: cargo build --release -p bywash-cli" >&2; exit 1; }
work=$(mktemp -d /dev/shm/bywash-files.XXXXXX)
mounted=
trap '[ -z "$mounted" ] || fusermount3 -u "$work/plain" 2>/dev/null || fusermount -u "$work/plain" || true; rm -rf "$work"' EXIT
export BYWASH_SOCKET=none

"$bywash" keygen --key-file "$work/key"
printf 'correct horse\n' > "$work/passphrase"; chmod 600 "$work/passphrase"
head -c 1073741824 /dev/urandom > "$work/large"
mkdir "$work/small"
python3 - "$work/small" <<'PY'
import os, sys
for number in range(20000):
    with open(f"{sys.argv[1]}/{number}", "wb") as file:
        file.write(os.urandom(4096))
PY

echo "machine: $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg), $(uname -r), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2)"
rivals="bywash cp"
if command -v age >/dev/null && command -v age-keygen >/dev/null; then
    rivals="$rivals age"; age-keygen -o "$work/age" 2>/dev/null; recipient=$(age-keygen -y "$work/age")
else echo "left out: age is not installed"; fi
if command -v openssl >/dev/null; then rivals="$rivals openssl"; else echo "left out: openssl is not installed"; fi
if command -v gocryptfs >/dev/null && [ -c /dev/fuse ]; then
    mkdir "$work/cipher" "$work/plain"
    if gocryptfs -q -init -passfile "$work/passphrase" "$work/cipher" >/dev/null &&
        gocryptfs -q -passfile "$work/passphrase" "$work/cipher" "$work/plain"; then mounted=1; rivals="$rivals gocryptfs"
    else echo "left out: gocryptfs cannot mount here"; fi
else echo "left out: gocryptfs is not installed, or there is no /dev/fuse"; fi

seconds() { # of a command, on the wall
    begun=$(date +%s.%N); "$@" >/dev/null; ended=$(date +%s.%N)
    echo "$begun $ended" | awk '{ printf "%.4f\n", $2 - $1 }'
}
large() {
    case $1 in
    bywash) rm -f "$work/out"; seconds "$bywash" encrypt -k "$work/key" -o "$work/out" "$work/large" ;;
    cp) rm -f "$work/out"; seconds cp "$work/large" "$work/out" ;;
    age) rm -f "$work/out"; seconds age -r "$recipient" -o "$work/out" "$work/large" ;;
    openssl) rm -f "$work/out"; seconds openssl enc -aes-256-ctr -pbkdf2 -pass "file:$work/passphrase" -in "$work/large" -out "$work/out" ;;
    gocryptfs) rm -f "$work/plain/out"; seconds cp "$work/large" "$work/plain/out"; rm -f "$work/plain/out" ;;
    esac
}
each() { # file by file, as users of age and openssl do
    for file in "$work"/small/*; do
        case $1 in
        age) age -r "$recipient" -o "$work/outs/${file##*/}" "$file" ;;
        openssl) openssl enc -aes-256-ctr -pbkdf2 -pass "file:$work/passphrase" -in "$file" -out "$work/outs/${file##*/}" ;;
        esac
    done
}
small() {
    rm -rf "$work/outs"
    case $1 in
    bywash) seconds "$bywash" encrypt -R -k "$work/key" -o "$work/outs" "$work/small" ;;
    cp) seconds cp -r "$work/small" "$work/outs" ;;
    gocryptfs) rm -rf "$work/plain/outs"; seconds cp -r "$work/small" "$work/plain/outs" ;;
    *) mkdir "$work/outs"; seconds each "$1" ;;
    esac
}
medians() { # of seconds, and of the ratios to ours in the same round
    awk '{ time[$2, $1] = $3; if (!($2 in seen)) { seen[$2]; order[++count] = $2 } if ($1 > rounds) rounds = $1 }
        function middle(list, n,   i, j, swap) { for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (list[j] < list[i]) { swap = list[i]; list[i] = list[j]; list[j] = swap }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2 }
        END { for (at = 1; at <= count; at++) { name = order[at]; n = 0
            for (round = 1; round <= rounds; round++) if ((name, round) in time) { n++; times[n] = time[name, round]; ratios[n] = time["bywash", round] / time[name, round] }
            printf "  %-10s %8.3f s   bywash takes %.3f of it   (%d rounds)\n", name, middle(times, n), middle(ratios, n), n } }'
}

echo "1 GiB:"
for round in $(seq "$rounds"); do for rival in $rivals; do echo "$round $rival $(large "$rival")"; done; done | medians
rm -f "$work/out"
echo "20,000 files of 4 KiB:"
for round in 1 2 3; do
    for rival in $rivals; do
        case $rival in age | openssl) [ "$round" = 1 ] || continue ;; esac
        echo "$round $rival $(small "$rival")"
    done
done | medians
echo "load at the end: $(cut -d' ' -f1-3 /proc/loadavg)"
