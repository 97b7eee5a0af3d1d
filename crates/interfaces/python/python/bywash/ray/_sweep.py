"""Many runs of the simulator, as Ray tasks."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import ray

from .. import simulate
from ..errors import BadArgument

AHEAD = 4
"""Tasks for each processor that are handed to Ray at a time: a sweep may have millions."""


@ray.remote(num_cpus=1)
def _run(question: dict[str, Any]) -> dict[str, Any]:
    return simulate(**question)


def sweep(values: Mapping[str, Iterable[Any]], **common: Any) -> list[dict[str, Any]]:
    """Simulates each value with each, on the cluster; the runs in the order of :func:`itertools.product`.

    Names are those of :func:`bywash.simulate`'s arguments; sheets and traces that are files must be where all machines see them. A run depends on its
    arguments alone, so Ray runs it again where a machine dies.

    >>> runs = sweep({"policy": ["tuned", "software"], "slots": [1, 2], "seed": range(8)}, rate=750)  # doctest: +SKIP
    """
    both = values.keys() & common.keys()
    if both:
        raise BadArgument(f"{sorted(both)[0]}: it is swept, and given once for all; leave one of both out")
    lists = {name: _several(name, all_values) for name, all_values in values.items()}
    for name, given in [*lists.items(), *((name, [value]) for name, value in common.items())]:
        _check(name, given)
    questions = [{**common, **dict(zip(lists, point, strict=True))} for point in itertools.product(*lists.values())]
    if not ray.is_initialized():
        ray.init()
    room = AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)  # type: ignore[no-untyped-call]
    runs: list[Any] = [None] * len(questions)
    flying: dict[Any, int] = {}
    for number, question in enumerate(questions):
        if len(flying) == room:
            _land(flying, runs)
        flying[_run.remote(question)] = number
    while flying:
        _land(flying, runs)
    return runs


def _several(name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise BadArgument(f"{name}: {given!r} is one value; give a list of them, of one too, or name it beside what is swept")
    return list(given)


def _check(name: str, given: list[Any]) -> None:
    """Names that :func:`bywash.simulate` does not have are numbers that it can change, or mistakes."""
    known = [one for one, what in inspect.signature(simulate).parameters.items() if what.kind is not what.VAR_KEYWORD]
    wrong = next((value for value in given if not isinstance(value, Real)), None)
    if name not in known and wrong is not None:
        raise BadArgument(f"{name}: it is none of {', '.join(known)}, and of what else can be swept (rate, slots, ...) all are numbers, which {wrong!r} is not")


def _land(flying: dict[Any, int], runs: list[Any]) -> None:
    (ref, *_), _ = ray.wait(list(flying), num_returns=1)
    try:
        runs[flying.pop(ref)] = ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        # The others end by themselves, for they are few: Ray aborts the whole program now and then where a task that is just ending is cancelled.
        # What the simulator said, without Ray's account of where.
        raise error.cause if isinstance(error.cause, Exception) else error
