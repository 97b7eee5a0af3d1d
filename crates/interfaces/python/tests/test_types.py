"""The package is typed (`py.typed`): it is true to its types, and users' calls are as the documentation has them."""

import subprocess
import sys
from pathlib import Path

import bywash

CALLS = """
import array, io
from pathlib import Path

import bywash

keys = bywash.Keys(passphrase="sesame", key=bytes(32), recipients=["bywash-x25519-..."], identities=[Path("me.identity")])
sealed: bytes = bywash.encrypt(array.array("B", [1, 2]), keys=keys)
also: bytes = bywash.encrypt(b"text", passphrase="sesame", aead="aegis-256")
count: int = bywash.encrypt(Path("source"), "target", keys, threads=2, overwrite=True, verify=True)
more: int = bywash.decrypt(io.BytesIO(sealed), io.BytesIO(), key_file=Path("key"))
tag: bytes = bywash.Session("AES-256-GCM", bytearray(32)).encrypt(memoryview(b"text"), bytes(12), aad=b"header")
with bywash.open("target", "r+b", keys) as file:
    file.seek(3), file.write(b"text")
    file.flush()
with bywash.open(Path("target"), passphrase="sesame") as reader:
    text: bytes = reader.read(5)
"""

WRONG = """
import bywash

bywash.encrypt(5, passphrase="sesame")
bywash.encrypt(b"text", passphrase=5)
bywash.encrypt(b"text", "target", key_files="key")
bywash.Keys(key="k" * 32)
bywash.Session("AES-256-GCM", "k" * 32)
"""


def checked(tmp_path, *what):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", *what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env={"MYPYPATH": str(Path(bywash.__file__).parents[1])})
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_the_package_is_as_its_types_say(tmp_path):
    said = checked(tmp_path, "-p", "bywash")
    assert said.startswith("Success"), said


def test_calls_of_the_documentation_are_typed_and_wrong_ones_refused(tmp_path):
    (tmp_path / "calls.py").write_text(CALLS)
    said = checked(tmp_path, tmp_path / "calls.py")
    assert said.startswith("Success"), said
    (tmp_path / "wrong.py").write_text(WRONG)
    lines = {int(line.split(":")[1]) for line in checked(tmp_path, tmp_path / "wrong.py").splitlines() if ": error:" in line}
    assert lines == set(range(4, 9))
