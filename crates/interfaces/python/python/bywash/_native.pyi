"""The native half. Use :mod:`bywash`, which documents it."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from typing_extensions import Buffer

from . import Key, Path, Reader, Writer

__version__: str

class Keys:
    def __init__(
        self,
        *,
        passphrase: str | Buffer | None = ...,
        passphrase_file: Path | None = ...,
        key: Buffer | None = ...,
        key_file: Path | None = ...,
        recipients: Sequence[Key] = ...,
        identities: Sequence[Key] = ...,
    ) -> None: ...

class Session:
    def __init__(
        self, algorithm: str, key: Buffer | None = ..., *, tag_len: int | None = ..., engine: str | None = ...
    ) -> None: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def tag_len(self) -> int: ...
    def encrypt(self, data: Buffer, nonce: Buffer | None = ..., aad: Buffer | None = ...) -> bytes: ...
    def decrypt(self, data: Buffer, nonce: Buffer | None = ..., aad: Buffer | None = ...) -> bytes: ...
    def compute(self, data: Buffer) -> bytes: ...

class File:
    def __init__(self, path: Path, writable: bool, keys: Keys, engine: str | None) -> None: ...
    def __len__(self) -> int: ...
    @property
    def chunk_size(self) -> int: ...
    def read_at(self, size: int, offset: int) -> bytes: ...
    def write_at(self, data: Buffer, offset: int) -> int: ...
    def set_len(self, len: int) -> None: ...
    def sync(self) -> None: ...
    @property
    def is_parents(self) -> bool: ...
    def close(self) -> None: ...

def engines() -> dict[str, list[dict[str, Any]]]: ...
def generate_identity(path: str | PathLike[str], *, hybrid: bool = ...) -> str: ...
def generate_key_file(path: str | PathLike[str]) -> None: ...
def encrypt(
    source: Buffer | Path | Reader,
    target: Path | Writer | None,
    keys: Keys,
    aead: str,
    chunk_size: int,
    threads: int,
    overwrite: bool,
    verify: bool,
    engine: str | None,
    source_below: Path | None = ...,
    target_below: Path | None = ...,
    publishing: Callable[[], object] | None = ...,
) -> bytes | int: ...
def decrypt(
    source: Buffer | Path | Reader,
    target: Path | Writer | None,
    keys: Keys,
    threads: int,
    overwrite: bool,
    verify: bool,
    engine: str | None,
    source_below: Path | None = ...,
    target_below: Path | None = ...,
    publishing: Callable[[], object] | None = ...,
) -> bytes | int: ...
def simulate(
    policy: str,
    engine: str,
    trace: Path | None,
    requests: int,
    train: float,
    seed: int,
    cpu: Path | None,
    side_by_side: bool,
    changes: Sequence[tuple[str, float]],
) -> dict[str, Any]: ...
