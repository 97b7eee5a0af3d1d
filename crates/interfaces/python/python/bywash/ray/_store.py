"""Where objects are: a folder, or whatever obstore opens by a URL (S3-compatible stores, Google's, Azure's).

Both list names with sizes and versions. Files are read and written by the native half itself, which follows no link below the folder that was named, for whoever
may write there could put one; a bucket has streams and uploads.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
class PassedOver:
    """What is there and never meant."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be looked at."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Written:
    """A result that is there."""

    size: int
    version: str
    sha256: str | None


class Changed(Error):
    """An object is not the one that was listed any more."""


def open_store(url: str, options: Mapping[str, Any]) -> Folder | Bucket:
    """A folder for a path; else what obstore makes of the URL, with its options (credentials come from the environment)."""
    return Bucket(url, options) if "://" in url else Folder(Path(url))


def checked(name: str) -> str:
    """A name that stays where it is put. Who refuses one says which."""
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise BadArgument("that cannot be a file's name in a folder; rename the object")
    return name


def shown(text: str) -> str:
    """What has names in it, for a terminal or a log, which they neither command nor break into lines."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def said(error: OSError) -> str:
    """The system's words without its number; the name is said by whoever knows it."""
    return error.strerror or str(error)


NOT_MEANT = {
    re.compile(r"\.bywash-unfinished-\d+-\d+"): "left unfinished by another run",
    re.compile(r"\.bywash-journal-[0-9a-f]{32}"): "the journal of a file whose writer was interrupted or is at work",
}
"""What only Bywash itself calls so."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """A folder on a file system that all workers see."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        return self.root / checked(name)

    def check_there(self) -> None:
        """What is no folder is an error: whatever is looked for in it would be missing, and nobody know why."""
        try:
            is_folder = stat.S_ISDIR(self.root.stat().st_mode)
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, "there is no such folder; is the disk or share that it is on mounted here?", str(self.root)) from error
        if not is_folder:
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder; name the folder that it is in, or take the bywash command", str(self.root))

    def make(self, like: Folder | None) -> None:
        """Makes it, for those alone who may look into another, or for this user."""
        self.root.mkdir(mode=like.mode("") if like else 0o700, parents=True, exist_ok=True)

    def mode(self, folder: str) -> int:
        """Who may look into a folder in it, and its owner may do what he likes."""
        return 0o700 | os.lstat(self.root / folder).st_mode & 0o777 if folder else 0o700 | self.root.stat().st_mode & 0o777

    def prepare(self, name: str, like: Callable[[str], int]) -> Path:
        """The path, in a folder that is there; one that is made gets the mode that `like` says, and its name is on the disk."""
        *folders, _ = checked(name).split("/")
        at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, folder in enumerate(folders, 1):
                outer, at = at, self._inner(at, folder, "/".join(folders[:depth]), like)
                os.close(outer)
        finally:
            os.close(at)
        return self.root / name

    def _inner(self, outer: int, name: str, path: str, like: Callable[[str], int]) -> int:
        try:
            try:
                return os.open(name, FOLDER, dir_fd=outer)
            except FileNotFoundError:
                mode = like(path)
            try:
                os.mkdir(name, mode, dir_fd=outer)
                os.fsync(outer)
            except FileExistsError:
                pass  # Another worker was first.
            return os.open(name, FOLDER, dir_fd=outer)
        except NotADirectoryError as error:
            raise NotADirectoryError(error.errno, "a folder is to be there, and a link or a file is", str(self.root / path)) from error
        except OSError as error:
            raise type(error)(error.errno, said(error), str(self.root / path)) from error

    def list(self, but: Folder | None = None) -> Iterator[Object | PassedOver | Unread]:
        """Regular files, however deep, and what is passed over, as by the command; nothing is looked at in the folder of results, should it be in this one."""
        self.check_there()
        spared = _identity(but.root.stat()) if but and but.root.is_dir() else None
        waiting = [("", self.root)]
        while waiting:
            name, folder = waiting.pop()
            try:
                with os.scandir(folder) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                if not name:
                    raise
                yield Unread(name, said(error))
                continue
            if name and not entries:
                yield PassedOver(name, "an empty folder")
            for entry in entries:
                inner = f"{name}/{entry.name}" if name else entry.name
                try:
                    there = entry.stat(follow_symlinks=False)
                except OSError as error:
                    yield Unread(inner, said(error))
                    continue
                if not stat.S_ISDIR(there.st_mode):
                    yield _listed(inner, there)
                elif _identity(there) != spared:
                    waiting.append((inner, folder / entry.name))

    def check(self, listed: Object) -> None:
        if _listed(listed.name, os.lstat(self.path(listed.name))) != listed:
            raise Changed("somebody wrote to it since it was listed; run again")

    def look(self, name: str) -> Written:
        """What lies under a name; opened, for only then do network file systems ask for what is there now."""
        with self._opened(name) as file:
            there = os.fstat(file.fileno())
        return Written(there.st_size, str(there.st_mtime_ns), None)

    def written(self, name: str, checksum: bool) -> Written:
        """What lies under a name, its check sum read from it."""
        with self._opened(name) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest() if checksum else None
            there = os.fstat(file.fileno())
        return Written(there.st_size, str(there.st_mtime_ns), digest)

    def _opened(self, name: str) -> Any:
        return open(self.path(name), "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW))


def _identity(there: os.stat_result) -> tuple[int, int]:
    return there.st_dev, there.st_ino


def _listed(name: str, there: os.stat_result) -> Object | PassedOver:
    if stat.S_ISLNK(there.st_mode):
        return PassedOver(name, "a symbolic link")
    if not stat.S_ISREG(there.st_mode):
        return PassedOver(name, "a device, pipe or socket")
    ours = next((why for called, why in NOT_MEANT.items() if called.fullmatch(name.rpartition("/")[2])), None)
    return PassedOver(name, ours) if ours else Object(name, there.st_size, str(there.st_mtime_ns))


class Bucket:
    """A bucket, or what is under a prefix in it."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            raise BadArgument(f"{url} needs obstore; pip install 'bywash[ray]'") from error
        self._obstore, self._url = obstore, url
        with self._told():
            self._store = from_url(url, **options)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Obstore's errors are of classes of its own."""
        try:
            yield
        except Exception as error:
            raise Error(f"{self._url}: {type(error).__name__}: {error}") from error

    def list(self, but: Folder | None = None) -> Iterator[Object | PassedOver]:
        with self._told():
            for page in self._obstore.list(self._store, chunk_size=1000):
                for meta in page:
                    if meta["path"].endswith("/"):
                        yield PassedOver(meta["path"], "what stands for a folder")
                    else:
                        yield Object(meta["path"], meta["size"], meta["e_tag"] or str(meta["last_modified"]))

    def read(self, listed: Object) -> _Stream:
        """A stream of the object that was listed; :class:`Changed` if it is another now."""
        got = self._obstore.get(self._store, listed.name)
        if (got.meta["e_tag"] or str(got.meta["last_modified"])) != listed.version:
            raise Changed("somebody replaced it since it was listed; run again")
        return _Stream(iter(got.stream(min_chunk_size=1 << 20)), got.meta["size"])

    def write(self, name: str, write: Callable[[Any], object], checksum: bool) -> Written:
        """Calls `write` with something that has ``write()``; the result is under its name once that has returned."""
        upload = _Upload(self._obstore, self._store, name, checksum)
        # If this raises, the upload never ends, and nobody sees it; the store's rule for incomplete uploads removes it.
        write(upload)
        return upload.finish()


class _Stream:
    """A stream of buffers as a file object. What ends early is not taken for the whole."""

    def __init__(self, buffers: Iterator[Any], size: int) -> None:
        self._buffers, self._size, self._got = buffers, size, 0
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        while not self._rest:
            buffer = next(self._buffers, None)
            if buffer is None:
                if self._got != self._size:
                    raise Error(f"the store gave {self._got} bytes of {self._size}; run again")
                return b""
            self._rest = memoryview(buffer)
            self._got += len(self._rest)
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
            raise Changed(f"the store has {meta['size']} bytes where {self._size} were written; is another run writing there?")
        return Written(self._size, meta["e_tag"] or str(meta["last_modified"]), self._digest.hexdigest() if self._digest else None)
