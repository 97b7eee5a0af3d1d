# What the tests and the demo share: a scratch folder, certificates, free ports, servers that are stopped by their own pid.
# Source it; `scratch` is then a private folder that vanishes at exit, and everything begun with `serve_*` or `begin` is ended.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bywash=${BYWASH:-$repository/target/release/bywash}
tls_load=$repository/target/release/tls-load
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bywash-test.XXXXXX")
chmod 755 "$scratch"
started=()
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
host=bywash.test

# Ends one process that we started, and waits until it is gone: politely, after 5 s not.
end() {
    local pid=$1
    kill -TERM "$pid" 2>/dev/null || return 0
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}

clean_up() {
    local pid
    trap '' INT TERM
    for pid in "${started[@]:-}"; do [ -z "$pid" ] || end "$pid"; done
    [ -n "${KEEP:-}" ] || rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() { printf '%s\n' "$*" >&2; exit 1; }

need() {
    local file
    for file in "$@"; do [ -x "$file" ] || die "$file is missing: run 'make build' first"; done
}

# OpenSSL's configuration with a module of ours before the default provider: provider_conf MODULE SETTING...
provider_conf() {
    local module=$1
    shift
    cat <<CONF
openssl_conf = init
[init]
providers = providers
[providers]
bywash = bywash
default = default_sect
[bywash]
module = $module
activate = 1
$(printf '%s\n' "$@")
[default_sect]
activate = 1
CONF
}

# Starts a command in the background and leaves its pid in $pid: begin LOGFILE CMD... It gets a process group of its own, because apache2
# ends by signalling its whole group, which would be us.
begin() {
    local log=$1
    shift
    setsid "$@" >"$log" 2>&1 &
    pid=$!
    started+=("$pid")
}

# A TCP port of 127.0.0.1 that is free now.
free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Waits until something listens: await_port PORT PID LOGFILE
await_port() {
    for _ in $(seq 200); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
        kill -0 "$2" 2>/dev/null || break
        sleep 0.05
    done
    printf 'nothing listens on port %s; %s says:\n' "$1" "$3" >&2
    tail -5 "$3" >&2
    return 1
}

# Waits until a broker answers on $BYWASH_SOCKET: await_broker PID LOGFILE
await_broker() {
    for _ in $(seq 500); do
        [ -S "$BYWASH_SOCKET" ] && "$bywash" stats >/dev/null 2>&1 && return 0
        kill -0 "$1" 2>/dev/null || break
        sleep 0.02
    done
    cat "$2" >&2
    die "the broker does not come up"
}

# A CA and a server certificate for $host and localhost: ca.pem, KIND.pem and KIND.key in $scratch. make_certificate rsa|rsa3072...|ecdsa|p384|ed25519
make_certificate() {
    local kind=$1 key
    case $kind in
        rsa) key=(-newkey rsa:2048) ;;
        rsa[1-9]*) key=(-newkey "rsa:${kind#rsa}") ;;
        ecdsa) key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256) ;;
        p384) key=(-newkey ec -pkeyopt ec_paramgen_curve:P-384) ;;
        ed25519) key=(-newkey ed25519) ;;
        *) die "make_certificate: no kind '$kind'" ;;
    esac
    (
        cd "$scratch"
        [ -e ca.pem ] || openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj '/CN=bywash test CA' \
            -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2>/dev/null
        openssl req "${key[@]}" -nodes -keyout "$kind.key" -out "$kind.csr" -subj "/CN=$host" 2>/dev/null
        printf 'subjectAltName=DNS:%s,DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n' "$host" >"$kind.ext"
        openssl x509 -req -in "$kind.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "$kind.ext" -out "$kind.pem" 2>/dev/null
        chmod 644 "$kind.key"
    )
}

# An nginx.conf for one worker on $scratch/www: nginx_conf FILE PORT [more lines for the main context]
nginx_conf() {
    local file=$1 port=$2 more=${3:-}
    cat >"$file" <<CONF
daemon off;
$([ "$(id -u)" != 0 ] || echo 'user www-data;')
worker_processes 1;
pid $file.pid;
error_log $file.log warn;
$more
events { worker_connections 1024; }
http {
    access_log off;
    types { }
    default_type application/octet-stream;
    keepalive_requests 1000000;
    client_body_temp_path $file.tmp/a; proxy_temp_path $file.tmp/b; fastcgi_temp_path $file.tmp/c;
    uwsgi_temp_path $file.tmp/d; scgi_temp_path $file.tmp/e;
    server {
        listen 127.0.0.1:$port ssl backlog=4096;
        server_name $host;
        ssl_certificate $scratch/rsa.pem;
        ssl_certificate_key $scratch/rsa.key;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_tickets off;
        ssl_session_cache off;
        root $scratch/www;
    }
}
CONF
    mkdir -p "$file.tmp"
}

# A haproxy configuration with one TLS listener: haproxy_conf FILE PORT CERTIFICATE-AND-KEY ANSWER [more lines for the global section]
# ANSWER is a line of the listener: `server plain 127.0.0.1:PORT`, or `http-request return status 200`.
haproxy_conf() {
    cat >"$1" <<CONF
global
    ssl-default-bind-options ssl-min-ver TLSv1.2
    maxconn 1000
    ${5:-}
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
listen tls
    bind 127.0.0.1:$2 ssl crt $3
    $4
CONF
}

# Runs a command with its cryptography routed; what ran where is written to REPORT: routed REPORT CMD...
routed() {
    local report=$1
    shift
    "$bywash" run --quiet --report "$report" -- "$@"
}

# How many operations a report tells of: operations REPORT here|broker|all [ALGORITHM-PREFIX]
operations() {
    /usr/bin/python3 - "$@" <<'PY'
import json, sys
path, place, prefix = (sys.argv[1:] + [""])[:3]
report = json.load(open(path))["account"]
lines = [line for where in ("here", "broker") if place in (where, "all") for line in report[where]]
print(sum(line["operations"] for line in lines if line["algorithm"].startswith(prefix)))
PY
}
