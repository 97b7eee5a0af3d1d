"""What a worker does. Without Ray, so that it can be tried without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import Keys, decrypt, encrypt, engines
from ..errors import BadArgument, Error
from ._store import Folder, Object, Written, open_store

SUFFIX = ".bywash"


@dataclass(frozen=True)
class KeySource:
    """Keys as workers find them: recipients, which are public, and files that each worker reads on its own machine.

    No secret is in it, and so none is in Ray's object store, its logs, or a manifest.
    """

    recipients: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    key_file: str | None = None
    passphrase_file: str | None = None

    def __post_init__(self) -> None:
        if any(identity.startswith("BYWASH-IDENTITY-") for identity in self.identities):
            raise BadArgument("give files with identities, which each worker reads on its own machine; a secret does not go through Ray")

    def load(self) -> Keys:
        options: dict[str, Any] = {"recipients": self.recipients, "identities": self.identities}
        return Keys(key_file=self.key_file, passphrase_file=self.passphrase_file, **options)


@dataclass(frozen=True)
class Job:
    """Which objects become which, and how."""

    operation: str
    source: str
    target: str
    keys: KeySource
    source_options: Mapping[str, Any] = field(default_factory=dict)
    target_options: Mapping[str, Any] = field(default_factory=dict)
    aead: str = "aes-256-gcm"
    chunk_size: int = 1 << 16
    checksums: bool = True

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


class Work:
    """A worker's stores, keys and engine, which stay open between batches."""

    def __init__(self, job: Job, engine: str | None) -> None:
        self.job = job
        self.source = open_store(job.source, job.source_options)
        self.target = open_store(job.target, job.target_options)
        self.keys = job.keys.load()
        self.engine = engine if engine and _has(engine) else None

    def batch(self, objects: list[Object]) -> list[Outcome]:
        return [self._one(source) for source in objects]

    def _one(self, source: Object) -> Outcome:
        name = self.job.result_name(source.name)
        assert name is not None
        try:
            return Outcome(source, self._do(source, name))
        except (Error, OSError, ValueError) as error:
            return Outcome(source, None, f"{source.name}: {error}")
        except Exception as error:  # noqa: BLE001: obstore's have a base that can be named only where it is installed
            return Outcome(source, None, f"{source.name}: {type(error).__name__}: {error}")

    def _do(self, source: Object, name: str) -> Written:
        if isinstance(self.target, Folder):
            path = self.target.prepare(name)
            if isinstance(self.source, Folder):
                self.source.check(source)
                self._transform(self.source.path(source.name), path, {"threads": 1, "overwrite": True})
            else:
                with self.source.read(source) as stream:
                    self._transform(stream, path, {"overwrite": True})
            return self.target.written(name, self.job.checksums)
        with self.source.read(source) as stream:
            return self.target.write(name, lambda upload: self._transform(stream, upload, {}), self.job.checksums)

    def _transform(self, source: Any, target: Any, options: dict[str, Any]) -> None:
        if self.job.operation == "encrypt":
            encrypt(source, target, self.keys, aead=self.job.aead, chunk_size=self.job.chunk_size, engine=self.engine, **options)
        else:
            decrypt(source, target, self.keys, engine=self.engine, **options)


def _has(engine: str) -> bool:
    return any(present["name"] == engine for present in engines()["present"])
