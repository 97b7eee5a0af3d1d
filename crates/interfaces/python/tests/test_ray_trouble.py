"""What goes wrong for all objects at once, or by somebody else's doing: keys, room, workers, other runs. Each is said once, with the way out."""

import errno
import os

import pytest

ray = pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")

import bywash
import bywash.ray
from bywash.ray._manifest import Manifest

pytestmark = pytest.mark.usefixtures("cluster")


def test_a_manifest_that_cannot_be_written_is_named(seal, tmp_path, monkeypatch):
    def fsync(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="what is done cannot be written down here") as raised:
        seal()
    assert raised.value.filename == str(tmp_path / "manifest")


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
