#!/usr/bin/env bash
# What one message costs a program that calls EVP, by OpenSSL's own provider and by Bywash in turn: the cost of each call matters more than the kernel's where messages
# are short. Lower quartiles of 25 interleaved rounds of the thread's processor time.
#
#   bench/evp-calls.sh                                        the ciphers and sizes of README.md
#   bench/evp-calls.sh AES-256-GCM,AES-128-CTR 16,1024 dec    ciphers, sizes in bytes, direction
#   bench/evp-calls.sh AES-128-GCM 64,1024,16384 enc context,keys16,keys200,fresh,copy
#                                                             what a program does for each message
#   OTHER_SETTINGS='keep = 0' bench/evp-calls.sh ...          beside itself with other settings
#   OTHER_MODULE=FILE bench/evp-calls.sh ...                  beside another build
set -euo pipefail
. "$(dirname "$0")/../tests/lib.sh"
module=${MODULE:-$repository/target/release/libbywash_openssl.so}
need "$module"
unset BYWASH_SOCKET BYWASH_ROUTE OPENSSL_CONF
provider_conf "$module" 'route = here' 'socket = none' >"$scratch/both.cnf"
cc -O2 -o "$scratch/evp-calls" "$repository/bench/evp-calls.c" -lcrypto
arguments=("${1:-AES-256-GCM,AES-128-GCM,AES-256-CTR,AES-256-XTS,AES-256-CBC}" "${2:-16,64,256,1024,16384}" "${3:-enc}" "${4:-update,iv,key,context,speed}")
if [ -n "${OTHER_MODULE:-}${OTHER_SETTINGS:-}" ]; then
    provider_conf "${OTHER_MODULE:-$module}" 'route = here' 'socket = none' "${OTHER_SETTINGS:-}" >"$scratch/other.cnf"
    arguments+=("$scratch/other.cnf")
fi
$([ "$(nproc)" -lt 2 ] || echo taskset -c 1) "$scratch/evp-calls" "$scratch/both.cnf" "${arguments[@]}"
