#!/usr/bin/env python3
"""What the public-key cryptography of DDS Security costs when many join at once: Debian's Cyclone DDS, 20 processes that all must authenticate each other.

bench/dds-discovery.py [--participants 20] [--rounds 3] [--governance ros2] [--ways none,stock,plugin,provider,plain-provider] [--bin target/release]

Ways, in turn: without security; as Debian has it; with Bywash's cryptographic plug-in; under `bywash run`, which puts the provider, and with it the public-key engine, under the authentication plug-in's OpenSSL; the same with --no-async.
Time runs from the line that lets all of them join until the last has matched the readers and writers of all others; processor time is that of all of them together. Keys are on P-256
(ECDSA certificates, ECDH), which is what Cyclone chooses by itself. The last lines tell what a handshake needs of public-key operations, counted by the provider, and how much of
the processor time of the stock way they are, by `openssl speed` on this machine.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import dds

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SECONDS = 120
DOMAIN = 215
WAYS = ("none", "stock", "plugin", "provider", "plain-provider")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--participants", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--governance", default="ros2", choices=dds.GOVERNANCES)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--bin", default=f"{ROOT}/target/release", help="where bywash and its libraries are")
    parser.add_argument("--make", help="the example `make` of bywash-dds-material; built by cargo if it is not told")
    return parser.parse_args()


def compiled(folder):
    """The program; none, and why, if it cannot be made here."""
    steps = [["idlc", "-l", "c", f"{HERE}/dds-soak/text.idl"], ["cc", "-O1", "-I.", "-o", "join", f"{HERE}/dds-discovery/join.c", "text.c", "-lddsc"]]
    why = dds.compiled(folder, steps, "cyclonedds-dev, cyclonedds-tools")
    return (None if why else f"{folder}/join"), why


def configured(options, folder, name, way):
    plugin = f"{options.bin}/libbywash_dds_cyclone.so" if way == "plugin" else None
    return dds.written(f"{folder}/{name}/{way}.xml", dds.cyclone(folder, name, plugin=plugin, secured=way != "none"))


def operations(path):
    with open(path, encoding="utf-8") as file:
        account = json.load(file)["account"]
    found = {}
    for place in ("here", "broker"):
        for line in account[place]:
            found[line["algorithm"]] = found.get(line["algorithm"], 0) + line["operations"]
    return found


def join(options, folder, program, names, way):
    """Seconds until the last has found all, processor seconds of all, and what the provider did."""
    running, reports = [], []
    others = str(len(names) - 1)
    for name in names:
        command = [program, str(DOMAIN), others, str(SECONDS)]
        if way.endswith("provider"):
            report = f"{folder}/{name}/report.json"
            reports.append(report)
            command = [f"{options.bin}/bywash", "run", "--quiet", "--report", report, *(["--no-async"] if way == "plain-provider" else []), "--", *command]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("BYWASH_") and key not in ("LD_PRELOAD", "OPENSSL_CONF")}
        environment["CYCLONEDDS_URI"] = configured(options, folder, name, way)
        running.append(subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    try:
        for process in running:
            if process.stdout.readline() != "ready\n":
                raise SystemExit(f"{way}: a participant does not start")
        for process in running:
            process.stdin.write("\n")
            process.stdin.flush()
        found = [process.stdout.readline().split() for process in running]
    finally:
        for process in running:
            process.stdin.close()
        for process in running:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    missing = [line for line in found if line[1:3] != [others, others]]
    sums = {}
    for report in reports:
        for algorithm, count in operations(report).items():
            sums[algorithm] = sums.get(algorithm, 0) + count
    if missing:
        print(f"  {way}: {len(missing)} of {len(found)} had not found all others after {SECONDS} s", flush=True)
        return None, None, sums
    return max(int(line[3]) for line in found) / 1e6, sum(int(line[4]) for line in found) / 1e6, sums


def speed():
    """Seconds of one operation: sign, verify, agree (and make a key, which costs about as much as to sign)."""
    environment = {key: value for key, value in os.environ.items() if key != "OPENSSL_CONF"}
    said = subprocess.run(["openssl", "speed", "-mr", "-seconds", "1", "ecdsap256", "ecdhp256"], env=environment, capture_output=True, text=True).stdout
    sign = re.search(r"\+F4:\d+:256:([0-9.]+):([0-9.]+)", said)
    agree = re.search(r"\+F5:\d+:256:([0-9.]+)", said)
    if not sign or not agree:
        return None
    # Releases differ in whether they print seconds for one or operations a second.
    seconds = [float(text) for text in (sign[1], sign[2], agree[1])]
    return [1 / value if value > 1 else value for value in seconds]


def main():
    options = arguments()
    names = [f"p{number}" for number in range(options.participants)]
    with tempfile.TemporaryDirectory() as folder:
        program, why = compiled(folder)
        if not program:
            print(f"skipped: {why}")
            return 77
        dds.material(options, f"{folder}/material", *names)
        best, failed, counted = {}, {}, {}
        for _ in range(options.rounds):
            for way in options.ways.split(","):
                seconds, processor, sums = join(options, f"{folder}/material", program, names, way)
                counted[way] = sums or counted.get(way, {})
                if seconds is None:
                    failed[way] = failed.get(way, 0) + 1
                    continue
                old = best.get(way, (seconds, processor))
                best[way] = min(old[0], seconds), min(old[1], processor)
        pairs = options.participants * (options.participants - 1) // 2
        print(f"{options.participants} participants at once, {pairs} handshakes, governance {options.governance}; least of {options.rounds} rounds in turn: s until all have found all, processor s of all")
        for way in options.ways.split(","):
            if way in best:
                of_stock = f"; of stock {best[way][0] / best['stock'][0]:.2f}, {best[way][1] / best['stock'][1]:.2f}" if "stock" in best else ""
                print(f"  {way:<15} {best[way][0]:6.2f} {best[way][1]:6.2f}{of_stock}" + (f"; {failed[way]} rounds not complete" if way in failed else ""))
            else:
                print(f"  {way:<15} no round was complete")
        tell_share(options, counted, best, pairs)
        return 1 if failed else 0


def tell_share(options, counted, best, pairs):
    for way, sums in counted.items():
        public = {name: count for name, count in sorted(sums.items()) if not name.startswith(("AES", "SHA", "HMAC"))}
        if public:
            print(f"  {way}: " + ", ".join(f"{count} {name} ({count / pairs:.1f} a handshake)" for name, count in public.items()))
    cost, sums = speed(), next((sums for sums in counted.values() if sums), None)
    if cost and sums and "stock" in best:
        sign, verify, agree = cost
        # What makes a key pair costs about what a signature does.
        seconds = {"ECDSA-P256 sign": sign, "ECDSA-P256 verify": verify, "ECDH-P256": agree, "ECDH-P256 public": sign}
        total = sum(count * seconds.get(name, 0) for name, count in sums.items())
        print(f"  openssl speed, P-256: sign {1e6 * sign:.0f} us, verify {1e6 * verify:.0f} us, agree {1e6 * agree:.0f} us: what the provider counted would take OpenSSL {total:.2f} s, "
              f"{100 * total / best['stock'][1]:.0f} % of stock's processor time")


if __name__ == "__main__":
    sys.exit(main())
