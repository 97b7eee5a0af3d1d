"""What a backup must not do on a cluster: leave something out unsaid, take the wrong thing for the right one, replace or show what is nobody's business."""

import io
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")

import bywash
import bywash.ray
from bywash.ray import _run, _work
from bywash.ray._bucket import _Stream
from bywash.ray._objects import Object, Written, shown
from bywash.ray._store import Folder
from bywash.ray._work import Job, KeySource, Work

pytestmark = pytest.mark.usefixtures("cluster")


def job_of(plain, target, key_file):
    keys = KeySource(key_file=key_file)
    return Job("encrypt", str(plain), str(target), keys, proofs=keys.proofs())


def test_a_source_that_is_not_there_is_no_empty_one(seal, plain, tmp_path, key_file, of_command):
    with pytest.raises(FileNotFoundError, match="no such folder; is the disk or share that it is on mounted"):
        seal(source=tmp_path / "nope")
    with pytest.raises(NotADirectoryError, match="name the folder that it is in"):
        seal(source=plain / "one")
    (tmp_path / "empty").mkdir()
    with pytest.raises(bywash.ray.Empty, match="nothing to encrypt; is it the right one, and mounted"):
        seal(source=tmp_path / "empty")
    with pytest.raises(bywash.ray.Empty, match=r"nothing to decrypt \(3 passed over \(not encrypted, by its name: 3\)\)"):
        bywash.ray.decrypt(plain, tmp_path / "back", key_file=key_file, manifest=tmp_path / "manifest2", progress=False)
    assert not (tmp_path / "sealed").exists() and not (tmp_path / "back").exists(), "nothing is made for nothing"
    assert seal(source=tmp_path / "empty", allow_empty=True, manifest=tmp_path / "manifest3").objects == 0
    for wrong, said in [
        ((tmp_path / "nope",), f"bywash: {tmp_path}/nope: there is no such folder"),
        ((plain / "one",), f"bywash: {plain}/one: it is no folder"),
        ((tmp_path / "empty",), "--allow-empty"),
    ]:
        code, told = of_command("encrypt", *wrong, tmp_path / "sealed", "-k", key_file, "-m", tmp_path / "manifest4")
        assert code == 1 and said in told, told


def test_a_share_that_is_gone_is_seen_after_a_good_run(seal, plain):
    assert seal().check().objects == 3
    (plain / "one").unlink()
    assert (seal().before, seal().gone) == (2, 1)
    shutil.rmtree(plain / "a")
    with pytest.raises(bywash.ray.Empty):
        seal()


def test_a_target_that_is_gone_is_not_made_again_elsewhere(seal, tmp_path):
    seal().check()
    (tmp_path / "sealed").rename(tmp_path / "not mounted")
    for _ in range(2):
        with pytest.raises(bywash.Error, match="none of the 3 results that .*manifest knows of is there; is it the right one, and mounted"):
            seal()
        (tmp_path / "sealed").mkdir(exist_ok=True)
    assert seal(overwrite=True).check().objects == 3


def test_what_is_passed_over_is_counted_and_named(plain, tmp_path, key_file, of_command):
    os.symlink("one", plain / "link")
    os.symlink("a", plain / "to a folder")
    (plain / "none").mkdir()
    (plain / ".bywash-folder").write_text("of a volume, which is nothing without it")
    arguments = ("encrypt", plain, tmp_path / "sealed", "-k", key_file, "-m", tmp_path / "manifest")
    code, told = of_command(*arguments)
    assert code == 0 and "3 passed over (a symbolic link: 2, an empty folder: 1), -v names them" in told, told
    code, told = of_command(*arguments, "-v")
    assert code == 0 and "bywash: to a folder: passed over: a symbolic link\n" in told and "bywash: none: passed over: an empty folder\n" in told, told
    assert (tmp_path / "sealed/.bywash-folder.bywash").exists()


def test_what_cannot_be_looked_into_is_a_failure(seal, plain, monkeypatch):
    really = os.scandir

    def scandir(folder):
        if Path(folder) == plain / "a/b":
            raise PermissionError(13, "Permission denied", str(folder))
        return really(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    report = seal()
    assert report.objects == 2 and report.failed == {"a/b": "a/b: it could not be looked at: Permission denied"}
    with pytest.raises(bywash.ray.Incomplete):
        report.check()


def test_a_file_that_is_no_manifest_stays_as_it_is(seal, plain, tmp_path, key_file):
    """Without a newline at its end it looked like a line that a crash cut."""
    before = Path(key_file).read_bytes()
    (tmp_path / "letter").write_text("dear all,\nno newline")
    for wrong in (key_file, tmp_path / "letter"):
        with pytest.raises(bywash.BadArgument, match="it is no manifest, and stays as it is"):
            seal(manifest=wrong)
    assert Path(key_file).read_bytes() == before and (tmp_path / "letter").read_text().endswith("no newline")
    # The head that a crash cut is one.
    (tmp_path / "manifest").write_bytes(b'{"bywash_mani')
    assert seal().check().objects == 3
    text = (tmp_path / "manifest").read_text()
    (tmp_path / "manifest").write_text(text.replace('"sha256"', '"sha1"'))
    with pytest.raises(bywash.BadArgument, match="manifest:3: it is no line of a manifest"):
        seal()
    report = seal(manifest=plain / "manifest", target=tmp_path / "other")
    assert report.objects == 3 and report.passed_over == {"manifest": "the manifest of this run"}
    assert (plain / "manifest").stat().st_mode & 0o777 == 0o600


def test_what_is_done_for_one_key_is_not_done_for_another(seal, tmp_path, key_file):
    seal().check()
    recipient = bywash.generate_identity(tmp_path / "identity")
    with pytest.raises(bywash.BadArgument, match=r"another job's \(recipients is \[\] and not \['bywash-x25519-"):
        seal(recipients=[recipient])
    (tmp_path / "passphrase").write_text("sesame")
    with pytest.raises(bywash.BadArgument, match=r"another job's \(secrets is \['key_file'\] and not \['passphrase_file'\]"):
        seal(key_file=None, passphrase_file=tmp_path / "passphrase")
    with pytest.raises(bywash.BadArgument, match="another job's .*aead"):
        seal(aead="chacha20-poly1305")
    assert seal().before == 3
    Path(key_file).write_bytes(bytes(range(32)))
    with pytest.raises(bywash.BadArgument, match="it is not what the other results are made with"):
        seal()


def test_wrong_arguments_are_said_once(seal):
    for wrong, said in [({"key_file": None}, "nobody could open it"), ({"aead": "rot13"}, "'rot13' is none of"), ({"chunk_size": 5}, "chunk_size: 5 is not from")]:
        with pytest.raises(bywash.BadArgument, match=said):
            seal(**wrong)


def test_a_worker_whose_machine_has_another_key_does_nothing(plain, tmp_path, key_file):
    job = job_of(plain, tmp_path, key_file)
    Path(key_file).write_bytes(bytes(range(32)))
    with pytest.raises(bywash.BadArgument, match="it is not what the other results are made with"):
        Work(job, None)


def test_a_worker_whose_machine_has_another_folder_is_found_out(seal, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    class Lost(_run.Work):
        def __init__(self, job, engine):
            super().__init__(replace(job, target=str(elsewhere)), engine)

        def ready(self):
            return "cpu"

        def batch(self, objects, ours):
            return super().batch(objects, ours)

    monkeypatch.setattr(_run, "Worker", ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Lost))
    with pytest.raises(bywash.Error, match=r"what a worker wrote as a/b/three\.bywash is not there.*mount the same folder on all machines"):
        seal()
    elsewhere.rename(tmp_path / "not mounted")
    with pytest.raises(bywash.Error, match=r"no worker can be started: FileNotFoundError: .* is the disk or share that it is on mounted here\?: '.*/elsewhere'$"):
        seal()
    monkeypatch.undo()
    assert seal().check().objects == 3, "and was not taken for done"


def test_a_first_run_replaces_nothing(seal, tmp_path):
    seal().check()
    with pytest.raises(bywash.BadArgument, match=r"3 of the results are there already, such as a/b/three\.bywash"):
        seal(manifest=tmp_path / "manifest2")
    assert seal(manifest=tmp_path / "manifest2", overwrite=True).check().objects == 3


def test_what_is_written_to_while_it_is_read_is_not_uploaded(plain, tmp_path, key_file, monkeypatch):
    class Store:
        ended = []

        def write(self, name, write, checksum, may_replace, size, putting):
            assert size == (plain / name.removesuffix(".bywash")).stat().st_size
            write(io.BytesIO())
            self.ended.append(name)
            return Written(1, "", None)

    def meddling(source, *rest, **more):
        done = really(source, *rest, **more)
        if source.name == "one":
            source.write_text("ONE")
        return done

    really = _work.encrypt_to
    monkeypatch.setattr(_work, "encrypt_to", meddling)
    work = Work(job_of(plain, tmp_path, key_file), None)
    work.target = Store()
    (failed,) = [outcome.error for outcome in work.batch([found for found in work.source.list()]) if outcome.error]
    assert failed == "one: somebody wrote to it since it was listed; run again"
    assert sorted(Store.ended) == ["a/b/three.bywash", "a/two.bywash"]


def test_a_stream_that_ends_early_is_no_whole_one():
    stream = _Stream(iter([b"ab", b"c"]), 4)
    assert stream.read(2) + stream.read(2) == b"abc"
    with pytest.raises(bywash.Error, match="the store gave 3 bytes of 4"):
        stream.read(2)


def test_no_link_below_the_folders_is_followed(plain, tmp_path, key_file):
    work = Work(job_of(plain, tmp_path, key_file), None)
    work.target = Folder(tmp_path / "sealed")
    work.target.make(work.source)
    objects = {found.name: found for found in work.source.list()}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # One that was a folder when it was listed.
    os.rename(plain / "a", tmp_path / "moved")
    os.symlink(tmp_path / "moved", plain / "a")
    (outcome,) = work.batch([objects["a/two"]])
    assert outcome.error == "a/two: Too many levels of symbolic links"
    os.unlink(plain / "a")
    os.rename(tmp_path / "moved", plain / "a")
    shutil.rmtree(tmp_path / "sealed/a")
    os.symlink(elsewhere, tmp_path / "sealed/a")
    (outcome,) = work.batch([objects["a/two"]])
    assert "a folder is to be there, and a link or a file is" in outcome.error
    assert not list(elsewhere.iterdir())


def test_folders_are_as_private_as_their_sources(seal, plain, tmp_path, key_file):
    plain.chmod(0o711)
    (plain / "a").chmod(0o700)
    (plain / "a/b").chmod(0o550)
    seal().check()
    modes = [(tmp_path / "sealed" / folder).stat().st_mode & 0o777 for folder in (".", "a", "a/b")]
    assert modes == [0o711, 0o700, 0o750]


def test_names_that_are_no_text_come_back(seal, plain, tmp_path, key_file):
    name = os.fsdecode(b"caf\xe9\n\x1b[2J")
    (plain / name).write_text("odd")
    seal().check()
    assert seal().before == 4
    bywash.ray.decrypt(tmp_path / "sealed", tmp_path / "back", key_file=key_file, manifest=tmp_path / "manifest2", workers=1, progress=False).check()
    assert (tmp_path / "back" / name).read_text() == "odd"
    sealed = tmp_path / "sealed" / (name + ".bywash")
    sealed.write_bytes(sealed.read_bytes()[:-1])
    report = bywash.ray.decrypt(tmp_path / "sealed", tmp_path / "back2", key_file=key_file, manifest=tmp_path / "manifest3", workers=1, progress=False)
    (told,) = report.failed.values()
    assert told.startswith("caf\\udce9\\n\\x1b[2J.bywash: ") and told.isprintable()
    assert shown("ä b") == "ä b"


def test_results_in_the_source_are_not_looked_at_again(seal, plain):
    assert seal(target=plain / "sealed").check().objects == 3
    report = seal(target=plain / "sealed")
    assert (report.before, report.passed_over) == (3, {})


def test_no_secret_is_taken_for_a_recipient_or_told(seal, tmp_path):
    bywash.generate_identity(tmp_path / "identity")
    secret = (tmp_path / "identity").read_text().split()[-1]
    (tmp_path / "none").write_text("# nobody\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe a key file")
    for wrong, said in [
        ([secret], "an identity, which is secret"),
        ([f" {secret}\n"], "an identity, which is secret"),
        ([str(tmp_path / "identity")], "identity:2: it is no recipient"),
        ([str(tmp_path / "none")], "there is no recipient in it"),
        ([str(tmp_path / "binary")], "binary:1: it is no recipient"),
        ("bywash-x25519-abc", "give a list"),
    ]:
        with pytest.raises(bywash.BadArgument, match=said) as raised:
            seal(recipients=wrong)
        assert secret not in str(raised.value)
    with pytest.raises(bywash.BadArgument, match="a secret does not go through Ray"):
        bywash.ray.decrypt(tmp_path, tmp_path / "back", identities=[f" {secret}\n"], manifest=tmp_path / "manifest2")


def test_ssh_keys_are_recipients_here_too(seal, plain, tmp_path):
    folder = Path(__file__).parents[2] / "files/tests/ssh"
    public = folder / "id_ed25519.pub"
    kind, key, _ = public.read_text().split(" ", 2)
    assert seal(recipients=[str(public)], key_file=None).check().objects == 3
    # Itself, and by another comment, it is the same.
    assert seal(recipients=[f"{kind} {key} me"], key_file=None).before == 3
    identity = [str(folder / "id_ed25519")]
    report = bywash.ray.decrypt(tmp_path / "sealed", tmp_path / "back", identities=identity, manifest=tmp_path / "back.manifest", workers=1, progress=False)
    assert report.check().objects == 3 and (tmp_path / "back/a/two").read_text() == "a/two"
    with pytest.raises(bywash.BadArgument, match="ssh-keygen -t ed25519"):
        seal(recipients=["ssh-rsa AAAAB3NzaC1yc2E= a@b"], manifest=tmp_path / "other")


def test_places_mean_the_same_for_every_worker(seal, plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert seal(source="plain", target="sealed", key_file="key").check().objects == 3
    with pytest.raises(bywash.BadArgument, match="begins with /"):
        seal(source="file://plain")
    assert seal(source=f"file://{plain}").before == 3


def test_options_of_stores_are_not_shown():
    job = Job("encrypt", "s3://lab", "/sealed", KeySource(), {"config": {"secret_access_key": "hush"}})
    assert "hush" not in repr(job) and isinstance(job.source_options, dict)
    assert Object("a", 1, "") != Object("a", 2, "")
