"""What a worker does. Without Ray, so that it can be tried without it."""

from __future__ import annotations

import errno
from base64 import b64decode, b64encode
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, cast

from .. import Keys, decrypt, encrypt, engines
from .._native import decrypt as decrypt_to
from .._native import encrypt as encrypt_to
from ..errors import BadArgument, Error, Unsupported, WrongKey
from ._faults import NO_ROOM, Fault, Taken, fault_of
from ._kept import Kept
from ._objects import Changed, Object, Written, said, shown
from ._store import Folder, open_store

SUFFIX = ".bywash"
VAULT = "bywash:"
"""What an identity begins with that is in a broker's vault, and no file."""
NAME_BYTES = 255
"""Of one name in a folder, on the file systems of Linux."""


@dataclass(frozen=True)
class KeySource:
    """Keys as workers find them: recipients, which are public, and files that each worker reads on its own machine.

    No secret is in it, and so none is in Ray's object store, its logs, or a manifest.
    """

    recipients: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    key_file: str | None = None
    passphrase_file: str | None = None
    recipient_files: tuple[str, ...] = ()
    """Where recipients are from. They are read no more, and not replaced either."""

    def __post_init__(self) -> None:
        if any(identity.startswith("BYWASH-IDENTITY-") for identity in self.identities):
            raise BadArgument("give files with identities, which each worker reads on its own machine; a secret does not go through Ray")

    def load(self) -> Keys:
        options: dict[str, Any] = {"recipients": self.recipients, "identities": self.identities}
        return Keys(key_file=self.key_file, passphrase_file=self.passphrase_file, **options)

    def secrets(self) -> dict[str, str]:
        """Files by what they hold."""
        given = {"key_file": self.key_file, "passphrase_file": self.passphrase_file}
        return {kind: path for kind, path in given.items() if path is not None}

    def files(self) -> list[str]:
        """All of them, which no result replaces."""
        identities = [identity for identity in self.identities if not identity.startswith(VAULT)]
        return [*self.secrets().values(), *identities, *self.recipient_files]

    def proofs(self) -> dict[str, str]:
        """Of each secret that results are made with, a container of nothing: who opens it has the same. It tells no more than any result does."""
        return {kind: b64encode(encrypt(b"", keys=_alone(kind, path))).decode() for kind, path in self.secrets().items()}

    def check(self, proofs: Mapping[str, str]) -> None:
        """A file of the same name may hold something else on another machine, or another day."""
        for kind, path in self.secrets().items():
            try:
                decrypt(b64decode(proofs[kind]), keys=_alone(kind, path))
            except WrongKey as error:
                raise BadArgument(f"{path}: it is not what the other results are made with; give that, or name another manifest") from error


def _alone(kind: str, path: str) -> Keys:
    options: dict[str, Any] = {kind: path}
    return Keys(**options)


@dataclass(frozen=True)
class Job:
    """Which objects become which, and how."""

    operation: str
    source: str
    target: str
    keys: KeySource
    source_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    target_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    aead: str = "aes-256-gcm"
    chunk_size: int = 1 << 16
    checksums: bool = True
    proofs: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of the secrets that results are made with; none when decrypting."""
    kept: tuple[str, ...] = ()
    """Files that no result replaces, beside those that keys are read from."""

    def check_arguments(self) -> None:
        """What is wrong for all objects is said once, before any is looked at."""
        keys = self.keys.load()
        if self.operation == "encrypt":
            try:
                encrypt(b"", keys=keys, aead=self.aead, chunk_size=self.chunk_size)
            except Unsupported:
                pass  # Workers may have a processor for it, and say so if not.
        elif not (self.keys.identities or self.keys.secrets()):
            raise BadArgument("nothing could be opened: give identities (-i), a key file (-k) or a passphrase file (--passphrase-file)")

    def made_how(self) -> dict[str, Any]:
        """What results of one manifest have in common."""
        common = {"operation": self.operation, "source": self.source, "target": self.target}
        if self.operation == "decrypt":
            return common
        keys = {"recipients": sorted(self.keys.recipients), "secrets": sorted(self.keys.secrets())}
        return {**common, **keys, "aead": self.aead, "chunk_size": self.chunk_size}

    def result_name(self, name: str) -> str | None:
        """What the result of an object is called; nothing for one that is not meant."""
        is_sealed = name.endswith(SUFFIX)
        if self.operation == "encrypt":
            return None if is_sealed else name + SUFFIX
        return name.removesuffix(SUFFIX) if is_sealed and name != SUFFIX else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one object."""

    source: Object
    written: Written | None
    error: str | None = None
    fault: Fault = Fault.OBJECT
    errno: int | None = None
    """The system's, if it was the system that refused."""
    may_be_there: bool = False
    """Whether something of ours may be there under its result's name: it was put there, or an error came while it was."""


class Work:
    """A worker's stores, keys and engine, which stay open between batches."""

    def __init__(self, job: Job, engine: str | None) -> None:
        self.job = job
        self.source = open_store(job.source, job.source_options)
        self.target = open_store(job.target, job.target_options)
        for store in (self.source, self.target):
            if isinstance(store, Folder):
                store.check_there()
        self.keys = job.keys.load()
        if job.operation == "encrypt":
            job.keys.check(job.proofs)
        self.kept = Kept([*job.keys.files(), *job.kept])
        self.engine = engine if engine and _has(engine) else None
        self._is_put = False

    def batch(self, objects: list[Object], ours: Set[str] = frozenset()) -> list[Outcome]:
        """The results of objects that are named in `ours` replace what is there; the others' do not."""
        return [self._one(source, source.name in ours) for source in objects]

    def _one(self, source: Object, may_replace: bool) -> Outcome:
        name = self.job.result_name(source.name)
        assert name is not None
        self._is_put = False
        try:
            return Outcome(source, self._do(source, name, may_replace), may_be_there=True)
        except Exception as error:  # Whatever it is, it is this object's, and stops no other.
            fault = fault_of(error, self.target.root if isinstance(self.target, Folder) else None)
            number = error.errno if isinstance(error, OSError) else None
            may_be_there = self._is_put and fault is not Fault.TAKEN
            return Outcome(source, None, shown(f"{source.name}: {self._why(error, source.name, name)}"), fault, number, may_be_there)

    def _putting(self) -> None:
        """Called before a result gets its name; what fails earlier has left nothing under it."""
        self._is_put = True

    def _why(self, error: Exception, name: str, result: str) -> str:
        """Without the object's name, which is said before it."""
        if isinstance(error, OSError):
            return _why_not(error, name, result, self.job.target)
        if not isinstance(error, (Error, ValueError)):
            return f"{type(error).__name__}: {error}"
        path = str(self.source.root / name) if isinstance(self.source, Folder) else ""
        return str(error).removeprefix(f"{path}: ").removeprefix(f"{shown(path)}: ")

    def _do(self, source: Object, name: str, may_replace: bool) -> Written:
        if not isinstance(self.source, Folder):
            with self.source.read(source) as stream:
                return self._put(source, stream, name, may_replace, {})
        self.source.check(source)
        return self._put(source, self.source.path(source.name), name, may_replace, {"source_below": self.source.root})

    def _put(self, source: Object, given: Any, name: str, may_replace: bool, options: dict[str, Any]) -> Written:
        if not isinstance(self.target, Folder):
            seal = lambda upload: self._transform(source, given, upload, True, options)
            return self.target.write(name, seal, self.job.checksums, may_replace, source.size, self._putting)
        path = self.target.prepare(name, self.source.mode if isinstance(self.source, Folder) else lambda _: 0o700)
        self.kept.check(path)
        try:
            self._transform(source, given, path, may_replace, {"target_below": self.target.root, "publishing": self._putting, **options})
        except FileExistsError as error:
            raise Taken() from error
        return self.target.written(name, self.job.checksums)

    def _transform(self, source: Object, given: Any, target: Any, overwrite: bool, options: dict[str, Any]) -> None:
        """Returns if what was read is what was listed: an upload ends only then."""
        if self.job.operation == "encrypt":
            sealed = encrypt_to(given, target, self.keys, self.job.aead, self.job.chunk_size, 1, overwrite, False, self.engine, **options)
            size = cast(int, sealed)
            if size != source.size:
                raise Changed(f"{size} bytes were read where {source.size} were listed; run again")
        else:
            decrypt_to(given, target, self.keys, 1, overwrite, False, self.engine, **options)
        if isinstance(self.source, Folder):
            self.source.check(source)


def _has(engine: str) -> bool:
    return any(present["name"] == engine for present in engines()["present"])


def _why_not(error: OSError, name: str, result: str, target: str) -> str:
    """What the system refused. What there is no room for is the target's, whichever name came with it."""
    if error.errno in NO_ROOM:
        return f"{said(error)} ({target})"
    if error.errno == errno.ENAMETOOLONG:
        longest = max(len(part.encode(errors="surrogateescape")) for part in result.split("/"))
        return f"{said(error)}: its result's would have {longest} bytes, and a name in a folder has {NAME_BYTES} at most; rename it"
    return f"{said(error)}{_elsewhere(error, name)}"


def _elsewhere(error: OSError, name: str) -> str:
    """Which file it is about, if that is not to be seen from the object's name."""
    path = str(error.filename or "")
    return "" if not path or path.endswith(name) else f" ({path})"
