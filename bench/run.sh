#!/bin/sh
# Every benchmark, one after the other, or those whose crate or name is given. Quiet machine, please: ratios hold, absolutes drift.
#
#   bench/run.sh                                  all but `timing`, which asks for leaks, not for speed: hours
#   bench/run.sh bywash-sim                       the simulator's: niwa2005, readings (half a minute each), streaming, tuned
#   bench/run.sh --log access.log niwa2005 tuned  with a web server's log as one more trace
#   bench/run.sh timing                           whether kernels' times depend on secrets (dudect)
set -eu
log=
if [ "${1-}" = --log ]; then
    [ -r "${2-}" ] || { echo "bench/run.sh: --log: no file to read at '${2-}'" >&2; exit 2; }
    log=$(realpath "$2")
    shift 2
fi
cd "$(dirname "$0")/.."

# Lines of crate and benchmark, as the manifests have them.
list() {
    for manifest in $(grep -l '^\[\[bench\]\]' crates/*/Cargo.toml crates/*/*/Cargo.toml crates/*/*/*/Cargo.toml); do
        awk -F'"' '/^\[/ { kind = $0 } /^name = / { if (kind == "[package]") crate = $2; if (kind == "[[bench]]") print crate, $2 }' "$manifest"
    done
}

# Whether a benchmark is asked for: by its crate's name or its own.
wanted() {
    crate=$1 name=$2
    shift 2
    [ $# -gt 0 ] || [ "$name" = timing ] || return 0
    for part; do
        [ "$part" != "$name" ] || return 0
        [ "$part" != "$crate" ] || [ "$name" = timing ] || return 0
    done
    return 1
}

for part; do
    [ "$part" = openssl-speed ] || list | tr ' ' '\n' | grep -qx -- "$part" || {
        echo "bench/run.sh: no crate or benchmark '$part'; there are openssl-speed and" >&2
        list >&2
        exit 2
    }
done
list | while read -r crate name; do
    wanted "$crate" "$name" "$@" || continue
    printf '\n== %s, %s\n' "$crate" "$name"
    case "$name,$log" in
        niwa2005,?* | tuned,?*) cargo bench --quiet -p "$crate" --bench "$name" -- 24 "$log" </dev/null ;;
        *) cargo bench --quiet -p "$crate" --bench "$name" </dev/null ;;
    esac
done
if [ $# -eq 0 ] || printf '%s\n' "$@" | grep -qx openssl-speed; then
    printf '\n== openssl speed, without and with Bywash\n'
    bench/openssl-speed.py
fi
