"""What a bucket may hold and a store may answer, and real servers that are convenient for tests do not: placeholders, odd keys, refusals, conditions, silence."""

import hashlib
import os
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

import pytest

ray = pytest.importorskip("ray", reason="no Ray: pip install 'bywash[ray]'")
obstore = pytest.importorskip("obstore", reason="no obstore: pip install 'bywash[ray]'")

import bywash
import bywash.ray
from bywash.ray import _bucket, _watch
from bywash.ray._bucket import PART_BYTES, Bucket
from bywash.ray._faults import Taken
from bywash.ray._objects import Changed, Object, PassedOver
from bywash.ray._watch import watched
from bywash.ray._work import Job, KeySource, Work


class _Answers(BaseHTTPRequestHandler):
    """S3's, as far as one bucket's objects go, without looking at signatures."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        for start in range(0, len(body) if self.command != "HEAD" else 0, SLICE_BYTES):
            self.wfile.write(body[start : start + SLICE_BYTES])
            time.sleep(self.server.pause_s)

    def refuse(self, status, code):
        self.answer(status, f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>It is\nso</Message></Error>".encode())

    def key(self):
        """In the bucket, if it is the one that there is; its objects may be asked for."""
        _, bucket, *rest = urllib.parse.unquote(self.path.partition("?")[0]).split("/", 2)
        if self.server.refusal:
            return self.refuse(*self.server.refusal)
        return ("".join(rest), bucket) if bucket == "lab" else self.refuse(404, "NoSuchBucket")

    def do_GET(self):
        if (key := self.key()) is None:
            return None
        if not key[0]:
            return self.listing()
        if (data := self.server.objects.get(key[0])) is None:
            return self.refuse(404, "NoSuchKey")
        meta = {"etag": tag(data), "last_modified": "Sun, 01 Nov 2026 00:00:00 GMT"}
        if wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["range"] or ""):
            start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
            return self.answer(206, data[start:end], content_range=f"bytes {start}-{end - 1}/{len(data)}", **meta)
        return self.answer(200, data, **meta)

    do_HEAD = do_GET

    def do_PUT(self):
        data = self.rfile.read(int(self.headers["content-length"]))
        if (key := self.key()) is None:
            return None
        if self.headers["if-none-match"] and self.server.has_no_conditions:
            return self.refuse(501, "NotImplemented")
        if self.headers["if-none-match"] and key[0] in self.server.objects:
            return self.refuse(412, "PreconditionFailed")
        self.server.objects[key[0]] = data
        return self.answer(200, etag=tag(data))

    def listing(self):
        prefix = urllib.parse.parse_qs(self.path.partition("?")[2]).get("prefix", [""])[0]
        found = {key: data for key, data in sorted(self.server.objects.items()) if key.startswith(prefix)}
        dates = "<LastModified>2026-11-01T00:00:00.000Z</LastModified>"
        listed = lambda data: tag(data).strip('"') if self.server.lists_bare_tags else escape(tag(data))
        entries = [f"<Contents><Key>{escape(key)}</Key>{dates}<ETag>{listed(data)}</ETag><Size>{len(data)}</Size></Contents>" for key, data in found.items()]
        self.answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(entries)}</ListBucketResult>".encode())


SLICE_BYTES = 16 << 10
"""That a slow server sends at a time."""


def tag(data):
    return f'"{version(data)}"'


def version(data):
    return hashlib.md5(data).hexdigest()


class Store(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.objects, self.refusal, self.has_no_conditions, self.lists_bare_tags, self.pause_s = {}, None, False, False, 0
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def options(self):
        config = {"endpoint": f"http://127.0.0.1:{self.server_port}", "access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
        return {"config": config, "client_options": {"allow_http": True}, "retry_config": {"max_retries": 0}}


@pytest.fixture
def store():
    server = Store()
    yield server
    server.shutdown()
    server.server_close()


def test_what_stands_for_a_folder_is_passed_over(store, tmp_path, key_file, cluster):
    objects = {"raw/": b"", "raw/dir/": b"", "raw/dir/x": b"x", "raw/none/": b"", "raw/empty": b"", "raw/both/": b"", "raw/both": b"is a file too"}
    store.objects.update(objects)
    given = {"source_options": store.options, "key_file": key_file, "workers": 1, "progress": False}
    for expected in ((3, 0), (0, 3)):
        report = bywash.ray.encrypt("s3://lab/raw", tmp_path / "sealed", manifest=tmp_path / "manifest", **given).check()
        assert (report.objects, report.before) == expected
        assert report.passed_over == {name: "what stands for a folder" for name in ("/", "dir/", "none/")}
    for name, text in {"dir/x": b"x", "empty": b"", "both": b"is a file too"}.items():
        assert bywash.decrypt((tmp_path / "sealed" / f"{name}.bywash").read_bytes(), key_file=key_file) == text


def test_an_empty_object_that_was_filled_since_is_no_folder(store):
    store.objects["raw/now"] = b"full"
    bucket = Bucket("s3://lab/raw", store.options)
    listed = {"path": "now", "size": 0, "e_tag": tag(b""), "last_modified": ""}
    assert bucket._look_at_empty(listed) == Object("now", 4, version(b"full"))
    assert bucket._look_at_empty({**listed, "path": "gone"}) == PassedOver("gone/", "what stands for a folder")


def test_a_key_with_a_slash_at_its_end_and_content_does_not_hide_its_neighbour(store, tmp_path, key_file, cluster):
    """Both are listed under one name, and that without the slash is read."""
    store.objects.update({"raw/both": b"the file", "raw/both-": b"in between", "raw/both/": b"what the console put there"})
    given = {"source_options": store.options, "target_options": store.options, "key_file": key_file, "workers": 1, "progress": False}
    for expected in ((2, 0), (0, 2)):
        report = bywash.ray.encrypt("s3://lab/raw", "s3://lab/sealed", manifest=tmp_path / "manifest", **given).check()
        assert (report.objects, report.before) == expected
        assert report.passed_over == {"both/": "its key ends in /, and one without it is there"}
        assert bywash.decrypt(store.objects["sealed/both.bywash"], key_file=key_file) == b"the file"
        store.objects["sealed/both.bywash/"] = b"the console's too"
    bucket = Bucket("s3://lab/raw", store.options)
    _, _, stranger = sorted((found for found in bucket.list()), key=lambda found: found.size)
    read = Object("both", 8, version(b"the file"))
    assert {bucket.told_apart(read, stranger), bucket.told_apart(stranger, read)} == {(read, PassedOver("both/", "its key ends in /, and one without it is there"))}


def test_tags_with_quotes_and_without_are_the_same(store, tmp_path, key_file, cluster):
    """Azure's listings give them without, its other answers with."""
    store.lists_bare_tags = True
    store.objects.update({"raw/one": b"1", "raw/two": b"2", "raw/empty": b""})
    given = {"source_options": store.options, "target_options": store.options, "key_file": key_file, "workers": 1, "progress": False}
    encrypt = lambda: bywash.ray.encrypt("s3://lab/raw", "s3://lab/sealed", manifest=tmp_path / "manifest", **given).check()
    assert encrypt().objects == 3
    assert (encrypt().objects, encrypt().before) == (0, 3)
    # Older manifests have them.
    text = (tmp_path / "manifest").read_text()
    (tmp_path / "manifest").write_text(re.sub(r'"version": "(\w+)"', r'"version": "\\"\1\\""', text))
    assert (encrypt().objects, encrypt().before) == (0, 3)


def test_how_long_an_object_takes_to_read_is_not_bounded(store, monkeypatch):
    monkeypatch.setattr(_bucket, "PART_BYTES", 4 * SLICE_BYTES)
    monkeypatch.setattr(store, "pause_s", 0.1)
    data = os.urandom(9 * 4 * SLICE_BYTES + 1)
    store.objects["raw/slow"] = data
    options = {**store.options, "client_options": {"allow_http": True, "timeout": "2s"}}
    bucket = Bucket("s3://lab/raw", options)
    (listed,) = bucket.list()
    with bucket.read(listed) as stream:
        assert b"".join(iter(lambda: stream.read(1 << 20), b"")) == data
    with bucket.read(listed) as stream:
        stream.read(1)
        store.objects["raw/slow"] = bytes(len(data))
        with pytest.raises(Changed):
            list(iter(lambda: stream.read(1 << 20), b""))


def test_a_request_has_time_for_its_body_unless_the_options_say_otherwise(store):
    assert Bucket("s3://lab/raw", store.options)._store.client_options["timeout"] == "2m"
    options = {**store.options, "client_options": {"allow_http": True, "timeout": "7s"}}
    assert Bucket("s3://lab/raw", options)._store.client_options["timeout"] == "7s"


def test_large_results_have_larger_parts(s3, monkeypatch):
    """S3 takes 10,000 of one upload."""
    opened = []

    class Writers:
        @staticmethod
        def open_writer(_store, _name, buffer_size, max_concurrency):
            opened.append((buffer_size, max_concurrency))

    bucket = Bucket("s3://lab/parts-test", s3.options)
    really = bucket._obstore
    monkeypatch.setattr(bucket, "_obstore", Writers)
    for size in (0, 70 << 30, 100 << 30, 5 << 40):
        bucket.open_parts("huge", size)
    assert opened[:2] == [(PART_BYTES, 4)] * 2
    assert all(size * 1.01 < buffer * 10_000 for (buffer, _), size in zip(opened, (0, 70 << 30, 100 << 30, 5 << 40), strict=True))
    assert all(ahead == 1 or buffer * ahead <= 4 * PART_BYTES for buffer, ahead in opened) and opened[-1][1] == 1
    monkeypatch.setattr(bucket, "_obstore", really)
    monkeypatch.setattr(_bucket, "PARTS", 3)

    def write(upload):
        for _ in range(5):
            upload.write(bytes(PART_BYTES))

    written = bucket.write("large", write, True, False, 5 * PART_BYTES)
    assert written.version.endswith("-3") and written.size == 5 * PART_BYTES


def test_an_outcome_says_whether_something_may_be_there(store, tmp_path, key_file, plain):
    keys = KeySource(key_file=key_file)
    work = Work(Job("encrypt", str(plain), "s3://lab/sealed", keys, target_options=store.options, proofs=keys.proofs()), None)
    one = next(found for found in work.source.list() if found.name == "one")
    (done,) = work.batch([one])
    (taken,) = work.batch([one])
    (gone,) = work.batch([Object("gone", 1, "")])
    store.refusal = (503, "SlowDown")
    (unanswered,) = work.batch([one])
    assert [outcome.may_be_there for outcome in (done, taken, gone, unanswered)] == [True, False, False, True]
    assert [bool(outcome.error) for outcome in (done, taken, gone, unanswered)] == [False, True, True, True]


@pytest.mark.parametrize("key", ["raw/a//b", "raw/../b", "raw/./b", "raw/a\tb"])
def test_a_key_that_obstore_does_not_take_is_named_with_the_way_out(key, store):
    store.objects.update({"raw/good": b"1", key: b"2"})
    with pytest.raises(bywash.Error) as raised:
        list(Bucket("s3://lab/raw", store.options).list())
    told = str(raised.value)
    assert told.startswith(f"s3://lab/raw: it has an object whose key, {ascii(key)}, obstore does not take") and told.isprintable()
    assert "rename or remove it, or name a folder of the bucket that it is not in" in told
    store.objects["raw/other/x"] = b"3"
    assert [found.name for found in Bucket("s3://lab/raw/other", store.options).list()] == ["x"], "which is a way out"


def test_errors_of_stores_are_one_line_with_the_way_out(store):
    def said(url="s3://lab/raw", **changes):
        with pytest.raises(bywash.Error) as raised:
            list(Bucket(url, {**store.options, **changes}).list())
        assert str(raised.value).isprintable(), "more than a line"
        return str(raised.value)

    assert said("s3://nope/raw") == "s3://nope/raw: there is no such bucket; check its name, the endpoint and the region, or make it"
    assert "has no option 'endpont'" in said(config={"endpont": "x"})
    assert "no such value as it takes" in said(config=3)
    assert said("foo://lab").startswith("foo://lab: it is no store's URL; name a folder, or a URL such as s3://")
    assert 'allowed with {"client_options": {"allow_http": true}}' in said(client_options={})
    nobody = {**store.options["config"], "endpoint": "http://127.0.0.1:9"}
    assert "no good answer from 127.0.0.1:9 (Connection refused); is it running" in said(config=nobody)
    store.refusal = (403, "AccessDenied")
    assert "the store refuses it (AccessDenied: It is so); check the credentials" in said()
    store.refusal = (400, "Novelty")
    assert said() == "s3://lab/raw: Novelty: It is so"


def test_nothing_is_replaced_that_somebody_else_put_there(store):
    bucket = Bucket("s3://lab/sealed", store.options)
    for has_no_conditions in (False, True):
        store.has_no_conditions = has_no_conditions
        store.objects.clear()
        put = lambda text, may_replace: bucket.write("one", lambda upload: upload.write(text), True, may_replace, len(text))
        assert put(b"first", False).size == 5
        with pytest.raises(Taken, match=r"its result's name is taken .* --force"):
            put(b"other", False)
        with pytest.raises(Taken):
            put(bytes(PART_BYTES + 1), False)
        assert store.objects == {"sealed/one": b"first"}
        assert put(b"other", True).size == 5 and store.objects == {"sealed/one": b"other"}


def test_a_put_that_is_sent_again_finds_its_own(store):
    """Its answer was lost; the bytes are the same, and nobody else's: each result is encrypted with a salt of its own."""
    bucket = Bucket("s3://lab/sealed", store.options)
    store.objects["sealed/one"] = b"mine"
    assert bucket.write("one", lambda upload: upload.write(b"mine"), False, False, 4).version == version(b"mine")


def test_a_put_without_an_answer_is_sent_again(store, monkeypatch):
    """Obstore does so for puts without a condition alone."""
    bucket = Bucket("s3://lab/sealed", {**store.options, "retry_config": {"max_retries": 3}})
    really, sent = bucket._obstore.put, []

    class Silent:
        exceptions, get = bucket._obstore.exceptions, bucket._obstore.get

        @staticmethod
        def put(*given, **more):
            sent.append(more["mode"])
            if len(sent) == 3:
                return really(*given, **more)
            if len(sent) == 2:
                really(*given, **more)
            raise obstore.exceptions.GenericError("Error performing PUT http://there/x in 30s - HTTP error: error sending request\n\nDebug source:\nTimedOut")

    monkeypatch.setattr(bucket, "_obstore", Silent)
    assert bucket.put("one", b"text", False)["e_tag"] == tag(b"text") and sent == ["create"] * 3
    sent[:] = [None] * 9
    with pytest.raises(bywash.Error, match=r"s3://lab/sealed: no good answer from there \(TimedOut\)"):
        bucket.put("two", b"text", False)
    assert len(sent) == 13


def test_a_store_that_does_not_answer_is_told_of_and_when_it_does_again(store, monkeypatch):
    monkeypatch.setattr(_watch, "EVERY_S", 0.05)
    told = []
    bucket = Bucket("s3://lab/raw", store.options)

    def wait_for(count):
        deadline = time.monotonic() + 20
        while len(told) < count and time.monotonic() < deadline:
            time.sleep(0.01)

    with watched([bucket], told.append):
        time.sleep(0.3)
        assert told == []
        store.refusal = (403, "AccessDenied")
        time.sleep(0.3)
        assert told == [], "a refusal is an answer"
        store.refusal = (503, "SlowDown")
        wait_for(1)
        time.sleep(0.3)
        store.refusal = None
        wait_for(2)
    first, second = told
    assert first.startswith("s3://lab/raw: no good answer from 127.0.0.1") and "503" in first and "is retried, for 3 minutes" in first
    assert second == "s3://lab/raw: it answers again"
    assert not [thread for thread in threading.enumerate() if thread.name == "bywash-watch"]


def test_two_first_runs_in_one_bucket_replace_nothing_of_each_other(s3, tmp_path, key_file, cluster, monkeypatch):
    """The other put its results there after this one had looked: one in a request, one in parts."""
    from bywash.ray import _run

    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "small").write_bytes(b"small")
    (plain / "large").write_bytes(os.urandom(PART_BYTES + 1))
    (plain / "free").write_bytes(b"free")
    other = Bucket("s3://lab/two-runs", s3.options)

    def prepare(*given):
        done = really(*given)
        for name in ("small.bywash", "large.bywash"):
            other.put(name, b"the other's", True)
        return done

    really = _run.prepare
    monkeypatch.setattr(_run, "prepare", prepare)
    given = {"key_file": key_file, "manifest": tmp_path / "manifest", "target_options": s3.options, "workers": 1, "progress": False}
    for _ in range(2):
        report = bywash.ray.encrypt(plain, "s3://lab/two-runs", **given)
        assert sorted(report.failed) == ["large", "small"] and report.objects + report.before == 1
        assert "small: its result's name is taken at the target" in report.failed["small"]
        assert bytes(obstore.get(other._store, "large.bywash").bytes()) == b"the other's"
    monkeypatch.undo()
    assert bywash.ray.encrypt(plain, "s3://lab/two-runs", overwrite=True, **given).check().objects == 2
