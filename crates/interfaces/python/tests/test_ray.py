"""Data sets on a real local Ray, in folders and in a real S3-compatible store; workers and drivers are killed."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")
obstore = pytest.importorskip("obstore", reason="no obstore: pip install 'bywash[ray]'")

import bywash
import bywash.ray
from bywash.ray._bucket import PART_BYTES
from bywash.ray._objects import Object
from bywash.ray._run import BATCH_OBJECTS, batches
from bywash.ray._work import Job, KeySource

pytestmark = pytest.mark.usefixtures("cluster")

# Some of a batch each, one that is uploaded in parts, an empty one, names that are escaped somewhere.
NAMES = ["empty", "large", "ä b#1 %41+~{x}.txt"] + [f"part-{number % 3}/{number:03}" for number in range(80)]


def text_of(name):
    size = {"empty": 0, "large": 2 * PART_BYTES + 12_345}.get(name, 1000 + len(name) * 7919 % 60_000)
    return random.Random(name).randbytes(size)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "plain"
    for name in NAMES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text_of(name))
    return root


def quick(**more):
    return {"workers": 2, "progress": False, **more}


def records(manifest):
    """What is done; the other lines say what was begun."""
    return [record for record in map(json.loads, Path(manifest).read_text().splitlines()) if "result" in record]


def test_a_folder_and_the_command_reads_it(folder, tmp_path, key_file, command):
    sealed, manifest = tmp_path / "sealed", tmp_path / "manifest"
    (folder / "old.bywash").write_bytes(b"not meant")
    os.symlink("empty", folder / "link")
    os.symlink("part-0", folder / "part-1/link")
    (folder / "none/in it").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (folder / ".bywash-unfinished-1-0").write_bytes(b"cut")
    report = bywash.ray.encrypt(folder, sealed, key_file=key_file, manifest=manifest, **quick()).check()
    assert (report.objects, report.before, report.workers_lost) == (len(NAMES), 0, 0)
    assert report.passed_over == {
        "old.bywash": "encrypted already, by its name",
        "link": "a symbolic link",
        "part-1/link": "a symbolic link",
        "none/in it": "an empty folder",
        "pipe": "a device, pipe or socket",
        ".bywash-unfinished-1-0": "left unfinished by another run",
    }
    assert report.bytes == sum(len(text_of(name)) for name in NAMES) and report.engines == {"cpu": len(NAMES)}
    command("decrypt", "-R", "-k", key_file, "-o", tmp_path / "back", sealed)
    found = {path.relative_to(tmp_path / "back").as_posix(): path for path in (tmp_path / "back").rglob("*") if path.is_file()}
    found = {name.removeprefix("sealed/"): path.read_bytes() for name, path in found.items()}
    assert found == {name: text_of(name) for name in NAMES}
    for record in records(manifest):
        result = (sealed / (record["name"] + ".bywash")).read_bytes()
        assert (len(result), hashlib.sha256(result).hexdigest()) == (record["result"]["size"], record["result"]["sha256"])
    back = tmp_path / "again"
    bywash.ray.decrypt(sealed, back, key_file=key_file, manifest=tmp_path / "manifest2", **quick()).check()
    assert all((back / name).read_bytes() == text_of(name) for name in NAMES)


def test_what_is_done_is_not_done_again_and_what_changed_is(folder, tmp_path, key_file):
    sealed, manifest = tmp_path / "sealed", tmp_path / "manifest"

    def again(**more):
        return bywash.ray.encrypt(folder, sealed, key_file=key_file, manifest=manifest, **quick(**more)).check()

    again()
    # What a line that a crash cut was about is done again.
    text = manifest.read_bytes()
    manifest.write_bytes(text[:-20])
    assert again().objects == 1
    before = {path: path.read_bytes() for path in sealed.rglob("*") if path.is_file()}
    assert (again().objects, again().before) == (0, len(NAMES))
    (folder / "empty").write_bytes(b"no more")
    (sealed / "part-0/003.bywash").unlink()
    (sealed / "part-1/001.bywash").write_bytes(b"spoilt")
    assert again().objects == 3
    changed = {path.name for path, text in before.items() if path.read_bytes() != text}
    assert changed == {"empty.bywash", "003.bywash", "001.bywash"}
    with pytest.raises(bywash.BadArgument, match="another job's"):
        bywash.ray.decrypt(sealed, folder, key_file=key_file, manifest=manifest, **quick())


def test_objects_that_fail_do_not_stop_the_others(folder, tmp_path, key_file):
    sealed, back = tmp_path / "sealed", tmp_path / "back"
    bywash.ray.encrypt(folder, sealed, key_file=key_file, manifest=tmp_path / "manifest", **quick()).check()
    damaged = sealed / "part-2/002.bywash"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    report = bywash.ray.decrypt(sealed, back, key_file=key_file, manifest=tmp_path / "manifest2", **quick())
    assert report.objects == len(NAMES) - 1 and list(report.failed) == ["part-2/002.bywash"]
    assert not (back / "part-2/002").exists()
    with pytest.raises(bywash.ray.Incomplete, match=r"part-2/002\.bywash: .*1 of 83 objects failed"):
        report.check()
    with pytest.raises(bywash.BadArgument, match="workers: -1 is not at least 0"):
        bywash.ray.encrypt(folder, back, key_file=key_file, manifest=tmp_path / "manifest5", workers=-1, gpu_workers=2)
    with pytest.raises(bywash.BadArgument, match="at least one worker"):
        bywash.ray.encrypt(folder, back, key_file=key_file, manifest=tmp_path / "manifest5", workers=0, gpu_workers=0)
    with pytest.raises(FileNotFoundError):
        bywash.ray.encrypt(folder, sealed, key_file=str(tmp_path / "none"), manifest=tmp_path / "manifest3", **quick())
    with pytest.raises(bywash.BadArgument, match="a secret does not go through Ray"):
        bywash.ray.decrypt(sealed, back, identities=["BYWASH-IDENTITY-X25519-abc"], manifest=tmp_path / "manifest4")


def test_names_stay_in_their_folder():
    from bywash.ray._store import checked

    for name in ("../up", "a/../../b", "/etc/passwd", "a//b", "", "."):
        with pytest.raises(bywash.BadArgument, match="cannot be a file's name"):
            checked(name)
    assert checked("a/b..c") == "a/b..c"


def test_batches_are_bounded():
    objects = [Object(str(number), number * 1_000_000, "") for number in range(200)]
    made = list(batches(objects))
    assert [source for batch in made for source in batch] == objects
    assert all(len(batch) <= BATCH_OBJECTS and (len(batch) == 1 or sum(one.size for one in batch) <= 64 << 20) for batch in made)


def fill(store, names):
    for name in names:
        obstore.put(store, name, text_of(name))


def test_a_bucket_and_the_command_reads_it(s3, tmp_path, key_file, command):
    from obstore.store import from_url

    identity = tmp_path / "me.identity"
    recipient = bywash.generate_identity(identity)
    raw, sealed = (from_url(f"s3://lab/bucket-test/{name}", **s3.options) for name in ("raw", "sealed"))
    fill(raw, NAMES)
    options = {"source_options": s3.options, "target_options": s3.options}
    places = ("s3://lab/bucket-test/raw", "s3://lab/bucket-test/sealed")
    make = lambda: bywash.ray.encrypt(*places, recipients=[recipient], manifest=tmp_path / "manifest", **options, **quick()).check()
    assert make().objects == len(NAMES) and make().before == len(NAMES)
    assert b"IDENTITY" not in (tmp_path / "manifest").read_bytes() and s3.SECRET.encode() not in (tmp_path / "manifest").read_bytes()
    for record in records(tmp_path / "manifest"):
        got = obstore.get(sealed, record["name"] + ".bywash")
        data = bytes(got.bytes())
        assert (got.meta["e_tag"].strip('"'), len(data), hashlib.sha256(data).hexdigest()) == tuple(record["result"][key] for key in ("version", "size", "sha256"))
        assert command("decrypt", "-i", identity, stdin=data) == text_of(record["name"])
    assert "-" in next(record["result"]["version"] for record in records(tmp_path / "manifest") if record["name"] == "large"), "no upload in parts"
    # From the bucket to a folder, and from a folder to the bucket.
    back = tmp_path / "back"
    bywash.ray.decrypt(places[1], back, identities=[identity], manifest=tmp_path / "manifest2", source_options=s3.options, **quick()).check()
    assert all((back / name).read_bytes() == text_of(name) for name in NAMES)
    # A new version in the bucket is seen by its tag, and done again under the same name.
    obstore.put(raw, "empty", b"full")
    assert make().objects == 1
    assert bywash.decrypt(bytes(obstore.get(sealed, "empty.bywash").bytes()), identities=[identity]) == b"full"


def test_a_damaged_object_is_never_seen_decrypted(s3, tmp_path, key_file):
    from obstore.store import from_url

    store = from_url("s3://lab/damage-test/sealed", **s3.options)
    large = bytearray(bywash.encrypt(bytes(3 * PART_BYTES), key_file=key_file))
    large[-1] ^= 1
    obstore.put(store, "large.bywash", bytes(large))
    options = {"source_options": s3.options, "target_options": s3.options}
    report = bywash.ray.decrypt("s3://lab/damage-test/sealed", "s3://lab/damage-test/back", key_file=key_file, manifest=tmp_path / "m", **options, **quick())
    assert "chunk 383" in report.failed["large.bywash"]
    assert [meta for page in obstore.list(from_url("s3://lab/damage-test/back", **s3.options)) for meta in page] == []


def workers():
    """The processes of the resident workers, by the name that Ray gives them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes().startswith(b"ray::Worker"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def many(root, count):
    root.mkdir()
    for number in range(count):
        (root / f"{number:04}").write_bytes(random.Random(number).randbytes(300_000))
    return {f"{number:04}": random.Random(number).randbytes(300_000) for number in range(count)}


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(tmp_path, key_file, command):
    texts = many(tmp_path / "plain", 400)
    sealed, manifest, over, killed = tmp_path / "sealed", tmp_path / "manifest", threading.Event(), []

    def kill():
        while not over.is_set() and len(killed) < 3:
            busy = workers()
            if manifest.exists() and manifest.read_bytes().count(b"\n") > 40 * (len(killed) + 1) and busy:
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])
            time.sleep(0.02)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        report = bywash.ray.encrypt(tmp_path / "plain", sealed, key_file=key_file, manifest=manifest, **quick()).check()
    finally:
        over.set()
        thread.join()
    assert killed and report.workers_lost >= 1, "no worker was killed: the data set is too small for this machine"
    assert report.objects == len(texts) and len({record["name"] for record in records(manifest)}) == len(texts)
    command("decrypt", "-R", "-k", key_file, "-o", tmp_path / "back", sealed)
    back = {path.name: path.read_bytes() for path in (tmp_path / "back").rglob("*") if path.is_file()}
    assert back == texts
    assert not [path for path in sealed.iterdir() if path.suffix != ".bywash"], "drafts of the dead"


@pytest.mark.parametrize(("poison", "wanted"), [("0002", 1), ("0003", 3)])
def test_an_object_that_kills_its_workers_is_reported_and_costs_no_other(poison, wanted, tmp_path, key_file, monkeypatch):
    """The first of its batch, before one that its worker would have done, or the last; with more workers, too, than there are processors for."""
    import ray

    from bywash.ray import _run

    class Poisoned(_run.Work):
        def __init__(self, job, engine):
            super().__init__(job, engine)

        def ready(self):
            return "cpu"

        def batch(self, objects, ours):
            if any(source.name == poison for source in objects):
                os._exit(1)
            return super().batch(objects, ours)

    texts = many(tmp_path / "plain", 6)
    monkeypatch.setattr(_run, "Worker", ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Poisoned))
    monkeypatch.setattr(_run, "BATCH_OBJECTS", 2)
    report = bywash.ray.encrypt(tmp_path / "plain", tmp_path / "sealed", key_file=key_file, manifest=tmp_path / "manifest", workers=wanted, progress=False)
    assert list(report.failed) == [poison] and "its worker died 3 times" in report.failed[poison]
    assert report.objects == len(texts) - 1 and report.workers_lost >= 3
    assert {path.name for path in (tmp_path / "sealed").iterdir()} == {name + ".bywash" for name in texts if name != poison}


def test_a_driver_that_is_killed_goes_on_where_it_was(s3, tmp_path, key_file):
    from obstore.store import from_url

    texts = many(tmp_path / "plain", 300)
    manifest = tmp_path / "manifest"
    arguments = ["encrypt", str(tmp_path / "plain"), "s3://lab/driver-test", "-m", str(manifest), "-k", key_file, "--workers", "2", "--store", json.dumps(s3.options)]
    environment = {**os.environ, "RAY_ADDRESS": __import__("ray").get_runtime_context().gcs_address}

    def start():
        return subprocess.Popen([sys.executable, "-m", "bywash.ray", *arguments], env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)

    first = start()
    deadline = time.monotonic() + 60
    while not (manifest.exists() and manifest.read_bytes().count(b"\n") > 30):
        assert first.poll() is None and time.monotonic() < deadline, first.stderr.read().decode()
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait(30)
    first.stderr.close()
    done = len(records(manifest))
    assert 0 < done < len(texts), "it was over before it was killed"
    second = start()
    told = second.communicate(timeout=120)[1].decode()
    assert second.returncode == 0, told
    before = int(told.split("; ")[1].split()[0])
    assert done <= before < len(texts) and f"{len(texts) - before} objects" in told, told
    store = from_url("s3://lab/driver-test", **s3.options)
    assert {meta["path"] for page in obstore.list(store) for meta in page} == {name + ".bywash" for name in texts}
    for name in list(texts)[::20]:
        assert bywash.decrypt(bytes(obstore.get(store, name + ".bywash").bytes()), key_file=key_file) == texts[name]


def test_two_runs_do_not_share_a_manifest(tmp_path):
    from bywash.ray._manifest import Manifest

    first = Manifest(tmp_path / "manifest", {"operation": "encrypt"})
    with pytest.raises(bywash.BadArgument, match="another run writes to it"):
        Manifest(tmp_path / "manifest", {"operation": "encrypt"})
    first.close()
    Manifest(tmp_path / "manifest", {"operation": "encrypt"}).close()


def test_memory_of_a_worker_is_bounded(s3, tmp_path, key_file):
    """An object of 200 MiB passes through a worker that never holds more than some parts of it."""
    import ray
    from obstore.store import from_url

    from bywash.ray._work import Work

    size = 200 << 20
    obstore.put(from_url("s3://lab/memory-test/raw", **s3.options), "huge", iter([bytes(PART_BYTES)] * (size // PART_BYTES)))
    keys = KeySource(key_file=key_file)
    job = Job("encrypt", "s3://lab/memory-test/raw", "s3://lab/memory-test/sealed", keys, s3.options, s3.options, proofs=keys.proofs())

    @ray.remote(num_cpus=1)
    def held():
        import resource

        work = Work(job, None)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        [outcome] = work.batch(list(work.source.list()))
        assert outcome.error is None, outcome.error
        return outcome.written.size, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024

    written, grown = ray.get(held.remote())
    assert written > size and grown < 120 << 20, f"{grown >> 20} MiB"


def test_gpu_workers_use_the_gpu_or_else_their_processor(folder, tmp_path, key_file):
    """Ray is told of a GPU whether or not there is one."""
    engine = "gpu" if "gpu" in {engine["name"] for engine in bywash.engines()["present"]} else "cpu"
    report = bywash.ray.encrypt(folder, tmp_path / "sealed", key_file=key_file, manifest=tmp_path / "manifest", workers=0, gpu_workers=1, progress=False).check()
    assert report.engines == {engine: len(NAMES)}
    for name in NAMES:
        assert bywash.decrypt((tmp_path / "sealed" / (name + ".bywash")).read_bytes(), key_file=key_file) == text_of(name)
