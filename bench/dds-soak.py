#!/usr/bin/env python3
"""Soak of DDS Security: two processes at 1 kHz each way, session keys that change all the time, and a peer that is killed and restarted.

bench/dds-soak.py [--minutes 10] [--implementation cyclone|fastdds] [--governance ros2] [--kill-every 20] [--blocks 6600] [--ways stock,bywash] [--bin target/release]

One process lives all the time; the other is killed (SIGKILL) every 20 s and at once there is a new one. Each writes a message a millisecond, on a reliable topic and on a
best-effort one in turn, 1 KiB, each 256th reliable one 100 kB; every byte is checked. The stack as Debian has it (stock) and the same with Bywash run at the same time, in domains of their own,
so that what else the machine does meets both. A message is lost if its number is missing between the first and the last that its reader had from one writer: while
both were up. Where the machine stops a process for longer than half the lease (5 s), after which its partner gives it up, what was counted up to then holds, the peers are replaced, and the time is none of the minutes.

With Bywash a new session key comes after BLOCKS blocks of 16 bytes (Cyclone; each message of 1 KiB has 66). Fast DDS changes keys after 32 operations by itself. As root the
datagrams are watched for a second in each peer's life, and the session numbers in them counted.

The verdict fails (exit status 1) if with Bywash: a byte is wrong, a reliable message is lost or comes twice, peers that stock's would meet do not meet, a process ends by itself, best-effort messages are
lost in clearly larger number than stock's, or the memory (RSS) of the long-lived process grows after the first third of the run clearly more than stock's does.
"""
import argparse
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import dds

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# Those of soak.h.
PEERS, TOPICS, HEAD, STREAM = 512, ("reliable", "best effort"), 4, 5
LEASE_S = 5
STALL_S = LEASE_S / 2
HANGS_S = 60
# A process's memory is taken in steps by its allocator: growth below this is no growth.
STEP_KIB = 1024
# Of their own for each implementation, so that both can be run at once.
DOMAINS = {"cyclone": {"stock": 221, "bywash": 222}, "fastdds": {"stock": 223, "bywash": 224}}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--implementation", choices=("cyclone", "fastdds"), default="cyclone")
    parser.add_argument("--governance", default="ros2", choices=dds.GOVERNANCES)
    parser.add_argument("--kill-every", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--blocks", type=int, default=6600)
    parser.add_argument("--ways", default="stock,bywash")
    parser.add_argument("--bin", default=f"{ROOT}/target/release", help="where bywash and its libraries are")
    parser.add_argument("--make", help="the example `make` of bywash-dds-material; built by cargo if it is not told")
    parser.add_argument("--short", action="store_true", help="no verdict on memory and best-effort losses: for runs that are too short for one, on a machine that does much else")
    parser.add_argument("--csv", help="where the memory of the long-lived processes goes, a line a second")
    options = parser.parse_args()
    if options.minutes * 60 / options.kill_every >= PEERS:
        parser.error(f"more than {PEERS} peers")
    return options


def compiled(folder, implementation):
    """The program; none, and why, if it cannot be made here."""
    source = f"{HERE}/dds-soak"
    if implementation == "cyclone":
        steps = [["idlc", "-l", "c", f"{source}/text.idl"], ["cc", "-O1", "-I.", f"-I{source}", "-o", "program", f"{source}/cyclone.c", "text.c", "-lddsc"]]
        needs = "cyclonedds-dev, cyclonedds-tools"
    else:
        steps = [["c++", "-std=c++17", "-O1", f"-I{source}", "-o", "program", f"{source}/fastdds.cpp", "-lfastrtps", "-lfastcdr"]]
        needs = "libfastrtps-dev, libasio-dev"
    why = dds.compiled(folder, steps, needs)
    return (None if why else f"{folder}/program"), why


class Counters:
    """What a process has counted; it may be dead."""

    def __init__(self, path):
        size = 8 * (HEAD + PEERS * len(TOPICS) * STREAM)
        data = b""
        if os.path.exists(path):
            with open(path, "rb") as file:
                data = file.read()
        numbers = struct.unpack(f"={size // 8}Q", data if len(data) == size else bytes(size))
        self.pid, *turns = numbers[:HEAD]
        self.turns = sum(turns)
        self.numbers = numbers[HEAD:]

    def stream(self, peer, topic):
        at = (peer * len(TOPICS) + topic) * STREAM
        first, last, count, repeated, wrong = self.numbers[at : at + STREAM]
        return {"count": count, "lost": last - first + 1 - count if count else 0, "repeated": repeated, "wrong": wrong}


class Way:
    """One pair of processes: as Debian has it, or with Bywash."""

    def __init__(self, name, options, folder, program):
        self.name, self.options, self.folder, self.program = name, options, f"{folder}/{name}", program
        self.material, self.domain = folder, DOMAINS[options.implementation][name]
        self.peer, self.process, self.rows, self.memory, self.sessions, self.dead = 0, None, [], [], set(), None
        os.makedirs(self.folder)
        self.long = self.start(0, "alice")

    def start(self, number, who):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BYWASH_")}
        environment.pop("LD_PRELOAD", None)
        command = [self.program, str(self.domain), str(number), self.path(number)]
        if self.options.implementation == "cyclone":
            environment["CYCLONEDDS_URI"] = self.cyclone(who)
            environment["BYWASH_DDS_BLOCKS"] = str(self.options.blocks)
        else:
            command.append(self.properties(who))
            if self.name == "bywash":
                command = [f"{self.options.bin}/bywash", "run", "--quiet", "--dds", "--", *command]
        with open(f"{self.folder}/said", "ab") as said:
            return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def path(self, number):
        return f"{self.folder}/{number}.counters"

    def cyclone(self, who):
        text = dds.cyclone(self.material, who, plugin=f"{self.options.bin}/libbywash_dds_cyclone.so" if self.name == "bywash" else None)
        text = text.replace("<Discovery>", f"<Discovery><LeaseDuration>{LEASE_S} s</LeaseDuration>")
        # So that who is dead, and acknowledges nothing, stops nobody until he is forgotten.
        text = text.replace("<Internal>", "<Internal><Watermarks><WhcHigh>64 MB</WhcHigh></Watermarks>")
        return dds.written(f"{self.folder}/{who}.xml", text)

    def properties(self, who):
        path = f"{self.folder}/{who}.properties"
        with open(f"{self.material}/{who}/fastdds.xml", encoding="utf-8") as file:
            found = re.findall(r"<property><name>(.*?)</name><value>(.*?)</value></property>", file.read())
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in found)
        return path

    def pid(self, number):
        """That of the program itself, which `bywash run` may be the parent of."""
        return Counters(self.path(number)).pid

    def check_library(self):
        name = "libbywash_dds_cyclone.so" if self.options.implementation == "cyclone" else "libbywash_fastdds.so"
        try:
            with open(f"/proc/{self.pid(0)}/maps", encoding="utf-8") as file:
                has_it = name in file.read()
        except OSError:
            return
        if has_it != (self.name == "bywash"):
            self.dead = self.dead or ("it runs without Bywash's library" if self.name == "bywash" else "it runs with Bywash's library")

    def begin_peer(self):
        self.peer += 1
        self.turns, self.progress_at, self.good = (0, 0), time.monotonic(), self.counters()
        self.process = self.start(self.peer, "bob")

    def counters(self):
        return Counters(self.path(0)), Counters(self.path(self.peer))

    def progress(self):
        """Notes what is counted, and whether both still go on; what is counted after a halt is not of before."""
        both, now = self.counters(), time.monotonic()
        turns = tuple(one.turns for one in both)
        # A peer that has not begun yet has nothing to go on with.
        if turns[0] > self.turns[0] and (turns[1] > self.turns[1] or turns[1] == 0):
            if not self.is_halted():
                self.good = both
            self.turns, self.progress_at = turns, now
        for number, process in ((0, self.long), (self.peer, self.process)):
            if process.poll() is not None:
                self.dead = self.dead or f"process {number} ended by itself ({process.returncode})"
            elif now - self.progress_at > HANGS_S and self.state(number) != "T":
                self.dead = self.dead or f"process {number} hangs, or the other of the two"

    def is_halted(self):
        return time.monotonic() - self.progress_at > STALL_S

    def state(self, number):
        try:
            with open(f"/proc/{self.pid(number)}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return "?"

    def end_peer(self, was_stopped=False):
        self.slay(self.peer, self.process)
        self.note_peer(was_stopped)

    def note_peer(self, was_stopped):
        ours, theirs = self.good if was_stopped else self.counters()
        for topic in range(len(TOPICS)):
            there, back = theirs.stream(0, topic), ours.stream(self.peer, topic)
            row = {key: there[key] + back[key] for key in there}
            self.rows.append({**row, "topic": topic, "met": there["count"] > 0 and back["count"] > 0, "was_stopped": was_stopped})

    def look(self, second):
        try:
            with open(f"/proc/{self.pid(0)}/status", encoding="utf-8") as file:
                kib = int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])
        except (OSError, TypeError):
            return
        self.memory.append((second, kib))

    def end(self):
        self.end_peer()
        if self.long.poll() is None:
            os.kill(self.pid(0) or self.long.pid, signal.SIGTERM)
            try:
                self.long.wait(20)
            except subprocess.TimeoutExpired:
                self.long.kill()
                self.dead = self.dead or "the long-lived process does not end within 20 s"
        if self.long.wait() != 0:
            self.dead = self.dead or f"the long-lived process ended with {self.long.returncode}"

    def slay(self, number, process):
        if process and process.poll() is None:
            if pid := self.pid(number):
                os.kill(pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()

    def kill(self):
        self.slay(0, self.long)
        self.slay(self.peer, self.process)

    def totals(self, topic):
        rows = [row for row in self.rows if row["topic"] == topic]
        sums = {key: sum(row[key] for row in rows) for key in ("count", "lost", "repeated", "wrong")}
        sums["peers"], sums["stopped"] = len(rows), sum(row["was_stopped"] for row in rows)
        sums["unmet"] = sum(not row["met"] and not row["was_stopped"] for row in rows)
        return sums

    def growth(self, from_second):
        """KiB a minute: the least-squares line through the memory after the warm-up; and what it had then and at the end."""
        points = [(second, kib) for second, kib in self.memory if second >= from_second]
        if len(points) < 2:
            return 0.0, 0, 0
        mean_x, mean_y = (sum(column) / len(points) for column in zip(*points))
        over = sum((x - mean_x) ** 2 for x, _ in points)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / over
        return 60 * slope, points[0][1], points[-1][1]


class Watch:
    """Session numbers on the loopback. Not without the right to see others' datagrams."""

    def __init__(self, ways):
        self.ways = {7400 + 250 * way.domain: way for way in ways}
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
            self.socket.bind(("lo", 0))
            self.socket.setblocking(False)
        except (OSError, AttributeError) as error:
            self.socket, self.why = None, str(error)

    def look(self, seconds=1.0):
        if not self.socket:
            time.sleep(seconds)
            return
        until = time.monotonic() + seconds
        try:
            while True:
                self.socket.recv(1)
        except BlockingIOError:
            pass
        while time.monotonic() < until:
            try:
                data = self.socket.recv(2048)
            except BlockingIOError:
                time.sleep(0.002)
                continue
            self.note(data[14:])

    def note(self, packet):
        header = 4 * (packet[0] & 15)
        if packet[9] != 17 or packet[header + 8 : header + 12] != b"RTPS":
            return
        port = int.from_bytes(packet[header + 2 : header + 4], "big")
        way = next((way for base, way in self.ways.items() if base <= port < base + 250), None)
        # The first submessage behind the header of 20 bytes: SRTPS_PREFIX, or SEC_PREFIX; then kind, key, session.
        at = header + 8 + 20
        if way and packet[at : at + 1] in (b"\x33", b"\x31"):
            way.sessions.add(bytes(packet[at + 8 : at + 16]))


def run(options, ways):
    watch = Watch(ways)
    active, age, before, was_halted = 0.0, 0.0, time.monotonic(), False
    for way in ways:
        way.begin_peer()
    while active < options.minutes * 60 and not any(way.dead for way in ways):
        # Once in each peer's life.
        (watch.look if options.kill_every / 2 <= age < options.kill_every / 2 + 1 else time.sleep)(1.0)
        now = time.monotonic()
        passed, before = now - before, now
        halted = passed > STALL_S or any([way.is_halted() for way in ways])
        for way in ways:
            way.progress()
        was_halted = was_halted or halted
        if any(way.is_halted() for way in ways):
            continue
        if not was_halted:
            active, age = active + passed, age + passed
            for way in ways:
                way.look(active)
        if age >= 5:
            for way in ways:
                way.check_library()
        if was_halted or age >= options.kill_every:
            for way in ways:
                way.end_peer(was_halted)
                way.begin_peer()
            age, was_halted = 0.0, False
    for way in ways:
        way.end()
    return watch


def report(options, ways, watch):
    warm = options.minutes * 60 / 3
    print(f"{options.implementation}, governance {options.governance}, {options.minutes:g} minutes, a peer killed every {options.kill_every:g} s:")
    faults = []
    for way in ways:
        for topic, name in enumerate(TOPICS):
            sums = way.totals(topic)
            print(f"  {way.name:<7} {name:<12} {sums['count']:>8} received, {sums['lost']} lost, {sums['repeated']} twice or late, {sums['wrong']} wrong; "
                  f"{sums['peers']} peers, {sums['unmet']} never met, {sums['stopped']} ended as the machine stopped them")
        slope, first, last = way.growth(warm)
        watched = f"{len(way.sessions)} sessions seen" if watch.socket else f"sessions not watched ({watch.why})"
        print(f"  {way.name:<7} memory {first} KiB after {warm:.0f} s, {last} KiB at the end, slope {slope:+.1f} KiB/min; {watched}")
        if way.dead:
            faults.append(f"{way.name}: {way.dead}")
    by_name = {way.name: way for way in ways}
    ours, stock = by_name.get("bywash"), by_name.get("stock")
    if ours:
        faults += judged(options, ours, stock, warm)
    print("verdict: " + ("; ".join(faults) if faults else "nothing lost that stock would not lose" + ("" if options.short else ", no growth in memory")))
    return 1 if faults else 0


def judged(options, ours, stock, warm):
    faults = []
    reliable, best = ours.totals(0), ours.totals(1)
    for name, sums in (("reliable", reliable), ("best effort", best)):
        if sums["wrong"]:
            faults.append(f"bywash, {name}: {sums['wrong']} messages are wrong")
        if not sums["count"]:
            faults.append(f"bywash, {name}: nothing was received")
    stock_reliable, stock_best = (stock.totals(0), stock.totals(1)) if stock else ({"lost": 0, "repeated": 0, "unmet": 0}, None)
    for key in ("lost", "repeated"):
        if reliable[key] > stock_reliable[key]:
            faults.append(f"bywash, reliable: {reliable[key]} {key}, stock {stock_reliable[key]}")
    # A pair that does not meet at all: one is an accident on a machine that others use.
    if reliable["unmet"] > stock_reliable["unmet"] + 1:
        faults.append(f"bywash: {reliable['unmet']} of {reliable['peers']} peers never met, stock {stock_reliable['unmet']}")
    if stock_best and not options.short and best["lost"] > 2 * stock_best["lost"] + best["count"] / 100:
        faults.append(f"bywash, best effort: {best['lost']} lost of {best['count']}, stock {stock_best['lost']}")
    if not options.short:
        slopes = [way.growth(warm)[0] if way else 0.0 for way in (ours, stock)]
        minutes = options.minutes * 2 / 3
        if (slopes[0] - max(slopes[1], 0.0)) * minutes > STEP_KIB:
            faults.append(f"bywash: memory grows by {slopes[0]:.0f} KiB a minute, stock's by {slopes[1]:.0f}")
    return faults


def main():
    options = arguments()
    names = options.ways.split(",")
    if set(names) - {"stock", "bywash"}:
        raise SystemExit(f"no such way: {options.ways}; there are stock and bywash")
    with tempfile.TemporaryDirectory() as folder:
        program, why = compiled(folder, options.implementation)
        if not program:
            print(f"skipped: {why}")
            return 77
        dds.material(options, f"{folder}/material", "alice", "bob")
        ways = []
        try:
            for name in names:
                ways.append(Way(name, options, f"{folder}/material", program))
            watch = run(options, ways)
        finally:
            for way in ways:
                way.kill()
        if options.csv:
            with open(options.csv, "w", encoding="utf-8") as file:
                file.write("way,second,rss_kib\n")
                file.writelines(f"{way.name},{second},{kib}\n" for way in ways for second, kib in way.memory)
        status = report(options, ways, watch)
        for way in ways if status else ():
            with open(f"{way.folder}/said", encoding="utf-8", errors="replace") as file:
                print(f"{way.name} said:\n{file.read()[-2000:]}", file=sys.stderr)
        return status


if __name__ == "__main__":
    sys.exit(main())
