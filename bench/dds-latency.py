#!/usr/bin/env python3
"""Latency of Debian's Cyclone DDS between two processes on loopback: without security, with the built-in cryptographic plug-in, with Bywash's, and with the built-in
one where cryptography takes no time (`nothing`: text is copied, tags are zeros), which is as fast as any plug-in of its form could be.

bench/dds-latency.py [--governance ros2] [--rounds 5] [--seconds 3] [--plugin FILE] [--make PROGRAM] SIZE...

Debian's ddsperf, unmodified (cyclonedds-tools). The four are run in turn, so that what else the machine does meets all of them; of each the least of all
rounds is shown, of the minima and of the medians, in microseconds for one way. PROGRAM makes keys and documents: the example `make` of bywash-dds-material.
"""
import argparse
import os
import re
import subprocess
import tempfile

import dds

FIGURES = re.compile(r" mean ([0-9.]+)us min ([0-9.]+)us 50% ([0-9.]+)us .* cnt (\d+)")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=["1k", "10k", "1M"], metavar="SIZE")
    parser.add_argument("--governance", default="ros2", choices=dds.GOVERNANCES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--plugin", default="target/release/libbywash_dds_cyclone.so")
    parser.add_argument("--make", help="the program; built by cargo if it is not told")
    options = parser.parse_args()
    if options.seconds < 2:
        parser.error("--seconds: 2 at least, for ddsperf prints its figures once a second after the first")
    for name in ("plugin", "make"):
        path = getattr(options, name)
        if path and not os.path.exists(path):
            parser.error(f"--{name} {path}: no such file" + ("; cargo build --release -p bywash-dds-cyclone" if name == "plugin" else ""))
    return options


def configured(folder, name, variant, plugin):
    text = dds.cyclone(folder, name, plugin=plugin if variant == "bywash" else None, secured=variant != "plain")
    return dds.written(f"{folder}/{name}/{variant}.xml", text)


NOTHING = "experiments/runner/src/kido/nothing.c"


def run(folder, variant, options, size):
    """The least minimum and the least median of a run, and its round trips."""
    def start(name, *what):
        environment = {**os.environ, "CYCLONEDDS_URI": configured(folder, name, variant, options.plugin)}
        if variant == "nothing":
            environment["LD_PRELOAD"] = f"{folder}/nothing.so"
        command = ["ddsperf", "-i", "61", "-D", str(options.seconds + (2 if name == "alice" else 0)), *what]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    pong = start("alice", "pong")
    ping = start("bob", "ping", "size", size)
    said = ping.communicate()[0]
    pong.terminate()
    pong.communicate()
    found = [tuple(map(float, match)) for match in FIGURES.findall(said)]
    if not found:
        raise SystemExit(f"{variant}, {size}: no figures in\n{said}")
    return min(row[1] for row in found), min(row[2] for row in found), sum(int(row[3]) for row in found)


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        dds.material(options, folder, "alice", "bob")
        why = dds.compiled(folder, [["cc", "-O2", "-shared", "-fPIC", "-o", "nothing.so", f"{dds.ROOT}/{NOTHING}"]], "build-essential, libssl-dev")
        if why:
            raise SystemExit(f"{NOTHING}: {why}")
        print(f"governance {options.governance}, {options.rounds} rounds of {options.seconds} s: least minimum / least median in us, round trips")
        for size in options.sizes:
            best = {}
            for _ in range(options.rounds):
                for variant in ("plain", "stock", "bywash", "nothing"):
                    low, median, count = run(folder, variant, options, size)
                    old = best.get(variant, (low, median, 0))
                    best[variant] = min(old[0], low), min(old[1], median), old[2] + count
            row = "  ".join(f"{name} {low:.1f} / {median:.1f} ({count})" for name, (low, median, count) in best.items())
            (plain, plain2, _), (stock, stock2, _), (ours, ours2, _), (least, least2, _) = best.values()
            print(f"{size:>5}: {row}; of stock {ours / stock:.2f} / {ours2 / stock2:.2f}, nothing of stock {least / stock:.2f} / {least2 / stock2:.2f}, "
                  f"ours of none {ours / plain:.2f} / {ours2 / plain2:.2f}", flush=True)


if __name__ == "__main__":
    main()
