"""Says why nothing happens: a store that does not answer. Requests to it are retried in silence, for minutes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ._bucket import Bucket
from ._store import Folder

EVERY_S = 10.0
"""Between looks: one small request to each store."""
AGAIN_S = 30.0
"""Before the same is said again."""


@contextmanager
def watched(stores: Sequence[Folder | Bucket], say: Callable[[str], None]) -> Iterator[None]:
    """While it lasts, says which of the stores does not answer, and when it does again."""
    over = threading.Event()
    watches = [_Watch(store, say) for store in stores if isinstance(store, Bucket)]

    def look() -> None:
        while not over.wait(EVERY_S):
            for watch in watches:
                watch.look()

    thread = threading.Thread(target=look, name="bywash-watch", daemon=True)
    if watches:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if watches:
            thread.join(EVERY_S)


class _Watch:
    def __init__(self, store: Bucket, say: Callable[[str], None]) -> None:
        self._store, self._say = store, say
        self._told: float | None = None
        """When it was last said that it does not answer."""

    def look(self) -> None:
        trouble = self._store.trouble()
        now = time.monotonic()
        if trouble and (self._told is None or now - self._told >= AGAIN_S):
            self._say(f"{self._store.url}: {trouble} What was asked of it is retried, for 3 minutes unless the options say otherwise")
            self._told = now
        elif not trouble and self._told is not None:
            self._say(f"{self._store.url}: it answers again")
            self._told = None
