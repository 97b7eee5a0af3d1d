#!/usr/bin/env bash
# TLS load through nginx whose cryptography goes to a broker (`--route queue`), while that broker is killed with SIGKILL and restarted once
# a second: no connection may fail, no byte may be wrong. `tests/broker-kill.sh 10` does it for 10 s instead of 30.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need "$bywash" "$tls_load"
unset BYWASH_ROUTE OPENSSL_CONF
seconds=${1:-30}
export BYWASH_SOCKET=$scratch/broker.sock
make_certificate rsa
mkdir "$scratch/www"
head -c 200000 /dev/urandom >"$scratch/www/page"
user=()
[ "$(id -u)" != 0 ] || user=(--allow-uid "$(id -u www-data)") # whom nginx's workers become

start_broker() {
    begin "$scratch/broker.log" "$bywash" serve --socket "$BYWASH_SOCKET" "${user[@]}"
    broker=$pid
    await_broker "$broker" "$scratch/broker.log"
}

# Requests that this broker has run, by its own count.
done_by_broker() {
    "$bywash" stats --json | /usr/bin/python3 -c 'import json, sys; print(sum(line["requests"] for line in json.load(sys.stdin)["latencies"]))'
}

start_broker
port=$(free_port)
nginx_conf "$scratch/nginx.conf" "$port"
begin "$scratch/nginx.log" "$bywash" run --socket "$BYWASH_SOCKET" --route queue -- nginx -c "$scratch/nginx.conf"
await_port "$port" "$pid" "$scratch/nginx.log"

load() {
    "$tls_load" --connect "127.0.0.1:$port" --sni $host --ca "$scratch/ca.pem" --tls "$1" --connections 4 --seconds "$seconds" \
        --requests 3 --path /page --expect "$scratch/www/page" --json >"$scratch/load.$1" 2>"$scratch/load.$1.err"
}
load 1.2 & clients=($!)
load 1.3 & clients+=($!)
started+=("${clients[@]}")

kills=0 worked=0 before=$SECONDS
while [ $((SECONDS - before)) -lt "$seconds" ]; do
    sleep 0.8
    operations=$(done_by_broker)
    [ "$operations" = 0 ] || worked=$((worked + 1))
    kill -KILL "$broker"
    wait "$broker" 2>/dev/null || true
    kills=$((kills + 1))
    sleep 0.1
    start_broker
done

status=0
for client in "${clients[@]}"; do wait "$client" || status=1; done
/usr/bin/python3 - "$scratch/load.1.2" "$scratch/load.1.3" <<'PY' || status=1
import json, sys
for name in sys.argv[1:]:
    load = json.load(open(name))
    print(f"broker-kill: TLS {name[-3:]}: {load['handshakes']} handshakes, {load['requests']} downloads verified, "
          f"{load['failed']} failed {load['failures'] or ''}, slowest handshake {load['handshake_us']['max'] / 1e3:.0f} ms")
PY
printf 'broker-kill: %s kills; in %s of these lives the broker had done work before\n' "$kills" "$worked"
[ $((worked * 2)) -ge "$kills" ] || { echo "broker-kill: FAILED: most brokers did nothing: the load does not reach them"; status=1; }
[ $status = 0 ] && echo "broker-kill: ok" || { echo "broker-kill: FAILED"; cat "$scratch"/load.*.err; tail -n 5 "$scratch/broker.log" "$scratch/nginx.log"; }
exit $status
