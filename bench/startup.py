#!/usr/bin/env python3
"""What a process pays for being started under Bywash: scripts, git and CGI start many, and most compute nothing.

    bench/startup.py                                 the programs below
    bench/startup.py --rounds 500 "openssl rand 1"   these

Each program is started in turn as it is and in the midst of a run, where `bywash run` has set LD_PRELOAD and OPENSSL_CONF for all that come from it; the last line is a
whole run of `true`, with the broker that it hosts. Processor time of the program, user and system, medians and minima. What the broker spends on a program that
connects to it is not counted.
"""

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ["true", "sh -c :", "git --version", "openssl version", "openssl rand 1", "openssl genpkey -algorithm x25519", "curl --version",
            "/usr/bin/python3 -c 'import ssl'"]
OURS = ("LD_PRELOAD", "OPENSSL_CONF", "BYWASH_")
QUIET = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]


def cpu_us(command: list[str], environment: dict[str, str]) -> float:
    """Runs it once."""
    pid = os.posix_spawnp(command[0], command, environment, file_actions=QUIET)
    _, status, spent = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"startup: {shlex.join(command)} failed with status {os.waitstatus_to_exitcode(status)}")
    return (spent.ru_utime + spent.ru_stime) * 1e6


def compare(name: str, rounds: int, cases: list[tuple[list[str], dict[str, str]]]) -> None:
    for case in cases:
        cpu_us(*case)
    turns = [[cpu_us(*case) for case in cases] for _ in range(rounds)]
    plain, ours = (list(times) for times in zip(*turns))
    cells = [f"{pick(plain):8.0f} {pick(ours):8.0f} {pick(ours) - pick(plain):+8.0f}" for pick in (statistics.median, min)]
    print(f"{name:<36} | {' | '.join(cells)} | {statistics.median(ours) / statistics.median(plain):6.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--bywash", default=os.environ.get("BYWASH", ROOT / "target/release/bywash"), type=Path)
    parser.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.bywash.is_file():
        sys.exit(f"startup: no {args.bywash}: make build")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    if not args.within:
        own = [sys.executable, __file__, *sys.argv[1:], "--within"]
        sys.exit(subprocess.run([args.bywash, "run", "--quiet", "--", *own], env=plain).returncode)
    print(f"{'processor time, us':<36} | {'median':>8} {'in a run':>8} {'more':>8} | {'minimum':>8} {'in a run':>8} {'more':>8} |")
    for program in args.programs:
        command = shlex.split(program)
        if shutil.which(command[0]) is None:
            print(f"{program:<36} | skipped: no {command[0]} here")
            continue
        compare(program, args.rounds, [(command, plain), (command, dict(os.environ))])
    compare("bywash run -- true", args.rounds, [(["true"], plain), ([str(args.bywash), "run", "--quiet", "--", "true"], plain)])


if __name__ == "__main__":
    main()
