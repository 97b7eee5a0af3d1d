"""What is done: one line of JSON for each object, written by the driver alone, after the result is there.

A line that a crash cut is ignored, and its object is done again: the same name, so that nothing is there twice.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import BadArgument
from ._store import Object, Written

VERSION = 1


class Manifest:
    """The manifest of one job; another job's is refused, and so is a second run while one goes on."""

    def __init__(self, path: str | os.PathLike[str], job: dict[str, str]) -> None:
        self.path = Path(path)
        self.done: dict[str, tuple[Object, Written]] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BadArgument(f"{self.path}: another run writes to it; wait for its end, or name another manifest") from error
        self._read({"bywash_manifest": VERSION, **job})

    def _read(self, head: dict[str, Any]) -> None:
        self._file.seek(0)
        text = self._file.read()
        whole, newline, cut = text.rpartition(b"\n")
        if cut:
            self._file.truncate(len(whole) + len(newline))
        lines = whole.splitlines() if whole else []
        if not lines:
            return self._append([head])
        found = self._parse(lines[0], 1)
        if found != head:
            differs = ", ".join(f"{key} is {found.get(key)!r} and not {value!r}" for key, value in head.items() if found.get(key) != value)
            raise BadArgument(f"{self.path}: it is another job's ({differs}); name another manifest")
        for number, line in enumerate(lines[1:], 2):
            record = self._parse(line, number)
            source = Object(record["name"], record["size"], record["version"])
            self.done[source.name] = (source, Written(**record["result"]))
        return None

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BadArgument(f"{self.path}:{number}: {error}; restore it from a copy, or name another") from error
        if not isinstance(record, dict) or (number > 1 and not {"name", "size", "version", "result"} <= record.keys()):
            raise BadArgument(f"{self.path}:{number}: it is no line of a manifest; name another")
        return record

    def _append(self, records: list[dict[str, Any]]) -> None:
        self._file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))
        self._file.flush()
        os.fsync(self._file.fileno())

    def add(self, done: list[tuple[Object, Written]]) -> None:
        """Returns when it survives a power cut."""
        self._append([{**asdict(source), "result": asdict(written)} for source, written in done])
        self.done.update((source.name, (source, written)) for source, written in done)

    def close(self) -> None:
        self._file.close()
