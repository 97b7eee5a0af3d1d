"""The driver: who does what is left, and what to do when a worker dies."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError, RayError, WorkerCrashedError

from ..errors import BadArgument, Error, NoKeyFits
from ._bucket import Bucket
from ._faults import Fault
from ._manifest import Manifest
from ._objects import Object, Written, shown
from ._plan import prepare
from ._progress import Progress, teller
from ._report import Report
from ._store import Folder, open_store
from ._waiting import Waiting
from ._watch import watched
from ._work import Job, Outcome, Work

BATCH_OBJECTS = 32
BATCH_BYTES = 64 << 20
"""What a worker is handed at a time: enough that a call's millisecond does not count, little enough to be done again."""
IN_FLIGHT = 2
"""Batches at a worker: it never waits for the driver, and what a batch holds is names alone."""
SAMPLE = 32
"""Objects from all over the source that are decrypted first: if nothing opens any of them, nothing is taken to open the others."""
SAMPLE_BATCH = 4
"""Of them, so that few are tried in vain: each passphrase costs a second."""
TRIES = 3
"""Of a batch whose worker dies; then each of its objects, as often."""

LOST = (RayActorError, WorkerCrashedError, NodeDiedError, OutOfMemoryError)
"""What Ray says when a worker is gone, or cannot be reached."""


@dataclass
class _Batch:
    objects: list[Object]
    tries: int = 0
    is_suspect: bool = False
    """Whether a worker died with it: from then on it shares none with another batch, so that neither dies of the other."""
    intended: frozenset[str] = frozenset()
    """Names of which nothing was ours before this try."""


@ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)
class Worker:
    """Resident: keys are read, connections and devices opened once."""

    def __init__(self, job: Job, engine: str | None) -> None:
        self._work = Work(job, engine)

    def ready(self) -> str:
        return self._work.engine or "cpu"

    def batch(self, objects: list[Object], ours: frozenset[str]) -> list[Outcome]:
        return self._work.batch(objects, ours)


class Driver:
    """Hands objects to workers, and writes down what is done."""

    def __init__(self, job: Job, manifest: Manifest, report: Report, left: list[Object], limits: Limits, shown: bool) -> None:
        self.job, self.manifest, self.report, self.overwrite = job, manifest, report, limits.overwrite
        self.waiting = deque(_Batch(objects) for objects in in_order(job, left))
        self.progress = Progress(len(left), sum(source.size for source in left), shown)
        workers, gpu_workers = limits.of_cluster()
        self.engines: dict[Any, str] = {}
        """Of the workers that are ready."""
        self.workers: list[Any] = []
        """These, and those that are being made."""
        self.gpus: set[Any] = set()
        self.flying: dict[Any, tuple[Any, _Batch | None]] = {}
        """By what is waited for: the worker, and its batch; none while it is made."""
        self.stillborn = 0
        self.tried = self.unopened = 0
        """Objects, and those of them that nothing opened."""
        self.target = open_store(job.target, job.target_options)
        self.seen: set[Any] = set()
        """Workers whose results were found where they belong."""
        kinds = [True] * min(gpu_workers, len(self.waiting)) + [False] * min(workers, len(self.waiting))
        self.wanted = len(kinds)
        self.starting = Waiting(len(kinds), all(kinds), teller(shown))
        for gpu in kinds:
            self.hire(gpu)

    def hire(self, gpu: bool) -> None:
        worker = Worker.options(num_gpus=1 if gpu else 0).remote(self.job, "gpu" if gpu else None)  # type: ignore[attr-defined]
        self.workers.append(worker)
        if gpu:
            self.gpus.add(worker)
        self.flying[worker.ready.remote()] = (worker, None)

    def run(self) -> None:
        try:
            # Who is still being made when all is done is not waited for: there may be no room for him.
            while self.waiting or any(batch for _, batch in self.flying.values()):
                self.step()
        finally:
            for worker in self.workers:
                ray.kill(worker)
        self.progress.end()

    def step(self) -> None:
        ready, _ = ray.wait(list(self.flying), num_returns=1, timeout=None if self.engines else self.starting.seconds)
        if not ready:
            return self.starting.look()
        (ref,) = ready
        worker, batch = self.flying.pop(ref)
        try:
            got = ray.get(ref)
        except LOST as error:
            return self.lost(worker, batch, error)
        if batch is None:
            self.engines[worker], self.stillborn = got, 0
            self.starting.started()
        else:
            self.done(worker, batch, got)
        return self.feed(worker)

    def feed(self, worker: Any) -> None:
        while self.waiting:
            there = [batch for at, batch in self.flying.values() if at is worker and batch]
            if len(there) >= IN_FLIGHT or there and (self.waiting[0].is_suspect or any(batch.is_suspect for batch in there)):
                return
            batch = self.waiting.popleft()
            names = [source.name for source in batch.objects]
            # Before this batch: one that a worker died with may have left results, which are ours.
            ours = frozenset(name for name in names if self.overwrite or self.manifest.is_ours(name))
            batch.intended = frozenset(names) - ours
            self.manifest.intend(sorted(batch.intended))
            self.flying[worker.batch.remote(batch.objects, ours)] = (worker, batch)

    def done(self, worker: Any, batch: _Batch, outcomes: list[Outcome]) -> None:
        there = [(outcome.source, outcome.written) for outcome in outcomes if outcome.written]
        if there and worker not in self.seen:
            self.check_seen(there)
            self.seen.add(worker)
        self.manifest.add(there)
        for outcome in outcomes:
            if outcome.error:
                self.report.fail(outcome.source.name, outcome.error, outcome.fault)
        unreached = [outcome.source.name for outcome in outcomes if not outcome.may_be_there]
        self.manifest.withdraw([name for name in unreached if name in batch.intended])
        size = sum(source.size for source, _ in there)
        self.report.objects += len(there)
        self.report.bytes += size
        self.report.engines[self.engines[worker]] += len(there)
        self.progress.add(len(there), size)
        self.stop_if_all_would_fail(outcomes)

    def stop_if_all_would_fail(self, outcomes: list[Outcome]) -> None:
        """For want of room, or of a key."""
        for outcome in outcomes:
            if outcome.fault is Fault.TARGET:
                number = outcome.errno or 0
                raise OSError(number, f"{os.strerror(number)}; free some or mend it and run again, which goes on with what is left", self.job.target)
        self.tried += len(outcomes)
        self.unopened += sum(outcome.fault is Fault.KEY for outcome in outcomes)
        are_all = self.unopened == self.tried >= SAMPLE and not self.report.before
        if are_all and self.waiting:
            why = f"none of {self.tried} objects, taken from all over it, could be opened, and the others were not tried"
            way_out = "give their keys, or name the folder or prefix of those that you have keys for"
            raise NoKeyFits(f"{shown(self.job.source)}: {why}; {way_out} ({outcomes[0].error})")

    def check_seen(self, there: list[tuple[Object, Written]]) -> None:
        """A folder may be another one on a worker's machine, and what is there nobody's backup."""
        if isinstance(self.target, Bucket):
            return
        for source, written in there:
            name = self.job.result_name(source.name) or ""
            try:
                is_there = self.target.look(name) == replace(written, sha256=None)
            except FileNotFoundError:
                is_there = False
            if not is_there:
                why = "is not there, or is another, as seen from here; mount the same folder on all machines"
                raise Error(f"{self.job.target}: what a worker wrote as {shown(name)} {why}")

    def lost(self, worker: Any, batch: _Batch | None, error: RayError) -> None:
        if batch is None:
            self.stillborn += 1
            if self.stillborn >= TRIES:
                # What it said itself is in the last line; before that Ray says where.
                raise Error(f"no worker can be started: {str(error).strip().splitlines()[-1]}") from error
        else:
            self.again(batch, error)
        # Its other batch comes here too, and it is replaced once.
        if worker in self.workers:
            self.workers.remove(worker)
            self.engines.pop(worker, None)
            self.report.workers_lost += 1
            ray.kill(worker)
        # Who has nothing to do comes first: its processor may be all there is.
        for idle in list(self.engines):
            self.feed(idle)
        if self.waiting and len(self.workers) < self.wanted:
            self.hire(worker in self.gpus)

    def again(self, batch: _Batch, error: RayError) -> None:
        batch.tries, batch.is_suspect = batch.tries + 1, True
        if batch.tries < TRIES:
            self.waiting.appendleft(batch)
        elif len(batch.objects) > 1:
            self.waiting.extendleft(_Batch([source], is_suspect=True) for source in reversed(batch.objects))
        else:
            name = batch.objects[0].name
            self.report.fail(name, f"{shown(name)}: its worker died {TRIES} times; is there too little memory? {str(error).splitlines()[0]}")


def in_order(job: Job, left: list[Object]) -> Iterator[list[Object]]:
    """Batches; when decrypting, first small ones from all over, for keys that open nothing are to be found out soon, and those that open something too."""
    if job.operation == "encrypt" or len(left) <= SAMPLE:
        yield from batches(left)
        return
    first = {number * len(left) // SAMPLE for number in range(SAMPLE)}
    sample = [left[number] for number in sorted(first)]
    for start in range(0, SAMPLE, SAMPLE_BATCH):
        yield from batches(sample[start : start + SAMPLE_BATCH])
    yield from batches([source for number, source in enumerate(left) if number not in first])


def batches(objects: list[Object]) -> Iterator[list[Object]]:
    batch: list[Object] = []
    size = 0
    for source in objects:
        if batch and (len(batch) == BATCH_OBJECTS or size + source.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += source.size
    if batch:
        yield batch


@dataclass(frozen=True)
class Limits:
    """What a run may take and do."""

    workers: int | None
    gpu_workers: int | None
    allow_empty: bool
    overwrite: bool

    def check(self) -> None:
        for name, count in (("workers", self.workers), ("gpu_workers", self.gpu_workers)):
            if count is not None and not isinstance(count, int):
                raise BadArgument(f"{name}: {count!r} is no whole number")
            if count is not None and count < 0:
                raise BadArgument(f"{name}: {count} is not at least 0")
        if self.workers == 0 == self.gpu_workers:
            raise BadArgument("there must be at least one worker")

    def of_cluster(self) -> tuple[int, int]:
        """Workers on processors, and on GPUs."""
        resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = int(resources.get("GPU", 0)) if self.gpu_workers is None else self.gpu_workers
        cpus = max(int(resources.get("CPU", 1)) - gpus, 0 if gpus else 1) if self.workers is None else self.workers
        if cpus + gpus < 1:
            raise BadArgument("there must be at least one worker")
        return cpus, gpus


def work_on(job: Job, manifest: Manifest, report: Report, left: list[Object], limits: Limits, progress: bool) -> None:
    if not ray.is_initialized():
        ray.init()
    driver = Driver(job, manifest, report, left, limits, progress)
    try:
        driver.run()
    except RayError as error:
        raise Error(f"Ray: {error}") from error


def run(job: Job, manifest_path: Any, limits: Limits, progress: bool) -> Report:
    began = time.monotonic()
    report = Report()
    limits.check()
    job.check_arguments()
    source = open_store(job.source, job.source_options)
    if isinstance(source, Folder):
        source.check_there()
    manifest = Manifest(manifest_path, job.made_how())
    try:
        with watched([source, open_store(job.target, job.target_options)], teller(progress)):
            job, left = prepare(job, manifest, report, limits.allow_empty, limits.overwrite)
            if left:
                work_on(job, manifest, report, left, limits, progress)
    finally:
        manifest.close()
    report.seconds = time.monotonic() - began
    return report
