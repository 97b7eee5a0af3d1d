"""Encrypted files, and cryptographic sessions on whatever engine of the machine is fastest.

>>> import bywash
>>> sealed = bywash.encrypt(b"attack at dawn", passphrase="sesame")
>>> bywash.decrypt(sealed, passphrase="sesame")
b'attack at dawn'

Files are those of the ``bywash`` command, both ways. :mod:`bywash.ray` encrypts data sets on Ray clusters.
"""

from __future__ import annotations

import os as _os
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypedDict, overload

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._file import open
from ._native import Keys, Session, __version__, engines, generate_identity, generate_key_file
from ._native import decrypt as _decrypt
from ._native import encrypt as _encrypt
from ._native import simulate as _simulate
from .errors import (
    AuthenticationFailed,
    BadArgument,
    Damaged,
    EngineFailed,
    Error,
    InternalError,
    NoKeyFits,
    NotEncrypted,
    Truncated,
    Unavailable,
    Unsupported,
    WrongKey,
    WrongPassphrase,
)

if _TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

__all__ = [
    "AuthenticationFailed",
    "BadArgument",
    "Damaged",
    "EngineFailed",
    "Error",
    "InternalError",
    "Keys",
    "NoKeyFits",
    "NotEncrypted",
    "Session",
    "Truncated",
    "Unavailable",
    "Unsupported",
    "WrongKey",
    "WrongPassphrase",
    "decrypt",
    "encrypt",
    "engines",
    "generate_identity",
    "generate_key_file",
    "open",
    "simulate",
]

Path: TypeAlias = "str | _os.PathLike[str]"
Key: TypeAlias = "str | _os.PathLike[str]"
"""A recipient or identity itself, a file with one a line, or ``bywash:NAME``, a P-256 key in the broker's vault."""


class Reader(Protocol):
    """A file object that is read from."""

    def read(self, size: int, /) -> bytes: ...


class Writer(Protocol):
    """A file object that is written to."""

    def write(self, data: bytes, /) -> int | None: ...


class KeyOptions(TypedDict, total=False):
    """Keys for one call, as :class:`Keys` takes them. Who works on many files makes a :class:`Keys` once: what costs time is then done once."""

    passphrase: str | Buffer
    passphrase_file: Path
    key: Buffer
    key_file: Path
    recipients: Sequence[Key]
    identities: Sequence[Key]


@overload
def encrypt(source: Buffer, target: None = None, keys: Keys | None = None, *, aead: str = ..., chunk_size: int = ...,
            engine: str | None = ..., **options: Unpack[KeyOptions]) -> bytes: ...
@overload
def encrypt(source: Buffer | Path | Reader, target: Path | Writer, keys: Keys | None = None, *, aead: str = ...,
            chunk_size: int = ..., threads: int | None = ..., overwrite: bool = ..., verify: bool = ...,
            engine: str | None = ..., **options: Unpack[KeyOptions]) -> int: ...
def encrypt(
    source: Any,
    target: Any = None,
    keys: Keys | None = None,
    *,
    aead: str = "aes-256-gcm",
    chunk_size: int = 1 << 16,
    threads: int | None = None,
    overwrite: bool = False,
    verify: bool = False,
    engine: str | None = None,
    **options: Any,
) -> bytes | int:
    """Encrypts bytes, a file or a stream in the format of the ``bywash`` command.

    Without a target, bytes become bytes. A target is a path, which is there whole and on the disk or not at all, or an object with ``write()``;
    then the number of bytes of text is returned. From path to path several threads work, and mode, times, extended attributes and, where
    permitted, owner are kept; ``verify`` reads the result back and compares. What is there already is replaced with ``overwrite`` alone.

    Keys are a :class:`Keys`, or its arguments here. Each of them alone opens the file. ``aead`` is one of aes-256-gcm, aes-256-gcm-siv,
    chacha20-poly1305, aegis-256 and aegis-128l; ``chunk_size`` a power of two from 4 KiB to 1 MiB; ``engine`` names one of :func:`engines`. Files of
    the keys are never replaced. ``read()`` and ``write()`` are called by the thread that called this; Ctrl-C ends it.

    >>> import tempfile, os
    >>> folder = tempfile.mkdtemp()
    >>> recipient = generate_identity(os.path.join(folder, "me.identity"))
    >>> with __builtins__["open"](os.path.join(folder, "plan"), "wb") as file: _ = file.write(b"attack at dawn")
    >>> encrypt(os.path.join(folder, "plan"), os.path.join(folder, "plan.bywash"), recipients=[recipient])
    14
    """
    return _encrypt(source, target, _keys(keys, options), aead, chunk_size, _threads(threads), overwrite, verify, engine)


@overload
def decrypt(source: Buffer, target: None = None, keys: Keys | None = None, *, engine: str | None = ..., **options: Unpack[KeyOptions]) -> bytes: ...
@overload
def decrypt(source: Buffer | Path | Reader, target: Path | Writer, keys: Keys | None = None, *, threads: int | None = ...,
            overwrite: bool = ..., verify: bool = ..., engine: str | None = ..., **options: Unpack[KeyOptions]) -> int: ...
def decrypt(
    source: Any,
    target: Any = None,
    keys: Keys | None = None,
    *,
    threads: int | None = None,
    overwrite: bool = False,
    verify: bool = False,
    engine: str | None = None,
    **options: Any,
) -> bytes | int:
    """Decrypts what :func:`encrypt` or ``bywash encrypt`` made; the arguments are as there.

    A path or bytes are there whole and authentic, or not at all. To an object with ``write()`` goes only what proved authentic, but of a damaged or
    truncated file text before the damage, in steps of some 512 KiB, has been written when :class:`Damaged` is raised.

    >>> try: decrypt(encrypt(b"text", passphrase="sesame"), passphrase="Sesame")
    ... except WrongPassphrase as error: print(error)
    wrong passphrase; try another
    """
    return _decrypt(source, target, _keys(keys, options), _threads(threads), overwrite, verify, engine)


def simulate(
    policy: str = "tuned",
    *,
    engine: Path = "niwa2005",
    trace: Path | None = None,
    requests: int = 100_000,
    train: float = 0.5,
    seed: int = 0,
    cpu: Path | None = None,
    side_by_side: bool = False,
    **changes: float,
) -> dict[str, Any]:
    """What an engine that holds a few circuits at a time would make of some traffic, if this policy decided what it holds.

    ``engine`` is a sheet that comes along (``bywash simulate --help`` names them) or a file; it is modelled, and nothing is measured. ``trace`` is a log or a
    broker's recording, of which the share ``train`` is learnt from; without one, ``requests`` are generated from the ``seed``. ``cpu`` is the cost sheet of a
    processor. ``changes`` are what the command can sweep: rate (requests per second), slots, area, lanes, reconfiguration (ms), overhead (ns).

    Returns the command's figures, times in seconds; what is not known is None.

    >>> run = simulate("tuned", requests=5000, rate=750, slots=2)
    >>> run["modelled"], run["engine"], run["requests"], run["over_optimum"] >= 1
    (True, 'niwa2005', 5000, True)
    """
    if trace is None:
        changes.setdefault("rate", 750.0)
    return _simulate(policy, _os.fspath(engine), trace, requests, train, seed, cpu, side_by_side, list(changes.items()))


def _keys(given: Keys | None, options: Any) -> Keys:
    if given is None:
        return Keys(**options)
    if options:
        raise BadArgument("give a Keys or its arguments, not both")
    return given


def _threads(threads: int | None) -> int:
    return len(_os.sched_getaffinity(0)) if threads is None else threads
