"""Data sets of many objects, encrypted on a Ray cluster.

>>> import bywash.ray
>>> bywash.ray.encrypt("s3://lab/raw", "s3://lab/sealed", recipients=["bywash-x25519-..."], manifest="lab.manifest")  # doctest: +SKIP

Resident workers, one for each processor and one for each GPU that Ray knows, take objects from a folder that all of them see or from a store (S3-compatible,
Google's, Azure's), and put the results, under the same names and ``.bywash``, into another. A result is there whole, or not seen at all. What is done is in
the manifest, a file of the driver's; when worker, driver or machine die, the same call goes on with what is left. Only names wait in queues, and a worker
has at most some 100 MiB of an object under way, however large that is.

Needs ``pip install 'bywash[ray]'``. On the command line: ``python -m bywash.ray --help``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ImportError("bywash.ray needs Ray; pip install 'bywash[ray]'") from error

from ..errors import BadArgument as _BadArgument
from ._faults import Fault
from ._report import Empty, Incomplete, Report
from ._run import Limits as _Limits, run as _start
from ._sweep import sweep
from ._work import VAULT as _VAULT, Job, KeySource

__all__ = ["Empty", "Fault", "Incomplete", "KeySource", "Report", "decrypt", "encrypt", "sweep"]


def encrypt(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    manifest: str | os.PathLike[str],
    recipients: Sequence[str] = (),
    key_file: str | None = None,
    passphrase_file: str | None = None,
    source_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    aead: str = "aes-256-gcm",
    chunk_size: int = 1 << 16,
    workers: int | None = None,
    gpu_workers: int | None = None,
    checksums: bool = True,
    progress: bool = True,
    allow_empty: bool = False,
    overwrite: bool = False,
) -> Report:
    """Encrypts every object of ``source`` into ``target``, but for those that end in ``.bywash``, links, and empty folders, which :attr:`Report.passed_over` names.

    Both are folders or URLs; ``source_options`` and ``target_options`` are what ``obstore.store.from_url`` takes beside the URL
    (``{"config": {"endpoint": ...}}``); credentials are best left to each worker's environment. Key and passphrase files are read by each worker on its own
    machine. ``workers`` and ``gpu_workers`` are by default as many as the cluster has processors and GPUs; a GPU that Bywash cannot use computes on its worker's
    processor. ``checksums`` has the manifest name each result's SHA-256 beside its size and version.

    An object that cannot be done is in :attr:`Report.failed`, and the others are done all the same; :meth:`Report.check` raises then. Where there is nothing to do
    and nothing was done before, :class:`Empty` is raised, unless ``allow_empty``. Nothing at the target is replaced that the manifest does not know, unless
    ``overwrite``, and no file that keys are read from, nor the manifest, in any case. A target that is full or read-only ends the run (``OSError``).
    """
    texts, files = _texts(recipients)
    keys = KeySource(tuple(texts), (), _file("key_file", key_file), _file("passphrase_file", passphrase_file), tuple(files))
    job = Job("encrypt", _url(source), _url(target), keys, source_options or {}, target_options or {}, aead, chunk_size, checksums)
    return _start(job, _path("manifest", manifest), _Limits(workers, gpu_workers, allow_empty, overwrite), progress)


def decrypt(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    manifest: str | os.PathLike[str],
    identities: Sequence[str | os.PathLike[str]] = (),
    key_file: str | None = None,
    passphrase_file: str | None = None,
    source_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    workers: int | None = None,
    gpu_workers: int | None = None,
    checksums: bool = True,
    progress: bool = True,
    allow_empty: bool = False,
    overwrite: bool = False,
) -> Report:
    """Decrypts every object of ``source`` that ends in ``.bywash`` into ``target``; the rest is as for :func:`encrypt`.

    ``identities`` are files, read by each worker on its own machine. A result is there once all of it has proved authentic. Where none of the first objects,
    taken from all over the source, can be opened with what was given, the run ends (:class:`bywash.NoKeyFits`).
    """
    given = [_path("identities", one) for one in _several("identities", identities)]
    given = [one.strip() if one.strip().startswith(_SECRET) else one for one in given]
    found = tuple(one if one.startswith(_SECRET) else os.path.abspath(one) for one in given)
    keys = KeySource((), found, _file("key_file", key_file), _file("passphrase_file", passphrase_file))
    job = Job("decrypt", _url(source), _url(target), keys, source_options or {}, target_options or {}, checksums=checksums)
    return _start(job, _path("manifest", manifest), _Limits(workers, gpu_workers, allow_empty, overwrite), progress)


_SECRET = ("BYWASH-IDENTITY-", _VAULT)
"""What is an identity itself, or in a vault, and no file."""


def _path(name: str, given: str | os.PathLike[str]) -> str:
    try:
        text = os.fspath(given)
    except TypeError as error:
        raise _BadArgument(f"{name}: {given!r} is no path") from error
    if not isinstance(text, str):
        raise _BadArgument(f"{name}: {text!r} is bytes; give text (os.fsdecode makes it)")
    return text


def _url(given: str | os.PathLike[str]) -> str:
    text = _path("source or target", given)
    if not text:
        raise _BadArgument("a source or target is empty; name a folder or a URL")
    path = text.removeprefix("file://")
    if path != text and not path.startswith("/"):
        raise _BadArgument(f"{text}: it is on no machine by name; a folder's URL is file:// and its path, which begins with /")
    return _store_url(path) if "://" in path else os.path.abspath(path)


def _store_url(url: str) -> str:
    """Messages and logs name it whole; and a store takes what follows a question mark for no part of a name."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _BadArgument(f"a source or target is no URL: {error}") from error
    if parts.password is not None:
        raise _BadArgument(
            f"{parts.scheme}://…@{parts.netloc.rpartition('@')[2]}: a password in a URL would be in every message; give it in the environment, or in"
            " source_options or target_options"
        )
    if parts.query or parts.fragment:
        place = f"{parts.scheme}://{parts.netloc}{parts.path}"
        raise _BadArgument(f"{place}: a store's URL ends with its path; write ? as %3F and # as %23 if they belong to a name, and give credentials in the environment")
    return url


def _file(name: str, given: str | os.PathLike[str] | None) -> str | None:
    """Wherever a worker is started."""
    return None if given is None else os.path.abspath(_path(name, given))


def _several(name: str, given: Sequence[Any]) -> Sequence[Any]:
    if isinstance(given, (str, bytes, os.PathLike)):
        raise _BadArgument(f"{name}: give a list of them, of one too")
    return given


def _texts(recipients: Sequence[str]) -> tuple[list[str], list[str]]:
    """Recipients, those in files among them, and these files: recipients are public, so workers need none."""
    texts, files = [], []
    for given in (_path("recipients", one) for one in _several("recipients", recipients)):
        if itself := _recipient(given):
            texts.append(itself)
            continue
        if given.strip().startswith(_SECRET):
            raise _BadArgument("one of the recipients is an identity, which is secret; give its public half")
        files.append(os.path.abspath(given))
        # What is no text is no recipient either; an error of decoding would show what it is instead.
        with open(given, encoding="utf-8", errors="replace") as file:
            lines = [(number, _recipient(line.strip())) for number, line in enumerate(file, 1) if line.strip() and not line.startswith("#")]
        # What a line is instead is not said: it may be a secret.
        wrong = next((number for number, found in lines if not found), None)
        if wrong or not lines:
            raise _BadArgument(f"{given}:{wrong}: it is no recipient" if wrong else f"{given}: there is no recipient in it")
        texts += [found for _, found in lines if found]
    return texts, files


_SSH = ("ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-")
"""What public keys of SSH begin with; which of these kinds are taken says who reads them."""


def _recipient(text: str) -> str | None:
    """The recipient that a text is meant as, if it is; the comment behind a key of SSH's is no part of it."""
    if text.startswith(_SSH) and len(words := text.split()) > 1:
        return " ".join(words[:2])
    return text if text.startswith(("bywash-", "bywash:")) else None
