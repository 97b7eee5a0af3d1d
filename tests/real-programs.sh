#!/usr/bin/env bash
# Real programs, unmodified, under `bywash run`: each must give the same bytes as without, and Bywash must really have done work in it.
# One line a program: ok, FAILED or skipped with the reason. `tests/real-programs.sh nginx curl` runs those alone.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need "$bywash" "$tls_load"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF
python=/usr/bin/python3
counts=(0 0 0)

# --- the frame ---------------------------------------------------------------------------------------------------------------

# Runs one program's check in a subshell of its own; the check says `fail`, or `skip`, or ends well.
program() {
    local name=$1 check=$2 status=0 seconds=$SECONDS
    [ ${#only[@]} = 0 ] || printf '%s\n' "${only[@]}" | grep -qxF "$name" || return 0
    local room=$scratch/$check
    mkdir "$room"
    # Not behind `||` or `if`: there bash would ignore `set -e` in the check.
    set +e
    (
        trap clean_up_servers EXIT
        started=()
        cd "$room"
        set -e
        "$check"
    ) >"$room/log" 2>&1
    status=$?
    set -e
    case $status in
        0) counts[0]=$((counts[0] + 1)); printf 'ok       %-18s %s\n' "$name" "$(note "$room") ($((SECONDS - seconds)) s)" ;;
        77) counts[2]=$((counts[2] + 1)); printf 'skipped  %-18s %s\n' "$name" "$(tail -1 "$room/log")" ;;
        *) counts[1]=$((counts[1] + 1)); printf 'FAILED   %-18s status %s; the last of its log:\n' "$name" "$status"; tail -8 "$room/log" | sed 's/^/         | /' ;;
    esac
}

clean_up_servers() { local pid; for pid in "${started[@]:-}"; do [ -z "$pid" ] || end "$pid"; done; }
note() { tail -1 "$1/note" 2>/dev/null || true; }
fail() { echo "$*"; exit 1; }
skip() { echo "$*"; exit 77; }
have() { command -v "$1" >/dev/null || skip "no $1 here: apt-get install $2"; }
same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }

# Bywash did something in this run; with a prefix, with those algorithms.
did_work() {
    local report=$1 all
    shift
    [ -s "$report" ] || fail "the run wrote no report: $report"
    all=$(operations "$report" all)
    [ "$all" -gt 0 ] || fail "Bywash did nothing in this run: $(cat "$report")"
    for prefix in "$@"; do
        [ "$(operations "$report" all "$prefix")" -gt 0 ] || fail "no operation of $prefix* in this run: $(cat "$report")"
    done
    echo "$all operations, $(operations "$report" broker) at the broker" >note
}

# --- the servers: routed themselves, asked by clients that are not --------------------------------------------------------------

# Full handshakes and bulk, TLS 1.2 and 1.3, by a client that compares every byte.
load() {
    local port=$1 version
    for version in 1.2 1.3; do
        "$tls_load" --connect "127.0.0.1:$port" --sni $host --ca "$scratch/ca.pem" --tls $version --connections 4 --count 40 \
            --path /small --expect "$scratch/www/small"
        "$tls_load" --connect "127.0.0.1:$port" --sni $host --ca "$scratch/ca.pem" --tls $version --connections 2 --count 4 \
            --requests 3 --path /large --expect "$scratch/www/large"
    done
}

# A routed server from start to stop: serve PORT CMD...
serve_and_load() {
    local port=$1
    shift
    begin server.log "$bywash" run --quiet --report report.json -- "$@"
    await_port "$port" "$pid" server.log
    load "$port"
    end "$pid"
    cat server.log
    did_work report.json "RSA-2048 private" AES-256-GCM
}

check_nginx() {
    have nginx nginx-light
    local port
    port=$(free_port)
    nginx_conf "$PWD/nginx.conf" "$port"
    sed -i 's/^worker_processes 1/worker_processes 2/' nginx.conf
    serve_and_load "$port" nginx -c "$PWD/nginx.conf"
}

check_haproxy() {
    have haproxy haproxy
    local port
    port=$(free_port)
    cat "$scratch/rsa.pem" "$scratch/rsa.key" >both.pem
    haproxy_conf haproxy.cfg "$port" "$PWD/both.pem" "server plain 127.0.0.1:$plain_port"
    serve_and_load "$port" haproxy -db -f haproxy.cfg
}

apache() {
    have apache2 apache2
    local mpm=$1 port modules=/usr/lib/apache2/modules
    port=$(free_port)
    [ -e "$modules/mod_mpm_$mpm.so" ] || skip "no mod_mpm_$mpm.so in $modules: apt-get install apache2"
    cat >apache.conf <<CONF
ServerRoot $PWD
ServerName $host
PidFile $PWD/apache.pid
ErrorLog $PWD/error.log
DefaultRuntimeDir $PWD
Listen 127.0.0.1:$port
LoadModule mpm_${mpm}_module $modules/mod_mpm_$mpm.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule ssl_module $modules/mod_ssl.so
LoadModule socache_shmcb_module $modules/mod_socache_shmcb.so
$([ "$(id -u)" != 0 ] || printf 'User www-data\nGroup www-data\n')
StartServers 2
MaxKeepAliveRequests 0
DocumentRoot $scratch/www
<Directory $scratch/www>
    Require all granted
</Directory>
SSLEngine on
SSLProtocol TLSv1.2 TLSv1.3
SSLSessionCache none
SSLCertificateFile $scratch/rsa.pem
SSLCertificateKeyFile $scratch/rsa.key
CONF
    sed -i 's/ TLSv1.2 TLSv1.3/ -all +TLSv1.2 +TLSv1.3/' apache.conf
    serve_and_load "$port" apache2 -f "$PWD/apache.conf" -DFOREGROUND
}
check_apache_prefork() { apache prefork; }
check_apache_event() { apache event; }

check_s_server() {
    local port
    port=$(free_port)
    begin server.log "$bywash" run --quiet --report report.json -- openssl s_server -accept "127.0.0.1:$port" -cert "$scratch/rsa.pem" -key "$scratch/rsa.key" -HTTP -quiet </dev/null
    await_port "$port" "$pid" server.log
    printf 'HTTP/1.0 200 OK\r\nContent-Length: 8000\r\n\r\n' >answer
    cat "$scratch/www/small" >>answer
    for version in 2 3; do
        curl -sS --http1.0 --max-time 20 --cacert "$scratch/ca.pem" --tlsv1.$version --tls-max 1.$version --resolve "$host:$port:127.0.0.1" \
            "https://$host:$port/answer" -o got
        same got "$scratch/www/small"
    done
    end "$pid"
    did_work report.json "RSA-2048 private" AES-256-GCM
}

# --- the clients: routed themselves, against nginx that is not ----------------------------------------------------------------

check_curl() {
    have curl curl
    for version in 2 3; do
        for file in small large; do
            routed report.json curl -sS --max-time 30 --cacert "$scratch/ca.pem" --tlsv1.$version --tls-max 1.$version \
                --resolve "$host:$tls_port:127.0.0.1" "https://$host:$tls_port/$file" -o got
            same got "$scratch/www/$file"
        done
        did_work report.json AES-256-GCM
    done
}

check_s_client() {
    get() { printf 'GET /large HTTP/1.0\r\n\r\n' | "$@" openssl s_client -quiet -verify_return_error -ign_eof -CAfile "$scratch/ca.pem" \
        -verify_hostname $host -connect "127.0.0.1:$tls_port" 2>/dev/null | LC_ALL=C sed '1,/^\r$/d'; }
    get env >without
    get routed report.json >with
    same without "$scratch/www/large"
    same with "$scratch/www/large"
    did_work report.json AES-256-GCM
}

# Debian's wget and git speak TLS with GnuTLS, which no OpenSSL provider reaches. They run under Bywash all the same, against a routed nginx:
# the work is the server's.
against_routed_nginx() {
    local port
    port=$(free_port)
    nginx_conf "$PWD/nginx.conf" "$port"
    begin server.log "$bywash" run --quiet --report report.json -- nginx -c "$PWD/nginx.conf"
    await_port "$port" "$pid" server.log
    "$1" "$port"
    end "$pid"
    did_work report.json "RSA-2048 private"
    if ldd "$2" | grep gnutls >/dev/null; then echo "the server: $(note .); this client is linked with GnuTLS, which is not routed" >note; fi
}

check_wget() {
    have wget wget
    fetch() {
        for file in small large; do
            routed client.json wget -q --timeout=20 --tries=1 --ca-certificate="$scratch/ca.pem" "https://localhost:$1/$file" -O got
            same got "$scratch/www/$file"
        done
    }
    against_routed_nginx fetch "$(command -v wget)"
}

check_git() {
    have git git
    export GIT_CONFIG_NOSYSTEM=1 HOME=$PWD GIT_SSL_CAINFO=$scratch/ca.pem
    git init -q source
    cp "$scratch/www/large" source/
    git -C source add large
    git -C source -c user.name=t -c user.email=t@t commit -qm one
    git clone -q --bare source "$scratch/www/source.git"
    git -C "$scratch/www/source.git" update-server-info
    chmod -R a+rX "$scratch/www/source.git"
    fetch() {
        routed client.json timeout 60 git clone -q "https://localhost:$1/source.git" clone
        same clone/large "$scratch/www/large"
        git -C clone fsck --strict
    }
    against_routed_nginx fetch "$(git --exec-path)/git-remote-https"
}

# --- the openssl command ---------------------------------------------------------------------------------------------------

check_enc() {
    local key iv=000102030405060708090a0b0c0d0e0f cipher
    for cipher in aes-{128,192,256}-{cbc,ctr,ecb} chacha20; do
        key=$(head -c 32 "$scratch/www/large" | od -An -tx1 | tr -d ' \n')
        case $cipher in aes-128*) key=${key:0:32} ;; aes-192*) key=${key:0:48} ;; esac
        openssl enc -"$cipher" -K "$key" -iv $iv -in "$scratch/www/large" -out without 2>/dev/null
        routed report.json openssl enc -"$cipher" -K "$key" -iv $iv -in "$scratch/www/large" -out with
        same without with
        routed report.json openssl enc -d -"$cipher" -K "$key" -iv $iv -in without -out back
        same back "$scratch/www/large"
        # ECB and ChaCha20 stay with OpenSSL's own provider: the bytes must be right all the same.
        case $cipher in aes-*-c*) did_work report.json "${cipher^^}" ;; esac
    done
    routed report.json openssl enc -aes-256-cbc -pbkdf2 -pass pass:x -in "$scratch/www/large" -out with
    openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:x -in with -out back
    same back "$scratch/www/large"
    did_work report.json AES-256-CBC
}

check_cms() {
    local large=$scratch/www/large
    seal() { "$@" openssl cms -encrypt -binary -aes256 -in "$large" -outform DER -out sealed "$scratch/rsa.pem"; }
    open() { "$@" openssl cms -decrypt -binary -inform DER -in sealed -inkey "$scratch/rsa.key" -recip "$scratch/rsa.pem" -out opened; }
    sign() { "$@" openssl cms -sign -binary -nodetach -noattr -in "$large" -outform DER -signer "$scratch/rsa.pem" -inkey "$scratch/rsa.key" -out "$signed"; }
    check() { "$@" openssl cms -verify -binary -inform DER -in signed.with -CAfile "$scratch/ca.pem" -purpose any -out opened 2>/dev/null; }
    seal routed report.json
    did_work report.json AES-256-CBC
    open env
    same opened "$large"
    seal env
    open routed report.json
    same opened "$large"
    did_work report.json AES-256-CBC "RSA-2048 private"
    signed=signed.without sign env
    signed=signed.with sign routed report.json
    did_work report.json "RSA-2048 private"
    same signed.without signed.with
    check env
    same opened "$large"
    check routed report.json
    same opened "$large"
}

check_req() {
    request() { "$@" openssl req -new -sha256 -key "$scratch/rsa.key" -subj /CN=request -out "$out"; }
    out=without request env
    out=with request routed report.json
    same without with
    did_work report.json "RSA-2048 private"
    routed report.json openssl req -verify -noout -in without
    routed report.json openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ec.key -subj /CN=own -out own.pem
    did_work report.json ECDSA-P256
    openssl verify -CAfile own.pem own.pem
}

check_x509() {
    openssl req -new -key "$scratch/rsa.key" -subj /CN=leaf -out leaf.csr
    routed report.json openssl x509 -req -in leaf.csr -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" -set_serial 7 -out leaf.pem
    did_work report.json "RSA-2048 private"
    openssl verify -CAfile "$scratch/ca.pem" leaf.pem
    routed verify.json openssl verify -CAfile "$scratch/ca.pem" leaf.pem
    openssl x509 -in leaf.pem -noout -text -fingerprint >without
    routed report.json openssl x509 -in leaf.pem -noout -text -fingerprint >with
    same without with
}

check_speed() {
    local case
    for case in "-evp aes-256-gcm" "-evp aes-128-ctr" "-evp aes-256-cbc"; do
        routed report.json openssl speed -mr -seconds 1 -bytes 1024 $case 2>/dev/null | grep '^+F'
        did_work report.json "$(echo "${case#-evp }" | tr a-z A-Z)"
    done
    for case in rsa2048:RSA-2048 ecdsap256:ECDSA-P256 ecdhp256:ECDH-P256 ecdhx25519:X25519; do
        routed report.json openssl speed -mr -seconds 1 "${case%:*}" 2>/dev/null | grep '^+F'
        did_work report.json "${case#*:}"
    done
}

# --- Python --------------------------------------------------------------------------------------------------------------------

check_python_ssl() {
    cat >fetch.py <<'PY'
import ssl, sys, urllib.request
ca, port, name = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
sys.stdout.buffer.write(urllib.request.urlopen(f"https://localhost:{port}/{name}", context=context, timeout=20).read())
PY
    for file in small large; do
        routed report.json $python fetch.py "$scratch/ca.pem" "$tls_port" $file >with
        same with "$scratch/www/$file"
        did_work report.json AES-256-GCM
    done
}

check_python_cryptography() {
    $python -c 'import cryptography' 2>/dev/null || skip "no cryptography for $python: apt-get install python3-cryptography"
    cat >compute.py <<'PY'
"""Prints what must not depend on who computes it; what is random is verified instead."""
import sys
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

text = bytes(range(256)) * 37
for size in (16, 24, 32):
    key = bytes(range(size))
    print(AESGCM(key).encrypt(b"n" * 12, text, b"aad").hex())
    for mode in (modes.CBC(b"i" * 16), modes.CTR(b"i" * 16), modes.ECB()):
        encryptor = Cipher(algorithms.AES(key), mode).encryptor()
        print((encryptor.update(text[:100]) + encryptor.update(text[100:]) + encryptor.finalize()).hex())
print(ChaCha20Poly1305(bytes(32)).encrypt(b"n" * 12, text, None).hex())
xts = Cipher(algorithms.AES(bytes(range(64))), modes.XTS(b"t" * 16)).encryptor()
print((xts.update(text) + xts.finalize()).hex())
sealed = bytearray(AESGCM(bytes(16)).encrypt(b"n" * 12, text, None))
sealed[5] ^= 1
try:
    AESGCM(bytes(16)).decrypt(b"n" * 12, bytes(sealed), None)
    sys.exit("a forged message was accepted")
except InvalidTag:
    print("forged message refused")
rsa = serialization.load_pem_private_key(open(sys.argv[1], "rb").read(), None)
signature = rsa.sign(text, padding.PKCS1v15(), hashes.SHA256())
rsa.public_key().verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
print(signature.hex())
oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
print(rsa.decrypt(rsa.public_key().encrypt(b"secret", oaep), oaep))
curve = ec.derive_private_key(12345678901234567890, ec.SECP256R1())
curve.public_key().verify(curve.sign(text, ec.ECDSA(hashes.SHA256())), text, ec.ECDSA(hashes.SHA256()))
print(curve.exchange(ec.ECDH(), ec.derive_private_key(987654321, ec.SECP256R1()).public_key()).hex())
mine, theirs = (x25519.X25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (7, 9))
print(mine.exchange(theirs.public_key()).hex())
PY
    $python compute.py "$scratch/rsa.key" >without
    routed report.json $python compute.py "$scratch/rsa.key" >with
    same without with
    did_work report.json AES-128-GCM AES-256-CBC AES-256-XTS "RSA-2048 private" ECDH-P256 X25519
}

# --- the run -------------------------------------------------------------------------------------------------------------------

only=("$@")
make_certificate rsa
mkdir "$scratch/www"
head -c 8000 /dev/urandom >"$scratch/www/small"
head -c 5000000 /dev/urandom >"$scratch/www/large"
tls_port=$(free_port)
plain_port=$(free_port)
nginx_conf "$scratch/reference.conf" "$tls_port"
sed -i "s/listen 127.0.0.1:$tls_port .*/&\n        listen 127.0.0.1:$plain_port;/" "$scratch/reference.conf"
begin "$scratch/reference.log" nginx -c "$scratch/reference.conf"
await_port "$tls_port" "$pid" "$scratch/reference.log"

program nginx check_nginx
program haproxy check_haproxy
program apache2-prefork check_apache_prefork
program apache2-event check_apache_event
program openssl-s_server check_s_server
program openssl-s_client check_s_client
program curl check_curl
program wget check_wget
program git check_git
program openssl-enc check_enc
program openssl-cms check_cms
program openssl-req check_req
program openssl-x509 check_x509
program openssl-speed check_speed
program python-ssl check_python_ssl
program python-cryptography check_python_cryptography
printf '%s ok, %s FAILED, %s skipped\n' "${counts[@]}"
[ "${counts[1]}" = 0 ] && [ "${counts[0]}" -gt 0 ]
