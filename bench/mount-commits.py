#!/usr/bin/env python3
"""What a database asks of a mount: little is written and synced, again and again. `bywash mount` with chunks of 64 KiB and of 4 KiB, gocryptfs, and the bare folder, in turn.

    bench/mount-commits.py [--rounds 5] [--seconds 2] [--bywash PATH] [--folder DIR]

The folder is where everything lies: on the disk that is to be measured, not in memory. Printed are commits in a second, the median of the rounds, and the median of each round's ratio to gocryptfs.
"""

import argparse
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

PAGE_BYTES = 8192
TABLE_BYTES = 16 << 20


def until(seconds, commit):
    """How often something can be done in a second."""
    count, begun = 0, time.monotonic()
    while time.monotonic() - begun < seconds:
        commit(count)
        count += 1
    return count / (time.monotonic() - begun)


def overwritten(folder, seconds, place):
    """Pages of a file of 16 MiB, each synced."""
    file = os.open(folder / "table", os.O_RDWR | os.O_CREAT)
    if os.fstat(file).st_size < TABLE_BYTES:
        os.pwrite(file, bytes(TABLE_BYTES), 0)
        os.fsync(file)

    def commit(number):
        os.pwrite(file, os.urandom(PAGE_BYTES), place(number) * PAGE_BYTES)
        os.fdatasync(file)

    rate = until(seconds, commit)
    os.close(file)
    return rate


def in_order(folder, seconds):
    return overwritten(folder, seconds, lambda number: number % (TABLE_BYTES // PAGE_BYTES))


def anywhere(folder, seconds):
    return overwritten(folder, seconds, lambda _: random.randrange(TABLE_BYTES // PAGE_BYTES))


def appended(folder, seconds):
    """Lines of 512 bytes at the end of a log, each synced."""
    file = os.open(folder / "log", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)

    def commit(_):
        os.write(file, os.urandom(512))
        os.fdatasync(file)

    rate = until(seconds, commit)
    os.close(file)
    return rate


def sqlite(folder, seconds, mode):
    """Transactions of one row each."""
    for path in folder.glob("rows.sqlite*"):
        path.unlink()
    rows = sqlite3.connect(folder / "rows.sqlite", isolation_level=None)
    rows.execute(f"pragma journal_mode = {mode}")
    rows.execute("pragma synchronous = full")
    rows.execute("create table rows (number integer primary key, text text)")
    rate = until(seconds, lambda number: rows.execute("insert into rows (text) values (?)", ("x" * 100,)))
    rows.close()
    return rate


WORK = {
    "8 KiB overwritten, in order": in_order,
    "8 KiB overwritten, anywhere": anywhere,
    "512 bytes appended": appended,
    "SQLite, write-ahead log": lambda folder, seconds: sqlite(folder, seconds, "wal"),
    "SQLite, rollback journal": lambda folder, seconds: sqlite(folder, seconds, "delete"),
}


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Places:
    """The rivals' folders, mounted."""

    def __init__(self, work, bywash):
        self.mounted = []
        key, passphrase = work / "key", work / "passphrase"
        run(bywash, "keygen", "--key-file", key)
        passphrase.write_text("correct horse\n")
        self.bywash, self.folders = bywash, {}
        for name, size in (("bywash, 64 KiB", "64K"), ("bywash, 4 KiB", "4K")):
            lower, upper = self.pair(work, f"bywash-{size}", name)
            run(bywash, "mount", "--init", "-k", key, "--chunk-size", size, lower)
            run(bywash, "mount", "-k", key, "--log", work / "log", lower, upper)
            self.mounted.append(upper)
        lower, upper = self.pair(work, "gocryptfs", "gocryptfs")
        run("gocryptfs", "-q", "-init", "-scryptn", "10", "-passfile", passphrase, lower)
        run("gocryptfs", "-q", "-passfile", passphrase, lower, upper)
        self.mounted.append(upper)
        self.folders["bare"] = work / "bare"
        self.folders["bare"].mkdir()

    def pair(self, work, path, name):
        lower, upper = work / path, work / f"{path}.plain"
        lower.mkdir()
        upper.mkdir()
        self.folders[name] = upper
        return lower, upper

    def leave(self):
        for upper in self.mounted:
            subprocess.run(["fusermount3", "-u", upper], check=False)


def main():
    own = pathlib.Path(__file__).resolve().parent.parent / "target/release/bywash"
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--bywash", type=pathlib.Path, default=own)
    options.add_argument("--folder", type=pathlib.Path, default=None)
    asked = options.parse_args()
    if not asked.bywash.exists():
        sys.exit(f"{asked.bywash} is not there: cargo build --release -p bywash-cli")
    if not os.path.exists("/dev/fuse") or not shutil.which("gocryptfs"):
        print("left out: it needs /dev/fuse and gocryptfs (apt install gocryptfs)")
        return
    os.environ["BYWASH_SOCKET"] = "none"
    work = pathlib.Path(tempfile.mkdtemp(prefix="bywash-commits.", dir=asked.folder))
    places = None
    try:
        places = Places(work, asked.bywash)
        rates = {(what, name): [] for what in WORK for name in places.folders}
        for _ in range(asked.rounds):
            for what, commits in WORK.items():
                for name, folder in places.folders.items():
                    rates[what, name].append(commits(folder, asked.seconds))
        print(f"commits in a second, medians of {asked.rounds} rounds in turn; times as many as gocryptfs")
        for what in WORK:
            print(f"{what}:")
            for name in places.folders:
                ratios = [ours / theirs for ours, theirs in zip(rates[what, name], rates[what, "gocryptfs"])]
                print(f"  {name:16} {statistics.median(rates[what, name]):7.0f}  {statistics.median(ratios):5.2f}")
    finally:
        if places:
            places.leave()
        time.sleep(1)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
