#!/usr/bin/env bash
# Keys that were made in a PKCS#11 token (SoftHSM): those that it gives out move into the vault and serve nginx from there; what stands in the way of
# the others is said in words.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need "$bywash"
[ "$(id -u)" = 0 ] || { echo "vault-token: skipped: only root may start workers as www-data"; exit 0; }
unset BYWASH_ROUTE OPENSSL_CONF PKCS11_MODULE_PATH
library=/usr/lib/softhsm/libsofthsm2.so
[ -e "$library" ] || die "vault-token: $library is missing: run 'make setup'"

ok() { printf 'vault-token: ok: %s\n' "$1"; }
fail() {
    printf 'vault-token: FAILED: %s\n' "$1" >&2
    shift
    for file in "$@"; do echo "--- $file"; tail -n 12 "$file"; done >&2
    exit 1
}

# A token with a key pair for each case. pkcs11-tool asks for keys that are not sensitive, unless told otherwise.
export SOFTHSM2_CONF=$scratch/softhsm2.conf
mkdir "$scratch/tokens" "$scratch/www"
echo "the page" >"$scratch/www/page"
printf 'directories.tokendir = %s\nobjectstore.backend = file\nlog.level = ERROR\n' "$scratch/tokens" >"$SOFTHSM2_CONF"
softhsm2-util --init-token --free --label 'The Token' --so-pin 5678 --pin 1234 >"$scratch/token.log" || fail "a token is made" "$scratch/token.log"
in_token() { pkcs11-tool --module "$library" --token-label 'The Token' --login --pin 1234 "$@" >"$scratch/token.log" 2>&1 || fail "pkcs11-tool $*" "$scratch/token.log"; }
in_token --keypairgen --key-type EC:prime256v1 --label ecdsa --id 01 --sensitive --extractable
in_token --keypairgen --key-type rsa:2048 --label rsa --id 02 --sensitive --extractable
in_token --keypairgen --key-type EC:prime256v1 --label open --id 03 --extractable
in_token --keypairgen --key-type EC:prime256v1 --label closed --id 04 --sensitive
in_token --keypairgen --key-type EC:prime256v1 --label twin --id 05 --extractable
in_token --keypairgen --key-type EC:prime256v1 --label twin --id 06 --extractable

(umask 077 && echo 1234 >"$scratch/pin" && echo 9999 >"$scratch/wrong" && echo "a passphrase for the test" >"$scratch/passphrase")
export BYWASH_SOCKET=$scratch/broker.sock
begin "$scratch/broker.log" "$bywash" serve --socket "$BYWASH_SOCKET" --allow-uid "$(id -u www-data)" \
    --keys "$scratch/keys" --keys-passphrase "$scratch/passphrase"
for _ in $(seq 200); do "$bywash" stats >/dev/null 2>&1 && break || sleep 0.05; done
take() { "$bywash" key import "$@" --allow-uid "$(id -u www-data)" >"$scratch/take.log" 2>&1; }

# The whole URI as p11tool would list it, the library by option; then by URI and variable, which are the other ways.
take ecdsa --from 'pkcs11:model=SoftHSM%20v2;token=The%20Token;id=%01;object=ecdsa;type=private' --module "$library" --pin-file "$scratch/pin" ||
    fail "a sensitive P-256 key is taken over" "$scratch/take.log"
take rsa --from "pkcs11:token=The%20Token;object=rsa?module-path=$library&pin-source=file:$scratch/pin" ||
    fail "a sensitive RSA key is taken over, library and PIN by URI" "$scratch/take.log"
PKCS11_MODULE_PATH=$library take open --from 'pkcs11:object=open' --pin-file "$scratch/pin" ||
    fail "the only token need not be named" "$scratch/take.log"
"$bywash" key rotate open --from 'pkcs11:id=%05' --module "$library" --pin-file "$scratch/pin" 2>"$scratch/take.log" ||
    fail "a key is rotated to one of a token" "$scratch/take.log"
for label in ecdsa rsa; do
    pkcs11-tool --module "$library" --token-label 'The Token' --read-object --type pubkey --label $label --output-file "$scratch/public.der" 2>"$scratch/token.log"
    openssl pkey -pubin -inform DER -in "$scratch/public.der" -pubout | cmp -s - <("$bywash" key public $label) || fail "the public half of $label is the token's"
done
ok "keys come out of a token, sensitive ones wrapped"

# What does not come out: refused TEXT NAME ARGUMENTS...
refused() {
    local text=$1
    shift
    if take "$@"; then fail "imported: $*"; fi
    grep -q "$text" "$scratch/take.log" || fail "it is said that '$text'" "$scratch/take.log"
    ! grep -q '9999\|1234' "$scratch/take.log" || fail "a PIN is shown" "$scratch/take.log"
}
token=(--module "$library" --pin-file "$scratch/pin")
refused 'not extractable.*bywash key generate' closed --from 'pkcs11:object=closed' "${token[@]}"
refused 'the PIN is wrong' new --from 'pkcs11:object=open' --module "$library" --pin-file "$scratch/wrong"
refused 'the PIN is wrong' new --from "pkcs11:object=open?pin-value=9999&module-path=$library"
refused 'wants its user PIN: give --pin-file' new --from 'pkcs11:object=open' --module "$library"
refused "no such private key; it has .*'closed'" new --from 'pkcs11:object=nothing' "${token[@]}"
refused '2 private keys fit.*id=' new --from 'pkcs11:object=twin' "${token[@]}"
refused "no such token; the library has 'The Token'" new --from 'pkcs11:token=Other;object=open' "${token[@]}"
refused 'no such file' new --from 'pkcs11:object=open' --module /nowhere/lib.so --pin-file "$scratch/pin"
refused 'cannot be used' new --from 'pkcs11:object=open' --module "$(command -v openssl)" --pin-file "$scratch/pin"
refused 'give --module LIB' new --from 'pkcs11:object=open' --pin-file "$scratch/pin"
refused 'add object=' new --from 'pkcs11:token=The%20Token' "${token[@]}"
chmod 644 "$scratch/wrong"
refused 'chmod 600' new --from 'pkcs11:object=open' --module "$library" --pin-file "$scratch/wrong"
ok "what a token does not give out is said in words, and no PIN with it"

# nginx with the keys that came from the token; their certificates are signed for the token's public keys.
for kind in rsa ecdsa; do
    make_certificate $kind
    "$bywash" key public $kind >"$scratch/$kind.public"
    "$bywash" key uri $kind >"$scratch/$kind.uri"
    openssl x509 -req -in "$scratch/$kind.csr" -force_pubkey "$scratch/$kind.public" -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" -days 2 \
        -extfile "$scratch/$kind.ext" -out "$scratch/$kind.pem" 2>"$scratch/openssl.log" || fail "a certificate for the $kind key" "$scratch/openssl.log"
done
port=$(free_port)
nginx_conf "$scratch/nginx.conf" "$port"
sed -i "s#ssl_certificate_key .*#ssl_certificate_key $scratch/rsa.uri; ssl_certificate $scratch/ecdsa.pem; ssl_certificate_key $scratch/ecdsa.uri;#" "$scratch/nginx.conf"
begin "$scratch/nginx.out" "$bywash" run --socket "$BYWASH_SOCKET" -- nginx -c "$scratch/nginx.conf"
await_port "$port" "$pid" "$scratch/nginx.out"
for arguments in '-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256' '-tls1_3 -sigalgs ecdsa_secp256r1_sha256'; do
    # shellcheck disable=SC2086
    echo | timeout 20 openssl s_client -connect "127.0.0.1:$port" -servername $host -CAfile "$scratch/ca.pem" -verify_return_error $arguments \
        >"$scratch/s_client.log" 2>&1 || fail "a handshake with $arguments" "$scratch/s_client.log" "$scratch/nginx.conf.log"
    grep -q 'Verification: OK\|Verify return code: 0' "$scratch/s_client.log" || fail "the certificate verifies" "$scratch/s_client.log"
done
ok "nginx serves with keys that were made in a token"
