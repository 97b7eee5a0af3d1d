#!/usr/bin/env bash
# Event-driven servers whose handshakes wait for each other, under `bywash run`: nginx and haproxy from the distribution, unmodified. Thousands of handshakes, every
# download compared, no failure allowed; clients that vanish in mid-handshake, reload and graceful quit under load, several workers, session
# caches, client certificates. And that operations really are computed in company: a count, not a time.
# `tests/async-servers.sh nginx-12 reload` runs those alone.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need "$bywash" "$tls_load" "$repository/target/release/libbywash_async.so"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF LD_PRELOAD
only=("$@")
counts=(0 0 0)

# --- the frame ---------------------------------------------------------------------------------------------------------------

check() {
    local name=$1 status=0 seconds=$SECONDS room=$scratch/$1
    shift
    [ ${#only[@]} = 0 ] || printf '%s\n' "${only[@]}" | grep -qxF "$name" || return 0
    mkdir "$room"
    set +e
    (
        trap clean_up_servers EXIT
        started=()
        cd "$room"
        set -e
        "$@"
    ) >"$room/log" 2>&1
    status=$?
    set -e
    case $status in
        0) counts[0]=$((counts[0] + 1)); printf 'ok       %-26s %s (%s s)\n' "$name" "$(cat "$room/note" 2>/dev/null)" $((SECONDS - seconds)) ;;
        77) counts[2]=$((counts[2] + 1)); printf 'skipped  %-26s %s\n' "$name" "$(tail -1 "$room/log")" ;;
        *) counts[1]=$((counts[1] + 1)); printf 'FAILED   %-26s status %s; the last of its log:\n' "$name" "$status"; tail -12 "$room/log" | sed 's/^/         | /' ;;
    esac
}

clean_up_servers() { local pid; for pid in "${started[@]:-}"; do [ -z "$pid" ] || end "$pid"; done; }
fail() { echo "$*"; exit 1; }
skip() { echo "$*"; exit 77; }
have() { command -v "$1" >/dev/null || skip "no $1 here: apt-get install $2"; }

# load PORT VERSION CONNECTIONS COUNT [more]: every connection must shake hands and fetch the right bytes.
load() {
    local port=$1 version=$2 connections=$3 count=$4
    shift 4
    "$tls_load" --connect "127.0.0.1:$port" --sni $host --ca "$scratch/ca.pem" --tls "$version" --connections "$connections" --count "$count" \
        --timeout 60 --path /small --expect "$scratch/www/small" "$@"
}

# Whether this machine's engine computes side by side; counts of batches mean nothing where it does not.
has_lanes() { grep -q avx512ifma /proc/cpuinfo; }

# batches REPORT ALGORITHM-PREFIX: operations, batches, operations in batches
batches() {
    /usr/bin/python3 - "$@" <<'PY'
import json, sys
lines = [l for l in json.load(open(sys.argv[1]))["account"]["here"] if l["algorithm"].startswith(sys.argv[2])]
print(*(sum(l[k] for l in lines) for k in ("operations", "batches", "batched")))
PY
}

# note REPORT ALGORITHM [least mean lanes]
note() {
    local operations batches batched least=${3:-0}
    read -r operations batches batched <<<"$(batches "$1" "$2")"
    [ "$operations" -gt 0 ] || fail "no operation of $2: $(cat "$1")"
    echo "$operations of $2, $batched of them in $batches batches" >note
    if [ "$least" != 0 ] && has_lanes; then
        [ "$batched" -gt $((least * batches)) ] && [ "$batched" -gt $((operations / 2)) ] || fail "too few together: $(cat note)"
    fi
}

# serve REPORT PORT COMMAND...
serve() {
    local report=$1 port=$2
    shift 2
    begin server.log "$bywash" run --quiet --report "$report" -- "$@"
    await_port "$port" "$pid" server.log
    server=$pid
}

# nginx_at KIND PORT [lines for the server block]: a configuration for a certificate of this kind
nginx_at() {
    nginx_conf "$PWD/nginx.conf" "$2"
    sed -i "s#$scratch/rsa\.#$scratch/$1.#; s#root #${3:-} root #" nginx.conf
}

# --- handshakes -----------------------------------------------------------------------------------------------------------------

nginx_shakes() {
    local kind=$1 version=$2 algorithm=$3 port
    have nginx nginx-light
    port=$(free_port)
    nginx_at "$kind" "$port"
    serve report.json "$port" nginx -c "$PWD/nginx.conf"
    load "$port" "$version" 1 100
    load "$port" "$version" 8 1000
    end "$server"
    cat server.log nginx.conf.log
    ! grep -qE 'alert|crit|emerg|stale' nginx.conf.log || fail "nginx complains"
    serve many.json "$port" nginx -c "$PWD/nginx.conf"
    load "$port" "$version" 64 2000
    end "$server"
    note many.json "$algorithm" "${4:-0}"
}

# Key exchange in a group that is not the first of anybody's list.
nginx_agrees() {
    local port together
    have nginx nginx-light
    port=$(free_port)
    nginx_at p384 "$port"
    serve report.json "$port" nginx -c "$PWD/nginx.conf"
    load "$port" "$1" 64 1000 --group secp384r1
    end "$server"
    cat server.log nginx.conf.log
    ! grep -qE 'alert|crit|emerg|stale' nginx.conf.log || fail "nginx complains"
    note report.json "ECDH-P384"
    read -r _ together _ <<<"$(batches report.json "ECDH-P384")"
    ! has_lanes || [ "$together" -gt 0 ] || fail "none together: $(cat note)"
}

# haproxy_shakes GLOBAL-LINE [threads] [kind] [algorithm] [options of the clients]
haproxy_shakes() {
    local port version kind=${3:-rsa}
    have haproxy haproxy
    port=$(free_port)
    cat "$scratch/$kind.pem" "$scratch/$kind.key" >both.pem
    haproxy_conf haproxy.cfg "$port" "$PWD/both.pem" "server plain 127.0.0.1:$plain_port" "nbthread ${2:-1}
    $1"
    for version in 1.2 1.3; do
        serve report.json "$port" haproxy -db -f haproxy.cfg
        load "$port" $version 1 50 "${@:5}"
        load "$port" $version 8 500 "${@:5}"
        load "$port" $version 64 1000 "${@:5}"
        end "$server"
        cat server.log
        note report.json "${4:-RSA-2048 private}"
    done
}

# A server that waits by io_uring alone: nobody can tell it anything, and its handshakes go on before it waits.
uring_shakes() {
    local version=$1 wait=$2 port
    port=$(free_port)
    serve_by_uring report.json "$port" "$wait"
    load "$port" "$version" 1 100
    load "$port" "$version" 8 1000
    end "$server"
    serve_by_uring many.json "$port" "$wait"
    load "$port" "$version" 64 2000
    end "$server"
    cat server.log
    note many.json "RSA-2048 private" 3
}

# serve_by_uring REPORT PORT one|many
serve_by_uring() {
    printf '#include <liburing.h>\nint main(void) { struct io_uring ring; return io_uring_queue_init(4, &ring, 0) < 0; }\n' >probe.c
    cc -o probe probe.c -luring && ./probe || skip "no io_uring here"
    cc -O1 -Wall -Werror -o server "$repository/tests/uring-server.c" -luring -lssl -lcrypto
    serve "$1" "$2" ./server "$2" "$scratch/rsa.pem" "$scratch/rsa.key" "$scratch/www/small" "$3"
}

# --- trouble ----------------------------------------------------------------------------------------------------------------------

# Clients that send a ClientHello and are gone, some by reset, among others that must not notice.
vanish() {
    local port
    port=$(free_port)
    if [ "$1" = nginx ]; then
        have nginx nginx-light
        nginx_at rsa "$port"
        serve report.json "$port" nginx -c "$PWD/nginx.conf"
    else
        serve_by_uring report.json "$port" many
        touch nginx.conf.log
    fi
    /usr/bin/python3 - "$port" <<'PY' &
import socket, ssl, struct, sys, time
port, end = int(sys.argv[1]), time.time() + 4
def hello():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try: context.wrap_bio(incoming, outgoing, server_hostname="bywash.test").do_handshake()
    except ssl.SSLWantReadError: pass
    return outgoing.read()
greeting, count = hello(), 0
while time.time() < end:
    batch = []
    for index in range(8):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(greeting)
        if index % 3 == 0: connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        batch.append(connection)
    time.sleep(0.001 * (1 + count // 8 % 5))
    for connection in batch: connection.close()
    count += len(batch)
print(count, "clients vanished")
PY
    local vanishing=$!
    load "$port" 1.2 16 1000
    load "$port" 1.3 16 1000
    wait $vanishing
    load "$port" 1.3 8 100
    end "$server"
    cat server.log nginx.conf.log
    ! grep -qE 'alert|crit|emerg|stale|signal' nginx.conf.log || fail "nginx complains"
    note report.json "RSA-2048 private"
}

# SIGHUP twice under load with two workers, then a graceful quit under load: what was begun is finished.
reload() {
    local port master loading
    have nginx nginx-light
    port=$(free_port)
    nginx_at rsa "$port"
    sed -i 's/^worker_processes 1/worker_processes 2/' nginx.conf
    serve report.json "$port" nginx -c "$PWD/nginx.conf"
    master=$(cat nginx.conf.pid)
    "$tls_load" --connect "127.0.0.1:$port" --sni $host --ca "$scratch/ca.pem" --tls 1.3 --connections 32 --seconds 5 \
        --path /small --expect "$scratch/www/small" >load.log 2>&1 &
    loading=$!
    sleep 1
    kill -HUP "$master"
    sleep 1.5
    kill -HUP "$master"
    wait $loading || { cat load.log; fail "a download failed in a reload"; }
    # Connections that the old workers had accepted are served to their end; new ones may be refused once the listening socket is closed.
    "$tls_load" --connect "127.0.0.1:$port" --sni $host --ca "$scratch/ca.pem" --tls 1.2 --connections 32 --seconds 2 >quit.log 2>&1 &
    loading=$!
    sleep 1
    kill -QUIT "$master"
    for _ in $(seq 100); do kill -0 "$master" 2>/dev/null || break; sleep 0.1; done
    ! kill -0 "$master" 2>/dev/null || fail "nginx hangs in its graceful quit"
    wait $loading || true
    ! grep -E '"timeout in handshake"|timeout in handshake' quit.log || fail "a handshake was left hanging"
    end "$server"
    cat server.log nginx.conf.log
    note report.json "RSA-2048 private"
}

session_cache() {
    local port
    have nginx nginx-light
    port=$(free_port)
    nginx_at rsa "$port"
    sed -i 's/ssl_session_cache off/ssl_session_cache shared:s:1m/' nginx.conf
    serve report.json "$port" nginx -c "$PWD/nginx.conf"
    load "$port" 1.2 32 1000 --resume
    load "$port" 1.3 32 1000 --resume
    end "$server"
    note report.json "RSA-2048 private"
}

# client_certificates KIND ALGORITHM: server and clients have keys of this kind.
client_certificates() {
    local port
    have nginx nginx-light
    port=$(free_port)
    nginx_at "$1" "$port" "ssl_verify_client on; ssl_client_certificate $scratch/ca.pem;"
    openssl req -new -key "$scratch/$1.key" -out client.csr -subj /CN=client
    cp "$scratch/$1.key" client.key
    openssl x509 -req -in client.csr -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" -CAcreateserial -CAserial ca.srl -days 2 -out client.pem 2>/dev/null
    serve report.json "$port" nginx -c "$PWD/nginx.conf"
    /usr/bin/python3 - "$port" "$scratch/ca.pem" "$scratch/www/small" <<'PY'
import concurrent.futures, ssl, sys, urllib.request
port, ca, path = sys.argv[1:]
wanted = open(path, "rb").read()
def fetch(index):
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain("client.pem", "client.key")
    context.maximum_version = ssl.TLSVersion.TLSv1_2 if index % 2 else ssl.TLSVersion.TLSv1_3
    return urllib.request.urlopen(f"https://localhost:{port}/small", context=context, timeout=20).read() == wanted
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    assert all(pool.map(fetch, range(400))), "wrong bytes"
PY
    end "$server"
    cat nginx.conf.log
    ! grep -qE 'alert|crit|emerg|stale' nginx.conf.log || fail "nginx complains"
    note report.json "$2"
}

# Programs that speak OpenSSL's asynchronous jobs themselves.
speed_jobs() {
    routed report.json openssl speed -mr -seconds 1 -async_jobs 8 rsa2048 | grep '^+F'
    note report.json "RSA-2048 private" 4
}

s_server_async() {
    local port
    port=$(free_port)
    begin server.log "$bywash" run --quiet --report report.json -- openssl s_server -async -accept "127.0.0.1:$port" -cert "$scratch/rsa.pem" -key "$scratch/rsa.key" -WWW -quiet </dev/null
    server=$pid
    await_port "$port" "$pid" server.log
    for version in 2 3 2 3; do
        printf '' | openssl s_client -connect "127.0.0.1:$port" -CAfile "$scratch/ca.pem" -verify_return_error -tls1_$version 2>&1 | grep -q 'Verify return code: 0' ||
            fail "no handshake with TLS 1.$version"
    done
    end "$server"
    note report.json "RSA-2048 private"
}

# Servers that wait by poll, by select, and in several threads: Python's, without a line of ours in them.
python_server() {
    local port selector=$1
    port=$(free_port)
    cat >server.py <<'PY'
import asyncio, selectors, ssl, sys
port, pem, key, path, selector = sys.argv[1:]
body = open(path, "rb").read()
async def serve(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()
async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server = await asyncio.start_server(serve, "127.0.0.1", int(port), ssl=context, backlog=200)
    await server.serve_forever()
loop = asyncio.SelectorEventLoop(getattr(selectors, selector)())
asyncio.set_event_loop(loop)
loop.run_until_complete(main())
PY
    serve report.json "$port" /usr/bin/python3 server.py "$port" "$scratch/rsa.pem" "$scratch/rsa.key" "$scratch/www/small" "$selector"
    load "$port" 1.2 32 300
    load "$port" 1.3 32 300
    end "$server"
    note report.json "RSA-2048 private"
}

make_certificate rsa
make_certificate ecdsa
make_certificate p384
make_certificate ed25519
mkdir "$scratch/www"
head -c 8000 /dev/urandom >"$scratch/www/small"
chmod -R a+rX "$scratch/www"
plain_port=$(free_port)
nginx_conf "$scratch/plain.conf" "$plain_port"
sed -i 's/ ssl backlog/ backlog/; /ssl_/d' "$scratch/plain.conf"
begin "$scratch/plain.log" nginx -c "$scratch/plain.conf"
await_port "$plain_port" "$pid" "$scratch/plain.log"

check nginx-rsa-tls1.2 nginx_shakes rsa 1.2 "RSA-2048 private" 4
check nginx-rsa-tls1.3 nginx_shakes rsa 1.3 "RSA-2048 private" 4
check nginx-ecdsa-tls1.2 nginx_shakes ecdsa 1.2 "ECDSA-P256"
check nginx-ecdsa-tls1.3 nginx_shakes ecdsa 1.3 "ECDSA-P256"
check nginx-p384-tls1.2 nginx_shakes p384 1.2 "ECDSA-P384 sign" 2
check nginx-p384-tls1.3 nginx_shakes p384 1.3 "ECDSA-P384 sign" 2
# The library signs in some 10 us: how many are worth putting off is the policy's to say.
check nginx-ed25519-tls1.2 nginx_shakes ed25519 1.2 "Ed25519 sign"
check nginx-ed25519-tls1.3 nginx_shakes ed25519 1.3 "Ed25519 sign"
check group-secp384r1-tls1.2 nginx_agrees 1.2
check group-secp384r1-tls1.3 nginx_agrees 1.3
check haproxy haproxy_shakes ""
check haproxy-threads haproxy_shakes "" 2
check haproxy-ssl-mode-async haproxy_shakes "ssl-mode-async"
# What computes in an asynchronous job of OpenSSL's has its 32 KiB of stack, and with two threads a job may change threads.
check haproxy-ssl-mode-async-threads haproxy_shakes "ssl-mode-async" 2
check haproxy-ssl-mode-async-p384 haproxy_shakes "ssl-mode-async" 2 p384 "ECDSA-P384 sign" --group secp384r1
check haproxy-ssl-mode-async-p256 haproxy_shakes "ssl-mode-async" 2 ecdsa "ECDSA-P256" --group secp256r1
check uring-tls1.2 uring_shakes 1.2 many
check uring-tls1.3 uring_shakes 1.3 many
check uring-one-tls1.2 uring_shakes 1.2 one
check uring-one-tls1.3 uring_shakes 1.3 one
check vanishing-clients vanish nginx
check vanishing-clients-uring vanish uring
check reload-and-quit reload
check session-cache session_cache
check client-certificates-rsa client_certificates rsa "RSA-2048 private"
check client-certificates-p384 client_certificates p384 "ECDSA-P384 verify"
check client-certificates-ed25519 client_certificates ed25519 "Ed25519 sign"
check openssl-speed-jobs speed_jobs
check s_server-async s_server_async
check python-poll python_server PollSelector
check python-select python_server SelectSelector
check python-epoll python_server EpollSelector

printf '%s ok, %s failed, %s skipped\n' "${counts[@]}"
[ "${counts[1]}" = 0 ]
