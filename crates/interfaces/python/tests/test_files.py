"""`encrypt`, `decrypt`, `open` and keys, against the command and against hand-made damage."""

import array
import io
import os
import pathlib
import pickle
import random
import signal
import stat
import subprocess
import sys
import threading

import pytest

import bywash

CHUNK = 1 << 16
LENGTHS = [0, 1, 4095, CHUNK - 1, CHUNK, CHUNK + 1, 8 * CHUNK, 8 * CHUNK + 1, 3_000_000]


@pytest.fixture(scope="module")
def keys():
    return bywash.Keys(key=bytes(range(32)))


def text_of(length):
    return random.Random(length).randbytes(length)


@pytest.mark.parametrize("length", LENGTHS)
def test_bytes_files_and_streams_give_the_same_text(length, keys, tmp_path):
    text = text_of(length)
    plain, sealed, back = tmp_path / "plain", tmp_path / "sealed", tmp_path / "back"
    plain.write_bytes(text)
    assert bywash.encrypt(plain, sealed, keys) == length
    made = [sealed.read_bytes(), bywash.encrypt(text, None, keys), bywash.encrypt(bytearray(text), None, keys)]
    stream = io.BytesIO()
    assert bywash.encrypt(io.BytesIO(text), stream, keys) == length
    made.append(stream.getvalue())
    assert {len(one) for one in made} == {len(made[0])}, "one geometry, whichever way"
    for one in made:
        assert bywash.decrypt(one, None, keys) == text
        assert bywash.decrypt(memoryview(one), None, keys) == text
        stream = io.BytesIO()
        assert bywash.decrypt(io.BytesIO(one), stream, keys) == length and stream.getvalue() == text
        back.unlink(missing_ok=True)
        assert bywash.decrypt(one, back, keys) == length and back.read_bytes() == text
    assert bywash.decrypt(sealed, back, keys, overwrite=True, verify=True) == length and back.read_bytes() == text


def test_a_file_keeps_its_mode_and_time(keys, tmp_path):
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    plain.write_bytes(b"text")
    plain.chmod(0o640)
    os.utime(plain, ns=(1, 123_456_789))
    bywash.encrypt(plain, sealed, keys)
    assert (stat.S_IMODE(sealed.stat().st_mode), sealed.stat().st_mtime_ns) == (0o640, 123_456_789)


@pytest.mark.parametrize("aead", ["aes-256-gcm", "aes-256-gcm-siv", "chacha20-poly1305"])
def test_the_command_opens_what_python_made_and_the_other_way_round(aead, command, key_file, tmp_path):
    identity = tmp_path / "me.identity"
    recipient = bywash.generate_identity(identity, hybrid=True)
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600 and stat.S_IMODE(os.stat(key_file).st_mode) == 0o600
    (tmp_path / "passphrase").write_text("sesame\n")
    (tmp_path / "passphrase").chmod(0o600)
    plain, text = tmp_path / "plain", text_of(200_000)
    plain.write_bytes(text)
    locks = {
        "-k": ({"key_file": key_file}, {"key_file": key_file}, key_file, key_file),
        "-r": ({"recipients": [recipient]}, {"identities": [identity]}, recipient, identity),
        "--passphrase-file": ({"passphrase": "sesame"}, {"passphrase_file": tmp_path / "passphrase"}, tmp_path / "passphrase", tmp_path / "passphrase"),
    }
    for number, (option, (makes, opens, made_with, opened_with)) in enumerate(locks.items()):
        python, shell, back = (tmp_path / f"{name}-{number}" for name in ("python.bywash", "shell.bywash", "back"))
        bywash.encrypt(plain, python, aead=aead, **makes)
        command("decrypt", "-i" if option == "-r" else option, opened_with, "-o", back, python)
        assert back.read_bytes() == text
        command("encrypt", "--aead", aead, option, made_with, "-o", shell, plain)
        assert bywash.decrypt(shell.read_bytes(), **opens) == text
        assert bywash.encrypt(text, **makes) != bywash.encrypt(text, **makes), "keys and nonces of its own for each"


def test_errors_have_classes_and_the_commands_words(command, keys, key_file, tmp_path):
    sealed = bytearray(bywash.encrypt(text_of(200_000), None, keys))
    other = bywash.Keys(key=bytes(32))
    with pytest.raises(bywash.NoKeyFits, match="it can be opened with a key file"):
        bywash.decrypt(bytes(sealed), None, other)
    with pytest.raises(bywash.WrongPassphrase, match="wrong passphrase; try another"):
        bywash.decrypt(bywash.encrypt(b"text", passphrase="sesame"), passphrase=b"Sesame")
    with pytest.raises(bywash.NotEncrypted, match="not a file encrypted by bywash"):
        bywash.decrypt(b"plain text, and enough of it to be something", None, keys)
    with pytest.raises(bywash.Truncated):
        bywash.decrypt(bytes(sealed[:30]), None, keys)
    with pytest.raises(bywash.Damaged, match="chunk 1"):
        bywash.decrypt(bytes(sealed[: len(sealed) // 2]), None, keys)
    sealed[-1] ^= 1
    back, path = tmp_path / "back", tmp_path / "damaged"
    path.write_bytes(sealed)
    with pytest.raises(bywash.Damaged, match="chunk 3 at offset"):
        bywash.decrypt(path, back, keys)
    assert not back.exists(), "a damaged file leaves nothing"
    (tmp_path / "key32").write_bytes(bytes(range(32)))
    assert "chunk 3 at offset" in command("decrypt", "-k", tmp_path / "key32", "-o", back, path, fails=True)
    with pytest.raises(bywash.BadArgument, match="nobody could open it"):
        bywash.encrypt(b"text", identities=[])
    with pytest.raises(bywash.BadArgument, match="it has 5 bytes, not 32"):
        bywash.Keys(key=b"short")
    with pytest.raises(bywash.BadArgument, match="'rot13' is none of"):
        bywash.encrypt(b"text", None, keys, aead="rot13")
    with pytest.raises(bywash.BadArgument, match="a power of two"):
        bywash.encrypt(b"text", None, keys, chunk_size=5000)
    for wrong, said in [
        (lambda: bywash.encrypt(b"text", None, keys, chunk_size=-1), "chunk_size: -1 is not from 4096 to 1048576"),
        (lambda: bywash.encrypt(path, back, keys, threads=-1), "threads: -1 is not from 1 to 65535"),
        (lambda: bywash.decrypt(path, back, keys, threads=1 << 70), "threads: 1180591620717411303424 is not from 1"),
        (lambda: bywash.Session("AES-256-GCM", bytes(32), tag_len=-1), "tag_len: -1 is not from 0 to 16"),
    ]:
        with pytest.raises(bywash.BadArgument, match=said):
            wrong()
    with pytest.raises(FileNotFoundError) as raised:
        bywash.decrypt(tmp_path / "nothing", back, keys)
    assert raised.value.filename == str(tmp_path / "nothing")
    with pytest.raises(FileExistsError):
        bywash.encrypt(path, path, keys)
    assert path.read_bytes() == sealed
    with pytest.raises(TypeError, match="a target is needed"):
        bywash.encrypt(path, None, keys)
    assert issubclass(bywash.Truncated, bywash.Damaged) and issubclass(bywash.WrongPassphrase, bywash.WrongKey)


def test_what_a_file_object_raises_comes_back_as_it_was(keys):
    class Broken:
        def read(self, size):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        bywash.encrypt(Broken(), io.BytesIO(), keys)

    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        bywash.encrypt(io.BytesIO(b"text" * 1_000_000), Full(), keys)

    class Greedy:
        def read(self, size):
            return bytes(size + 1)

    with pytest.raises(OSError, match="more than it was asked for"):
        bywash.encrypt(Greedy(), io.BytesIO(), keys)


def test_no_key_is_shown_or_pickled(tmp_path):
    key = bytes(range(65, 97))
    identity = tmp_path / "identity"
    recipient = bywash.generate_identity(identity)
    keys = bywash.Keys(passphrase="sesame", key=key, recipients=[recipient], identities=[identity])
    assert repr(keys) == "<bywash.Keys: 1 passphrase, 1 key, 1 recipient, 1 identity>"
    session = bywash.Session("AES-256-GCM", key)
    assert repr(session) == "<bywash.Session: AES-256-GCM>"
    for one in (keys, session):
        assert not vars(type(one)).get("__dict__")
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(one)
    with pytest.raises(bywash.Unavailable, match="key bywash:box: the broker that holds it cannot be asked"):
        bywash.Keys(identities=["bywash:box"])
    with pytest.raises(bywash.BadArgument) as raised:
        bywash.Keys(identities=["BYWASH-IDENTITY-X25519-secretsecret"])
    assert "secretsecret" not in str(raised.value)
    secret = identity.read_text().split()[-1]
    for given in (secret, f" {secret}", f"{secret}\n"):
        with pytest.raises(bywash.BadArgument, match="one of the recipients is an identity, which is secret; give its public half") as raised:
            bywash.Keys(recipients=[recipient, given])
        assert secret not in str(raised.value)
        sealed = bywash.encrypt(b"text", recipients=[f" {recipient}\n"])
        assert bywash.decrypt(sealed, identities=[given]) == b"text"


def test_ssh_keys_open_what_was_encrypted_for_them():
    folder = pathlib.Path(__file__).parents[2] / "files/tests/ssh"
    public = (folder / "id_ed25519.pub").read_text().strip()
    for given in [public, public.rsplit(" ", 1)[0], folder / "id_ed25519.pub"]:
        sealed = bywash.encrypt(b"text", recipients=[given])
        assert bywash.decrypt(sealed, identities=[folder / "id_ed25519"]) == b"text"
    with pytest.raises(bywash.BadArgument, match="it is encrypted; give a copy without a passphrase"):
        bywash.decrypt(sealed, identities=[folder / "encrypted"])
    with pytest.raises(bywash.BadArgument, match="ssh-keygen -t ed25519"):
        bywash.encrypt(b"text", recipients=["ssh-rsa AAAAB3NzaC1yc2E= a@b"])


def test_other_threads_run_while_it_works(keys, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(64 << 20))
    turns, over = 0, threading.Event()

    def count():
        nonlocal turns
        while not over.wait(0.0005):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = turns
    bywash.encrypt(plain, tmp_path / "sealed", keys, threads=1)
    during = turns - before
    over.set()
    thread.join()
    assert during > 2, "the interpreter was held"


def test_ctrl_c_ends_a_stream(tmp_path):
    script = """if True:
        import bywash, io, sys
        class Endless:
            def read(self, size): return bytes(size)
        class Nowhere:
            def write(self, data): print(flush=True); return len(data)
        bywash.encrypt(Endless(), Nowhere(), key=bytes(32))
    """
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    error = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(30) != 0 and ("KeyboardInterrupt" in error or "BrokenPipe" in error), error


def test_open_reads_and_writes_anywhere(keys, tmp_path):
    path, model = tmp_path / "file.bywash", io.BytesIO()
    bywash.encrypt(b"", path, keys)
    chance = random.Random(7)
    with bywash.open(path, "r+b", keys) as file:
        for _ in range(300):
            at, what = chance.randrange(300_000), chance.randrange(4)
            if what == 0:
                data = chance.randbytes(chance.randrange(100_000))
                for one in (file, model):
                    one.seek(at)
                    one.write(data)
            elif what == 1:
                size = chance.randrange(300_000)
                # A BytesIO is not extended by truncate, a file is.
                grown = size - len(model.getvalue())
                model.truncate(size)
                if grown > 0:
                    model.seek(0, io.SEEK_END)
                    model.write(bytes(grown))
                file.truncate(size)
            else:
                got = []
                for one in (file, model):
                    one.seek(-min(at, len(model.getvalue())), io.SEEK_END)
                    got.append(one.read(50_000))
                assert got[0] == got[1]
        with pytest.raises(OSError, match="has it open"):
            bywash.open(path, "rb", keys)
    with bywash.open(path, keys=keys) as file:
        assert file.read() == model.getvalue()
        into = array.array("H", bytes(20))
        file.seek(0)
        assert file.readinto(into) == 20 and into.tobytes() == model.getvalue()[:20]
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"x")
    assert bywash.decrypt(path.read_bytes(), None, keys) == model.getvalue()
    assert not list(tmp_path.glob(".bywash-journal-*"))
    with pytest.raises(bywash.BadArgument, match="r\\+b"):
        bywash.open(path, "wb", keys)
    with bywash.open(path, "r+b", keys) as file:
        for wrong in (lambda: file.truncate(-1), lambda: file.raw.truncate(1 << 70), lambda: file.raw.seek(1 << 70)):
            with pytest.raises(ValueError, match="not from 0 to 9223372036854775807|beyond what any file can have|negative"):
                wrong()


def test_a_writer_that_was_killed_leaves_old_or_new(keys, tmp_path):
    path = tmp_path / "file.bywash"
    old, new = text_of(500_000), text_of(500_001)[:500_000]
    script = """if True:
        import bywash, os, sys
        with bywash.open(sys.argv[1], "r+b", key=bytes(range(32))) as file:
            file.write(sys.stdin.buffer.read())
            file.flush()
            file.raw.sync()
            os.kill(os.getpid(), 9)
    """
    bywash.encrypt(old, path, keys)
    killed = subprocess.run([sys.executable, "-c", script, path], input=new, check=False)
    assert killed.returncode == -9 and list(tmp_path.glob(".bywash-journal-*"))
    for target in (tmp_path / "back", io.BytesIO()):
        with pytest.raises(bywash.Damaged, match='open\\(path, "r\\+b"\\) recovers it'):
            bywash.decrypt(path, target, keys)
    with bywash.open(path, "r+b", keys) as file:
        assert file.read() == new
    assert bywash.decrypt(path.read_bytes(), None, keys) == new


def test_a_forked_child_repeats_no_nonce_and_still_works(keys):
    bywash.encrypt(b"before", None, keys)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, bywash.encrypt(b"child", None, keys))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert bywash.decrypt(pipe.read(), None, keys) == b"child"
    os.waitpid(child, 0)


@pytest.mark.parametrize("make", ["generate_identity", "generate_key_file"])
def test_half_a_key_is_none(make, tmp_path):
    script = f"import bywash, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); bywash.{make}(sys.argv[1])"
    failed = subprocess.run([sys.executable, "-c", script, tmp_path / "key"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1 and "File too large" in failed.stderr, failed.stderr
    assert not list(tmp_path.iterdir())


def test_a_passphrase_that_is_no_text_is_refused_without_being_shown():
    with pytest.raises(bywash.BadArgument, match="give its bytes") as caught:
        bywash.Keys(passphrase="hush\udcff")
    seen = caught.value
    while seen is not None:
        assert "hush" not in repr(seen)
        seen = seen.__cause__ or seen.__context__
    sealed = bywash.encrypt(b"text", passphrase=os.fsencode("hush\udcff"))
    assert bywash.decrypt(sealed, passphrase=b"hush\xff") == b"text"


def test_a_file_that_cannot_be_opened_is_an_exception_and_no_more(tmp_path):
    script = "import bywash, sys\ntry: bywash.open(sys.argv[1], passphrase='sesame')\nexcept OSError as error: print(type(error).__name__)"
    # As Python 3.13 and later do without being asked, it says then what its finalizers run into.
    done = subprocess.run([sys.executable, "-X", "dev", "-c", script, tmp_path / "none"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("FileNotFoundError\n", "")


@pytest.mark.parametrize("lets_go", [lambda file: file.close(), lambda file: None], ids=["closes", "ends"])
def test_a_forked_child_undoes_nothing_of_its_parents_file(lets_go, keys, tmp_path):
    path = tmp_path / "sealed"
    bywash.encrypt(b"old" * 1000, path, keys)
    (tells, wait), (said, say) = os.pipe(), os.pipe()
    file = bywash.open(path, "r+b", keys)
    assert file.read(3) == b"old"
    file.write(b"not stored yet")
    child = os.fork()
    if not child:
        os.read(tells, 1)
        try:
            raw = file.raw
            for use in (raw.readall, lambda: raw.write(b"x"), lambda: raw.truncate(0), raw.sync, lambda: file.write(b"x"), file.flush):
                with pytest.raises(bywash.BadArgument, match="opened to be written before a fork"):
                    use()
            del raw
            lets_go(file)
            del file
            os.write(say, b"as it should")
        finally:
            os._exit(0)
    os.close(say)
    text = text_of(500_000)
    file.seek(0)
    file.write(text)
    file.flush()
    file.raw.sync()
    os.write(wait, b"x")
    with os.fdopen(said, "rb") as pipe:
        assert pipe.read() == b"as it should"
    os.waitpid(child, 0)
    assert file.seek(0) == 0 and file.read() == text
    file.write(b"and more")
    file.close()
    assert bywash.decrypt(path.read_bytes(), None, keys) == text + b"and more"


def test_a_forked_child_that_has_closed_its_parents_file_is_not_in_the_way(keys, tmp_path):
    path = tmp_path / "sealed"
    bywash.encrypt(b"old", path, keys)
    (tells, wait), (said, say) = os.pipe(), os.pipe()
    with bywash.open(path, "r+b", keys) as file:
        file.write(b"new")
        child = os.fork()
        if not child:
            try:
                file.close()
                assert file.closed
                os.read(tells, 1)
                with bywash.open(path, "r+b", keys) as again:
                    assert again.read() == b"new"
                    again.write(b" and more")
                os.write(say, b"as it should")
                os.read(tells, 1)
            finally:
                os._exit(0)
    os.close(say)
    os.write(wait, b"x")
    with os.fdopen(said, "rb") as pipe:
        assert pipe.read(12) == b"as it should"
        # The child lives.
        with bywash.open(path, "r+b", keys) as file:
            assert file.read() == b"new and more"
    os.write(wait, b"x")
    os.waitpid(child, 0)


def test_a_forked_child_ends_as_it_wants_beside_what_its_parent_has_not_stored(tmp_path):
    path = tmp_path / "sealed"
    script = """if 1:
        import bywash, os, sys
        with bywash.open(sys.argv[1], "r+b", passphrase="sesame") as file:
            file.write(b"new")
            if not (child := os.fork()):
                sys.exit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    bywash.encrypt(b"old", path, passphrase="sesame")
    done = subprocess.run([sys.executable, "-X", "dev", "-c", script, path], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("3\n", "")
    assert bywash.decrypt(path.read_bytes(), passphrase="sesame") == b"new"


def test_gpu_by_name_where_there_is_one(keys):
    """A software Vulkan counts where the GPU is named."""
    try:
        sealed = bywash.encrypt(text_of(300_000), None, keys, engine="gpu")
    except bywash.Unavailable as error:
        pytest.skip(str(error))
    assert bywash.decrypt(sealed, None, keys) == text_of(300_000)
    assert bywash.decrypt(bywash.encrypt(b"here", None, keys), None, keys, engine="gpu") == b"here"
