#!/usr/bin/python3
"""Searches a process's memory for a private key: search-memory.py PID KEY.pem...

Every readable mapping is read through /proc/PID/mem and searched for the secret numbers of each key (RSA: d, p, q and the CRT parts; EC: d; Ed25519: the
seed, and the scalar and the prefix made of it, RFC 8032 s5.1.5), big-endian and little-endian, in pieces of 16 bytes at multiples of 16 bytes: any 32 bytes
of a number that lie together contain one of them.
Prints what was found, one line a number; exits 1 if anything was, 0 if nothing.
"""
import hashlib
import sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

PIECE = 16


def numbers(path):
    key = load_pem_private_key(open(path, "rb").read(), None)
    if isinstance(key, Ed25519PrivateKey):
        seed = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        expanded = hashlib.sha512(seed).digest()
        scalar = bytes([expanded[0] & 248]) + expanded[1:31] + bytes([expanded[31] & 127 | 64])
        return {"seed": seed, "scalar": scalar, "prefix": expanded[32:]}
    key = key.private_numbers()
    if hasattr(key, "p"):
        return {name: getattr(key, name) for name in ("d", "p", "q", "dmp1", "dmq1", "iqmp")}
    return {"d": key.private_value}


def pieces(number):
    big = number if isinstance(number, bytes) else number.to_bytes((number.bit_length() + 7) // 8, "big")
    for text in (big, big[::-1]):
        for at in range(0, len(text) - PIECE + 1, PIECE):
            yield text[at:at + PIECE]


def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, mode = line.split()[:2]
            if "r" not in mode or "[vvar" in line or "[vsyscall]" in line:
                continue
            start, end = (int(edge, 16) for edge in span.split("-"))
            try:
                mem.seek(start)
                yield mem.read(end - start)
            except (OSError, OverflowError, ValueError):
                print(f"unreadable: {line.strip()}", file=sys.stderr)


wanted = [(f"{path}: {name}", piece) for path in sys.argv[2:] for name, number in numbers(path).items() for piece in pieces(number)]
total, found = 0, {}
for text in memory(int(sys.argv[1])):
    total += len(text)
    for name, piece in wanted:
        hits = text.count(piece)
        if hits:
            found[name] = found.get(name, 0) + hits
for name, hits in found.items():
    print(f"{name}: {hits} pieces found")
print(f"searched {total >> 20} MiB for {len(wanted)} pieces", file=sys.stderr)
sys.exit(1 if found else 0)
