#!/usr/bin/env bash
# The soak of DDS Security in its short form, for both implementations at once: half a minute with peers that are killed, and with keys that change all the time.
set -euo pipefail
# lib.sh leaves the system's own folders in PATH.
cargo=$(command -v cargo)
. "$(dirname "$0")/lib.sh"
need "$bywash"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF

cd "$repository"
"$cargo" build --quiet -p bywash-dds-material --example make
pids=() make=${CARGO_TARGET_DIR:-$repository/target}/debug/examples/make
for implementation in cyclone fastdds; do
    begin "$scratch/$implementation" bench/dds-soak.py --implementation "$implementation" --minutes 0.5 --kill-every 10 --short --bin "$(dirname "$bywash")" --make "$make"
    pids+=("$pid")
done
failed=
for implementation in cyclone fastdds; do
    status=0
    wait "${pids[0]}" || status=$?
    pids=("${pids[@]:1}")
    case $status in
        0) echo "ok       soak of $implementation: $(sed -n 's/^ *bywash *reliable *//p' "$scratch/$implementation")" ;;
        77) echo "skipped  soak of $implementation: $(sed -n 's/^skipped: //p' "$scratch/$implementation")" ;;
        *) cat "$scratch/$implementation" && failed+=" $implementation" ;;
    esac
done
[ -z "$failed" ] || die "FAILED   soak of$failed"
