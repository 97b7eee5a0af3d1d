#!/usr/bin/env bash
# Keys that were made in a PKCS#11 token (SoftHSM): those that it gives out move into the vault and serve nginx from there; what stands in the way of
# the others is said in words.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
test=vault-token
. "$(dirname "$0")/vault-lib.sh"
need "$bywash"
[ "$(id -u)" = 0 ] || { echo "$test: skipped: only root may start workers as www-data"; exit 0; }
unset BYWASH_ROUTE OPENSSL_CONF PKCS11_MODULE_PATH
library=/usr/lib/softhsm/libsofthsm2.so
[ -e "$library" ] || die "$test: $library is missing: run 'make setup'"

# A token with a key pair for each case; SoftHSM makes every private key sensitive unless told otherwise, which pkcs11-tool never does. Keys that are
# not, and may be read as they stand, are those of crates/cli/tests/token.rs.
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
in_token --keypairgen --key-type EC:secp384r1 --label p384 --id 07 --sensitive --extractable
in_token --keypairgen --key-type EC:edwards25519 --label ed25519 --id 08 --sensitive --extractable
in_token --keypairgen --key-type EC:prime256v1 --label twin --id 05 --extractable
in_token --keypairgen --key-type EC:prime256v1 --label twin --id 06 --extractable

(umask 077 && echo 1234 >"$scratch/pin" && echo 9999 >"$scratch/wrong")
export BYWASH_SOCKET=$scratch/broker.sock
start_broker --allow-uid "$(id -u www-data)"
take() { "$bywash" key import "$@" --allow-uid "$(id -u www-data)" >"$scratch/take.log" 2>&1; }

# The whole URI as p11tool would list it, the library by option; then by URI and variable, which are the other ways.
take ecdsa --from 'pkcs11:model=SoftHSM%20v2;token=The%20Token;id=%01;object=ecdsa;type=private' --module "$library" --pin-file "$scratch/pin" ||
    fail "a sensitive P-256 key is taken over" "$scratch/take.log"
take rsa --from "pkcs11:token=The%20Token;object=rsa?module-path=$library&pin-source=file:$scratch/pin" ||
    fail "a sensitive RSA key is taken over, library and PIN by URI" "$scratch/take.log"
take p384 --from 'pkcs11:object=p384' --module "$library" --pin-file "$scratch/pin" || fail "a sensitive P-384 key is taken over" "$scratch/take.log"
PKCS11_MODULE_PATH=$library take open --from 'pkcs11:object=open' --pin-file "$scratch/pin" ||
    fail "the only token need not be named" "$scratch/take.log"
"$bywash" key rotate open --from 'pkcs11:id=%05' --module "$library" --pin-file "$scratch/pin" 2>"$scratch/take.log" ||
    fail "a key is rotated to one of a token" "$scratch/take.log"
for label in ecdsa rsa; do
    pkcs11-tool --module "$library" --token-label 'The Token' --read-object --type pubkey --label $label --output-file "$scratch/public.der" 2>"$scratch/token.log" ||
        fail "the token shows the public half of $label" "$scratch/token.log"
    openssl pkey -pubin -inform DER -in "$scratch/public.der" -pubout | cmp -s - <("$bywash" key public $label) || fail "the public half of $label is the token's"
done
# pkcs11-tool writes no file of a P-384 key, but it prints the point: 97 bytes in an octet string.
point=$(pkcs11-tool --module "$library" --token-label 'The Token' --list-objects --type pubkey --label p384 2>"$scratch/token.log" | sed -n 's/ *EC_POINT: *0461//p')
[ ${#point} = 194 ] || fail "the token shows the public half of p384" "$scratch/token.log"
"$bywash" key public p384 | openssl pkey -pubin -outform DER | od -An -v -tx1 | tr -d ' \n' | grep -q "$point\$" || fail "the public half of p384 is the token's"
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
refused 'does not wrap it.*bywash key generate' new --from 'pkcs11:object=ed25519' "${token[@]}" # SoftHSM wraps none of these
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
for kind in rsa p384; do
    make_certificate $kind
    "$bywash" key public $kind >"$scratch/$kind.public"
    "$bywash" key uri $kind >"$scratch/$kind.uri"
    openssl x509 -req -in "$scratch/$kind.csr" -force_pubkey "$scratch/$kind.public" -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" -days 2 \
        -extfile "$scratch/$kind.ext" -out "$scratch/$kind.pem" 2>"$scratch/openssl.log" || fail "a certificate for the $kind key" "$scratch/openssl.log"
done
port=$(free_port)
keyed_nginx "$scratch/nginx.conf" "$port" rsa "$scratch/rsa.uri" p384 "$scratch/p384.uri"
begin "$scratch/nginx.out" "$bywash" run --socket "$BYWASH_SOCKET" -- nginx -c "$scratch/nginx.conf"
await_port "$port" "$pid" "$scratch/nginx.out"
every_handshake "$port" nginx "$scratch/nginx.conf.log" rsa p384
ok "nginx serves with keys that were made in a token"
