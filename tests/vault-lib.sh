# What the tests of the vault share, on top of lib.sh: source it after that, with $test set to the test's name.

ok() { printf '%s: ok: %s\n' "$test" "$1"; }

# Says what failed and shows the end of files: fail WHAT FILE...
fail() {
    printf '%s: FAILED: %s\n' "$test" "$1" >&2
    shift
    for file in "$@"; do echo "--- $file"; tail -n 12 "$file"; done >&2
    exit 1
}

# Starts a broker with a vault under a passphrase and waits for it: start_broker ARGUMENTS-OF-serve...
start_broker() {
    [ -e "$scratch/passphrase" ] || (umask 077 && echo "a passphrase for the test" >"$scratch/passphrase")
    begin "$scratch/broker.log" "$bywash" serve --socket "$BYWASH_SOCKET" --keys "$scratch/keys" --keys-passphrase "$scratch/passphrase" "$@"
    broker=$pid
    await_broker "$broker" "$scratch/broker.log"
}

# An nginx.conf with certificates of these kinds, each with a file for its key: keyed_nginx FILE PORT KIND KEY-FILE [KIND KEY-FILE]...
keyed_nginx() {
    local file=$1 port=$2 lines=
    shift 2
    nginx_conf "$file" "$port"
    while [ $# -gt 0 ]; do
        lines+="ssl_certificate $scratch/$1.pem; ssl_certificate_key $2; "
        shift 2
    done
    sed -i "/ssl_certificate /d; s#ssl_certificate_key .*#$lines#" "$file"
}

# One handshake, verified: handshake PORT ARGUMENTS-OF-s_client...
handshake() {
    local port=$1
    shift
    echo | OPENSSL_CONF=/dev/null timeout 20 openssl s_client -connect "127.0.0.1:$port" -servername $host -CAfile "$scratch/ca.pem" \
        -verify_return_error "$@" >"$scratch/s_client.log" 2>&1 && grep -q 'Verification: OK\|Verify return code: 0' "$scratch/s_client.log"
}

# TLS 1.2 and 1.3 with a certificate of each of these kinds: every_handshake PORT SERVER LOG KIND...
every_handshake() {
    local port=$1 server=$2 log=$3 kind cipher signature
    shift 3
    for kind in "$@"; do
        case $kind in
            rsa) cipher=ECDHE-RSA-AES128-GCM-SHA256 signature=RSA-PSS+SHA256:RSA+SHA256 ;;
            ecdsa) cipher=ECDHE-ECDSA-AES128-GCM-SHA256 signature=ECDSA+SHA256 ;;
            p384) cipher=ECDHE-ECDSA-AES128-GCM-SHA256 signature=ECDSA+SHA384 ;;
            ed25519) cipher=ECDHE-ECDSA-AES128-GCM-SHA256 signature=ed25519 ;;
        esac
        handshake "$port" -tls1_2 -cipher $cipher -sigalgs $signature || fail "$server: TLS 1.2 with $kind" "$scratch/s_client.log" "$log"
        handshake "$port" -tls1_3 -sigalgs $signature || fail "$server: TLS 1.3 with $kind" "$scratch/s_client.log" "$log"
    done
}
