"""Prints the vectors of vectors.rs: the format of DDS Security 1.1 s9.5 by Python's hmac and the package cryptography (OpenSSL)."""
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY, SALT, RECEIVER = bytes(range(32)), bytes(range(100, 132)), bytes(range(200, 232))
PLAIN_SUBMESSAGE = bytes.fromhex("15050c00") + b"twelve bytes"
PLAIN_MESSAGE = b"RTPS" + bytes([2, 1, 1, 16]) + bytes(range(12)) + PLAIN_SUBMESSAGE
SESSION, SUFFIX, KEY_ID, RECEIVER_ID = 0x01020304, 0x1112131415161718, 0x21222324, 0x31323334


def derived(label, key, size):
    return hmac.new(key[:size], label + SALT[:size] + struct.pack(">I", SESSION), hashlib.sha256).digest()[:size]


def sealed(kind, text):
    """Header, body, tag."""
    size = 16 if kind < 3 else 32
    iv = struct.pack(">IQ", SESSION, SUFFIX)
    gcm = AESGCM(derived(b"SessionKey", KEY, size))
    header = struct.pack(">II", kind, KEY_ID) + iv
    if kind % 2:
        return header, text, gcm.encrypt(iv, b"", text)
    whole = gcm.encrypt(iv, text, b"")
    return header, whole[:-16], whole[-16:]


def receiver_tag(kind, tag):
    size = 16 if kind < 3 else 32
    return AESGCM(derived(b"SessionReceiverKey", RECEIVER, size)).encrypt(struct.pack(">IQ", SESSION, SUFFIX), b"", tag)


def payload(kind):
    header, body, tag = sealed(kind, b"a payload, 20 bytes.")
    return header + (b"" if kind % 2 else struct.pack(">I", len(body))) + body + tag + bytes(4)


def framed(kind, text, prefix, postfix):
    header, body, tag = sealed(kind, text)
    if kind % 2 == 0:
        body = bytes([0x30, 1]) + struct.pack("<H", len(body) + 4) + struct.pack(">I", len(body)) + body
    footer = tag + struct.pack(">II", 1, RECEIVER_ID) + receiver_tag(kind, tag)
    return bytes([prefix, 1, 20, 0]) + header + body + bytes([postfix, 1, len(footer), 0]) + footer


def message(kind):
    source = bytes([0x0C, 1, 20, 0, 0, 0, 0, 0]) + PLAIN_MESSAGE[4:20]
    return PLAIN_MESSAGE[:20] + framed(kind, source + PLAIN_MESSAGE[20:], 0x33, 0x34)


if __name__ == "__main__":
    for kind in (1, 2, 3, 4):
        print(f"    ({kind}, \"{payload(kind).hex()}\",")
        print(f"     \"{framed(kind, PLAIN_SUBMESSAGE, 0x31, 0x32).hex()}\",")
        print(f"     \"{message(kind).hex()}\"),")
