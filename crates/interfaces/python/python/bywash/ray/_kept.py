"""Files that no result replaces: what keys are read from, and the manifest. By device and inode, for a path may lead to them by another name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import BadArgument


class Kept:
    """The files that were given, as far as they are on this machine."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self._paths: dict[tuple[int, int], str] = {}
        looks: tuple[Callable[[Any], os.stat_result], ...] = (os.stat, os.lstat)
        for path in paths:
            # A link to a key is kept too: without it, nobody finds the key.
            for look in looks:
                try:
                    there = look(path)
                except OSError:
                    continue  # It is another machine's; whoever reads it says so if it is missed.
                self._paths[there.st_dev, there.st_ino] = os.fspath(path)

    def check(self, target: Path) -> None:
        """`target` may be replaced, or is refused."""
        try:
            there = os.lstat(target)
        except OSError:
            return  # What is not there is not replaced.
        if (path := self._paths.get((there.st_dev, there.st_ino))) is not None:
            raise BadArgument(f"{target}: it is {path}, which this run reads, and is not replaced by a result; name another target")
