#!/bin/sh
# Every benchmark, one after the other. Quiet machine, please: ratios hold, absolutes drift.
set -eu
cd "$(dirname "$0")/.."
for bench in "bywash-policy" "bywash-manager" "bywash-broker" "bywash-engine-cpu"; do
    printf '\n== %s\n' "$bench"
    cargo bench --quiet -p "$bench"
done
printf '\n== openssl speed, without and with Bywash\n'
bench/openssl-speed.py
