"""What Python's users expect of any function: Ctrl-C, the calling thread, fork, errors that name the file, whatever has a buffer."""

import array
import ctypes
import errno
import io
import mmap
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import bywash


@pytest.fixture(scope="module")
def keys():
    return bywash.Keys(key=bytes(range(32)))


@pytest.mark.parametrize(
    "call",
    [
        "encrypt('big', 'made', keys)",
        "encrypt('big', 'made', keys, threads=1, verify=True)",
        "decrypt('sealed', 'made', keys)",
        "encrypt(open('big', 'rb'), 'made', keys)",
        "decrypt(open('sealed', 'rb'), 'made', keys)",
        "encrypt(bytes(1 << 30), 'made', keys)",
    ],
)
def test_ctrl_c_ends_work_into_a_file_and_leaves_nothing(call, keys, tmp_path):
    with open(tmp_path / "big", "wb") as big:
        big.truncate(1 << 30 if "decrypt" in call else 6 << 30)
    if "decrypt" in call:
        bywash.encrypt(tmp_path / "big", tmp_path / "sealed", keys)
    program = f"""
import signal, sys, bywash
# Who was started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
keys = bywash.Keys(key=bytes(range(32)))
print("begun", flush=True)
try: bywash.{call}
except KeyboardInterrupt: sys.exit(42)
"""
    child = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"begun\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    assert child.wait(120) == 42, "it ended the call"
    assert {path.name for path in tmp_path.iterdir()} <= {"big", "sealed"}
    for path in tmp_path.iterdir():
        path.unlink()


@pytest.mark.parametrize("name", ["encrypt", "decrypt"])
def test_signals_are_looked_for_in_memory(name, keys):
    """At the end of the call one would be seen in any case, and no second one."""

    class Stop(Exception):
        pass

    def handler(*_):
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.01)

    def stop(*_):
        raise Stop

    text = bytes(1 << 30)
    given = bywash.encrypt(text, keys=keys) if name == "decrypt" else text
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    try:
        with pytest.raises(Stop):
            getattr(bywash, name)(given, keys=keys)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_file_objects_are_called_by_the_thread_that_called(keys):
    threads = set()

    class Object(io.BytesIO):
        def read(self, size=-1):
            threads.add(threading.current_thread())
            return super().read(size)

        def write(self, data):
            threads.add(threading.current_thread())
            return super().write(data)

    def work():
        sealed, text = Object(), Object()
        bywash.encrypt(Object(bytes(3_000_000)), sealed, keys)
        sealed.seek(0)
        bywash.decrypt(sealed, text, keys)
        assert text.getvalue() == bytes(3_000_000)

    work()
    assert threads == {threading.main_thread()}
    threads.clear()
    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert threads == {other}


def test_a_blocked_source_is_left_at_ctrl_c(tmp_path):
    program = """
import os, signal, sys, bywash
signal.signal(signal.SIGINT, signal.default_int_handler)
source, _ = os.pipe()
print("begun", flush=True)
try: bywash.encrypt(os.fdopen(source, "rb"), "made", key=bytes(32))
except KeyboardInterrupt: os._exit(0 if not os.path.exists("made") else 1)
"""
    child = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"begun\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0


def test_no_file_of_a_key_is_replaced(tmp_path):
    key, identity, passphrase = tmp_path / "key", tmp_path / "identity", tmp_path / "passphrase"
    bywash.generate_key_file(key)
    recipient = bywash.generate_identity(identity)
    passphrase.write_text("sesame")
    sealed = bywash.encrypt(b"text", key_file=key, recipients=[recipient])
    kept = {path: path.read_bytes() for path in (key, identity, passphrase)}
    os.link(key, tmp_path / "link")
    for call in [
        lambda: bywash.encrypt(b"text", key, key_file=key, overwrite=True),
        lambda: bywash.encrypt(b"text", tmp_path / "link", key_file=key, overwrite=True),
        lambda: bywash.encrypt(b"text", passphrase, passphrase_file=passphrase, overwrite=True),
        lambda: bywash.decrypt(sealed, identity, identities=[identity], overwrite=True),
        lambda: bywash.encrypt(passphrase, key, key_file=key, overwrite=True),
    ]:
        with pytest.raises(bywash.BadArgument, match="one of the keys given"):
            call()
    assert {path: path.read_bytes() for path in kept} == kept
    keys = bywash.Keys(key_file=key)
    (tmp_path / "restored").write_bytes(key.read_bytes())
    os.replace(tmp_path / "restored", key)
    with pytest.raises(bywash.BadArgument, match="one of the keys given"):
        bywash.encrypt(b"text", key, keys, overwrite=True)
    key.unlink()
    assert bywash.encrypt(b"text", key, keys, overwrite=True) == 4, "it is gone"
    bywash.decrypt(key, tmp_path / "text", keys)
    assert bywash.decrypt(sealed, passphrase, identities=[identity], overwrite=True) == 4, "another's may be"


@pytest.mark.parametrize("chunk_size", [4096, 1 << 20])
def test_all_of_a_file_is_read_at_once(chunk_size, keys, tmp_path):
    text = os.urandom(3 * (1 << 20) + 17)
    bywash.encrypt(text, tmp_path / "file", keys, chunk_size=chunk_size)
    calls = []
    with bywash.open(tmp_path / "file", keys=keys) as file:
        inner = file.raw._file

        class Counted:
            def __getattr__(self, name):
                return getattr(inner, name)

            def __len__(self):
                return len(inner)

            def read_at(self, size, offset):
                calls.append(size)
                return inner.read_at(size, offset)

        file.raw._file = Counted()
        file.seek(5)
        assert file.read() == text[5:]
        assert len(calls) <= 2, calls
        assert file.read() == b""


def test_a_child_of_fork_works_while_other_threads_encrypt(keys):
    is_over = threading.Event()

    def busy():
        while not is_over.is_set():
            bywash.encrypt(b"x" * 200_000, keys=keys, chunk_size=4096)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(150):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                is_right = bywash.decrypt(bywash.encrypt(b"text", keys=keys), keys=keys) == b"text"
                os._exit(0 if is_right else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_a_child_of_fork_opens_a_gpu_of_its_own(keys):
    """What its parent opened is its parent's, and says so at once instead of waiting for threads that a child does not have."""
    try:
        inherited = bywash.Session("AES-256-GCM", bytes(32), engine="gpu:vulkan")
    except bywash.Unavailable as error:
        pytest.skip(str(error))
    text = bytes(300_000)
    sealed = inherited.encrypt(text, bytes(12))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        begin = time.monotonic()
        try:
            inherited.encrypt(text, bytes(12))
            is_refused = False
        except bywash.Error as error:
            is_refused = "before a fork" in str(error) and time.monotonic() - begin < 5
        own = bywash.Session("AES-256-GCM", bytes(32), engine="gpu:vulkan")
        os._exit(0 if is_refused and own.encrypt(text, bytes(12)) == sealed else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert inherited.encrypt(text, bytes(12)) == sealed


def test_whatever_has_a_buffer_is_taken(keys):
    text = b"attack at dawn"
    session = bywash.Session("AES-256-GCM", bytes(32))
    expected = session.encrypt(text, bytes(12))
    # It has read() as well.
    mapped = mmap.mmap(-1, len(text))
    mapped[:] = text
    buffers = [
        mapped,
        bytearray(text),
        memoryview(text),
        memoryview(bytes(byte for pair in zip(text, text) for byte in pair))[::2],
        array.array("b", text),
        array.array("B", text),
        (ctypes.c_ubyte * len(text)).from_buffer_copy(text),
        (ctypes.c_char * len(text)).from_buffer_copy(text),
    ]
    for buffer in buffers:
        assert bywash.decrypt(bywash.encrypt(buffer, keys=keys), keys=keys) == text
        assert session.encrypt(buffer, bytes(12)) == expected
    for call in [
        lambda: bywash.Keys(key="k" * 32),
        lambda: bywash.Session("AES-256-GCM", "k" * 32),
        lambda: bywash.encrypt(5, keys=keys),
        lambda: bywash.encrypt(io.BytesIO(text), keys=keys),
        lambda: session.encrypt("text", bytes(12)),
        lambda: bywash.encrypt(io.StringIO("text"), io.BytesIO(), keys),
    ]:
        with pytest.raises(TypeError):
            call()


def test_the_systems_errors_are_pythons_and_name_the_file(keys, tmp_path):
    with pytest.raises(IsADirectoryError) as caught:
        bywash.encrypt(tmp_path, tmp_path / "made", keys)
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(ValueError, match="null byte"):
        bywash.encrypt("a\0b", tmp_path / "made", keys)
    with pytest.raises(ValueError, match="null byte"):
        bywash.encrypt(b"text", "a\0b", keys)


@pytest.mark.parametrize("source", ["'source'", "bytes(4 << 20)", "io.BytesIO(bytes(4 << 20))"])
def test_a_target_without_room_is_the_one_that_is_named(source, tmp_path):
    (tmp_path / "source").write_bytes(bytes(4 << 20))
    program = f"""
import io, resource, bywash
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try: bywash.encrypt({source}, "target", key=bytes(32))
except OSError as error: print(error.errno, error.filename)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{errno.EFBIG} target\n", done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_an_open_file_has_the_manners_of_one(keys, tmp_path):
    path = tmp_path / "file"
    bywash.encrypt(b"text", path, keys)
    file = bywash.open(path, "rb+", keys)
    assert (file.mode, file.raw.mode, file.read()) == ("rb+", "rb+", b"text")
    with pytest.raises(ValueError, match="whence"):
        file.raw.seek(0, 7)
    with pytest.raises(TypeError):
        file.raw.write("x")
    file.close()
    for call in [file.tell, file.raw.tell, file.read]:
        with pytest.raises(ValueError, match="closed"):
            call()
    with bywash.open(path, keys=keys) as reader:
        assert reader.mode == "rb"

    class Liar:
        def write(self, data):
            return len(data) + 1

    with pytest.raises(OSError, match="more than it was given"):
        bywash.encrypt(b"text", Liar(), keys)
