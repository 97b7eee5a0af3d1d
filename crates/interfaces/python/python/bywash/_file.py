"""Encrypted files, read and written in place."""

from __future__ import annotations

import io
import os
from typing import Any, Literal, overload

from ._native import File, Keys
from .errors import BadArgument


LENGTH_MAX = (1 << 63) - 1
"""What the operating system counts to in a file."""


class RawFile(io.RawIOBase):
    """A file without buffers; :func:`open` puts them over it."""

    def __init__(self, path: str | os.PathLike[str], writable: bool, file: File) -> None:
        self.name = path
        self.mode = "rb+" if writable else "rb"
        self._file = file
        self._writable = writable
        self._at = 0

    @property
    def chunk_size(self) -> int:
        return self._file.chunk_size

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return self._writable

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._file.read_at(len(view), self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        data = self._file.read_at(max(len(self._file) - self._at, 0), self._at)
        self._at += len(data)
        return data

    def write(self, data: Any, /) -> int:
        written = self._file.write_at(data, self._at)
        self._at += written
        return written

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise ValueError(f"invalid whence ({whence}, should be 0, 1 or 2)")
        # Its length is asked for only where it counts: buffers seek when they are closed, also in a child of fork, where the file is its parent's.
        at = offset + (len(self._file) if whence == io.SEEK_END else self._at if whence == io.SEEK_CUR else 0)
        if at < 0:
            raise BadArgument(f"{self.name}: a position before its beginning")
        if at > LENGTH_MAX:
            raise BadArgument(f"{self.name}: a position beyond what any file can have")
        self._at = at
        return at

    def truncate(self, size: int | None = None, /) -> int:
        size = self._at if size is None else size
        if not 0 <= size <= LENGTH_MAX:
            raise BadArgument(f"{self.name}: size: {size} is not from 0 to {LENGTH_MAX}")
        self._file.set_len(size)
        return size

    @property
    def is_parents(self) -> bool:
        """Whether it was opened to be written by the process that this one is a child of."""
        return self._file.is_parents

    def refuse_if_parents(self) -> None:
        """An error in a child of fork."""
        if self.is_parents:
            self._file.sync()

    def sync(self) -> None:
        """Returns when all that was written survives a power cut."""
        self._file.sync()

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()


class Writer(io.BufferedRandom):
    """The buffers over a file that is written. In a child of fork they hold what its parent has written, which is the parent's to store."""

    def __init__(self, raw: RawFile) -> None:
        super().__init__(raw, raw.chunk_size)
        self._raw = raw

    def write(self, data: Any, /) -> int:
        self._raw.refuse_if_parents()
        return super().write(data)

    def close(self) -> None:
        if self._raw.is_parents:
            self._raw.close()
        else:
            super().close()


@overload
def open(path: str | os.PathLike[str], mode: Literal["rb"] = "rb", keys: Keys | None = None, *, engine: str | None = ..., **options: Any) -> io.BufferedReader: ...
@overload
def open(path: str | os.PathLike[str], mode: Literal["r+b", "rb+"], keys: Keys | None = None, *, engine: str | None = ..., **options: Any) -> io.BufferedRandom: ...
def open(path: Any, mode: str = "rb", keys: Keys | None = None, *, engine: str | None = None, **options: Any) -> Any:
    """Opens an encrypted file to be read (``"rb"``) or read and written (``"r+b"``) anywhere, like a file; seeking costs nothing.

    Readers may be many, a writer is alone. Who writes gets all of it onto the disk by ``close()``, or by ``flush()`` and then ``raw.sync()``; after
    a power cut the file is as it was after one of them, or later. What a crash left is recovered by the next open with ``"r+b"``. A file that is
    written is its process's alone: a child of fork is refused it, and leaves it as it is when it ends.

    >>> import bywash, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "plan.bywash")
    >>> bywash.encrypt(b"attack at dawn", path, passphrase="sesame")
    14
    >>> with bywash.open(path, "r+b", passphrase="sesame") as file:
    ...     _ = file.seek(10), file.write(b"dusk")
    >>> with bywash.open(path, passphrase="sesame") as file: file.read()
    b'attack at dusk'
    """
    if mode not in ("rb", "r+b", "rb+"):
        raise BadArgument(f"mode is \"rb\" or \"r+b\", not {mode!r}; encrypt makes new files")
    if keys is None:
        keys = Keys(**options)
    elif options:
        raise BadArgument("give a Keys or its arguments, not both")
    # First of all: Python closes a raw file that could not be opened all the same, and complains on stderr that it cannot.
    file = File(path, mode != "rb", keys, engine)
    raw = RawFile(path, mode != "rb", file)
    # A chunk at a time, so that a small read does not open the same chunk twice.
    return io.BufferedReader(raw, raw.chunk_size) if mode == "rb" else Writer(raw)
