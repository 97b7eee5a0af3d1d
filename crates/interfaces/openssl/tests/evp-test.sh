#!/bin/sh
# OpenSSL's own evp_test, with its own data files, through Bywash.
#
#   crates/interfaces/openssl/tests/evp-test.sh [FILE...]
#
# Fetches the upstream tarball of Debian's openssl source package with apt (15 MB, once), compiles evp_test alone against the
# installed libcrypto (a few seconds, once), and runs the data files of all algorithms that Bywash offers under a configuration in which
# Bywash comes first. Everything is kept in target/openssl-source. Fails if a test fails, or if Bywash was not used.
# ROUTE=queue sends every whole operation through the manager's queue; MODULE=PATH tests another build.
set -eu

root=$(cd "$(dirname "$0")/../../../.." && pwd)
cache=${CARGO_TARGET_DIR:-$root/target}/openssl-source
module=${MODULE:-${CARGO_TARGET_DIR:-$root/target}/debug/libbywash_openssl.so}
route=${ROUTE:-here}
mkdir -p "$cache"

if [ -z "${MODULE:-}" ]; then
    (cd "$root" && cargo build --quiet -p bywash-openssl)
fi
[ -f "$module" ] || { echo "evp-test: $module is missing; build it with: cargo build -p bywash-openssl" >&2; exit 1; }

source=$("$root/scripts/debian-source" openssl) || { echo "evp-test: skipped" >&2; exit 77; }
if [ ! -x "$cache/evp_test" ]; then
    echo "evp-test: compiling evp_test"
    rm -rf "$cache/objects"
    mkdir -p "$cache/objects"
    # Configured only for its generated headers; the libcrypto under test is the installed one.
    (cd "$source" && ./Configure "linux-$(uname -m)" no-shared > configure.log 2>&1 && make build_generated > generate.log 2>&1)
    (cd "$source" && for file in test/testutil/*.c apps/lib/opt.c test/evp_test.c; do
        cc -O1 -w -Iinclude -Iapps/include -I. -c "$file" -o "$cache/objects/$(basename "$file" .c).o"
    done)
    (cd "$cache/objects" && mv evp_test.o .. && ar cr libtestutil.a ./*.o)
    cc -o "$cache/evp_test" "$cache/evp_test.o" "$cache/objects/libtestutil.a" -lcrypto
fi

configure() {
    printf 'openssl_conf = init\n[init]\nproviders = providers\n[providers]\n%sdefault = default_sect\nlegacy = legacy_sect\n' "$1"
    printf '[default_sect]\nactivate = 1\n[legacy_sect]\nactivate = 1\n'
    printf '[bywash]\nmodule = %s\nactivate = 1\nroute = %s\nsocket = none\n' "$module" "$route"
}
configure 'bywash = bywash
' > "$cache/bywash.cnf"
configure '' > "$cache/plain.cnf"

# Every data file with an algorithm that Bywash offers, and those that use them on the way (key wrapping, MACs, random numbers).
[ $# -gt 0 ] || set -- evpciph_aes_common evpciph_aes_cts evpciph_aes_stitched evpciph_aes_wrap evpciph_aes_siv evpciph_chacha \
    evppkey_rsa evppkey_rsa_common evppkey_ecc evppkey_ecdh evppkey_ecdsa evppkey_ecx evppkey_kas evppkey_mismatch evppkey_brainpool \
    evpkdf_tls11_prf evpkdf_tls12_prf evpkdf_tls13_kdf evpmac_common evprand evppbe_pkcs12

# One data file under one configuration: sets passed, errors, skipped, and leaves the lines of failed tests in LOG.failed.
run() {
    log=$cache/$name.$1.log
    (cd "$source/test" && BYWASH_LOG=1 "$cache/evp_test" -config "$cache/$1.cnf" "recipes/30-test_evp_data/$name.txt") > "$log" 2>&1 || true
    grep -o "$name.txt:[0-9]*: .*" "$log" | sed 's/: .*//' | sort -u > "$log.failed" || true
    counts=$(sed -n 's/.*Completed \([0-9]*\) tests with \([0-9]*\) errors and \([0-9]*\) skipped.*/\1 \2 \3/p' "$log" | tail -1)
    [ -n "$counts" ] || { echo "evp-test: $name did not run to its end: see $log" >&2; exit 1; }
    read -r all errors skipped <<COUNTS
$counts
COUNTS
    passed=$((all - errors - skipped))
}

status=0
total=0
printf '%-22s %7s %7s %8s %19s  %s\n' file passed failed skipped 'failed without too' 'operations by Bywash'
for name; do
    name=$(basename "$name" .txt)
    run plain
    known=$log.failed
    run bywash
    used=$(sed -n 's/^bywash: used here: .*: \([0-9]*\) operations,.*/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
    # What fails without Bywash as well (Debian builds no MDC2, which evppkey_rsa wants) is no fault of ours, and said.
    new=$(comm -13 "$known" "$log.failed" | wc -l)
    also=$((errors - new))
    printf '%-22s %7s %7s %8s %19s  %s\n' "$name" "$passed" "$new" "$skipped" "$also" "$used"
    [ "$new" = 0 ] || { status=1; echo "  see $log"; }
    total=$((total + used))
done
echo "route $route, $total operations done by Bywash"
[ "$total" -gt 0 ] || { echo "evp-test: Bywash was never used" >&2; exit 1; }
exit $status
