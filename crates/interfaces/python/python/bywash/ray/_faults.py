"""Why an object was not done, such that the driver and the command can tell what concerns it alone from what concerns all of them."""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from pathlib import Path

from ..errors import Damaged, Error, NotEncrypted, WrongKey


class Taken(Error):
    """Something that this manifest does not know is there where a result is to be."""

    def __init__(self) -> None:
        why = "its result's name is taken at the target by what this manifest does not know"
        super().__init__(f"{why}; is another run writing there? Name another target, or replace it with --force (overwrite)")


class Fault(StrEnum):
    """Whose fault it is that an object was not done."""

    OBJECT = "object"
    """Its own, or whatever fits none of the others."""
    KEY = "key"
    """Nothing of what was given opens it."""
    DAMAGE = "damage"
    """It is damaged, truncated, or no encrypted file."""
    PERMISSION = "permission"
    """It may not be read, or its result not written."""
    TAKEN = "taken"
    """Something that this manifest does not know is there where its result is to be."""
    TARGET = "target"
    """Nothing can be written at the target: it is full, or read-only."""

    @property
    def exit_code(self) -> int:
        """What the ``bywash`` command ends with then."""
        return {Fault.PERMISSION: 4, Fault.KEY: 7, Fault.DAMAGE: 8}.get(self, 1)


ROOM_BYTES = 1 << 20
"""Where less is free, no other object has room either, as for the command."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def fault_of(error: Exception, target: Path | None) -> Fault:
    """`target` is the folder of results, if it is one."""
    if isinstance(error, WrongKey):
        return Fault.KEY
    if isinstance(error, (Damaged, NotEncrypted)):
        return Fault.DAMAGE
    if isinstance(error, Taken):
        return Fault.TAKEN
    if not isinstance(error, OSError):
        return Fault.OBJECT
    if target and (error.errno in (errno.EROFS, errno.EDQUOT) or error.errno == errno.ENOSPC and _free_bytes(target) < ROOM_BYTES):
        return Fault.TARGET
    return Fault.PERMISSION if isinstance(error, PermissionError) else Fault.OBJECT


def _free_bytes(folder: Path) -> int:
    try:
        there = os.statvfs(folder)
    except OSError:
        return 0
    return there.f_bavail * there.f_frsize


def exit_code(error: BaseException) -> int:
    """What the command ends with where an error ended the run."""
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return 4
    return fault_of(error, None).exit_code if isinstance(error, WrongKey) else 1
