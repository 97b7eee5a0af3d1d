"""For the first worker: Ray says nothing where it has no room for one, now or ever."""

from __future__ import annotations

import time
from collections.abc import Callable

import ray

from ..errors import Error

FIRST_S = 5.0
"""Before anything is said: a worker takes as long to start on a slow machine."""
AGAIN_S = 30.0
NEVER_S = 300.0
"""In which a cluster that grows with what is asked of it may get what it has not."""


class Waiting:
    """For workers that ask for one processor each, and some or all of them for a GPU."""

    def __init__(self, workers: int, all_want_a_gpu: bool, say: Callable[[str], None]) -> None:
        self._workers, self._resources, self._say = workers, ["CPU", "GPU"] if all_want_a_gpu else ["CPU"], say
        self.started()

    def started(self) -> None:
        """There is a worker; should all be lost, it begins anew."""
        self._since: float | None = None
        self.seconds = FIRST_S
        """How long to wait before the next look."""

    def look(self) -> None:
        """Says why there is no worker yet; an error where the cluster can have none."""
        now = time.monotonic()
        self._since = now - self.seconds if self._since is None else self._since
        self.seconds = AGAIN_S
        there, free = ray.cluster_resources(), ray.available_resources()  # type: ignore[no-untyped-call]
        has = " and ".join(f"{there.get(kind, 0):g} {kind} ({free.get(kind, 0):g} free)" for kind in self._resources)
        why = f"there is no worker yet: {self._workers} asked for, each with 1 {' and 1 '.join(self._resources)}; Ray's cluster has {has}"
        missing = next((kind for kind in self._resources if there.get(kind, 0) < 1), None)
        if not missing:
            self._say(f"{why}; waiting until there is room for one")
            return
        left = NEVER_S - (now - self._since)
        way_out = f"start Ray with a {missing}, or name another cluster in RAY_ADDRESS"
        if left <= 0:
            raise Error(f"{why}, on which none can start; {way_out}")
        self.seconds = min(AGAIN_S, left)
        self._say(f"{why}, on which none can start; waiting {left:.0f} s more in case it grows; or {way_out}")
