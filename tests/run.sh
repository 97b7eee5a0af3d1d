#!/usr/bin/env bash
# Real programs and servers under `bywash run`, servers whose handshakes wait for each other, a broker that is killed once a second under load,
# keys of a vault, some from a token, clients of /dev/crypto, DDS peers that are killed, the experiments at their quickest.
set -uo pipefail
cd "$(dirname "$0")"
status=0
./real-programs.sh || status=1
./async-servers.sh || status=1
./broker-kill.sh || status=1
./vault.sh || status=1
./vault-token.sh || status=1
./cryptodev.sh || status=1
./dds-soak.sh || status=1
./reproduce.sh || status=1
exit $status
