"""How far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def amount(bytes: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if bytes < 1024:
            return f"{bytes:.0f} {unit}" if unit == "B" else f"{bytes:.1f} {unit}"
        bytes /= 1024
    return f"{bytes:.1f} TiB"


def teller(shown: bool) -> Callable[[str], None]:
    """Says something that is worth a line, if anything is to be said."""

    def say(text: str) -> None:
        if shown:
            start = "\r" if sys.stderr.isatty() else ""
            print(f"{start}{f'bywash: {text}':<100}".rstrip(), file=sys.stderr, flush=True)

    return say


class Progress:
    """A line on stderr that is written over where that is a terminal; elsewhere one every ten seconds."""

    def __init__(self, objects: int, bytes: int, shown: bool) -> None:
        self._all, self._shown = (objects, bytes), shown
        self._objects = self._bytes = 0
        self._began = self._told = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def add(self, objects: int, bytes: int) -> None:
        self._objects += objects
        self._bytes += bytes
        now = time.monotonic()
        if self._shown and now - self._told >= (0.1 if self._terminal else 10):
            self._told = now
            self._print(end="\r" if self._terminal else "\n")

    def end(self) -> None:
        if self._shown and self._terminal and self._objects:
            self._print(end="\n")

    def _print(self, end: str) -> None:
        seconds = max(time.monotonic() - self._began, 1e-3)
        rate = self._bytes / seconds
        left = (self._all[1] - self._bytes) / rate if rate else 0
        share = f"{self._objects:,} of {self._all[0]:,} objects, {amount(self._bytes)} of {amount(self._all[1])}"
        line = f"bywash: {share}, {amount(rate)}/s, {left:.0f} s left"
        print(f"{line:<100}" if self._terminal else line, end=end, file=sys.stderr, flush=True)
