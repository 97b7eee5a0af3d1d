#!/usr/bin/env bash
# The Python package: bytes, files and sessions against the `bywash` command; data sets on a local Ray, in folders and in an S3-compatible store, with workers
# and drivers that are killed. Takes what the command line of pytest takes.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/python || { [ $? -eq 3 ] && echo "skipped  the Python package: its tests cannot be installed (see above)" && exit 0; exit 1; }
library=
for profile in release debug; do
    [ -n "$library" ] || [ ! -e "target/$profile/libbywash_python.so" ] || library=target/$profile/libbywash_python.so
done
[ -n "$library" ] || { echo "no target/release/libbywash_python.so: cargo build --release -p bywash-python" >&2; exit 1; }

# As a wheel lays it out (`make wheel` makes one, with a build of its own).
site=$PWD/target/python/site
rm -rf "$site"
mkdir -p "$site"
cp -r crates/interfaces/python/python/bywash "$site/bywash"
cp "$library" "$site/bywash/_native.abi3.so"

# No broker of the machine, and nothing that Ray would tell the world.
export BYWASH_SOCKET=none RAY_USAGE_STATS_ENABLED=0 PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$site
target/python/bin/python -m pytest -p no:cacheprovider --rootdir crates/interfaces/python --doctest-glob=README.md --doctest-modules -rs \
    crates/interfaces/python/README.md "$site/bywash/__init__.py" "$site/bywash/_file.py" crates/interfaces/python/tests "$@"
