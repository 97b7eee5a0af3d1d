"""What became of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import Error
from ._faults import Fault

LINES = 10
"""Of failures of a kind, before they are only counted."""


class Incomplete(Error):
    """Some objects were not done; the message begins with the first of them."""


class Empty(Error):
    """Nothing that is meant is at the source. A share that is not mounted and a wrong prefix look like that."""


@dataclass
class Report:
    """What became of a job."""

    objects: int = 0
    """Done by this run."""
    bytes: int = 0
    """Their bytes, before."""
    before: int = 0
    """Done by earlier runs, and still so."""
    gone: int = 0
    """Done by earlier runs, and no longer at the source."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """What is at the source and not meant, and why: links, empty folders and what stands for them, other names."""
    failed: dict[str, str] = field(default_factory=dict)
    """What was not done, and why."""
    faults: dict[str, Fault] = field(default_factory=dict)
    """What was not done, and whose fault that is."""
    engines: Counter[str] = field(default_factory=Counter)
    """Objects by the engine of the worker that did them."""
    workers_lost: int = 0
    """Workers that died and were replaced."""
    seconds: float = 0.0

    def fail(self, name: str, why: str, fault: Fault = Fault.OBJECT) -> None:
        """`why` begins with the name."""
        self.failed[name], self.faults[name] = why, fault

    @property
    def exit_code(self) -> int:
        """What ``python -m bywash.ray`` ends with: the ``bywash`` command's codes, of which the highest counts."""
        return max((fault.exit_code for fault in self.faults.values()), default=0)

    def lines(self, all_of_them: bool) -> Iterator[str]:
        """What failed; of each kind some, and how many more."""
        seen: Counter[Fault] = Counter()
        for name, why in self.failed.items():
            fault = self.faults[name]
            seen[fault] += 1
            if all_of_them or seen[fault] <= LINES:
                yield why
        for fault, count in seen.items():
            if count > LINES and not all_of_them:
                yield f"and {count - LINES:,} more for a like cause ({fault}); -v names them"

    def check(self) -> Report:
        """Itself, or :class:`Incomplete` if anything failed."""
        if self.failed:
            raise Incomplete(f"{next(iter(self.failed.values()))} ({len(self.failed)} of {self.objects + len(self.failed)} objects failed; run again for those)")
        return self


def counted(passed_over: Mapping[str, str]) -> str:
    """How many were passed over, and why."""
    whys = ", ".join(f"{why}: {count:,}" for why, count in Counter(passed_over.values()).most_common())
    return f"{len(passed_over):,} passed over ({whys})"
