"""What a backup must not do on a cluster: leave something out unsaid, take the wrong thing for the right one, replace or show what is nobody's business."""

from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")

import bywash
import bywash.ray

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    bywash.generate_key_file(path)
    return str(path)


@pytest.fixture
def plain(tmp_path):
    root = tmp_path / "plain"
    (root / "a/b").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three"):
        (root / name).write_text(name)
    return root


@pytest.fixture
def seal(plain, tmp_path, key_file):
    """Encrypts `plain` into `sealed`; what is given is changed."""

    def start(**changes):
        given = {"source": plain, "target": tmp_path / "sealed", "key_file": key_file, "manifest": tmp_path / "manifest", "workers": 1, "progress": False}
        return bywash.ray.encrypt(**{**given, **changes})

    return start


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
    with pytest.raises(bywash.BadArgument, match="manifest:2: it is no line of a manifest"):
        seal()
    seal(manifest=tmp_path / "another")
    assert (tmp_path / "another").stat().st_mode & 0o777 == 0o600
