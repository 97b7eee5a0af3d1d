"""What goes wrong for all objects at once, or by somebody else's doing: keys, room, workers, other runs. Each is said once, with the way out."""

import errno
import os

import pytest

ray = pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")

import bywash
import bywash.ray
from bywash.ray import _faults, _run, _waiting
from bywash.ray.__main__ import tell
from bywash.ray._manifest import Manifest
from bywash.ray._report import Report
from bywash.ray._waiting import Waiting
from bywash.ray._work import Job, KeySource, Work

pytestmark = pytest.mark.usefixtures("cluster")


def as_worker(monkeypatch, kind):
    """Workers of a kind of the test's own; it inherits from `Work`."""
    monkeypatch.setattr(_run, "Worker", ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(kind))


@pytest.fixture
def sealed(tmp_path, key_file):
    """100 objects that `key_file` opens."""
    root = tmp_path / "many"
    root.mkdir()
    for number in range(100):
        bywash.encrypt(str(number).encode(), root / f"{number:03}.bywash", key_file=key_file)
    return root


@pytest.fixture
def other_key(tmp_path):
    bywash.generate_key_file(tmp_path / "other")
    return str(tmp_path / "other")


def opened(sealed, tmp_path, **changes):
    given = {"manifest": tmp_path / "back.manifest", "workers": 2, "progress": False}
    return bywash.ray.decrypt(sealed, tmp_path / "back", **{**given, **changes})


def ours(told):
    """What Ray says itself is left out."""
    return [line for line in told.splitlines() if line.startswith("bywash: ")]


def test_few_objects_are_all_tried(sealed, tmp_path, other_key):
    for path in sorted(sealed.iterdir())[32:]:
        path.unlink()
    report = opened(sealed, tmp_path, key_file=other_key)
    assert len(report.failed) == 32 and report.exit_code == 7


def test_without_a_key_nothing_is_begun(sealed, tmp_path):
    with pytest.raises(bywash.BadArgument, match=r"nothing could be opened: give identities \(-i\)"):
        opened(sealed, tmp_path)
    assert not (tmp_path / "back.manifest").exists() and not (tmp_path / "back").exists()


def test_keys_that_open_nothing_end_the_run_early(sealed, tmp_path, other_key, key_file, of_command):
    with pytest.raises(bywash.NoKeyFits, match=r"many: none of (3[2-9]|[4-6]\d) objects, taken from all over it, could be opened, and the others were not tried"):
        opened(sealed, tmp_path, key_file=other_key)
    code, told = of_command("decrypt", sealed, tmp_path / "back", "-k", other_key, "-m", tmp_path / "back.manifest", "--quiet")
    assert code == 7 and len(ours(told)) == 1 and "give their keys, or name the folder" in told, told
    assert opened(sealed, tmp_path, key_file=key_file).check().objects == 100, "with the right one it goes on"


def test_objects_for_others_stop_nobody(sealed, tmp_path, other_key, key_file, of_command):
    """Even if they are nearly all, and come first; what is said of them is short."""
    for number in range(100):
        if number < 88:
            bywash.encrypt(b"theirs", sealed / f"{number:03}.bywash", key_file=other_key, overwrite=True)
    arguments = ("decrypt", sealed, tmp_path / "back", "-k", key_file, "-m", tmp_path / "manifest", "--quiet")
    code, told = of_command(*arguments)
    assert code == 7 and len(ours(told)) == 12 and "and 78 more for a like cause (key); -v names them" in told, told
    assert ours(told)[0].count(".bywash") == 1, "its name is said once"
    code, told = of_command(*arguments, "-v")
    assert code == 7 and told.count("none of the keys given opens it") == 88
    assert (tmp_path / "back/099").read_bytes() == b"99"


def test_damage_has_the_commands_exit_code(sealed, tmp_path, key_file):
    (sealed / "007.bywash").write_bytes((sealed / "007.bywash").read_bytes()[:-1])
    report = opened(sealed, tmp_path, key_file=key_file)
    assert report.exit_code == 8 and report.faults == {"007.bywash": bywash.ray.Fault.DAMAGE} and report.objects == 99
    assert Report().exit_code == 0


@pytest.mark.parametrize(("number", "free"), [(errno.ENOSPC, 0), (errno.EROFS, 1 << 40), (errno.EDQUOT, 1 << 40)])
def test_a_target_that_takes_nothing_ends_the_run_and_is_named(number, free, seal, tmp_path, monkeypatch):
    class Full(_run.Work):
        def __init__(self, job, engine):
            super().__init__(job, engine)
            _faults._free_bytes = lambda folder: free

        def ready(self):
            return "cpu"

        def batch(self, objects, ours):
            return super().batch(objects, ours)

        def _transform(self, source, *_):
            raise OSError(number, os.strerror(number), f"/the/source/{source.name}")

    as_worker(monkeypatch, Full)
    with pytest.raises(OSError, match="free some or mend it and run again, which goes on with what is left") as raised:
        seal()
    assert (raised.value.errno, raised.value.filename) == (number, str(tmp_path / "sealed"))
    assert _faults.exit_code(raised.value) == (4 if number == errno.EROFS else 1)
    monkeypatch.undo()
    assert seal().check().objects == 3


def test_what_has_no_room_for_one_object_may_have_it_for_the_next(plain, tmp_path, key_file, monkeypatch):
    keys = KeySource(key_file=key_file)
    work = Work(Job("encrypt", str(plain), str(tmp_path), keys, proofs=keys.proofs()), None)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(plain / "one"))

    monkeypatch.setattr(work, "_transform", full)
    (outcome,) = work.batch([found for found in work.source.list() if found.name == "one"])
    assert outcome.error == f"one: No space left on device ({tmp_path})" and outcome.fault is bywash.ray.Fault.OBJECT


def test_a_manifest_that_cannot_be_written_is_named(seal, tmp_path, monkeypatch):
    def fsync(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="what is done cannot be written down here") as raised:
        seal()
    assert raised.value.filename == str(tmp_path / "manifest")


def test_two_first_runs_in_one_folder_replace_nothing_of_each_other(seal, tmp_path, monkeypatch):
    def prepare(*given):
        done = really(*given)
        (tmp_path / "sealed/one.bywash").write_text("the other's")
        return done

    really = _run.prepare
    monkeypatch.setattr(_run, "prepare", prepare)
    for _ in range(2):
        report = seal()
        assert report.objects + report.before == 2 and report.failed["one"].startswith("one: its result's name is taken at the target")
        assert report.faults == {"one": bywash.ray.Fault.TAKEN} and (tmp_path / "sealed/one.bywash").read_text() == "the other's"
    monkeypatch.undo()
    assert seal(overwrite=True).check().objects == 1


def test_what_a_killed_run_had_put_is_completed(seal, tmp_path):
    """It had not written down that it was done, but that it would be."""
    seal().check()
    lines = (tmp_path / "manifest").read_text().splitlines(keepends=True)
    (tmp_path / "manifest").write_text("".join(line for line in lines if '"result"' not in line))
    assert seal().check().objects == 3
    # Of what it had not even begun, what is there is somebody else's.
    (tmp_path / "manifest").write_text(lines[0])
    (tmp_path / "sealed/a/two.bywash").unlink()
    report = seal()
    assert report.objects == 1 and sorted(report.failed) == ["a/b/three", "one"]


def dying(is_late):
    """Workers that die with a batch: before anything is put, or after, if none of it was ours before."""

    class Dying(_run.Work):
        def __init__(self, job, engine):
            super().__init__(job, engine)

        def ready(self):
            return "cpu"

        def batch(self, objects, ours):
            done = super().batch(objects, ours) if is_late else None
            if not (is_late and ours):
                os._exit(1)
            return done

    return Dying


def test_what_a_dead_worker_had_put_is_completed(seal, tmp_path, monkeypatch):
    as_worker(monkeypatch, dying(is_late=True))
    report = seal().check()
    assert (report.objects, report.workers_lost) == (3, 1)


def test_a_stranger_that_was_there_before_a_try_stays_whatever_ends_that(seal, plain, tmp_path, monkeypatch):
    seal().check()
    (plain / "new").write_text("new")
    (plain / "free").write_text("free")
    (tmp_path / "sealed/new.bywash").write_text("a stranger's")
    as_worker(monkeypatch, dying(is_late=False))
    report = seal()
    assert report.faults["new"] is bywash.ray.Fault.TAKEN and "its worker died" in report.failed["free"]
    monkeypatch.undo()
    report = seal()
    assert report.objects == 1 and report.faults == {"new": bywash.ray.Fault.TAKEN}
    assert (tmp_path / "sealed/new.bywash").read_text() == "a stranger's"
    assert seal(overwrite=True).check().objects == 1


def failing(is_late):
    """Workers whose objects all fail, before anything is put or after."""

    class Failing(_run.Work):
        def __init__(self, job, engine):
            super().__init__(job, engine)

        def ready(self):
            return "cpu"

        def batch(self, objects, ours):
            return super().batch(objects, ours)

        def _transform(self, *given):
            if is_late:
                super()._transform(*given)
            raise PermissionError(errno.EACCES, "Permission denied")

    return Failing


def test_names_of_what_failed_before_it_was_put_are_not_ours(seal, tmp_path, monkeypatch):
    as_worker(monkeypatch, failing(is_late=False))
    assert len(seal().failed) == 3
    monkeypatch.undo()
    (tmp_path / "sealed/one.bywash").write_text("a stranger's")
    report = seal()
    assert report.objects == 2 and report.faults == {"one": bywash.ray.Fault.TAKEN}
    assert (tmp_path / "sealed/one.bywash").read_text() == "a stranger's"


def test_what_failed_after_it_was_put_is_completed(seal, tmp_path, monkeypatch):
    as_worker(monkeypatch, failing(is_late=True))
    assert len(seal().failed) == 3 and (tmp_path / "sealed/one.bywash").exists()
    # And stays ours, should the next try fail sooner.
    as_worker(monkeypatch, failing(is_late=False))
    assert len(seal().failed) == 3
    monkeypatch.undo()
    assert seal().check().objects == 3


def test_the_last_line_says_how_many_workers_died(capsys):
    tell(Report(workers_lost=2), verbose=False)
    assert "; workers that died: 2" in capsys.readouterr().err


def test_a_run_that_was_refused_leaves_no_manifest(seal, tmp_path):
    seal().check()
    with pytest.raises(bywash.BadArgument, match="are there already"):
        seal(manifest=tmp_path / "second")
    assert not (tmp_path / "second").exists()
    # What somebody made for it stays.
    (tmp_path / "second").touch()
    with pytest.raises(bywash.BadArgument, match="are there already"):
        seal(manifest=tmp_path / "second")
    assert (tmp_path / "second").exists()


def test_a_manifest_that_was_taken_away_meanwhile_is_not_written_to(tmp_path, monkeypatch):
    manifest = Manifest(tmp_path / "manifest", {})
    os.unlink(tmp_path / "manifest")
    with pytest.raises(bywash.BadArgument, match="another run writes to it"):
        manifest._lock()
    manifest.close()


def test_waiting_for_a_worker_is_told_of(seal, monkeypatch, capsys):
    """All processors are another program's for a while."""

    @ray.remote(num_cpus=2)
    class Other:
        def here(self):
            return True

    other = Other.remote()
    ray.get(other.here.remote())
    really = Waiting.look

    def look(self):
        really(self)
        ray.kill(other)

    monkeypatch.setattr(Waiting, "look", look)
    monkeypatch.setattr(_waiting, "FIRST_S", 0.5)
    assert seal(progress=True, gpu_workers=0).check().objects == 3
    told = capsys.readouterr().err
    assert "there is no worker yet: 1 asked for, each with 1 CPU; Ray's cluster has 2 CPU (0 free); waiting until there is room" in told


def test_a_cluster_that_can_never_have_a_worker_is_an_error(monkeypatch):
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"memory": 1.0})
    monkeypatch.setattr(ray, "available_resources", dict)
    told = []
    waiting = Waiting(3, False, told.append)
    waiting.look()
    assert "3 asked for, each with 1 CPU; Ray's cluster has 0 CPU (0 free), on which none can start; waiting 295 s more in case it grows" in told[0]
    waiting.started()
    waiting.look()
    assert told[0] == told[1], "it begins anew where a worker was there in between"
    monkeypatch.setattr(_waiting, "NEVER_S", 0)
    with pytest.raises(bywash.Error, match="on which none can start; start Ray with a CPU, or name another cluster in RAY_ADDRESS"):
        waiting.look()
    with pytest.raises(bywash.Error, match="with a GPU"):
        monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 4.0})
        Waiting(1, True, told.append).look()


def test_no_result_replaces_what_keys_are_read_from(seal, tmp_path, key_file):
    """Nor the manifest; by whatever name they are given."""
    sealed, target = tmp_path / "in", tmp_path / "t3"
    sealed.mkdir()
    target.mkdir()
    bywash.encrypt(b"a result", sealed / "id.bywash", key_file=key_file)
    os.rename(key_file, target / "id")
    secret = (target / "id").read_bytes()
    (tmp_path / "link").symlink_to(target / "id")
    os.link(target / "id", tmp_path / "hard link")
    for given in (target / "id", tmp_path / "link", tmp_path / "hard link"):
        with pytest.raises(bywash.BadArgument, match="t3/id: it is .*, which this run reads, and is not replaced by a result; name another target"):
            bywash.ray.decrypt(sealed, target, key_file=given, manifest=tmp_path / "m", overwrite=True, progress=False)
    assert (target / "id").read_bytes() == secret and not (tmp_path / "m").exists()
    os.rename(target / "id", key_file)
    (target / "id").symlink_to(key_file)
    report = bywash.ray.decrypt(sealed, target, key_file=target / "id", manifest=tmp_path / "m", overwrite=True, workers=1, progress=False)
    assert "which this run reads" in report.failed["id.bywash"] and (target / "id").is_symlink()
    (target / "id").unlink()
    with pytest.raises(bywash.BadArgument, match="which this run reads"):
        bywash.ray.decrypt(sealed, target, key_file=key_file, manifest=target / "id", overwrite=True, progress=False)


def test_a_worker_keeps_the_files_of_its_own_machine(tmp_path, key_file, plain):
    recipient = bywash.generate_identity(tmp_path / "identity")
    (tmp_path / "sealed").mkdir()
    (tmp_path / "sealed/one.bywash").write_text(recipient)
    keys = KeySource((recipient,), (), key_file, None, (str(tmp_path / "sealed/one.bywash"),))
    work = Work(Job("encrypt", str(plain), str(tmp_path / "sealed"), keys, proofs=keys.proofs()), None)
    outcomes = {outcome.source.name: outcome for outcome in work.batch(list(work.source.list()), frozenset({"one", "a/two", "a/b/three"}))}
    assert "which this run reads" in outcomes["one"].error and outcomes["a/two"].written
    assert (tmp_path / "sealed/one.bywash").read_text() == recipient
