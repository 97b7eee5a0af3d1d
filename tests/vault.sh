#!/usr/bin/env bash
# Real servers whose private keys are in the broker's vault: nginx, haproxy and Apache serve, what is wrong with a key is said when the
# configuration is read, a restarted broker is found again, and a worker read out byte by byte holds no private key (one with an ordinary key file does).
set -euo pipefail
. "$(dirname "$0")/lib.sh"
test=vault
. "$(dirname "$0")/vault-lib.sh"
need "$bywash"
[ "$(id -u)" = 0 ] || { echo "$test: skipped: only root may read other processes' memory and start workers as www-data"; exit 0; }
unset BYWASH_ROUTE OPENSSL_CONF
export BYWASH_SOCKET=$scratch/run/broker.sock
mkdir "$scratch/run" "$scratch/www"
echo "the page" >"$scratch/www/page"
web=$(id -u www-data)
group=$(id -g www-data)
haproxy=$(id -u haproxy)
kinds=(rsa ecdsa p384 ed25519)

start() { start_broker --allow-uid "$web" --allow-uid "$haproxy" --allow-gid "$group" --log json; }

start
for kind in "${kinds[@]}"; do
    make_certificate "$kind"
    "$bywash" key import "$kind" --from "$scratch/$kind.key" --allow-uid "$web" --allow-uid "$haproxy" 2>"$scratch/import.log" ||
        fail "import of the $kind key" "$scratch/import.log"
    "$bywash" key uri "$kind" >"$scratch/$kind.uri"
    # From here on the servers find no private key on disk.
    mv "$scratch/$kind.key" "$scratch/$kind.secret"
    chmod 600 "$scratch/$kind.secret"
done
grep -q 'BEGIN BYWASH KEY URI' "$scratch/rsa.uri" || fail "key uri"
! grep -q '"plain"' "$scratch"/keys/*.key || fail "keys are encrypted at rest"

worker_of() { pgrep -P "$1" -f 'nginx: worker' | head -1; }

# Servers for all kinds, with files SUFFIX as keys; nginx has one certificate on a curve of NIST's at a time: two_nginx NAME SUFFIX COMMAND...
two_nginx() {
    local name=$1 suffix=$2 number=0 pair kind
    shift 2
    ports=() logs=() workers=()
    for pair in "rsa ecdsa" "p384 ed25519"; do
        local file=$scratch/$name.$((number += 1)) keys=()
        for kind in $pair; do keys+=("$kind" "$scratch/$kind.$suffix"); done
        ports+=("$(free_port)") logs+=("$file.log")
        keyed_nginx "$file" "${ports[-1]}" "${keys[@]}"
        begin "$file.out" "$@" nginx -c "$file"
        await_port "${ports[-1]}" "$pid" "$file.out"
    done
}

# Each of those servers shakes hands with its kinds, and its worker is known from then on: two_handshakes WHAT
two_handshakes() {
    every_handshake "${ports[0]}" "$1" "${logs[0]}" rsa ecdsa
    every_handshake "${ports[1]}" "$1" "${logs[1]}" p384 ed25519
    workers=()
    local log
    for log in "${logs[@]}"; do workers+=("$(worker_of "$(cat "${log%.log}.pid")")"); done
}

# nginx under `bywash run`, and the workers' memory.
secrets=("${kinds[@]/%/.secret}")
secrets=("${secrets[@]/#/$scratch/}")
two_nginx nginx uri "$bywash" run --socket "$BYWASH_SOCKET" --
two_handshakes nginx
for worker in "${workers[@]}"; do
    "$repository/tests/search-memory.py" "$worker" "${secrets[@]}" || fail "nginx's worker holds parts of a private key"
done
ok "nginx serves with keys of the vault of every kind, and its workers' memory holds no part of them"
sleep 2.5
for kind in "${kinds[@]}"; do
    grep -q "\"event\":\"use\",\"key\":\"$kind\".*\"uid\":$web" "$scratch/keys/audit.log" ||
        fail "the audit log has the worker's uses of $kind" "$scratch/keys/audit.log"
done
ok "each use is in the audit log"

# A broker that is restarted is found again.
end "$broker"
start
two_handshakes "nginx after a restart of the broker"
ok "a restarted broker is found again"

# The control: the same search finds the keys where the servers have them.
two_nginx plain secret
two_handshakes "nginx with key files"
for worker in "${workers[@]}"; do
    ! "$repository/tests/search-memory.py" "$worker" "${secrets[@]}" >>"$scratch/found" || fail "the search finds nothing where there is a key"
done
for number in 'rsa.secret: p' 'ecdsa.secret: d' 'p384.secret: d' 'ed25519.secret: seed'; do
    grep -q "$number:" "$scratch/found" || fail "the search misses $number" "$scratch/found"
done
ok "the same search finds every key in workers that were given key files"

# Plain OPENSSL_CONF, without `bywash run`.
provider=${BYWASH_PROVIDER:-$(dirname "$bywash")/libbywash_openssl.so}
provider_conf "$provider" "socket = $BYWASH_SOCKET" >"$scratch/openssl.cnf"
export OPENSSL_CONF=$scratch/openssl.cnf
openssl pkey -in bywash:rsa -pubout -out "$scratch/by-uri" 2>"$scratch/openssl.log" || fail "openssl pkey -in bywash:rsa" "$scratch/openssl.log"
OPENSSL_CONF=/dev/null openssl pkey -in "$scratch/rsa.secret" -pubout | cmp -s - "$scratch/by-uri" || fail "the public half by URI"
openssl req -new -key bywash:ecdsa -subj "/CN=$host" -out "$scratch/by.csr" 2>"$scratch/openssl.log" || fail "openssl req" "$scratch/openssl.log"
OPENSSL_CONF=/dev/null openssl req -in "$scratch/by.csr" -verify -noout 2>&1 | grep -q OK || fail "the certificate request verifies"
if openssl pkey -in bywash:rsa -out "$scratch/stolen" 2>"$scratch/openssl.log"; then fail "the private half was exported"; fi
grep -q 'vault and cannot be exported' "$scratch/openssl.log" || fail "the refusal to export says why" "$scratch/openssl.log"
ok "openssl takes the key by URI, makes a certificate request, and cannot export it"

# The key file, where openssl wants a file: it opens that as a store, which is another way than a server's.
openssl dgst -sha256 -binary -out "$scratch/digest" "$scratch/www/page"
head -c 100000 /dev/urandom >"$scratch/long"
for kind in "${kinds[@]}"; do
    file=$scratch/$kind.uri public=$scratch/$kind.public
    openssl pkey -in "$file" -pubout -out "$public" 2>"$scratch/openssl.log" || fail "openssl pkey -in FILE ($kind)" "$scratch/openssl.log"
    OPENSSL_CONF=/dev/null openssl pkey -in "$scratch/$kind.secret" -pubout | cmp -s - "$public" || fail "the public half by file ($kind)"
    openssl req -new -key "$file" -subj "/CN=$host" -out "$scratch/by.csr" 2>"$scratch/openssl.log" || fail "openssl req -key FILE ($kind)" "$scratch/openssl.log"
    openssl x509 -req -in "$scratch/by.csr" -signkey "$file" -out "$scratch/by.pem" 2>"$scratch/openssl.log" ||
        fail "openssl x509 -signkey FILE ($kind)" "$scratch/openssl.log"
    OPENSSL_CONF=/dev/null openssl verify -CAfile "$scratch/by.pem" "$scratch/by.pem" >"$scratch/openssl.log" 2>&1 ||
        fail "the certificate of the key itself verifies ($kind)" "$scratch/openssl.log"
    # Ed25519 signs the message itself, however long, and the others its digest.
    what=(-pkeyopt digest:sha256 -in "$scratch/digest")
    [ "$kind" != ed25519 ] || what=(-rawin -in "$scratch/long")
    openssl pkeyutl -sign -inkey "$file" "${what[@]}" -out "$scratch/signature" 2>"$scratch/openssl.log" ||
        fail "openssl pkeyutl -sign -inkey FILE ($kind)" "$scratch/openssl.log"
    OPENSSL_CONF=/dev/null openssl pkeyutl -verify -pubin -inkey "$public" "${what[@]}" -sigfile "$scratch/signature" \
        >"$scratch/openssl.log" 2>&1 || fail "the signature of pkeyutl verifies ($kind)" "$scratch/openssl.log"
    if openssl pkey -in "$file" -out "$scratch/stolen" 2>"$scratch/openssl.log"; then fail "the private half was exported by file ($kind)"; fi
done
cat "$scratch/rsa.pem" "$scratch/rsa.uri" >"$scratch/chain"
openssl pkey -in "$scratch/chain" -pubout 2>"$scratch/openssl.log" | cmp -s - "$scratch/rsa.public" || fail "a key file after a certificate" "$scratch/openssl.log"
openssl pkey -in "$scratch/ecdsa.secret" -noout 2>"$scratch/openssl.log" || fail "ordinary key files are read as ever" "$scratch/openssl.log"
ok "openssl takes the key file for pkey, req, x509 and pkeyutl"

# Agreements, where the policy allows them: both sides come to the same secret.
for curve in p256:prime256v1 p384:secp384r1; do
    kind=${curve%:*}
    "$bywash" key generate "derive-$kind" --algorithm "$kind" --allow derive 2>/dev/null
    "$bywash" key public "derive-$kind" >"$scratch/ours.pub"
    OPENSSL_CONF=/dev/null openssl ecparam -name "${curve#*:}" -genkey -noout -out "$scratch/peer.key"
    OPENSSL_CONF=/dev/null openssl pkey -in "$scratch/peer.key" -pubout -out "$scratch/peer.pub"
    openssl pkeyutl -derive -inkey "bywash:derive-$kind" -peerkey "$scratch/peer.pub" -out "$scratch/ours" 2>"$scratch/openssl.log" ||
        fail "an agreement with a $kind key" "$scratch/openssl.log"
    OPENSSL_CONF=/dev/null openssl pkeyutl -derive -inkey "$scratch/peer.key" -peerkey "$scratch/ours.pub" | cmp -s - "$scratch/ours" || fail "the same secret with $kind"
    if openssl dgst -sha256 -sign "bywash:derive-$kind" -out "$scratch/signature" "$scratch/www/page" 2>"$scratch/openssl.log"; then fail "a key that may only derive signs"; fi
    grep -q 'may be used to derive and not to sign' "$scratch/openssl.log" || fail "it is said that a $kind key may only derive" "$scratch/openssl.log"
done
if "$bywash" key generate never --algorithm ed25519 --allow derive 2>"$scratch/openssl.log"; then fail "an Ed25519 key is made to derive"; fi
grep -q 'kind ed25519 cannot derive' "$scratch/openssl.log" || fail "it is said what an Ed25519 key can do" "$scratch/openssl.log"
ok "keys agree where they may, and only there"

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

# A key that the workers may not use: nginx, which judges errors by their numbers, is to log that as an error.
"$bywash" key import shut --from "$scratch/rsa.secret" 2>/dev/null
"$bywash" key uri shut >"$scratch/rsa.shut"
port=$(free_port)
keyed_nginx "$scratch/shut" "$port" rsa "$scratch/rsa.shut"
begin "$scratch/shut.out" "$bywash" run --quiet -- nginx -c "$scratch/shut"
await_port "$port" "$pid" "$scratch/shut.out"
for version in -tls1_2 -tls1_3; do
    : >"$scratch/shut.log"
    if handshake "$port" "$version"; then fail "a worker signs with a key of others ($version)"; fi
    sleep 0.2
    grep -q "uid $web may not use it" "$scratch/shut.log" || fail "nginx logs why its handshakes fail ($version)" "$scratch/shut.log"
done
end "$pid"
ok "nginx logs that its workers may not use a key"

# What is wrong is said by `nginx -t`.
refused() {
    local text=$1
    if nginx -t -c "$scratch/bad.conf" >"$scratch/bad.out" 2>&1; then fail "nginx -t takes: $2" "$scratch/bad.out"; fi
    grep -q "$text" "$scratch/bad.out" "$scratch/bad.conf.log" || fail "nginx -t says why: $2" "$scratch/bad.out" "$scratch/bad.conf.log"
}
"$bywash" key generate other --algorithm p256 2>/dev/null
"$bywash" key uri other >"$scratch/other.uri"
port=$(free_port)
keyed_nginx "$scratch/bad.conf" "$port" rsa "$scratch/rsa.uri" ecdsa "$scratch/other.uri"
refused 'key values mismatch' 'a key that is not the certificate'"'"'s'
"$bywash" key remove other --yes 2>/dev/null
refused 'bywash:other: there is no such key' 'a key that was removed'
if openssl pkey -in "$scratch/other.uri" -noout 2>"$scratch/openssl.log"; then fail "openssl takes a key that was removed"; fi
grep -q 'bywash:other: there is no such key' "$scratch/openssl.log" || fail "openssl says why a key file is no good" "$scratch/openssl.log"
end "$broker"
keyed_nginx "$scratch/bad.conf" "$port" rsa "$scratch/rsa.uri" ecdsa "$scratch/ecdsa.uri"
refused 'no broker listens' 'no broker'
start
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
every_handshake "$port" haproxy "$scratch/haproxy.log" rsa ecdsa
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
every_handshake "$port" Apache "$scratch/apache.error" rsa ecdsa
ok "Apache serves with keys of the vault"
