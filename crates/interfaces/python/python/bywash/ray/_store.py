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
from pathlib import Path
from typing import Any

from ..errors import BadArgument
from ._bucket import Bucket
from ._objects import Changed, Object, PassedOver, Unread, Written, said


def open_store(url: str, options: Mapping[str, Any]) -> Folder | Bucket:
    """A folder for a path; else what obstore makes of the URL, with its options (credentials come from the environment)."""
    return Bucket(url, options) if "://" in url else Folder(Path(url))


def checked(name: str) -> str:
    """A name that stays where it is put. Who refuses one says which."""
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise BadArgument("that cannot be a file's name in a folder; rename the object")
    return name


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
