"""Arguments and names that cannot be meant: each is refused by its name, and names stop no other object."""

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")

import bywash
import bywash.ray
from bywash.ray.__main__ import options
from bywash.ray._objects import Object
from bywash.ray._work import Job, KeySource, Work

pytestmark = pytest.mark.usefixtures("cluster")


def test_wrong_arguments_are_refused_by_name(seal, plain):
    for wrong, said in [
        ({"workers": 1.5}, "workers: 1.5 is no whole number"),
        ({"gpu_workers": "2"}, "gpu_workers: '2' is no whole number"),
        ({"source": os.fsencode(plain)}, "is bytes; give text"),
        ({"target": 3}, "source or target: 3 is no path"),
        ({"manifest": b"m"}, "manifest: b'm' is bytes"),
        ({"key_file": b"k"}, "key_file: b'k' is bytes"),
        ({"recipients": Path("r")}, "recipients: give a list"),
        ({"source": "https://user:secret@host/x"}, "https://…@host: a password in a URL would be in every message"),
        ({"target": "s3://lab/x?sig=secret"}, "s3://lab/x: a store's URL ends with its path"),
        ({"target": "s3://lab/x#secret"}, "s3://lab/x: a store's URL ends with its path"),
        ({"source": "s3://[lab"}, "a source or target is no URL"),
    ]:
        with pytest.raises(bywash.BadArgument, match=said) as refused:
            seal(**wrong)
        assert "secret" not in str(refused.value)


def test_options_that_are_no_json_are_refused_with_an_example(tmp_path, of_command):
    for wrong in ("{'a':1}", "[1]"):
        code, told = of_command("encrypt", tmp_path, "s3://lab/x", "-m", tmp_path / "manifest", "--store", wrong)
        assert code == 2 and ("names are in double quotes" in told or "begin it with {" in told) and "loads" not in told, told
    assert options(json.dumps({"config": {}})) == {"config": {}}


def test_a_sweep_refuses_what_it_would_not_mean(cluster):
    for wrong, common, said in [
        ({"policy": "tuned"}, {}, "policy: 'tuned' is one value; give a list"),
        ({"slots": 3}, {}, "slots: 3 is one value"),
        ({"policyy": ["tuned"]}, {}, "policyy: it is none of policy, engine, .* which 'tuned' is not"),
        ({"slots": [1]}, {"engin": "niwa2005"}, "engin: it is none of"),
    ]:
        with pytest.raises(bywash.BadArgument, match=said):
            bywash.ray.sweep(wrong, **common)


def test_a_name_that_cannot_be_one_is_said_once(plain, tmp_path, key_file):
    keys = KeySource(key_file=key_file)
    work = Work(Job("encrypt", str(plain), str(tmp_path), keys, proofs=keys.proofs()), None)
    (outcome,) = work.batch([Object("a/../one", 3, "")])
    assert outcome.error == "a/../one: that cannot be a file's name in a folder; rename the object"


def test_a_name_that_is_too_long_with_its_ending_fails_alone(seal, plain):
    (plain / ("n" * 249)).write_text("long")
    (plain / ("n" * 248)).write_text("just short enough")
    report = seal()
    assert report.objects == 4 and "its result's would have 256 bytes, and a name in a folder has 255 at most; rename it" in report.failed["n" * 249]


def test_a_file_beside_a_folder_that_is_called_like_its_result_fails_alone(seal, plain):
    (plain / "one.bywash").mkdir()
    (plain / "one.bywash/in it").write_text("x")
    report = seal()
    assert report.objects == 3 and len(report.failed) == 1, report.failed
