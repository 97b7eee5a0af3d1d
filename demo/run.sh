#!/usr/bin/env bash
# Debian's nginx serving TLS without and with Bywash, side by side, every byte verified. About a minute and a half; listens on 127.0.0.1 only.
#
# Three servers run at once, each its own nginx with one worker: as it comes, under `bywash run`, and with whole operations, the private key's above all, sent to a
# broker process (`--route queue`), which is what keeping keys and work out of the server's process costs. They are loaded in turn,
# load by load, so that a noisy moment hits all alike; the table shows medians, and of the ratios the median of the rounds' own. ROUNDS=3 demo/run.sh is quicker,
# ROUNDS=15 steadier.
set -euo pipefail
. "$(dirname "$0")/../tests/lib.sh"
need "$bywash" "$tls_load"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF
rounds=${ROUNDS:-5}
columns=(without bywash queue)
declare -A ports servers masters

say() { if [ -t 2 ]; then printf '\e[2m%s\e[0m\n' "$*"; else printf '%s\n' "$*"; fi >&2; }

on_core() { if [ "$(nproc)" -ge 2 ]; then echo taskset -c "$1"; fi; }
server_core=$(on_core 0)
client_core=$(on_core 1)

start() {
    local column=$1
    shift
    ports[$column]=$(free_port)
    nginx_conf "$scratch/$column.conf" "${ports[$column]}"
    begin "$scratch/$column.log" $server_core "$@" nginx -c "$scratch/$column.conf"
    servers[$column]=$pid
    await_port "${ports[$column]}" "$pid" "$scratch/$column.log"
    masters[$column]=$(cat "$scratch/$column.conf.pid")
}

# Nanoseconds of processor time that the threads of processes have used so far. Ticks, of 10 ms, would be too coarse for loads of half a second.
busy() {
    local pid thread ns sum=0
    for pid in "$@"; do
        for thread in "/proc/$pid/task/"*; do
            read -r ns _ <"$thread/schedstat" && sum=$((sum + ns))
        done
    done 2>/dev/null # a thread that has ended meanwhile
    echo $sum
}
nginx_busy() { busy "${masters[$1]}" $(cat "/proc/${masters[$1]}/task/${masters[$1]}/children"); }
broker_busy() { if [ "${servers[$1]}" = "${masters[$1]}" ]; then echo 0; else busy "${servers[$1]}"; fi; }

# Loads one server and notes what came of it: measure COLUMN WHAT tls-load-options...
measure() {
    local column=$1 what=$2 nginx broker
    shift 2
    nginx=$(nginx_busy "$column") broker=$(broker_busy "$column")
    $client_core "$tls_load" --connect "127.0.0.1:${ports[$column]}" --sni $host --ca "$scratch/ca.pem" --json "$@" >"$scratch/load" || failed=1
    printf '{"column": "%s", "what": "%s", "nginx_ns": %d, "broker_ns": %d, "load": %s}\n' "$column" "$what" \
        $(($(nginx_busy "$column") - nginx)) $(($(broker_busy "$column") - broker)) "$(cat "$scratch/load")" >>"$scratch/results"
}

# One load of each server, right after each other.
all() {
    local column
    for column in "${columns[@]}"; do measure "$column" "$@"; done
}

round() {
    local version
    for version in 1.2 1.3; do
        all "full handshakes, TLS $version" --tls $version --connections 8 --seconds "$1" --path /1k --expect "$scratch/www/1k"
    done
    # So many that the server hardly sleeps: with a few it does the more often the sooner it is done, and each time costs more than a request.
    all "1 KiB files, TLS 1.3, kept connections" --connections 16 --seconds 0.5 --requests 1500 --path /1k --expect "$scratch/www/1k"
    all "16 MiB file, TLS 1.3" --connections 2 --seconds 0.5 --requests 12 --path /16m --expect "$scratch/www/16m"
}

say "making an RSA-2048 certificate and files of random bytes in $scratch"
make_certificate rsa
mkdir "$scratch/www"
head -c 16777216 /dev/urandom >"$scratch/www/16m"
head -c 1024 /dev/urandom >"$scratch/www/1k"
start without
start bywash "$bywash" run --quiet --report "$scratch/bywash.report" --
start queue "$bywash" run --quiet --report "$scratch/queue.report" --route queue --
say "$(nginx -v 2>&1 | sed 's/.*: //'), $(openssl version | cut -d' ' -f1,2); ${server_core:+server on core 0, client on core 1; }$rounds interleaved rounds"

failed=0
round 0.3 # warms caches and pages; not counted
rm "$scratch/results"
for number in $(seq "$rounds"); do
    say "round $number of $rounds"
    round 1.2
done
for column in "${columns[@]}"; do end "${servers[$column]}"; done
/usr/bin/python3 "$repository/demo/table.py" "$scratch/results" "$scratch/bywash.report" "$scratch/queue.report" || failed=1
exit $failed
