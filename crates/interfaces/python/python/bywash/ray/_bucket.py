"""A bucket of whatever obstore opens: listings, streams, uploads."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ..errors import BadArgument, Error
from ._faults import Taken
from ._objects import Changed, Object, PassedOver, Written, bare, shown
from ._obstore import in_a_line, is_no_answer

PART_BYTES = 8 << 20
"""Of an upload, and what is asked for at a time of a download. Smaller objects go in one request."""
PARTS_AHEAD = 4
"""Parts of one upload on their way, of that size; fewer of larger ones. With all buffers, an object that goes into a bucket costs a worker at most some 100 MiB
(39 to 99 were measured), or a part and a little where one is larger than 32 MiB."""
PARTS = 9_000
"""Of one upload at most, for which larger ones have larger parts: S3 takes 10,000, and results are a little longer than what they are made of."""
REQUEST_S = 120
"""For a request with all of its body, unless the options say otherwise: obstore's 30 want 2 Mbit/s for each part on its way."""
LOOKS_AT_ONCE = 16
"""At empty objects, each a request of its own."""
RETRIES = 10
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 15.0
"""Obstore's own, for the requests that it sends again itself."""
ANSWER_S = 5
"""In which a store that is at work answers a small request."""


def _version(meta: Any) -> str:
    return bare(meta["e_tag"] or "") or str(meta["last_modified"])


class Bucket:
    """A bucket, or what is under a prefix in it."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            raise BadArgument(f"{url} needs obstore; pip install 'bywash[ray]'") from error
        self.url = shown(url)
        self._obstore = obstore
        try:
            client = {"timeout": timedelta(seconds=REQUEST_S), **(options.get("client_options") or {})}
            self._store = from_url(url, **{**options, "client_options": client})
            client |= {"timeout": timedelta(seconds=ANSWER_S), "connect_timeout": timedelta(seconds=ANSWER_S)}
            self._retries = int((options.get("retry_config") or {}).get("max_retries", RETRIES))
            self._asked_once = from_url(url, **{**options, "client_options": client, "retry_config": {"max_retries": 0}})
        except Exception as error:  # Obstore's have a base that can be named only where it is installed; for wrong types, Python's.
            raise BadArgument(f"{self.url}: {in_a_line(error)}") from error

    @contextmanager
    def _told(self) -> Iterator[None]:
        """In a line, and of a class of Bywash's."""
        try:
            yield
        except Error:
            raise
        except Exception as error:
            raise Error(f"{self.url}: {in_a_line(error)}") from error

    def trouble(self) -> str | None:
        """Why it does not answer, if it does not."""
        try:
            self._obstore.head(self._asked_once, ".bywash-is-it-there")
        except FileNotFoundError:
            return None
        except Exception as error:
            return in_a_line(error) if is_no_answer(error) else None  # What it refuses it has answered.
        return None

    def list(self, but: object = None) -> Iterator[Object | PassedOver]:
        """All under the prefix. `but` is a folder, and none is in a bucket."""
        with self._told(), ThreadPoolExecutor(LOOKS_AT_ONCE, "bywash-look") as looks:
            for page in self._obstore.list(self._store, chunk_size=1000):
                empty = looks.map(self._look_at_empty, [meta for meta in page if not meta["size"]])
                yield from (Object(meta["path"], meta["size"], _version(meta)) for meta in page if meta["size"])
                yield from empty

    def _look_at_empty(self, meta: Any) -> Object | PassedOver:
        """Consoles make keys that end in ``/`` to stand for folders. Obstore lists them without it, so that there is no such object, or it is another one."""
        name = meta["path"]
        folder = PassedOver(f"{name}/", "what stands for a folder")
        if not name or name.endswith("/"):
            return folder
        try:
            there = self._obstore.head(self._store, name)
        except FileNotFoundError:
            return folder
        except Exception:  # Who reads it says what is wrong.
            there = meta
        return Object(name, there["size"], _version(there))

    def told_apart(self, first: Object, second: Object) -> tuple[Object, PassedOver]:
        """Of two that are listed under one name, as a key with a ``/`` at its end and content is: the one that is read under it, and the other."""
        with self._told():
            there = self._obstore.head(self._store, first.name)
        is_second = (there["size"], _version(there)) == (second.size, second.version)
        return second if is_second else first, PassedOver(f"{first.name}/", "its key ends in /, and one without it is there")

    def read(self, listed: Object) -> _Stream:
        """A stream of the object that was listed; :class:`Changed` if it is another now."""
        return _Stream(self._buffers(listed, self._window(listed, 0)), listed.size)

    def _window(self, listed: Object, start: int) -> Any:
        """One request for a part: time and tries, which a request has for all of its body, do not bound how long an object takes."""
        end = min(start + PART_BYTES, listed.size)
        with self._told():
            got = self._obstore.get(self._store, listed.name, options={"range": (start, end)} if listed.size > PART_BYTES else None)
        if _version(got.meta) != listed.version:
            raise Changed("somebody replaced it since it was listed; run again")
        return got

    def _buffers(self, listed: Object, first: Any) -> Iterator[Any]:
        for start in range(0, max(listed.size, 1), PART_BYTES):
            window = self._window(listed, start) if start else first
            with self._told():
                yield from window.stream(min_chunk_size=1 << 20)

    def write(
        self, name: str, write: Callable[[Any], object], checksum: bool, may_replace: bool, size: int, putting: Callable[[], object] = lambda: None
    ) -> Written:
        """Calls `write` with something that has ``write()``, to which it writes some `size` bytes; the result is under its name once that has returned, and
        `putting` is called before. :class:`Taken` if another is and stays."""
        upload = _Upload(self, name, checksum, may_replace, size)
        # If this raises, the upload never ends, and nobody sees it; the store's rule for incomplete uploads removes it, for obstore's writer cannot.
        write(upload)
        return upload.finish(putting)

    def put(self, name: str, data: bytes, may_replace: bool) -> Any:
        """One request; what the store says of it."""
        with self._told():
            if not may_replace:
                try:
                    return self._create(name, data)
                except Exception as error:
                    # Some stores know no such condition. What is there is looked at before then, which is nearly as good.
                    if "NotImplemented" not in str(error) and not isinstance(error, self._obstore.exceptions.NotSupportedError):
                        raise
                    self.refuse_taken(name)
            return self._obstore.put(self._store, name, data, use_multipart=False)

    def _create(self, name: str, data: bytes) -> Any:
        """Where no answer comes, obstore does not send a request with a condition again, for it could not tell then whose object is there. Here that can be told."""
        for left in range(self._retries, -1, -1):
            try:
                return self._obstore.put(self._store, name, data, use_multipart=False, mode="create")
            except self._obstore.exceptions.AlreadyExistsError as error:
                return self._ours(name, data, error)
            except Exception as error:
                if not left or not is_no_answer(error):
                    raise
                time.sleep(min(FIRST_PAUSE_S * 2 ** (self._retries - left), LONGEST_PAUSE_S))
        raise AssertionError("the last try returns or raises")

    def _ours(self, name: str, data: bytes, error: Exception) -> Any:
        """A request whose answer was lost is sent again, and finds what it put itself."""
        got = self._obstore.get(self._store, name)
        if got.meta["size"] != len(data) or bytes(got.bytes()) != data:
            raise Taken() from error
        return got.meta

    def refuse_taken(self, name: str) -> None:
        """Raises :class:`Taken` if there is something. It may come later still: stores have no condition for uploads in parts that obstore would pass on."""
        try:
            with self._told():
                self._obstore.head(self._store, name)
        except Error as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return
            raise
        raise Taken()

    def open_parts(self, name: str, size: int) -> Any:
        part = max(PART_BYTES, -(-size // PARTS))
        ahead = max(PARTS_AHEAD * PART_BYTES // part, 1)
        with self._told():
            return self._obstore.open_writer(self._store, name, buffer_size=part, max_concurrency=ahead)

    def tell(self, act: Callable[[], Any]) -> Any:
        """What obstore says of an upload under way, in a line."""
        with self._told():
            return act()

    def head(self, name: str) -> Any:
        with self._told():
            return self._obstore.head(self._store, name)


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

    def __init__(self, bucket: Bucket, name: str, checksum: bool, may_replace: bool, expected: int) -> None:
        self._bucket, self._name, self._may_replace, self._expected = bucket, name, may_replace, expected
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
            self._refuse_taken()
            self._parts = self._bucket.open_parts(self._name, self._expected)
            self._bucket.tell(lambda: self._parts.write(self._kept))
            self._kept = bytearray()
        self._bucket.tell(lambda: self._parts.write(data))
        return len(data)

    def _refuse_taken(self) -> None:
        if not self._may_replace:
            self._bucket.refuse_taken(self._name)

    def finish(self, putting: Callable[[], object]) -> Written:
        if self._parts is None:
            putting()
            put = self._bucket.put(self._name, bytes(self._kept), self._may_replace)
        else:
            self._refuse_taken()
            putting()
            self._bucket.tell(self._parts.close)
            put = None
        # The store's own word for what is there now.
        meta = self._bucket.head(self._name)
        if meta["size"] != self._size or (put and put["e_tag"] and bare(put["e_tag"]) != _version(meta)):
            raise Changed(f"the store has {meta['size']} bytes where {self._size} were written; is another run writing there?")
        return Written(self._size, _version(meta), self._digest.hexdigest() if self._digest else None)
