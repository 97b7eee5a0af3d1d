"""``python -m bywash.ray``: a data set, from the command line or as a Ray job."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..errors import Error
from . import decrypt, encrypt
from ._progress import amount


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bywash.ray", description="Encrypts or decrypts a data set of many objects on a Ray cluster.")
    parser.add_argument("operation", choices=["encrypt", "decrypt"])
    parser.add_argument("source", help="a folder that all workers see, or a URL such as s3://bucket/prefix")
    parser.add_argument("target", help="the same")
    parser.add_argument("-m", "--manifest", required=True, help="what is done; the same again goes on with what is left")
    parser.add_argument("-r", "--recipient", action="append", default=[], help="who may open the results; a recipient, or a file with one a line")
    parser.add_argument("-i", "--identity", action="append", default=[], help="a file with identities, on every worker's machine")
    parser.add_argument("-k", "--key-file", help="32 bytes, on every worker's machine")
    parser.add_argument("--passphrase-file", help="a passphrase in its first line, on every worker's machine")
    parser.add_argument("--workers", type=int, help="processors to use [default: all]")
    parser.add_argument("--gpu-workers", type=int, help="GPUs to use [default: all]")
    parser.add_argument("--store", type=json.loads, default={}, metavar="JSON", help='options of both stores, such as {"config": {"endpoint": "..."}}')
    parser.add_argument("--quiet", action="store_true", help="no progress")
    args = parser.parse_args()
    common: dict[str, Any] = {
        "manifest": args.manifest,
        "key_file": args.key_file,
        "passphrase_file": args.passphrase_file,
        "source_options": args.store if "://" in args.source else {},
        "target_options": args.store if "://" in args.target else {},
        "workers": args.workers,
        "gpu_workers": args.gpu_workers,
        "progress": not args.quiet,
    }
    try:
        if args.operation == "encrypt":
            report = encrypt(args.source, args.target, recipients=args.recipient, **common)
        else:
            report = decrypt(args.source, args.target, identities=args.identity, **common)
    except (Error, OSError) as error:
        print(f"bywash: {error}", file=sys.stderr)
        return 1
    for failure in report.failed.values():
        print(f"bywash: {failure}", file=sys.stderr)
    told = f"{report.objects} objects, {amount(report.bytes)} in {report.seconds:.1f} s; {report.before} were done before, {len(report.failed)} failed"
    print(f"bywash: {told}", file=sys.stderr)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
