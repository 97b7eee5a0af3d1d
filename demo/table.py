"""The demo's table: medians of the rounds and of their ratios, side by side, and in words where Bywash is slower.

    table.py RESULTS BYWASH_REPORT QUEUE_REPORT
"""

import json
import sys
from collections import defaultdict
from statistics import median

rows = [json.loads(line) for line in open(sys.argv[1])]
reports = {name: json.load(open(path))["account"] for name, path in zip(("bywash", "queue"), sys.argv[2:])}
COLUMNS = ("without", "bywash", "queue")
MARGIN = 1.03  # what two medians of a shared machine may differ by without meaning anything


def figures(row):
    """What is shown of one load: {name: (value, whether more is better)}."""
    load, kept = row["load"], "handshakes" not in row["what"]
    seconds = (row["nginx_ns"] + row["broker_ns"]) / 1e9
    at_broker = row["broker_ns"] / 1e9
    latency = load["request_us" if kept else "handshake_us"]
    shown = {}
    if "16 MiB" in row["what"]:
        gigabytes = max(load["bytes"], 1) / 1e9
        shown["MB/s"] = (load["mb_per_s"], True)
        shown["server CPU s per GB"] = (seconds / gigabytes, False)
        shown["  of it the broker's"] = (at_broker / gigabytes, None)
    else:
        count = max(load["requests" if kept else "handshakes"], 1)
        shown["requests/s" if kept else "handshakes/s"] = (load["requests_per_s" if kept else "handshakes_per_s"], True)
        shown["server CPU us each"] = (1e6 * seconds / count, False)
        shown["  of it the broker's"] = (1e6 * at_broker / count, None)
    shown["p50 ms"] = (latency["p50"] / 1e3, False)
    shown["p99 ms"] = (latency["p99"] / 1e3, False)
    return shown


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def account(report):
    """What ran where, in one line."""
    def part(lines):
        lines = sorted(lines, key=lambda line: -line["operations"])
        names = ", ".join(f"{line['algorithm']} {line['operations']:,}" for line in lines[:5])
        return f"{sum(line['operations'] for line in lines):,}" + (f" ({names}{', ...' if len(lines) > 5 else ''})" if lines else "")
    return f"{part(report['here'])} in nginx's own place; {part(report['broker'])} at the broker"


seen = defaultdict(lambda: defaultdict(list))  # what -> (figure, column) -> values
better = {}
for row in rows:
    for name, (value, more) in figures(row).items():
        seen[row["what"]][name, row["column"]].append(value)
        better[name] = more

print(f"\n{'':42}{'without':>10}{'Bywash':>10}{'ratio':>8}{'queue':>10}{'ratio':>8}")
slower = []
for what, values in seen.items():
    print(what)
    for name in dict.fromkeys(name for name, _ in values):
        middle = {column: median(values[name, column]) for column in COLUMNS}
        if better[name] is None and not any(middle.values()):
            continue
        line = f"  {name:40}{number(middle['without']):>10}"
        for column in COLUMNS[1:]:
            # Of each round by itself: what slows the machine for a while slows both of a round.
            ratios = [of / alone for of, alone in zip(values[name, column], values[name, "without"]) if alone]
            ratio = median(ratios) if ratios else None
            line += f"{number(middle[column]):>10}" + (f"{ratio:7.2f}x" if ratio is not None and better[name] is not None else f"{'':8}")
            if ratio and better[name] is not None and (1 / ratio if better[name] else ratio) > MARGIN:
                slower.append((column, f"{what}: {name} {ratio:.2f}x"))
        print(line)

print("\nwithout: nginx as Debian ships it. Bywash: the same under `bywash run`. queue: private-key and other whole operations sent to a broker process; record encryption, a stream, stays in place.\nratio: to nginx alone; above 1 is better for rates, below 1 for times.")
for column, title in (("bywash", "under `bywash run`"), ("queue", "with --route queue")):
    print(f"\nOperations {title}: {account(reports[column])}.")
    lines = [text for which, text in slower if which == column]
    print(f"Where it is slower than nginx alone (by more than {MARGIN - 1:.0%}):" if lines else "Nowhere slower than nginx alone.")
    for text in lines:
        print(f"  - {text}")

failed = sum(row["load"]["failed"] for row in rows)
wrong = sum(row["load"]["wrong_bytes"] for row in rows)
verified = sum(row["load"]["bytes"] for row in rows)
connections = sum(row["load"]["handshakes"] for row in rows)
print(f"\n{connections:,} connections, {verified / 1e9:.1f} GB downloaded and compared byte for byte: {failed} failed, {wrong} wrong.")
for row in rows:
    if row["load"]["failed"]:
        print(f"  FAILED, {row['column']}, {row['what']}: {row['load']['failures']}")
idle = [name for name, report in reports.items() if not report["here"] and not report["broker"]]
if idle:
    print(f"FAILED: Bywash did nothing in {', '.join(idle)}: see `bywash doctor -- nginx`")
sys.exit(1 if failed or wrong or idle else 0)
