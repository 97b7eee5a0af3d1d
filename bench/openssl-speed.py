#!/usr/bin/env python3
"""`openssl speed` with and without Bywash, interleaved; medians and their ratio.

    bench/openssl-speed.py                          the bars of SPECIFICATION.md
    bench/openssl-speed.py --rounds 9 aes-128-ctr:64 rsa2048

A case is NAME:BYTES for a cipher (`openssl speed -evp NAME -bytes BYTES`) or NAME for a public-key operation
(`openssl speed NAME`). Both sides are the same `openssl`; only its configuration differs. Pinned to one core.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BYWASH = ROOT / "target/release/bywash"
CASES = ["aes-256-gcm:1024", "aes-256-gcm:16384", "aes-128-gcm:16384", "aes-256-ctr:16384", "aes-256-cbc:16384",
         "chacha20-poly1305:1024", "aes-256-gcm:64", "rsa2048", "rsa4096", "ecdsap256", "ecdhp256", "ecdsap384", "ecdhp384", "ed25519", "ecdhx25519"]


def speed(case: str, seconds: int, prefix: list[str]) -> dict[str, float]:
    """Runs one case once: {what: rate per second}, bytes for ciphers, operations for the rest."""
    name, _, size = case.partition(":")
    command = ["openssl", "speed", "-mr", "-elapsed", "-seconds", str(seconds)]
    command += ["-evp", name, "-bytes", size] if size else [name]
    run = subprocess.run(["taskset", "-c", "0", *prefix, *command], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"openssl-speed: {' '.join(command)} failed:\n{run.stderr}")
    rates = {}
    for line in run.stdout.splitlines():
        fields = line.split(":")
        if fields[0] == "+F":
            rates["B/s"] = float(fields[-1])
        elif fields[0] in ("+F2", "+F4"):
            rates["sign/s"], rates["verify/s"] = map(float, fields[3:5])
        elif fields[0] == "+F6":
            rates["sign/s"], rates["verify/s"] = map(float, fields[4:6])
        elif fields[0] == "+F5":
            rates["derive/s"] = float(fields[3])
    if not rates:
        sys.exit(f"openssl-speed: cannot read what `{' '.join(command)}` printed:\n{run.stdout}")
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1, help="of each measurement")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    routed = [str(BYWASH), "run", "--quiet", "--route", "here", "--"]
    rows = []
    for case in options.cases:
        plain, ours = [], []
        for _ in range(options.rounds):
            plain.append(speed(case, options.seconds, []))
            ours.append(speed(case, options.seconds, routed))
        for kind in plain[0]:
            a, b = (statistics.median(run[kind] for run in runs) for runs in (plain, ours))
            ratio = statistics.median(o[kind] / p[kind] for o, p in zip(ours, plain))
            rows.append({"case": case, "unit": kind, "openssl": a, "bywash": b, "ratio": ratio})
            if not options.json:
                print(f"{case:24} {kind:9} openssl {a:16,.0f}   bywash {b:16,.0f}   ratio {ratio:5.2f}", flush=True)
    if options.json:
        json.dump(rows, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
