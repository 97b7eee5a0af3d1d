#!/usr/bin/env bash
# The provider with later OpenSSLs than this machine's: its own tests, and real programs and servers, in later Debians.
#
#   tests/openssl-versions.sh [SUITE...]     trixie (OpenSSL 3.5) and forky (3.6) by default; experimental (4.0) has no servers yet
#
# Each suite is fetched once into target/debian/SUITE (0.5 to 1 GB) and entered by chroot, in mounts of this script's own, with this
# build of the tests and of the command. Minutes; not part of `make test`. Skipped, with 77, where that is not allowed or not to be had.
set -uo pipefail
cd "$(dirname "$0")/.."

skip() { echo "openssl-versions: skipped: $*" >&2; exit 77; }

[ $# -gt 0 ] || set -- trixie forky
[ "$(id -u)" = 0 ] || skip "chroot is root's: run it as root"
if [ -z "${ALONE:-}" ]; then
    unshare --mount true 2>/dev/null || skip "this root may have no mounts of its own"
    ALONE=1 exec unshare --mount --propagation private "$0" "$@"
fi
command -v debootstrap >/dev/null || apt-get -qq install -y --no-install-recommends debootstrap >/dev/null 2>&1 || skip "no debootstrap: apt-get install debootstrap"
[ -x target/release/bywash ] || skip "target/release/bywash is missing: run 'make build' first"

mirror=http://deb.debian.org/debian
repository=$PWD

# What its programs need of this machine; gone with this script.
furnish() {
    local root=$1
    mkdir -p "$root$repository"
    mount --bind "$repository" "$root$repository" && mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" && mount --bind /dev/shm "$root/dev/shm"
}

# Makes the root of a suite, with what the tests use there of programs.
fetch() {
    local suite=$1 root=$2 base=$1
    # Experimental stands on unstable, and has been expired for days at times.
    [ "$suite" != experimental ] || base=sid
    local script=/usr/share/debootstrap/scripts/sid
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase --include=ca-certificates "$base" "$root" "$mirror" "$script" >"$root.log" 2>&1 || return 1
    # Servers that are installed must not start.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    furnish "$root" || return 1
    [ "$suite" = "$base" ] || echo "deb $mirror $suite main" >>"$root/etc/apt/sources.list"
    cp tests/packages.txt "$root/tmp/packages.txt"
    chroot "$root" env DEBIAN_FRONTEND=noninteractive SUITE="$suite" sh -eu -c '
        apt() { apt-get -qq -o Acquire::Check-Valid-Until=false "$@"; }
        apt update
        # Of the names of this Debian, those that the other one has.
        packages=$(while read -r name rest; do
            case $name in "" | "#"*) continue ;; esac
            [ -z "$(apt-cache madison "$name")" ] || echo "$name"
        done </tmp/packages.txt)
        if [ "$SUITE" = experimental ]; then
            apt install -y --no-install-recommends -t experimental openssl libssl-dev
            packages="liburing-dev nginx-light"
        fi
        apt install -y --no-install-recommends openssl libssl-dev gcc libc6-dev python3 ruby procps curl ca-certificates $packages
    ' >>"$root.log" 2>&1
}

programs() {
    local suite=$1 root=$2 script status=0
    # Only the provider is not linked to OpenSSL 3: its tests are, and so are Debian's servers as yet, of which one is the reference here.
    if [ "$suite" = experimental ]; then
        chroot "$root" sh -c "cd '$repository' && crates/interfaces/openssl/tests/pkey-programs.py target/debug/deps/libbywash_openssl.so commands legacy tls" || status=1
        chroot "$root" sh -c "cd '$repository' && tests/async-servers.sh uring-tls1.2 uring-tls1.3 vanishing-clients-uring openssl-speed-jobs s_server-async" || status=1
        return $status
    fi
    while read -r test; do
        chroot "$root" sh -c "cd '$repository/crates/interfaces/openssl' && '$repository/$test' --quiet" >"$root.log" 2>&1 || {
            status=1
            cat "$root.log"
        }
        sed -n "s/^test result: /openssl-versions: $suite: $(basename "${test%-*}"): /p" "$root.log"
    done <<<"$tests"
    for script in real-programs async-servers; do
        chroot "$root" sh -c "cd '$repository' && tests/$script.sh" || status=1
    done
    return $status
}

built=$(CARGO_INCREMENTAL=0 cargo test -p bywash-openssl -p bywash-async -p bywash-libcrypto --no-run 2>&1) || { echo "$built" >&2; exit 1; }
tests=$(sed -n 's/.*(\(target\/debug\/deps\/[^)]*\)).*/\1/p' <<<"$built")
status=0
for suite in "$@"; do
    root=$repository/target/debian/$suite
    if [ ! -e "$root.done" ]; then
        echo "openssl-versions: fetching $suite"
        fetch "$suite" "$root" || { tail -5 "$root.log" >&2; skip "$suite cannot be fetched or installed (its log: $root.log)"; }
        touch "$root.done"
    else
        furnish "$root"
    fi
    echo "openssl-versions: $suite: $(chroot "$root" openssl version)"
    programs "$suite" "$root" || { status=1; echo "openssl-versions: $suite: FAILED"; }
done
exit $status
