#!/usr/bin/env bash
# /dev/crypto as unmodified clients use it, under `bywash run --devcrypto`: the openssl command with OpenSSL's own devcrypto engine, wolfSSL built for it. Every byte is
# compared with what the same command gives without the engine.
#
#   tests/cryptodev.sh [probe|example|forks|tenants|enc|dgst|speed|tls|wolfssl|static]...
#   tests/cryptodev.sh wolfssl-tls       # wolfSSL's suites of its TLS besides, with and without /dev/crypto; ten minutes, so only when it is named
#   tests/cryptodev.sh gnutls            # GnuTLS configured with --enable-cryptodev; five minutes to build once, so only when it is named
#
# Debian builds none for /dev/crypto, so the upstream tarballs of Debian's source packages are fetched with apt once (15 and 19 MB), and the engine alone (a second) and
# wolfSSL's test program (a minute) are compiled from them, against our header crypto/cryptodev.h. Kept in target/openssl-source and target/wolfssl-source.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
need "$bywash" "$(dirname "$bywash")/libbywash_cryptodev_preload.so" "$(dirname "$bywash")/libbywash_cryptodev_loaded.so"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF LD_PRELOAD
target=${CARGO_TARGET_DIR:-$repository/target}
headers=$repository/crates/interfaces/cryptodev/abi/include
only=("$@")
later=(wolfssl-tls gnutls)
counts=(0 0 0)

fail() { echo "$*"; exit 1; }
skip() { echo "$*"; exit 77; }

check() {
    local name=$1 status=0 seconds=$SECONDS room=$scratch/$1
    shift
    if [ ${#only[@]} = 0 ]; then
        printf '%s\n' "${later[@]}" | grep -qxF "$name" && return 0
    else
        printf '%s\n' "${only[@]}" | grep -qxF "$name" || return 0
    fi
    mkdir "$room"
    set +e
    (
        trap 'for pid in "${started[@]:-}"; do [ -z "$pid" ] || end "$pid"; done' EXIT
        started=()
        cd "$room"
        set -e
        "$@"
    ) >"$room/log" 2>&1
    status=$?
    set -e
    case $status in
        0) counts[0]=$((counts[0] + 1)); printf 'ok       cryptodev: %-11s %s (%s s)\n' "$name" "$(cat "$room/note" 2>/dev/null)" $((SECONDS - seconds)) ;;
        77) counts[2]=$((counts[2] + 1)); printf 'skipped  cryptodev: %-11s %s\n' "$name" "$(tail -1 "$room/log")" ;;
        *) counts[1]=$((counts[1] + 1)); printf 'FAILED   cryptodev: %-11s status %s; the last of its log:\n' "$name" "$status"; tail -12 "$room/log" | sed 's/^/         | /' ;;
    esac
}

# --- what is fetched and compiled ----------------------------------------------------------------------------------------------

# source_of PACKAGE: its source in target/PACKAGE-source/source.
source_of() { "$repository/scripts/debian-source" "$1" >/dev/null || skip "Debian's source package $1 cannot be fetched (apt, network)"; }

engines=$target/openssl-source/engines
engine() {
    source_of openssl
    [ ! -e "$engines/devcrypto.so" ] || return 0
    mkdir -p "$engines"
    local source=$target/openssl-source/source
    cc -O2 -w -fPIC -shared -I"$headers" -I"$source/include" -o "$engines/devcrypto.so" "$source/engines/e_devcrypto.c" -lcrypto
}

# routed COMMAND...: under bywash run; nothing but /dev/crypto is ours, so that what the summary counts was asked there.
routed() { OPENSSL_ENGINES=$engines "$bywash" run --devcrypto --quiet --report report.json -- env OPENSSL_CONF=/dev/null "$@"; }

# Operations in the report, of algorithms whose name begins so.
operations() {
    /usr/bin/python3 - report.json "${1:-}" <<'PY'
import json, sys
account = json.load(open(sys.argv[1]))["account"]
print(sum(line["operations"] for place in ("here", "broker") for line in account[place] if line["algorithm"].startswith(sys.argv[2])))
PY
}

# What the engine says that it offers: ciphers, then digests, as OpenSSL names them.
offered() { routed openssl engine -t -c "$@" devcrypto | tr -d '[]' | tr ',' '\n' | sed 's/^ *//' ; }

# --- the clients ---------------------------------------------------------------------------------------------------------------

enc() {
    engine
    offered >offered
    grep -q available offered || fail "the engine is not available: $(cat offered)"
    local cipher size key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f number=0
    for cipher in $(grep -E '^(DES|AES|BF|CAMELLIA)-' offered); do
        case $cipher in *-GCM | *-CCM) continue ;; esac
        for size in 0 1000 1000003; do
            head -c $size /dev/urandom >text
            local how=(-"${cipher,,}" -iv 0f0e0d0c0b0a09080706050403020100)
            case $cipher in *-128-* | BF-*) how+=(-K ${key:0:32}) ;; *-192-* | *-EDE3-*) how+=(-K ${key:0:48}) ;; DES-CBC) how+=(-K ${key:0:16}) ;; *) how+=(-K $key) ;; esac
            local legacy=()
            case $cipher in DES-CBC | BF-*) legacy=(-provider legacy -provider default) ;; esac
            # 64-bit blocks take half the vector, and ECB none: openssl says so on standard error, both times.
            openssl enc "${legacy[@]}" "${how[@]}" -in text -out plain
            routed openssl enc -engine devcrypto "${legacy[@]}" "${how[@]}" -in text -out ours
            cmp plain ours
            routed openssl enc -d -engine devcrypto "${legacy[@]}" "${how[@]}" -in plain -out back
            cmp text back
            [ $size = 0 ] || [ "$(operations)" -gt 0 ] || fail "$cipher did not go through /dev/crypto"
        done
        number=$((number + 1))
    done
    [ $number -gt 0 ] || fail "no cipher is offered"
    echo "$number ciphers both ways, at 3 sizes: $(grep -E '^(DES|AES|BF|CAMELLIA)-' offered | tr '\n' ' ')" >note
}

dgst() {
    engine
    offered -pre DIGESTS:ALL >offered
    head -c 300000 /dev/urandom >text
    printf 'openssl_conf=i\n[i]\nengines=e\n[e]\ndevcrypto=d\n[d]\nengine_id=devcrypto\ndynamic_path=%s\nDIGESTS=ALL\ndefault_algorithms=ALL\ninit=1\n' \
        "$engines/devcrypto.so" >engine.cnf
    local digest number=0
    for digest in $(grep -E '^(MD5|SHA|RIPEMD|RMD)' offered | grep -v -- -); do
        openssl dgst -"$digest" -r text >plain
        routed env OPENSSL_CONF="$PWD/engine.cnf" openssl dgst -"$digest" -r text >ours
        cmp plain ours
        [ "$(operations)" -gt 0 ] || fail "$digest did not go through /dev/crypto"
        number=$((number + 1))
    done
    [ $number -gt 0 ] || fail "no digest is offered: $(tr '\n' ' ' <offered)"
    echo "$number digests: $(grep -E '^(MD5|SHA|RIPEMD|RMD)' offered | grep -v -- - | tr '\n' ' ')" >note
}

speed() {
    engine
    routed openssl speed -engine devcrypto -elapsed -seconds 1 -bytes 65536 -evp aes-128-cbc >out 2>&1
    [ "$(operations AES-128-CBC)" -gt 100 ] || fail "openssl speed did not go through /dev/crypto: $(tail -3 out)"
    echo "openssl speed, AES-128-CBC of 64 KiB: $(tail -1 out | awk '{ print $NF }') bytes/s" >note
}

tls() {
    command -v curl >/dev/null || skip "no curl here: apt-get install curl"
    engine
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj "/CN=$host" -addext "subjectAltName=DNS:$host" 2>/dev/null
    mkdir www
    head -c 3000000 /dev/urandom >www/file
    local port cipher
    for cipher in AES128-SHA AES256-SHA256; do
        port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        (cd www && OPENSSL_ENGINES=$engines exec "$bywash" run --devcrypto --quiet --report "$scratch/tls/report.json" -- env OPENSSL_CONF=/dev/null \
            openssl s_server -engine devcrypto -accept "127.0.0.1:$port" -cert ../cert.pem -key ../key.pem -tls1_2 -cipher "$cipher:@SECLEVEL=0" -WWW -quiet) >server 2>&1 &
        started=($!)
        for _ in $(seq 200); do
            curl -s -o got --cacert cert.pem --resolve "$host:$port:127.0.0.1" "https://$host:$port/file" && break
            sleep 0.1
        done
        cmp www/file got
        end "${started[0]}"
        started=()
        [ "$(operations AES-)" -gt 100 ] || fail "$cipher: the records did not go through /dev/crypto: $(cat server)"
        rm got
    done
    echo "openssl s_server and curl, TLS 1.2 with AES128-SHA and AES256-SHA256, 3 MB each" >note
}

# As configure --enable-devcrypto=all would: its flags, without its autotools. HASH_KEEP because its tests want digests of unfinished messages, which wolfSSL does not
# take from a device otherwise.
wolfssl_devcrypto="-DWOLFSSL_DEVCRYPTO -DWOLFSSL_DEVCRYPTO_CBC -DWOLFSSL_DEVCRYPTO_AES -DWOLFSSL_DEVCRYPTO_HASH -DWOLFSSL_DEVCRYPTO_HASH_KEEP -DWOLFSSL_NO_HASH_RAW"
wolfssl_flags="$wolfssl_devcrypto -DWOLFSSL_AES_DIRECT
    -DHAVE_AESGCM -DHAVE_AESCCM -DWOLFSSL_AES_COUNTER -DHAVE_AES_ECB -DWOLFSSL_SHA512 -DWOLFSSL_SHA384 -DHAVE_HKDF -DHAVE_ECC -DTFM_TIMING_RESISTANT
    -DECC_TIMING_RESISTANT -DWC_RSA_BLINDING -DHAVE_THREAD_LS -D_GNU_SOURCE -DWOLFCRYPT_ONLY -DNO_WRITE_TEMP_FILES"
# wolfssl_build PROGRAM FLAGS FILES...: compiled in $wolfssl/PROGRAM.objects and linked.
wolfssl=$target/wolfssl-source
wolfssl_build() {
    local program=$1 flags=$2
    shift 2
    [ ! -x "$wolfssl/$program" ] || [ ! -d "$wolfssl/$program.objects" ] || return 0
    mkdir -p "$wolfssl/$program.objects" "$wolfssl/include/wolfssl"
    echo '/* All options are given to the compiler. */' >"$wolfssl/include/wolfssl/options.h"
    (cd "$wolfssl/source" && printf '%s\n' "$@" |
        xargs -P "$(nproc)" -I@ sh -c 'cc -O1 -w $1 -I. -I$2 -I$3/include -c @ -o "$3/$4.objects/$(echo @ | tr / _).o"' sh "$flags" "$headers" "$wolfssl" "$program")
    cc -o "$wolfssl/$program" "$wolfssl/$program.objects"/*.o -lm -lpthread
}
wolfcrypt_files() { (cd "$wolfssl/source" && ls wolfcrypt/src/*.c $@ | grep -v -E '/(misc|evp|async|selftest|fips.*|wolfcrypt_.*)\.c$'); }

testwolfcrypt() {
    source_of wolfssl
    wolfssl_build testwolfcrypt "$wolfssl_flags" $(wolfcrypt_files wolfcrypt/src/port/devcrypto/*.c wolfcrypt/test/test.c)
}

# Runs a program of wolfSSL's where its files are, by `bywash run` with this option; the number of tests that it passed goes to `passed`.
wolfssl_tests() {
    local option=$1 room=$PWD
    (cd "$wolfssl/source" && "$bywash" run "$option" --quiet --report "$room/report.json" -- "$2" >"$room/out" 2>&1) || fail "$(tail -4 out)"
    [ "$(operations)" -gt 100 ] || fail "wolfSSL asked nothing of /dev/crypto"
    passed=$(grep -c 'test passed' out)
}

wolfssl() {
    testwolfcrypt
    wolfssl_tests --devcrypto "$wolfssl/testwolfcrypt"
    echo "$passed tests of testwolfcrypt built with devcrypto, $(operations) operations" >note
}

# A statically linked client: the same program without a shared library, whose system calls are answered.
static() {
    "$bywash" run --static --quiet -- true 2>refused || ! grep -q 'does not let a process answer' refused || skip "$(tail -1 refused)"
    testwolfcrypt
    local static=$wolfssl/testwolfcrypt-static
    [ -x "$static" ] || cc -static -o "$static" "$wolfssl/testwolfcrypt.objects"/*.o -lm -lpthread
    ! readelf -l "$static" | grep -q INTERP || fail "$static is not linked statically"
    wolfssl_tests --static "$static"
    echo "$passed tests of testwolfcrypt, linked statically, $(operations) operations" >note
}

# What configure has on by itself; the certificates of the release have expired since, so its own clock begins in January 2023.
wolfssl_tls_flags="-include clock.h -DNO_MAIN_DRIVER -DWOLFSSL_X86_64_BUILD -DERROR_QUEUE_PER_THREAD -DTFM_TIMING_RESISTANT -DECC_TIMING_RESISTANT -DWC_RSA_BLINDING -DWOLFSSL_USE_ALIGN
    -DWOLFSSL_SHA512 -DWOLFSSL_SHA384 -DHAVE_HKDF -DNO_DSA -DHAVE_ECC -DTFM_ECC256 -DECC_SHAMIR -DWC_RSA_PSS -DWOLFSSL_PSS_LONG_SALT -DWOLFSSL_BASE64_ENCODE -DWOLFSSL_SHA3
    -DWOLFSSL_NO_SHAKE128 -DWOLFSSL_NO_SHAKE256 -DHAVE_POLY1305 -DHAVE_CHACHA -DHAVE_HASHDRBG -DHAVE_TLS_EXTENSIONS -DHAVE_SUPPORTED_CURVES -DHAVE_FFDHE_2048 -DWOLFSSL_TLS13
    -DHAVE_EXTENDED_MASTER -DNO_RC4 -DHAVE_ENCRYPT_THEN_MAC -DNO_PSK -DNO_MD4 -DWOLFSSL_SP_MATH_ALL -DWOLFSSL_SP_X86_64 -DWC_NO_ASYNC_THREADING -DHAVE_DH_DEFAULT_PARAMS
    -DWOLFSSL_SYS_CA_CERTS -DNO_DES3 -DGCM_TABLE_4BIT -DHAVE_AESGCM -DHAVE_SERVER_RENEGOTIATION_INFO -DHAVE___UINT128_T=1 -DHAVE_THREAD_LS -D_POSIX_THREADS -D_GNU_SOURCE
    -DWOLFSSL_AES_DIRECT -DHAVE_AESCCM -DWOLFSSL_AES_COUNTER -DHAVE_AES_ECB"
wolfssl_tls() {
    source_of wolfssl
    mkdir -p "$wolfssl/include"
    printf '%s\n' '#include <time.h>' 'static time_t release_time(time_t *into) {' '    static time_t began;' '    time_t now = time(0);' '    if (!began) began = now;' \
        '    now = 1672531200 + now - began;' '    if (into) *into = now;' '    return now;' '}' '#define XTIME release_time' >"$wolfssl/include/clock.h"
    # Its tests of hashes come behind its last clean-up, which closes the device: whoever counts on it has to say so first.
    printf '%s\n' 'int wolfCrypt_Init(void);' '__attribute__((constructor)) static void hold(void) { for (int i = 0; i < 64; i++) wolfCrypt_Init(); }' >"$wolfssl/include/hold.c"
    local files lone='/(bio|conf|pk|x509|x509_str|ssl_misc|sniffer)\.c$'
    files=$(wolfcrypt_files src/*.c | grep -v -E "$lone")
    local unit="tests/unit.c tests/api.c tests/suites.c tests/hash.c tests/w64wrapper.c tests/srp.c tests/quic.c examples/client/client.c examples/server/server.c $wolfssl/include/hold.c"
    wolfssl_build unit-plain "$wolfssl_tls_flags" $files $unit
    wolfssl_build unit-devcrypto "$wolfssl_tls_flags $wolfssl_devcrypto" $files $unit $(wolfcrypt_files wolfcrypt/src/port/devcrypto/*.c | grep /port/)
    (cd "$wolfssl/source" && "$wolfssl/unit-plain") >plain 2>&1 || fail "without /dev/crypto: $(tail -4 plain)"
    (cd "$wolfssl/source" && "$bywash" run --devcrypto --quiet --report "$scratch/wolfssl-tls/report.json" -- "$wolfssl/unit-devcrypto") >ours 2>&1 || fail "$(tail -4 ours)"
    [ "$(operations AES-)" -gt 1000 ] || fail "the records did not go through /dev/crypto"
    local which
    for which in plain ours; do
        grep -aq 'Success for all configured tests' $which || fail "$which did not come to its end: $(tail -4 $which)"
        grep -aoE '[0-9]+: test_[A-Za-z0-9_]+' $which | sort -u >$which.asked
        # Its threads print into each other's lines, so the last number counts.
        grep -aoE 'line\[[0-9]+\]' $which | tail -1 | tr -dc 0-9 >$which.lines
    done
    cmp plain.asked ours.asked
    cmp plain.lines ours.lines
    echo "unit.test: $(wc -l <ours.asked) tests of its interface ($(grep -ac ': skipped' ours) skipped as not built in, $(grep -ac ': skipped' plain) without /dev/crypto), $(($(cat ours.lines) / 2)) connections of its client and server, $(operations) operations; not run: its scripts that need the internet" >note
}

# GnuTLS with what its libraries bring along, and without what Debian's takes from elsewhere; nettle and gmp are Debian's.
gnutls=$target/gnutls28-source
gnutls_build() {
    source_of gnutls28
    [ ! -e "$gnutls/build/lib/.libs/libgnutls.a" ] || return 0
    pkg-config --exists 'nettle >= 3.6' hogweed || skip "no nettle to build GnuTLS with: apt-get install nettle-dev libgmp-dev"
    rm -rf "$gnutls/build"
    mkdir "$gnutls/build"
    (
        cd "$gnutls/build"
        # Its own use of AES instructions goes before the device, so it is left out.
        ../source/configure --quiet --enable-cryptodev --disable-hardware-acceleration --disable-shared --enable-static --disable-doc --disable-cxx --disable-tools --disable-nls \
            --disable-libdane --disable-guile --disable-gost --with-included-unistring --with-included-libtasn1 --without-p11-kit --without-idn --without-tpm --without-tpm2 \
            --without-zlib --without-brotli --without-zstd CFLAGS='-O1 -w' CPPFLAGS="-I$headers"
        make -s -j"$(nproc)" -C gl
        make -s -j"$(nproc)" -C lib
    ) >build.log 2>&1 || fail "GnuTLS cannot be built: $(tail -4 build.log)"
}

# Over both transports; the same program without a device computes by itself.
gnutls() {
    gnutls_build
    local program=$gnutls/build/cryptodev room=$PWD said=
    cc -O1 -Wall -I"$gnutls/build/lib/includes" -I"$gnutls/source/lib/includes" -o "$program" "$repository/tests/gnutls-cryptodev.c" "$gnutls/build/lib/.libs/libgnutls.a" \
        -lhogweed -lnettle -lgmp -lpthread
    "$program" >plain || fail "without /dev/crypto: $(grep failed plain)"
    local option
    for option in --devcrypto --static; do
        if [ $option = --static ] && "$bywash" run --static --quiet -- true 2>&1 | grep -q 'does not let a process answer'; then
            said+=", --static skipped"
            continue
        fi
        "$bywash" run $option --quiet --report "$room/report.json" -- "$program" >ours 2>&1 || fail "$option: $(grep -v '^ok' ours | tail -4)"
        cmp plain ours
        local algorithm
        for algorithm in AES-128-CBC DES-EDE3-CBC MD5 HMAC-SHA-256 SHA-512 AES-256-GCM; do
            [ "$(operations $algorithm)" -gt 0 ] || fail "$option: $algorithm did not go through /dev/crypto"
        done
        said+=", $option $(operations) operations"
    done
    echo "GnuTLS $(sed -n "s/^PACKAGE_VERSION='\(.*\)'/\1/p" "$gnutls/source/configure"), $(grep -c '^ok' plain) algorithms$said" >note
}

# The probe of what a device answers, over the preload library.
probe() {
    local program=$(dirname "$bywash")/cryptodev-probe
    [ -x "$program" ] || skip "no $program: make build"
    routed "$program" >out || fail "$(grep -v '^ok' out | head -5)"
    tail -1 out >note
}

# The client in the page for users, as it stands there.
example() {
    sed -n '/^```c$/,/^```$/p' "$repository/crates/interfaces/cryptodev/README.md" | sed '1d;$d' >hello.c
    cc -Wall -Werror -I"$headers" hello.c -o hello
    cc -Wall -Werror -static -I"$headers" hello.c -o hello-static
    local told
    for told in "--devcrypto ./hello" "--static ./hello" "--static ./hello-static"; do
        [ "$("$bywash" run --quiet ${told% *} -- ${told#* })" = 7649abac8119b246cee98e9b12e9197d ] || fail "bywash run $told: it says something else"
    done
    [ ! -e /dev/crypto ] || { echo "as the page says, by both ways, linked statically too" >note; return 0; }
    "$bywash" run --devcrypto -- ./hello-static 2>said && fail "a statically linked program has a device with --devcrypto"
    grep -q 'bywash run --static -- ./hello-static' said || fail "the way out is not named: $(cat said)"
    echo "as the page says, by both ways, linked statically too" >note
}

# A client of few lines, for what follows: client.py.
client() {
    cat >client.py <<'PY'
import ctypes, fcntl, os
key, iv, text = (ctypes.create_string_buffer(16) for _ in range(3))
class Session(ctypes.Structure):
    _fields_ = [("cipher", ctypes.c_uint32), ("mac", ctypes.c_uint32), ("keylen", ctypes.c_uint32), ("key", ctypes.c_void_p),
                ("mackeylen", ctypes.c_uint32), ("mackey", ctypes.c_void_p), ("ses", ctypes.c_uint32)]
class Crypt(ctypes.Structure):
    _fields_ = [("ses", ctypes.c_uint32), ("op", ctypes.c_uint16), ("flags", ctypes.c_uint16), ("len", ctypes.c_uint32),
                ("src", ctypes.c_void_p), ("dst", ctypes.c_void_p), ("mac", ctypes.c_void_p), ("iv", ctypes.c_void_p)]
def request(kind):
    return 3 << 30 | ctypes.sizeof(kind) << 16 | ord("c") << 8
fd = os.open("/dev/crypto", os.O_RDWR)
session = Session(cipher=11, keylen=16, key=ctypes.addressof(key))
fcntl.ioctl(fd, request(Session) | 102, session)
def encrypt(times):
    for _ in range(times):
        op = Crypt(ses=session.ses, len=16, src=ctypes.addressof(text), dst=ctypes.addressof(text), iv=ctypes.addressof(iv))
        fcntl.ioctl(fd, request(Crypt) | 104, op)
PY
}

# What children do with sessions that their parent opened is in the account of the run, however little each does.
forks() {
    client
    cat >forks.py <<'PY'
import os
from client import encrypt
for _ in range(10):
    if os.fork() == 0:
        encrypt(50)
        os._exit(0)
for _ in range(10):
    assert os.wait()[1] == 0
PY
    for option in --devcrypto --static; do
        "$bywash" run $option --quiet --report report.json -- /usr/bin/python3 forks.py
        [ "$(operations AES-128-CBC)" = 500 ] || fail "$option: $(operations AES-128-CBC) of 500 operations are in the account"
    done
    echo "500 operations of 10 children, in the account of both ways" >note
}

# The broker knows each process by its own number and name, however it is reached, and for as long as it lives: rules for programs are about those.
tenants() {
    client
    ln -s /usr/bin/python3 one
    ln -s /usr/bin/python3 two
    printf '[[tenant]]\nmatch = "program:one"\nweight = 3\n' >broker.toml
    begin broker.log "$bywash" serve --socket "$PWD/socket" --config broker.toml
    for _ in $(seq 100); do [ -S socket ] && break; sleep 0.05; done
    cat >holds.py <<'PY'
import os, sys, time
from client import encrypt
encrypt(10)
os.write(1, f"{sys.argv[1]} {os.getpid()}\n".encode())
for _ in range(1500):
    if os.path.exists(f"end-{sys.argv[1]}"):
        break
    time.sleep(0.02)
PY
    # knows NAME...: the broker's clients are these, by the numbers in the file `pids`.
    knows() {
        local wanted
        wanted=$(for name in "$@"; do grep "^$name " pids; done)
        for _ in $(seq 100); do
            "$bywash" stats --socket "$PWD/socket" --json >stats.json
            /usr/bin/python3 -c 'import json; print(*sorted("%s %s" % (c["comm"], c["pid"]) for c in json.load(open("stats.json"))["clients"])[1:], sep="\n")' >known
            # The first of them, by its name, is bywash itself: who asks for the statistics, and nobody else.
            [ "$wanted" != "$(cat known)" ] || return 0
            sleep 0.02
        done
        fail "the broker knows $(tr '\n' ' ' <known), and there are $(tr '\n' ' ' <<<"$wanted")"
    }
    local option run done=0
    for option in --devcrypto --static; do
        rm -f end-* pids
        "$bywash" run $option --quiet --route queue --socket "$PWD/socket" -- sh -c './one holds.py one & ./two holds.py two & wait' >pids &
        run=$!
        for _ in $(seq 200); do [ "$(wc -l <pids)" != 2 ] || break; sleep 0.05; done
        knows one two
        touch end-one
        knows two
        touch end-two
        wait $run
        done=$((done + 10))
        /usr/bin/python3 -c 'import json, sys; print(*(t["requests"] for t in json.load(open("stats.json"))["tenants"] if t["tenant"] == "program:one"))' >requests
        [ "$(cat requests)" = $done ] || fail "$option: the rule for one's program has $(cat requests) requests, and it made $done"
    done
    echo "two processes, each by its own number, name and rule, both ways" >note
}

check probe probe
check example example
check forks forks
check tenants tenants
check enc enc
check dgst dgst
check speed speed
check tls tls
check wolfssl wolfssl
check static static
check wolfssl-tls wolfssl_tls
check gnutls gnutls
printf 'cryptodev: %s passed, %s failed, %s skipped\n' "${counts[@]}"
[ "${counts[1]}" = 0 ]
