"""Which objects are meant, which of them are done, and which are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import BadArgument, Error
from ._bucket import Bucket
from ._faults import Fault, Taken
from ._kept import Kept
from ._manifest import Manifest
from ._objects import Object, PassedOver, Unread, shown
from ._report import Empty, Report, counted
from ._store import Folder, open_store
from ._work import Job


def find_meant(job: Job, report: Report, manifest: Path) -> dict[str, Object]:
    """What is at the source, by the names of the results."""
    source, target = open_store(job.source, job.source_options), open_store(job.target, job.target_options)
    by_name = "encrypted already, by its name" if job.operation == "encrypt" else "not encrypted, by its name"
    own = _name_in(source, manifest)
    meant: dict[str, Object] = {}
    for found in source.list(target if isinstance(target, Folder) else None):
        if isinstance(found, Unread):
            report.fail(found.name, f"{shown(found.name)}: it could not be looked at: {found.why}", Fault.PERMISSION)
        elif isinstance(found, PassedOver):
            report.passed_over[found.name] = found.why
        elif found.name == own:
            report.passed_over[found.name] = "the manifest of this run"
        elif name := job.result_name(found.name):
            meant[name], other = _only(source, meant.get(name), found)
            report.passed_over.update({other.name: other.why} if other else {})
        else:
            report.passed_over[found.name] = by_name
    return meant


def _name_in(source: Folder | Bucket, path: Path) -> str | None:
    root = source.root.resolve() if isinstance(source, Folder) else None
    return path.resolve().relative_to(root).as_posix() if root and path.resolve().is_relative_to(root) else None


def find_left(meant: Mapping[str, Object], there: Mapping[str, Object], manifest: Manifest, report: Report) -> list[Object]:
    """What is to be done, by name: what no manifest knows, what has changed since, and what is not there any more."""
    left = []
    for name, source in meant.items():
        known, written = manifest.done.get(source.name, (None, None))
        result = there.get(name)
        if known == source and written and result and (result.size, result.version) == (written.size, written.version):
            report.before += 1
        else:
            left.append(source)
    report.gone = len(manifest.done.keys() - {source.name for source in meant.values()})
    return sorted(left, key=lambda source: source.name)


def _only(store: Folder | Bucket, other: Object | None, found: Object) -> tuple[Object, PassedOver | None]:
    """Of two with one name the one that has it."""
    if other is None or other == found:
        return found, None
    assert isinstance(store, Bucket), "names are unique in a folder"
    return store.told_apart(other, found)


def find_there(job: Job) -> dict[str, Object]:
    """What is at the target."""
    target = open_store(job.target, job.target_options)
    if isinstance(target, Folder) and not target.root.exists():
        return {}
    there: dict[str, Object] = {}
    for found in target.list():
        if isinstance(found, Object):
            there[found.name], _ = _only(target, there.get(found.name), found)
    return there


def refuse_taken(job: Job, there: Mapping[str, Object], left: list[Object], manifest: Manifest, report: Report) -> list[Object]:
    """What can be done without replacing what the manifest does not know; written down as begun, it would be replaced by the next run."""
    free = []
    for source in left:
        if job.result_name(source.name) in there and not manifest.is_ours(source.name):
            report.fail(source.name, f"{shown(source.name)}: {Taken()}", Fault.TAKEN)
        else:
            free.append(source)
    return free


def check_kept(job: Job, there: Mapping[str, Object], left: list[Object]) -> None:
    """What keys are read from, and the manifest, are no results, nor replaced by any. Workers look again, for links and on their machines."""
    target = open_store(job.target, job.target_options)
    if isinstance(target, Folder):
        kept = Kept([*job.keys.files(), *job.kept])
        for name in map(job.result_name, (source.name for source in left)):
            if name and name in there:
                kept.check(target.path(name))


def make_target(job: Job) -> None:
    source, target = open_store(job.source, job.source_options), open_store(job.target, job.target_options)
    if isinstance(target, Folder):
        target.make(source if isinstance(source, Folder) else None)


def prepare(job: Job, manifest: Manifest, report: Report, allow_empty: bool, overwrite: bool) -> tuple[Job, list[Object]]:
    """The job with what workers need to know, and what is to be done. Nothing is written before all that can be refused was."""
    meant = find_meant(job, report, manifest.path)
    if not (meant or report.failed or allow_empty):
        passed_over = f" ({counted(report.passed_over)})" if report.passed_over else ""
        way_out = "is it the right one, and mounted? --allow-empty (allow_empty) takes it as it is"
        raise Empty(f"{job.source}: there is nothing to {job.operation}{passed_over}; {way_out}")
    there = find_there(job)
    if manifest.done and not overwrite and not any(job.result_name(name) in there for name in manifest.done):
        why = f"none of the {len(manifest.done):,} results that {manifest.path} knows of is there; is it the right one, and mounted?"
        raise Error(f"{job.target}: {why} --force (overwrite) makes all of them again")
    left = find_left(meant, there, manifest, report)
    job = replace(job, kept=(str(manifest.path.absolute()),))
    check_kept(job, there, left)
    if manifest.proofs is None:
        strangers = sorted(meant.keys() & there.keys())
        if strangers and not overwrite:
            why = f"{len(strangers):,} of the results are there already, such as {shown(strangers[0])}, and {manifest.path} knows of none"
            raise BadArgument(f"{job.target}: {why}; name their manifest or another target, or replace them with --force (overwrite)")
        manifest.begin(job.keys.proofs() if job.operation == "encrypt" else {})
    elif job.operation == "encrypt":
        job.keys.check(manifest.proofs)
    if not overwrite:
        left = refuse_taken(job, there, left, manifest, report)
    make_target(job)
    assert manifest.proofs is not None, "it has begun"
    return replace(job, proofs=manifest.proofs), left
