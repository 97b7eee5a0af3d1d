#!/usr/bin/env bash
# What batches of handshakes bring an unmodified nginx and haproxy: full handshakes per server CPU second and median latency, as they come and under
# `bywash run`, interleaved, medians of ROUNDS (5) rounds of SECONDS (2). Server on core 0, client on core 1; listens on 127.0.0.1 only.
#
#   bench/tls-servers.sh                              the whole table
#   bench/tls-servers.sh nginx rsa2048,rsa4096 1.2 64 servers, keys, versions, connections: any of them as a comma-separated list
#   RESUME=1 bench/tls-servers.sh nginx rsa2048       sessions are resumed by tickets, and each connection fetches a small page, without which TLS 1.3 sees no ticket
#   LOAD=0.7 bench/tls-servers.sh nginx rsa2048 1.2   not as many as can be, but 0.7 of what the server manages without Bywash, in an open loop: latencies
set -euo pipefail
. "$(dirname "$0")/../tests/lib.sh"
need "$bywash" "$tls_load"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF LD_PRELOAD
rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-2} load=${LOAD:-} resume=${RESUME:-}
list() { tr , ' ' <<<"$1"; }
servers=$(list "${1:-nginx,haproxy,haproxy-async}") keys=$(list "${2:-rsa2048,rsa3072,rsa4096,ecdsa,p384,ed25519}")
versions=$(list "${3:-1.2,1.3}") connections=$(list "${4:-1,8,64}")
[ "$(nproc)" -ge 2 ] && server_core="taskset -c 0" client_core="taskset -c 1" || server_core="" client_core=""

certificate() {
    local key=$1
    [ -e "$scratch/$key.pem" ] && return
    make_certificate "$key"
    cat "$scratch/$key.pem" "$scratch/$key.key" >"$scratch/$key.both"
}

mkdir "$scratch/www"
head -c 1024 /dev/urandom >"$scratch/www/small"
declare -A ports masters
# start NAME SERVER KEY [COMMAND...]
start() {
    local name=$1 server=$2 key=$3 conf=$scratch/$1.conf
    shift 3
    ports[$name]=$(free_port)
    case $server in
        nginx)
            nginx_conf "$conf" "${ports[$name]}"
            sed -i "s#$scratch/rsa\.#$scratch/$key.#" "$conf"
            [ -z "$resume" ] || sed -i 's/ssl_session_tickets off/ssl_session_tickets on/' "$conf"
            begin "$conf.out" $server_core "$@" nginx -c "$conf"
            ;;
        haproxy | haproxy-async)
            haproxy_conf "$conf" "${ports[$name]}" "$scratch/$key.both" "http-request return status 200" "nbthread 1
    $([ "$server" = haproxy ] || echo ssl-mode-async)"
            begin "$conf.out" $server_core "$@" haproxy -db -f "$conf"
            ;;
    esac
    await_port "${ports[$name]}" "$pid" "$conf.out"
    masters[$name]=$pid
}

family() { local child; echo "$1"; for child in $(cat "/proc/$1/task/$1/children"); do family "$child"; done; }

# CPU time in nanoseconds of a process and all below it but `bywash run` itself.
cpu_ns() {
    local pid sum=0 thread ns
    for pid in $(family "$1"); do
        [ "$(cat "/proc/$pid/comm")" = bywash ] && continue
        for thread in /proc/$pid/task/*/schedstat; do
            read -r ns _ <"$thread" || continue
            sum=$((sum + ns))
        done
    done
    echo $sum
}

measure() {
    local name=$1 version=$2 count=$3 before
    shift 3
    before=$(cpu_ns "${masters[$name]}")
    $client_core "$tls_load" --connect "127.0.0.1:${ports[$name]}" --sni $host --ca "$scratch/ca.pem" --tls "$version" --connections "$count" \
        --seconds "$seconds" --json ${resume:+--resume --path /small} "$@" >"$scratch/load" || { cat "$scratch/load" >&2; exit 1; }
    printf '{"name": "%s", "cpu_ns": %d, "load": %s}\n' "$name" $(($(cpu_ns "${masters[$name]}") - before)) "$(cat "$scratch/load")" >>"$scratch/results"
}

printf '%-14s %-8s %-4s %4s | %9s %9s %9s %7s | %9s %9s | %9s %9s\n' server key TLS conn without with no-async ratio 'p50 ms' 'with ms' 'p99 ms' 'with ms'
for server in $servers; do
    command -v "${server%-async}" >/dev/null || { echo "skipped: no ${server%-async} here"; continue; }
    for key in $keys; do
        certificate "$key"
        start without "$server" "$key"
        start with "$server" "$key" "$bywash" run --quiet --
        start no-async "$server" "$key" "$bywash" run --quiet --no-async --
        for version in $versions; do
            for count in $connections; do
                for name in without with no-async; do measure $name "$version" "$count"; done # warms up; not counted
                rate=()
                if [ -n "$load" ]; then
                    rm -f "$scratch/results"
                    measure without "$version" "$count"
                    rate=(--rate "$(/usr/bin/python3 -c 'import json, sys; print(float(sys.argv[1]) * json.load(sys.stdin)["load"]["handshakes_per_s"])' "$load" <"$scratch/results")")
                fi
                rm -f "$scratch/results"
                for _ in $(seq "$rounds"); do
                    for name in without with no-async; do measure $name "$version" "$count" "${rate[@]}"; done
                done
                /usr/bin/python3 - "$scratch/results" "$server" "$key" "$version" "$count" <<'PY'
import json, statistics, sys
path, *what = sys.argv[1:]
rates, latencies, slowest = {}, {}, {}
for line in map(json.loads, open(path)):
    rates.setdefault(line["name"], []).append(line["load"]["handshakes"] / (line["cpu_ns"] / 1e9))
    latencies.setdefault(line["name"], []).append(line["load"]["handshake_us"]["p50"] / 1e3)
    slowest.setdefault(line["name"], []).append(line["load"]["handshake_us"]["p99"] / 1e3)
rate = {name: statistics.median(values) for name, values in rates.items()}
p50, p99 = ({name: statistics.median(values) for name, values in each.items()} for each in (latencies, slowest))
print("%-14s %-8s %-4s %4s |" % tuple(what), "%8.0f/s %8.0f/s %8.0f/s %6.2fx | %9.3f %9.3f | %9.3f %9.3f" % (
    rate["without"], rate["with"], rate["no-async"], rate["with"] / rate["without"], p50["without"], p50["with"], p99["without"], p99["with"]))
PY
            done
        done
        for name in without with no-async; do end "${masters[$name]}"; done
    done
done
