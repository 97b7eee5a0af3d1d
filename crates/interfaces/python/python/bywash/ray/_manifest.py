"""What is done: one line of JSON for each object, written by the driver alone, after the result is there.

A line that a crash cut is ignored, and its object is done again: the same name, so that nothing is there twice. Before a batch goes to a worker its names, under
which nothing was listed, are written down too: what is found under them later is this job's, unless a line says that the worker put nothing there, and under other
names it is somebody else's.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..errors import BadArgument
from ._objects import Object, Written, bare, said

VERSION = 3
BEGIN = b'{"bywash_manifest": '
"""What a manifest begins with. What does not is somebody's file, and stays as it is."""


class Manifest:
    """The manifest of one job; another job's is refused, and so is a second run while one goes on."""

    def __init__(self, path: str | os.PathLike[str], job: dict[str, Any]) -> None:
        self.path = Path(path)
        self.done: dict[str, tuple[Object, Written]] = {}
        self.begun: set[str] = set()
        """Objects that a worker had, whose results may be there."""
        self.proofs: dict[str, str] | None = None
        """Of the secrets that results are made with; none of a manifest that has not begun."""
        self._job = {"bywash_manifest": VERSION, **job}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._is_new = False
        # It names what may be nobody's business, and after decrypting has check sums of it. Unbuffered: what could not be written is not tried again at its end.
        self._file = open(self.path, "a+b", buffering=0, opener=self._opener)
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _opener(self, path: str, flags: int) -> int:
        try:
            made = os.open(path, flags | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(path, flags, 0o600)
        self._is_new = True
        return made

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # One that was refused took its empty manifest away in between.
            is_there = os.path.samestat(os.fstat(self._file.fileno()), os.stat(self.path))
        except (BlockingIOError, FileNotFoundError):
            is_there = False
        if not is_there:
            raise BadArgument(f"{self.path}: another run writes to it; wait for its end, or name another manifest")

    def _read(self) -> None:
        self._file.seek(0)
        text = self._file.read()
        if not text.startswith(BEGIN[: len(text)]):
            raise BadArgument(f"{self.path}: it is no manifest, and stays as it is; name another")
        whole, newline, cut = text.rpartition(b"\n")
        lines = whole.splitlines()
        if lines:
            self._begun(self._parse(lines[0], 1))
        for number, line in enumerate(lines[1:], 2):
            record = self._parse(line, number)
            try:
                self._take(record)
            except (AttributeError, KeyError, TypeError) as error:
                raise BadArgument(f"{self.path}:{number}: it is no line of a manifest; restore it from a copy, or name another") from error
        if cut:
            self._file.truncate(len(whole) + len(newline))

    def _take(self, record: dict[str, Any]) -> None:
        if "begun" in record:
            self.begun.update(record["begun"])
        elif "not_ours" in record:
            self.begun.difference_update(record["not_ours"])
        else:
            # Versions of older manifests have quotes.
            source, result = Object(record["name"], record["size"], bare(record["version"])), Written(**record["result"])
            self.done[source.name] = (source, replace(result, version=bare(result.version)))

    def _begun(self, head: dict[str, Any]) -> None:
        proofs = head.pop("proofs", {})
        if head != self._job:
            names = list(dict.fromkeys([*self._job, *head]))
            differs = ", ".join(f"{key} is {head.get(key)!r} and not {self._job.get(key)!r}" for key in names if head.get(key) != self._job.get(key))
            raise BadArgument(f"{self.path}: it is another job's ({differs}); name another manifest")
        self.proofs = proofs

    def begin(self, proofs: dict[str, str]) -> None:
        """From here on it is this job's."""
        self._append([{**self._job, "proofs": proofs}])
        self.proofs = proofs

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BadArgument(f"{self.path}:{number}: {error}; restore it from a copy, or name another") from error
        if not isinstance(record, dict):
            raise BadArgument(f"{self.path}:{number}: it is no line of a manifest; restore it from a copy, or name another")
        return record

    def _append(self, records: list[dict[str, Any]]) -> None:
        text = memoryview(b"".join(json.dumps(record).encode() + b"\n" for record in records))
        try:
            while text:
                text = text[self._file.write(text) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            why = f"{said(error)}; what is done cannot be written down here: mend that and run again, which goes on with what is left"
            raise OSError(error.errno, why, str(self.path)) from error

    def is_ours(self, name: str) -> bool:
        """Whether what is at the target as the result of an object is this job's, as far as it is anybody's."""
        return name in self.done or name in self.begun

    def intend(self, names: list[str]) -> None:
        """A worker gets these, of which none is ours yet: from here on they are."""
        if names:
            self._append([{"begun": names}])
            self.begun.update(names)

    def withdraw(self, names: list[str]) -> None:
        """Of these, which were intended, there is nothing of ours, whoever's else there is."""
        if names:
            self._append([{"not_ours": names}])
            self.begun.difference_update(names)

    def add(self, done: list[tuple[Object, Written]]) -> None:
        """Returns when it survives a power cut."""
        self._append([{**asdict(source), "result": asdict(written)} for source, written in done])
        self.done.update((source.name, (source, written)) for source, written in done)

    def close(self) -> None:
        """Of a run that was refused nothing stays."""
        if self._is_new and os.fstat(self._file.fileno()).st_size == 0:
            self.path.unlink(missing_ok=True)
        self._file.close()
