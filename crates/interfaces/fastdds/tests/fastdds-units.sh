#!/bin/sh
# Fast DDS's own tests of its AES-GCM-GMAC plug-in, without Bywash and with it.
#
#   crates/interfaces/fastdds/tests/fastdds-units.sh [GTEST_OPTION...]
#
# Fetches Debian's source package of Fast DDS with apt (once), compiles the plug-in and its tests alone (a minute, once; libgtest-dev, libgmock-dev and nlohmann-json3-dev are
# wanted besides what building wants), and runs them. The plug-in goes into a library whose name begins with libfastrtps.so, so that the door knows it. Everything is
# kept in target/fastdds-source. Fails if a test that passes without Bywash fails with it, or if Bywash was not used. SOURCE=FOLDER takes another source tree,
# MODULE=PATH another build of the door.
set -eu

root=$(cd "$(dirname "$0")/../../../.." && pwd)
cache=${CARGO_TARGET_DIR:-$root/target}/fastdds-source
module=${MODULE:-${CARGO_TARGET_DIR:-$root/target}/debug/libbywash_fastdds.so}
mkdir -p "$cache"

if [ -z "${MODULE:-}" ]; then
    (cd "$root" && cargo build --quiet -p bywash-fastdds)
fi
[ -f "$module" ] || { echo "fastdds-units: $module is missing; build it with: cargo build -p bywash-fastdds" >&2; exit 1; }

source=${SOURCE:-}
[ -n "$source" ] || source=$("$root/scripts/debian-source" fastdds) || { echo "fastdds-units: skipped" >&2; exit 77; }

# What test/unittest/security/cryptography/CMakeLists.txt lists. The headers that a build generates are those of the installed package.
plugin="fastdds/log/Log fastdds/log/OStreamConsumer fastdds/log/StdoutConsumer fastdds/log/StdoutErrConsumer rtps/attributes/PropertyPolicy
    rtps/common/Token rtps/common/Time_t rtps/exceptions/Exception rtps/security/exceptions/SecurityException rtps/security/common/SharedSecretHandle
    security/cryptography/AESGCMGMAC security/cryptography/AESGCMGMAC_KeyExchange security/cryptography/AESGCMGMAC_KeyFactory
    security/cryptography/AESGCMGMAC_Transform security/cryptography/AESGCMGMAC_Types utils/SystemInfo
    security/authentication/PKIIdentityHandle security/accesscontrol/AccessPermissionsHandle"
tests=$source/test/unittest/security/cryptography
library=$cache/libfastrtps.so.units
program=$cache/units
if [ ! -x "$program" ]; then
    echo "fastdds-units: compiling the plug-in and its tests"
    printf '#include <gmock/gmock.h>\n#include <fastrtps/config.h>\n#include <nlohmann/json.hpp>\n' | c++ -std=c++17 -x c++ -E - > /dev/null 2>&1 || {
        echo "fastdds-units: skipped: wants c++, libgtest-dev, libgmock-dev, nlohmann-json3-dev, libfastrtps-dev" >&2
        exit 77
    }
    # -w: warnings of another's code are not ours to mend.
    options="-std=c++17 -O1 -w -fPIC -DFASTRTPS_NO_LIB -I$source/include -I$source/src/cpp -I$source/thirdparty/filewatch -I$source/test/mock/rtps/SecurityPluginFactory/rtps"
    mkdir -p "$cache/objects"
    objects=
    for name in $plugin; do
        object=$cache/objects/$(echo "$name" | tr / -).o
        if [ ! -f "$object" ]; then
            # shellcheck disable=SC2086
            nice c++ $options -c "$source/src/cpp/$name.cpp" -o "$object.part"
            mv "$object.part" "$object"
        fi
        objects="$objects $object"
    done
    # shellcheck disable=SC2086
    c++ -shared -o "$library" "-Wl,-soname,libfastrtps.so.units" $objects -lfastcdr -lcrypto -lssl -lpthread
    # shellcheck disable=SC2086
    nice c++ $options -o "$program" "$tests/builtinAESGCMGMACTests.cpp" "$library" "-Wl,-rpath,$cache" -lfastcdr -lgmock -lgtest -lcrypto -lpthread
fi

# One run: leaves its lines in LOG, and the names of what passed in LOG.passed.
run() {
    log=$cache/$1.log
    shift
    (cd "$cache" && env CERTS_PATH="$source/test/certs" "$@" > "$log" 2>&1) || true
    sed -n 's/^\[       OK \] \([^ ]*\).*/\1/p' "$log" | sort > "$log.passed"
    grep -q '^\[==========\].*ran' "$log" || { echo "fastdds-units: the tests did not run to their end: see $log" >&2; exit 1; }
    sed -n 's/^\[==========\] \([0-9]*\) tests.* ran.*/\1/p' "$log" | head -1
}

rm -f "$cache"/tally.*
all=$(run plain "$program" "$@")
echo "without Bywash: $(wc -l < "$cache/plain.log.passed") of $all pass"
all=$(run bywash BYWASH_SOCKET=none "LD_PRELOAD=$module" "BYWASH_DDS_TALLY=$cache/tally" "$program" "$@")
echo "with Bywash:    $(wc -l < "$cache/bywash.log.passed") of $all pass"
sed -n 's/^\(derivation\|setup\|random\|bulk\|passed on\),\([0-9]*\),.*/  \1: \2 calls/p' "$cache"/tally.*
used=$(sed -n 's/^bulk,\([0-9]*\),.*/\1/p' "$cache"/tally.*)
[ "${used:-0}" -gt 0 ] || { echo "fastdds-units: Bywash was never used" >&2; exit 1; }
lost=$(comm -23 "$cache/plain.log.passed" "$cache/bywash.log.passed")
[ -z "$lost" ] || { echo "fastdds-units: fail with Bywash alone: $lost; see $cache/bywash.log" >&2; exit 1; }
