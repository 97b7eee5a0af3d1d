#!/usr/bin/env bash
# Real servers whose private keys are in the broker's vault: nginx, haproxy and Apache serve, what is wrong with a key is said when the
# configuration is read, a restarted broker is found again, and a worker read out byte by byte holds no private key (one with an ordinary key file does).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need "$bywash"
[ "$(id -u)" = 0 ] || { echo "vault: skipped: only root may read other processes' memory and start workers as www-data"; exit 0; }
unset BYWASH_ROUTE OPENSSL_CONF
export BYWASH_SOCKET=$scratch/run/broker.sock
mkdir "$scratch/run" "$scratch/www"
echo "the page" >"$scratch/www/page"
(umask 077 && echo "a passphrase for the test" >"$scratch/passphrase")
make_certificate rsa
make_certificate ecdsa
web=$(id -u www-data)
group=$(id -g www-data)

start_broker() {
    begin "$scratch/broker.log" "$bywash" serve --socket "$BYWASH_SOCKET" --allow-uid "$web" --allow-uid "$(id -u haproxy)" \
        --allow-gid "$group" --keys "$scratch/keys" --keys-passphrase "$scratch/passphrase" --log json
    broker=$pid
    for _ in $(seq 200); do
        "$bywash" stats >/dev/null 2>&1 && return 0
        kill -0 "$broker" 2>/dev/null || break
        sleep 0.05
    done
    cat "$scratch/broker.log" >&2
    die "vault: the broker does not come up"
}

ok() { printf 'vault: ok: %s\n' "$1"; }
fail() {
    printf 'vault: FAILED: %s\n' "$1" >&2
    shift
    for file in "$@"; do echo "--- $file"; tail -n 12 "$file"; done >&2
    exit 1
}

start_broker
for kind in rsa ecdsa; do
    "$bywash" key import "$kind" --from "$scratch/$kind.key" --allow-uid "$web" --allow-uid "$(id -u haproxy)" 2>"$scratch/import.log" ||
        fail "import of the $kind key" "$scratch/import.log"
    "$bywash" key uri "$kind" >"$scratch/$kind.uri"
    # From here on the servers find no private key on disk.
    mv "$scratch/$kind.key" "$scratch/$kind.secret"
    chmod 600 "$scratch/$kind.secret"
done
grep -q 'BEGIN BYWASH KEY URI' "$scratch/rsa.uri" || fail "key uri"
! grep -q '"plain"' "$scratch"/keys/*.key || fail "keys are encrypted at rest"

# A server block for both keys: vault_nginx FILE PORT RSA-KEY ECDSA-KEY
vault_nginx() {
    nginx_conf "$1" "$2"
    sed -i "s#ssl_certificate_key .*#ssl_certificate_key $3; ssl_certificate $scratch/ecdsa.pem; ssl_certificate_key $4;#" "$1"
}

# One handshake, verified: handshake PORT ARGUMENTS-OF-s_client...
handshake() {
    local port=$1
    shift
    echo | OPENSSL_CONF=/dev/null timeout 20 openssl s_client -connect "127.0.0.1:$port" -servername $host -CAfile "$scratch/ca.pem" \
        -verify_return_error "$@" >"$scratch/s_client.log" 2>&1 && grep -q 'Verification: OK\|Verify return code: 0' "$scratch/s_client.log"
}

every_handshake() {
    handshake "$1" -tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256 || fail "$2: TLS 1.2 with RSA" "$scratch/s_client.log" "$3"
    handshake "$1" -tls1_3 -sigalgs RSA-PSS+SHA256:RSA+SHA256 || fail "$2: TLS 1.3 with RSA" "$scratch/s_client.log" "$3"
    handshake "$1" -tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256 || fail "$2: TLS 1.2 with ECDSA" "$scratch/s_client.log" "$3"
    handshake "$1" -tls1_3 -sigalgs ecdsa_secp256r1_sha256 || fail "$2: TLS 1.3 with ECDSA" "$scratch/s_client.log" "$3"
}

worker_of() { pgrep -P "$1" -f 'nginx: worker' | head -1; }

# nginx under `bywash run`, and the worker's memory.
port=$(free_port)
vault_nginx "$scratch/nginx.conf" "$port" "$scratch/rsa.uri" "$scratch/ecdsa.uri"
begin "$scratch/nginx.out" "$bywash" run --socket "$BYWASH_SOCKET" -- nginx -c "$scratch/nginx.conf"
await_port "$port" "$pid" "$scratch/nginx.out"
every_handshake "$port" nginx "$scratch/nginx.conf.log"
worker=$(worker_of "$(cat "$scratch/nginx.conf.pid")")
"$repository/tests/search-memory.py" "$worker" "$scratch/rsa.secret" "$scratch/ecdsa.secret" || fail "nginx's worker holds parts of a private key"
ok "nginx serves with keys of the vault, and its worker's memory holds no part of them"
sleep 2.5
grep -q "\"event\":\"use\",\"key\":\"rsa\".*\"uid\":$web" "$scratch/keys/audit.log" || fail "the audit log has the worker's uses" "$scratch/keys/audit.log"
ok "each use is in the audit log"

# A broker that is restarted is found again.
end "$broker"
start_broker
every_handshake "$port" "nginx after a restart of the broker" "$scratch/nginx.conf.log"
ok "a restarted broker is found again"

# The control: the same search finds the key where the server has it.
plain=$(free_port)
vault_nginx "$scratch/plain.conf" "$plain" "$scratch/rsa.secret" "$scratch/ecdsa.secret"
begin "$scratch/plain.out" nginx -c "$scratch/plain.conf"
await_port "$plain" "$pid" "$scratch/plain.out"
every_handshake "$plain" "nginx with key files" "$scratch/plain.conf.log"
worker=$(worker_of "$pid")
if "$repository/tests/search-memory.py" "$worker" "$scratch/rsa.secret" "$scratch/ecdsa.secret" >"$scratch/found"; then fail "the search finds nothing where there is a key"; fi
grep -q 'rsa.secret: p:' "$scratch/found" && grep -q 'ecdsa.secret: d:' "$scratch/found" || fail "the search misses a key" "$scratch/found"
ok "the same search finds both keys in a worker that was given key files"

# Plain OPENSSL_CONF, without `bywash run`.
provider=${BYWASH_PROVIDER:-$(dirname "$bywash")/libbywash_openssl.so}
cat >"$scratch/openssl.cnf" <<CONF
openssl_conf = init
[init]
providers = providers
[providers]
bywash = bywash
default = default_sect
[bywash]
module = $provider
activate = 1
socket = $BYWASH_SOCKET
[default_sect]
activate = 1
CONF
export OPENSSL_CONF=$scratch/openssl.cnf
openssl pkey -in bywash:rsa -pubout -out "$scratch/by-uri" 2>"$scratch/openssl.log" || fail "openssl pkey -in bywash:rsa" "$scratch/openssl.log"
OPENSSL_CONF=/dev/null openssl pkey -in "$scratch/rsa.secret" -pubout | cmp -s - "$scratch/by-uri" || fail "the public half by URI"
openssl req -new -key bywash:ecdsa -subj "/CN=$host" -out "$scratch/by.csr" 2>"$scratch/openssl.log" || fail "openssl req" "$scratch/openssl.log"
OPENSSL_CONF=/dev/null openssl req -in "$scratch/by.csr" -verify -noout 2>&1 | grep -q OK || fail "the certificate request verifies"
if openssl pkey -in bywash:rsa -out "$scratch/stolen" 2>"$scratch/openssl.log"; then fail "the private half was exported"; fi
grep -q 'vault and cannot be exported' "$scratch/openssl.log" || fail "the refusal to export says why" "$scratch/openssl.log"
ok "openssl takes the key by URI, makes a certificate request, and cannot export it"

# The key file, where openssl wants a file: it opens that as a store, which is another way than a server's.
for kind in rsa ecdsa; do
    file=$scratch/$kind.uri public=$scratch/$kind.public
    openssl pkey -in "$file" -pubout -out "$public" 2>"$scratch/openssl.log" || fail "openssl pkey -in FILE ($kind)" "$scratch/openssl.log"
    OPENSSL_CONF=/dev/null openssl pkey -in "$scratch/$kind.secret" -pubout | cmp -s - "$public" || fail "the public half by file ($kind)"
    openssl req -new -key "$file" -subj "/CN=$host" -out "$scratch/by.csr" 2>"$scratch/openssl.log" || fail "openssl req -key FILE ($kind)" "$scratch/openssl.log"
    openssl x509 -req -in "$scratch/by.csr" -signkey "$file" -out "$scratch/by.pem" 2>"$scratch/openssl.log" ||
        fail "openssl x509 -signkey FILE ($kind)" "$scratch/openssl.log"
    OPENSSL_CONF=/dev/null openssl verify -CAfile "$scratch/by.pem" "$scratch/by.pem" >"$scratch/openssl.log" 2>&1 ||
        fail "the certificate of the key itself verifies ($kind)" "$scratch/openssl.log"
    openssl dgst -sha256 -binary -out "$scratch/digest" "$scratch/www/page"
    openssl pkeyutl -sign -inkey "$file" -pkeyopt digest:sha256 -in "$scratch/digest" -out "$scratch/signature" 2>"$scratch/openssl.log" ||
        fail "openssl pkeyutl -sign -inkey FILE ($kind)" "$scratch/openssl.log"
    OPENSSL_CONF=/dev/null openssl pkeyutl -verify -pubin -inkey "$public" -pkeyopt digest:sha256 -in "$scratch/digest" -sigfile "$scratch/signature" \
        >"$scratch/openssl.log" 2>&1 || fail "the signature of pkeyutl verifies ($kind)" "$scratch/openssl.log"
    if openssl pkey -in "$file" -out "$scratch/stolen" 2>"$scratch/openssl.log"; then fail "the private half was exported by file ($kind)"; fi
done
cat "$scratch/rsa.pem" "$scratch/rsa.uri" >"$scratch/chain"
openssl pkey -in "$scratch/chain" -pubout 2>"$scratch/openssl.log" | cmp -s - "$scratch/rsa.public" || fail "a key file after a certificate" "$scratch/openssl.log"
openssl pkey -in "$scratch/ecdsa.secret" -noout 2>"$scratch/openssl.log" || fail "ordinary key files are read as ever" "$scratch/openssl.log"
ok "openssl takes the key file for pkey, req, x509 and pkeyutl"

# Groups: a user without a name in any policy, with and without a group that has leave.
"$bywash" key generate grouped --allow-gid "$group" 2>/dev/null
"$bywash" key generate private 2>/dev/null
"$bywash" key list | grep -q "^grouped .*owner,group $group" || fail "key list names the group"
cp "$provider" "$scratch/provider.so"
sed "s#^module = .*#module = $scratch/provider.so#" "$scratch/openssl.cnf" >"$scratch/member.cnf"
chmod 755 "$scratch/run"
sign_as() {
    local key=$1
    shift
    setpriv --reuid 65534 --regid 65534 "$@" env OPENSSL_CONF="$scratch/member.cnf" openssl dgst -sha256 -sign "bywash:$key" "$scratch/www/page" \
        2>"$scratch/openssl.log" >"$scratch/signature"
}
sign_as grouped --groups "$group" || fail "a member of the group signs" "$scratch/openssl.log"
"$bywash" key public grouped >"$scratch/grouped.public"
OPENSSL_CONF=/dev/null openssl dgst -sha256 -verify "$scratch/grouped.public" -signature "$scratch/signature" "$scratch/www/page" >/dev/null ||
    fail "the member's signature verifies"
grep -q "\"event\":\"open\",\"key\":\"grouped\".*\"uid\":65534,\"gid\":65534,\"group\":$group" "$scratch/keys/audit.log" ||
    fail "the audit log names user and group" "$scratch/keys/audit.log"
if sign_as private --groups "$group"; then fail "a member signs with a key of others"; fi
grep -q 'uid 65534 may not use it.*--allow-gid' "$scratch/openssl.log" || fail "a member is told why not" "$scratch/openssl.log"
if sign_as grouped --clear-groups; then fail "a stranger signs"; fi
grep -q 'may not use this broker.*--allow-gid' "$scratch/openssl.log" || fail "a stranger is told why not" "$scratch/openssl.log"
ok "groups have leave as users have"

# What is wrong is said by `nginx -t`.
refused() {
    local text=$1
    if nginx -t -c "$scratch/bad.conf" >"$scratch/bad.out" 2>&1; then fail "nginx -t takes: $2" "$scratch/bad.out"; fi
    grep -q "$text" "$scratch/bad.out" "$scratch/bad.conf.log" || fail "nginx -t says why: $2" "$scratch/bad.out" "$scratch/bad.conf.log"
}
"$bywash" key generate other --algorithm p256 2>/dev/null
"$bywash" key uri other >"$scratch/other.uri"
vault_nginx "$scratch/bad.conf" "$port" "$scratch/rsa.uri" "$scratch/other.uri"
refused 'key values mismatch' 'a key that is not the certificate'"'"'s'
"$bywash" key remove other --yes 2>/dev/null
refused 'bywash:other: there is no such key' 'a key that was removed'
if openssl pkey -in "$scratch/other.uri" -noout 2>"$scratch/openssl.log"; then fail "openssl takes a key that was removed"; fi
grep -q 'bywash:other: there is no such key' "$scratch/openssl.log" || fail "openssl says why a key file is no good" "$scratch/openssl.log"
end "$broker"
vault_nginx "$scratch/bad.conf" "$port" "$scratch/rsa.uri" "$scratch/ecdsa.uri"
refused 'no broker listens' 'no broker'
start_broker
nginx -t -c "$scratch/bad.conf" >"$scratch/bad.out" 2>&1 || fail "nginx -t with all in order" "$scratch/bad.out"
ok "nginx -t says what is wrong with a key"

# haproxy: certificate and key in one file.
port=$(free_port)
cat "$scratch/rsa.pem" "$scratch/rsa.uri" >"$scratch/both.pem.rsa"
cat "$scratch/ecdsa.pem" "$scratch/ecdsa.uri" >"$scratch/both.pem.ecdsa"
cat >"$scratch/haproxy.cfg" <<CONF
global
    user haproxy
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 5s
frontend tls
    bind 127.0.0.1:$port ssl crt $scratch/both.pem
    http-request return status 200 content-type text/plain string "the page"
CONF
begin "$scratch/haproxy.log" haproxy -db -f "$scratch/haproxy.cfg"
await_port "$port" "$pid" "$scratch/haproxy.log" || fail "haproxy starts" "$scratch/haproxy.log"
every_handshake "$port" haproxy "$scratch/haproxy.log"
ok "haproxy serves with keys of the vault"

# Apache.
port=$(free_port)
modules=/usr/lib/apache2/modules
cat >"$scratch/apache.conf" <<CONF
ServerRoot $scratch
ServerName $host
PidFile $scratch/apache.pid
ErrorLog $scratch/apache.error
DefaultRuntimeDir $scratch
User www-data
Group www-data
Listen 127.0.0.1:$port
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule ssl_module $modules/mod_ssl.so
DocumentRoot $scratch/www
SSLEngine on
SSLSessionCache none
SSLCertificateFile $scratch/rsa.pem
SSLCertificateKeyFile $scratch/rsa.uri
SSLCertificateFile $scratch/ecdsa.pem
SSLCertificateKeyFile $scratch/ecdsa.uri
CONF
begin "$scratch/apache.log" apache2 -DFOREGROUND -f "$scratch/apache.conf"
await_port "$port" "$pid" "$scratch/apache.log" || fail "Apache starts" "$scratch/apache.log" "$scratch/apache.error"
every_handshake "$port" Apache "$scratch/apache.error"
ok "Apache serves with keys of the vault"
