"""Where objects are: a folder, or whatever obstore opens by a URL (S3-compatible stores, Google's, Azure's).

Both list names with sizes and versions, and read streams. Into folders :func:`bywash.encrypt` writes by itself; a bucket has uploads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from ..errors import BadArgument, Error

PART_BYTES = 8 << 20
"""Of an upload, and what is asked for at a time of a download. Smaller objects go in one request."""
PARTS_AHEAD = 4
"""Parts of one upload on their way: with a worker's other buffers some 64 MiB."""


@dataclass(frozen=True, slots=True)
class Object:
    """What a listing says."""

    name: str
    size: int
    version: str
    """An entity tag, or the time of a file: it changes when the object does."""


@dataclass(frozen=True, slots=True)
class Written:
    """A result that is there."""

    size: int
    version: str
    sha256: str | None


class Changed(Error):
    """An object is not the one that was listed any more."""


def open_store(url: str, options: Mapping[str, Any]) -> Folder | Bucket:
    """A folder for a path or ``file://``; else what obstore makes of the URL, with its options (credentials come from the environment)."""
    scheme = urlsplit(url).scheme
    if scheme in ("", "file"):
        return Folder(Path(url.removeprefix("file://")))
    return Bucket(url, options)


def checked(name: str) -> str:
    """A name that stays where it is put."""
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise BadArgument(f"{name!r} cannot be a file's name in a folder; rename the object")
    return name


class Folder:
    """A folder on a file system that all workers see."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def path(self, name: str) -> Path:
        return self.root / checked(name)

    def prepare(self, name: str) -> Path:
        """The path, in a folder that is there."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def list(self) -> Iterator[Object]:
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for file in sorted(files):
                path = Path(folder, file)
                # Links and devices are passed over, as by the command.
                if not file.startswith(".bywash-") and path.is_file() and not path.is_symlink():
                    yield self._listed(path)

    def _listed(self, path: Path) -> Object:
        stat = path.stat()
        return Object(path.relative_to(self.root).as_posix(), stat.st_size, str(stat.st_mtime_ns))

    def check(self, listed: Object) -> None:
        if self._listed(self.path(listed.name)) != listed:
            raise Changed(f"{listed.name}: somebody wrote to it since it was listed; run again")

    def read(self, listed: Object) -> BinaryIO:
        """A stream of the object that was listed; :class:`Changed` if it is another now."""
        self.check(listed)
        return self.path(listed.name).open("rb")

    def written(self, name: str, checksum: bool) -> Written:
        """What lies under a name, its check sum read from it."""
        path = self.path(name)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest() if checksum else None
        stat = path.stat()
        return Written(stat.st_size, str(stat.st_mtime_ns), digest)


class Bucket:
    """A bucket, or what is under a prefix in it."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            raise BadArgument(f"{url} needs obstore; pip install 'bywash[ray]'") from error
        self._obstore = obstore
        self._store = from_url(url, **options)

    def list(self) -> Iterator[Object]:
        for page in self._obstore.list(self._store, chunk_size=1000):
            for meta in page:
                # What stands for a folder has no text.
                if not meta["path"].endswith("/"):
                    yield Object(meta["path"], meta["size"], meta["e_tag"] or str(meta["last_modified"]))

    def read(self, listed: Object) -> BinaryIO:
        got = self._obstore.get(self._store, listed.name)
        if (got.meta["e_tag"] or str(got.meta["last_modified"])) != listed.version:
            raise Changed(f"{listed.name}: somebody replaced it since it was listed; run again")
        return _Stream(iter(got.stream(min_chunk_size=1 << 20)))  # type: ignore[return-value]

    def write(self, name: str, write: Callable[[Any], object], checksum: bool) -> Written:
        """Calls `write` with something that has ``write()``; the result is under its name once that has returned."""
        upload = _Upload(self._obstore, self._store, name, checksum)
        # If this raises, the upload never ends, and nobody sees it; the store's rule for incomplete uploads removes it.
        write(upload)
        return upload.finish()


class _Stream:
    """A stream of buffers as a file object."""

    def __init__(self, buffers: Iterator[Any]) -> None:
        self._buffers = buffers
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        while not self._rest:
            buffer = next(self._buffers, None)
            if buffer is None:
                return b""
            self._rest = memoryview(buffer)
        taken, self._rest = self._rest[:size], self._rest[size:]
        return bytes(taken)

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._rest = memoryview(b"")


class _Upload:
    """Keeps what is written until it is a part, then uploads; what never was one goes in one request."""

    def __init__(self, obstore: Any, store: Any, name: str, checksum: bool) -> None:
        self._obstore, self._store, self._name = obstore, store, name
        self._digest = hashlib.sha256() if checksum else None
        self._kept = bytearray()
        self._parts: Any = None
        self._size = 0

    def write(self, data: bytes) -> int:
        if self._digest:
            self._digest.update(data)
        self._size += len(data)
        if self._parts is None and len(self._kept) + len(data) <= PART_BYTES:
            self._kept += data
            return len(data)
        if self._parts is None:
            self._parts = self._obstore.open_writer(self._store, self._name, buffer_size=PART_BYTES, max_concurrency=PARTS_AHEAD)
            self._parts.write(self._kept)
            self._kept = bytearray()
        self._parts.write(data)
        return len(data)

    def finish(self) -> Written:
        if self._parts is None:
            put = self._obstore.put(self._store, self._name, bytes(self._kept), use_multipart=False)
        else:
            self._parts.close()
            put = None
        # The store's own word for what is there now.
        meta = self._obstore.head(self._store, self._name)
        if meta["size"] != self._size or (put and put["e_tag"] and put["e_tag"] != meta["e_tag"]):
            raise Changed(f"{self._name}: the store has {meta['size']} bytes where {self._size} were written; is another run writing there?")
        return Written(self._size, meta["e_tag"] or str(meta["last_modified"]), self._digest.hexdigest() if self._digest else None)
