#!/usr/bin/env bash
# Processor time that an unmodified nginx, one worker on one core, needs to send objects over TLS 1.3, as it comes and under `bywash run`: interleaved rounds, medians, the
# ratio's that of the rounds' own, every byte verified. Listens on 127.0.0.1 only.
#
# How often the server has slept is said beside it: each time costs as much as one or two requests for 1 KiB, and it sleeps the more the sooner it is done. So
# compare only where both hardly slept, which takes 16 connections or more for small objects.
#
#   bench/downloads.sh                  objects of 1 MiB; ROUNDS (5) rounds of SECONDS_EACH (2)
#   bench/downloads.sh 1024 16          objects of so many bytes, over so many connections
set -euo pipefail
. "$(dirname "$0")/../tests/lib.sh"
need "$bywash" "$tls_load"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF LD_PRELOAD
size=${1:-1048576} connections=${2:-2} rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-2}
[ "$(nproc)" -ge 2 ] && server_core="taskset -c 0" client_core="taskset -c 1" || server_core="" client_core=""
requests=$((256 * 1048576 / (size + 65536) + 1))
make_certificate rsa
mkdir "$scratch/www"
head -c "$size" /dev/urandom >"$scratch/www/object"
declare -A ports workers
for name in without with; do
    ports[$name]=$(free_port)
    nginx_conf "$scratch/$name.conf" "${ports[$name]}"
    run=()
    [ $name = without ] || run=("$bywash" run --quiet --)
    begin "$scratch/$name.log" $server_core "${run[@]}" nginx -c "$scratch/$name.conf"
    await_port "${ports[$name]}" "$pid" "$scratch/$name.log"
    master=$(cat "$scratch/$name.conf.pid")
    workers[$name]=$(cat "/proc/$master/task/$master/children")
done
sleeps() { sed -n 's/^voluntary_ctxt_switches:\s*//p' "/proc/$1/status"; }
measure() {
    local before after slept _
    slept=$(sleeps "$((${workers[$1]}))")
    read -r before _ <"/proc/$((${workers[$1]}))/schedstat"
    $client_core "$tls_load" --connect "127.0.0.1:${ports[$1]}" --sni $host --ca "$scratch/ca.pem" --tls 1.3 --connections "$connections" --seconds "$seconds" \
        --requests "$requests" --path /object --expect "$scratch/www/object" --json >"$scratch/load" || { cat "$scratch/load" >&2; exit 1; }
    read -r after _ <"/proc/$((${workers[$1]}))/schedstat"
    slept=$(($(sleeps "$((${workers[$1]}))") - slept))
    printf '{"name": "%s", "cpu_ns": %d, "sleeps": %d, "load": %s}\n' "$1" $((after - before)) $slept "$(cat "$scratch/load")" >>"$scratch/results"
}
for name in without with; do measure $name; done # warms up; not counted
rm "$scratch/results"
for _ in $(seq "$rounds"); do for name in without with; do measure $name; done; done
/usr/bin/python3 - "$scratch/results" "$size" <<'PY'
import json, statistics, sys
path, size = sys.argv[1], int(sys.argv[2])
costs, sleeps = {}, {}
for line in map(json.loads, open(path)):
    costs.setdefault(line["name"], []).append(line["cpu_ns"] / (line["load"]["requests"] * size))
    sleeps.setdefault(line["name"], []).append(line["sleeps"] / line["load"]["requests"])
without, with_ = (statistics.median(costs[name]) for name in ("without", "with"))
slept, slept_with = (statistics.median(sleeps[name]) for name in ("without", "with"))
# Of each round by itself: what slows the machine for a while slows both of a round.
ratio = statistics.median(alone / of for alone, of in zip(costs["without"], costs["with"]))
print(f"nginx, TLS 1.3, objects of {size} bytes: {without:.3f} s of processor time a GB without, {with_:.3f} s with Bywash, ratio {ratio:.2f}; "
      f"slept {slept:.3f} and {slept_with:.3f} times a request")
PY
