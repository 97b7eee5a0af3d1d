#!/usr/bin/env bash
# Real programs and servers under `bywash run`, servers whose handshakes wait for each other, a broker that is killed once a second under load,
# keys of a vault, some from a token, clients of /dev/crypto, DDS peers that are killed, the experiments at their quickest.
set -uo pipefail
cd "$(dirname "$0")"
status=0
for script in real-programs async-servers broker-kill vault vault-token cryptodev dds-soak reproduce; do
    begun=$SECONDS
    ./$script.sh || status=1
    echo "programs: $script took $((SECONDS - begun)) s"
done
exit $status
