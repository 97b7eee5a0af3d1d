"""Sessions, against published vectors and Python's own digests; engines."""

import array
import hashlib
import hmac
import threading

import pytest

import bywash

# McGrew and Viega, "The Galois/Counter Mode of Operation", test case 16.
KEY = bytes.fromhex("feffe9928665731c6d6a8f9467308308" * 2)
NONCE = bytes.fromhex("cafebabefacedbaddecaf888")
TEXT = bytes.fromhex(
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
)
AAD = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
SEALED = bytes.fromhex(
    "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
    "76fc6ece0f4e1768cddf8853bb2d551b"
)


def test_a_published_vector_in_any_buffer():
    session = bywash.Session("AES-256-GCM", KEY)
    assert (session.algorithm, session.tag_len) == ("AES-256-GCM", 16)
    for kind in (bytes, bytearray, memoryview, lambda data: array.array("B", data)):
        assert session.encrypt(kind(TEXT), kind(NONCE), kind(AAD)) == SEALED
        assert session.decrypt(kind(SEALED), kind(NONCE), aad=kind(AAD)) == TEXT
    short = bywash.Session("AES-256-GCM", KEY, tag_len=12)
    assert short.encrypt(TEXT, NONCE, AAD) == SEALED[:-4] and short.decrypt(SEALED[:-4], NONCE, AAD) == TEXT


def test_a_forgery_is_refused_without_saying_why():
    session = bywash.Session("AES-256-GCM", KEY)
    for sealed in (SEALED[:-1] + b"\0", b"\0" + SEALED[1:], SEALED[:15]):
        with pytest.raises(bywash.AuthenticationFailed, match="^authentication failed$"):
            session.decrypt(sealed, NONCE, AAD)


def test_ciphers_digests_and_macs():
    # SP 800-38A F.5.1, the first block.
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    session = bywash.Session("AES-128-CTR", bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))
    text, sealed = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a"), bytes.fromhex("874d6191b620e3261bef6864990db6ce")
    assert session.encrypt(text, counter) == sealed and session.decrypt(sealed, counter) == text
    for length in (0, 1, 100_000):
        data = bytes(length)
        assert bywash.Session("SHA-256").compute(data) == hashlib.sha256(data).digest()
        assert bywash.Session("HMAC-SHA-256", b"key").compute(data) == hmac.digest(b"key", data, "sha256")


def test_wrong_calls_are_told():
    with pytest.raises(bywash.BadArgument, match="unknown algorithm 'ROT13'; `bywash engines` lists"):
        bywash.Session("ROT13", b"")
    with pytest.raises(ValueError, match="takes a key of 32 bytes, not 3"):
        bywash.Session("AES-256-GCM", b"key")
    session = bywash.Session("AES-256-GCM", KEY)
    with pytest.raises(bywash.BadArgument, match="takes an IV of"):
        session.encrypt(TEXT)
    with pytest.raises(bywash.BadArgument, match="compute"):
        session.compute(TEXT)
    with pytest.raises(TypeError, match="whatever has a buffer"):
        session.encrypt("text", NONCE)
    with pytest.raises(bywash.BadArgument, match="no engine 'abacus'"):
        bywash.Session("AES-256-GCM", KEY, engine="abacus")


def test_threads_share_a_session():
    session, wrong = bywash.Session("AES-256-GCM", KEY), []

    def work(seed):
        for number in range(200):
            nonce = bytes([seed]) + number.to_bytes(11, "big")
            if session.decrypt(session.encrypt(TEXT, nonce), nonce) != TEXT:
                wrong.append(nonce)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_engines_say_what_they_are_and_what_is_missing():
    found = bywash.engines()
    cpu = found["present"][0]
    assert cpu["name"] == "cpu" and not cpu["modelled"] and "AES-256-GCM" in cpu["algorithms"] and "MD5" in cpu["legacy"]
    assert all(absent["reason"] for absent in found["absent"])
