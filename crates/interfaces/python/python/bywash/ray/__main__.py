"""``python -m bywash.ray``: a data set, from the command line or as a Ray job."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..errors import Error
from . import Report, decrypt, encrypt
from ._faults import exit_code
from ._objects import said, shown
from ._progress import amount
from ._report import counted


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
    parser.add_argument("--store", type=options, default={}, metavar="JSON", help='options of both stores, such as {"config": {"endpoint": "..."}}')
    parser.add_argument("--allow-empty", action="store_true", help="a source with nothing to do in it is no error")
    parser.add_argument("--force", action="store_true", help="a first run replaces what is at the target already")
    parser.add_argument("-v", "--verbose", action="store_true", help="name what is passed over, and why, and all that failed")
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
        "allow_empty": args.allow_empty,
        "overwrite": args.force,
    }
    try:
        if args.operation == "encrypt":
            report = encrypt(args.source, args.target, recipients=args.recipient, **common)
        else:
            report = decrypt(args.source, args.target, identities=args.identity, **common)
    except OSError as error:
        place = f"{shown(str(error.filename))}: " if error.filename else ""
        print(f"bywash: {place}{said(error)}", file=sys.stderr)
        return exit_code(error)
    except Error as error:
        print(f"bywash: {error}", file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        print("bywash: interrupted; the same again goes on with what is left", file=sys.stderr)
        return 130
    tell(report, args.verbose)
    return report.exit_code


def options(text: str) -> dict[str, Any]:
    """Of stores."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"it is no JSON ({error}); names are in double quotes there: '{{\"config\": {{\"endpoint\": \"...\"}}}}'") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("it is no JSON object; begin it with {")
    return found


def tell(report: Report, verbose: bool) -> None:
    if verbose:
        for name, why in report.passed_over.items():
            print(f"bywash: {shown(name)}: passed over: {why}", file=sys.stderr)
    for failure in report.lines(all_of_them=verbose):
        print(f"bywash: {failure}", file=sys.stderr)
    parts = [f"{report.objects} objects, {amount(report.bytes)} in {report.seconds:.1f} s", f"{report.before} were done before, {len(report.failed)} failed"]
    parts += [f"workers that died: {report.workers_lost}"] if report.workers_lost else []
    parts += [f"{report.gone} that were done before are no longer at the source"] if report.gone else []
    parts += [counted(report.passed_over) + ("" if verbose else ", -v names them")] if report.passed_over else []
    print(f"bywash: {'; '.join(parts)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
