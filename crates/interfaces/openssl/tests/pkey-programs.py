#!/usr/bin/python3
"""Public-key operations of unmodified programs through Bywash.

    pkey-programs.py MODULE [commands] [python] [legacy] [tls]

Runs the openssl command's sub-commands, Python's ssl and cryptography, a C program on the old RSA and EC_KEY interfaces, and TLS handshakes
over versions, certificates, groups, resumption and client certificates. Each outcome is compared with what the default provider says to it, in
both directions; where an engine is to work, the provider's own account (BYWASH_LOG) proves that it did. Prints one line per group.
"""

import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

CONFIGURATION = """openssl_conf = init
[init]
providers = providers
[providers]
{first}default = default_sect
[default_sect]
activate = 1
[bywash_sect]
module = {module}
activate = 1
socket = none
[req]
distinguished_name = name
[name]
[ca]
default_ca = authority
[authority]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
policy = policy
[policy]
commonName = supplied
"""

checks = 0
VERSION = tuple(map(int, re.match(r"OpenSSL (\d+)\.(\d+)", subprocess.check_output(["openssl", "version"], text=True)).groups()))


class Failed(Exception):
    pass


def check(good, what):
    global checks
    checks += 1
    if not good:
        raise Failed(what)


class Side:
    """One of the two: programs with Bywash, or without."""

    def __init__(self, name, configuration):
        self.name, self.configuration, self.used = name, configuration, {}

    def environment(self):
        return dict(os.environ, OPENSSL_CONF=self.configuration, BYWASH_LOG="1")

    def account(self, err):
        """Adds up what the provider says it did, and gives the rest of what was printed."""
        for algorithm, operations in re.findall(r"^bywash: used here: (.*): (\d+) operations", err, re.M):
            self.used[algorithm] = self.used.get(algorithm, 0) + int(operations)
        return re.sub(r"^bywash: .*\n?", "", err, flags=re.M)

    def run(self, *command, input=b"", good=True):
        done = subprocess.run([str(part) for part in command], input=input, capture_output=True, env=self.environment(), timeout=120)
        err = self.account(done.stderr.decode(errors="replace"))
        check((done.returncode == 0) == good, f"{self.name}: {' '.join(map(str, command))}: status {done.returncode}: {err}")
        return done.stdout

    def outcome(self, *arguments):
        """Status and output of what may fail."""
        done = subprocess.run(["openssl", *arguments], capture_output=True, env=self.environment(), timeout=120)
        self.account(done.stderr.decode(errors="replace"))
        return done.returncode, done.stdout

    def openssl(self, *arguments, **options):
        return self.run("openssl", *arguments, **options)

    def did(self, *algorithms):
        for algorithm in algorithms:
            check(self.used.get(algorithm, 0) > 0, f"no {algorithm} was done by an engine; done were {self.used}")
        self.used = {}



def keys(ours, plain):
    """Generating, reading, writing, converting, describing."""
    for name, options in KEYS.items():
        for maker, other in ((ours, plain), (plain, ours)):
            file = f"{maker.name}-{name}.pem"
            maker.openssl("genpkey", "-out", file, *options)
            for form in (["-text", "-noout"], ["-outform", "DER"], ["-pubout"], ["-pubout", "-outform", "DER"]):
                check(ours.openssl("pkey", "-in", file, *form) == plain.openssl("pkey", "-in", file, *form), f"{file} {form} differs")
            other.openssl("pkey", "-in", file, "-pubout", "-out", f"{maker.name}-{name}.pub")
            maker.openssl("pkcs8", "-topk8", "-in", file, "-passout", "pass:secret", "-out", "p8.pem")
            back = other.openssl("pkcs8", "-in", "p8.pem", "-passin", "pass:secret")
            check(back == maker.openssl("pkey", "-in", file), f"{file} through PKCS#8")
            if not name.startswith("x"):
                other.openssl("pkey", "-in", file, "-check", "-noout")
                other.openssl("pkey", "-pubin", "-in", f"{maker.name}-{name}.pub", "-pubcheck", "-noout")
    for file, command in (("bywash-rsa2048", "rsa"), ("bywash-p256", "ec"), ("bywash-p384", "ec")):
        for form in (["-text", "-noout"], ["-traditional"] if command == "rsa" else [], ["-pubout"], ["-outform", "DER"]):
            one, other = (side.openssl(command, "-in", f"{file}.pem", *form) for side in (ours, plain))
            check(one == other, f"{command} {file} {form} differs")
    for form in (["-param_enc", "explicit"], ["-conv_form", "compressed"], ["-no_public"]):
        ours.openssl("ec", "-in", "bywash-p256.pem", "-out", "odd.pem", *form)
        check(ours.openssl("ec", "-in", "odd.pem", "-text") == plain.openssl("ec", "-in", "odd.pem", "-text"), f"ec {form} differs")
        open("message", "wb").write(b"a message")
        ours.openssl("dgst", "-sha256", "-sign", "odd.pem", "-out", "odd.sig", "message")
        plain.openssl("dgst", "-sha256", "-verify", "bywash-p256.pub", "-signature", "odd.sig", "message")
    ours.did("ECDH-P256 public", "ECDH-P384 public", "X25519 public", "ECDSA-P256 sign")


KEYS = {
    "rsa1024": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
    "rsa2048": ["-algorithm", "RSA"],
    "rsa3072": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"],
    "multi": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt", "rsa_keygen_primes:3"],
    "pss": ["-algorithm", "RSA-PSS"],
    "p256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "p384": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
    "k1": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
    "x25519": ["-algorithm", "X25519"],
    "ed25519": ["-algorithm", "ED25519"],
    "ed448": ["-algorithm", "ED448"],
    "x448": ["-algorithm", "X448"],
}


def signatures(ours, plain):
    """dgst and pkeyutl."""
    rsa = [[], ["-sigopt", "rsa_padding_mode:pss"], ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:-1"]]
    rsa.append(["-sigopt", "rsa_padding_mode:x931"])
    for name in ("rsa1024", "rsa2048", "rsa3072", "multi", "pss", "p256", "p384", "k1"):
        for options in rsa[1:2] if name == "pss" else rsa if name[0] in "rm" else [[]]:
            # A 1024-bit modulus has no room for SHA-512 and a salt as long.
            for digest in ("-sha256", "-sha1") if name == "rsa1024" else ("-sha256", "-sha512", "-sha1"):
                for signer, verifier in ((ours, plain), (plain, ours)):
                    signer.openssl("dgst", digest, *options, "-sign", f"bywash-{name}.pem", "-out", "signature", "message")
                    for who in (verifier, signer):
                        pub = ["-verify", f"bywash-{name}.pub", "-signature", "signature"]
                        who.openssl("dgst", digest, *options, *pub, "message")
                        who.openssl("dgst", digest, *options, *pub, "bywash-p256.pem", good=False)
    open("hash", "wb").write(bytes(range(32)))
    for name in ("rsa2048", "p256"):
        ours.openssl("pkeyutl", "-sign", "-inkey", f"bywash-{name}.pem", "-in", "hash", "-pkeyopt", "digest:sha256", "-out", "signature")
        for side in (ours, plain):
            common = ["-pubin", "-inkey", f"bywash-{name}.pub", "-pkeyopt", "digest:sha256", "-sigfile", "signature"]
            side.openssl("pkeyutl", "-verify", *common, "-in", "hash")
    for name in ("ed25519", "ed448"):
        for signer, verifier in ((ours, plain), (plain, ours)):
            signer.openssl("pkeyutl", "-sign", "-rawin", "-inkey", f"bywash-{name}.pem", "-in", "message", "-out", "signature")
            common = ["-verify", "-rawin", "-pubin", "-inkey", f"bywash-{name}.pub", "-sigfile", "signature"]
            verifier.openssl("pkeyutl", *common, "-in", "message")
            verifier.openssl("pkeyutl", *common, "-in", "hash", good=False)
    ours.openssl("pkeyutl", "-sign", "-inkey", "bywash-rsa2048.pem", "-in", "hash", "-out", "signature")
    for side in (ours, plain):
        check(side.openssl("pkeyutl", "-verifyrecover", "-pubin", "-inkey", "bywash-rsa2048.pub", "-in", "signature") == bytes(range(32)), "recover")
    ours.did("RSA-2048 private", "RSA-3072 private", "ECDSA-P256 sign", "ECDSA-P256 verify", "ECDSA-P384 sign", "ECDSA-P384 verify", "Ed25519 sign")


def ciphers(ours, plain):
    """pkeyutl -encrypt, -decrypt and -derive."""
    for name in ("rsa1024", "rsa2048", "multi"):
        for options in ([], ["-pkeyopt", "rsa_padding_mode:oaep"], ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"]):
            for one, other in ((ours, plain), (plain, ours)):
                one.openssl("pkeyutl", "-encrypt", "-pubin", "-inkey", f"bywash-{name}.pub", *options, "-in", "hash", "-out", "secret")
                text = other.openssl("pkeyutl", "-decrypt", "-inkey", f"bywash-{name}.pem", *options, "-in", "secret")
                check(text == bytes(range(32)), f"{name} {options}")
                damaged = bytearray(open("secret", "rb").read())
                damaged[7] ^= 1
                open("damaged", "wb").write(damaged)
                # Since OpenSSL 3.2 a bad padding of PKCS#1 v1.5 gives a text that is made up, the same each time.
                outcomes = [side.outcome("pkeyutl", "-decrypt", "-inkey", f"bywash-{name}.pem", *options, "-in", "damaged") for side in (one, other)]
                made_up = VERSION >= (3, 2) and not options
                check(outcomes[0] == outcomes[1] and (outcomes[0][0] == 0) == made_up, f"{name} {options} damaged: {outcomes}")
    for name in ("p256", "p384", "k1", "x25519", "x448"):
        one = ours.openssl("pkeyutl", "-derive", "-inkey", f"bywash-{name}.pem", "-peerkey", f"plain-{name}.pub")
        check(one == plain.openssl("pkeyutl", "-derive", "-inkey", f"plain-{name}.pem", "-peerkey", f"bywash-{name}.pub"), f"derive {name}")
    ours.did("RSA-2048 private", "ECDH-P256", "ECDH-P384", "X25519")


# OpenSSL 3.5 takes no certificate for an issuer's that does not say so.
CA = ("-addext", "basicConstraints=critical,CA:TRUE")


def certificates(ours, plain):
    """req, x509, ca, verify, pkcs12, cms, smime."""
    for name in ("rsa2048", "p256", "p384", "pss", "ed25519"):
        key, cert = f"bywash-{name}.pem", f"{name}.crt"
        ours.openssl("req", "-x509", "-new", "-key", key, "-subj", f"/CN={name}", "-days", "2", *CA, "-out", cert)
        for side in (ours, plain):
            side.openssl("verify", "-CAfile", cert, cert)
        ours.openssl("req", "-new", "-key", key, "-subj", "/CN=leaf", "-out", "leaf.csr")
        for side in (ours, plain):
            side.openssl("req", "-in", "leaf.csr", "-verify", "-noout")
            side.openssl("x509", "-req", "-extfile", os.devnull, "-in", "leaf.csr", "-CA", cert, "-CAkey", key, "-CAcreateserial", "-days", "1", "-out", "leaf.crt")
            for verifier in (ours, plain):
                verifier.openssl("verify", "-CAfile", cert, "leaf.crt")
        open("index.txt", "w").close()
        open("serial", "w").write("01\n")
        ca = ["-batch", "-notext", "-cert", cert, "-keyfile", key, "-in", "leaf.csr", "-days", "1", "-md", "default" if name == "ed25519" else "sha256", "-out", "leaf.crt"]
        ours.openssl("ca", *ca)
        plain.openssl("verify", "-CAfile", cert, "leaf.crt")
        check(ours.openssl("x509", "-in", cert, "-text") == plain.openssl("x509", "-in", cert, "-text"), f"x509 -text {name}")
        ours.openssl("pkcs12", "-export", "-inkey", key, "-in", cert, "-passout", "pass:secret", "-out", "store.p12")
        for side in (ours, plain):
            out = side.openssl("pkcs12", "-in", "store.p12", "-passin", "pass:secret", "-nodes", "-nocerts")
            check(plain.openssl("pkey", input=out) == plain.openssl("pkey", "-in", key), f"pkcs12 {name}")
        # OpenSSL 3.0's CMS does not take the parameters that an RSA-PSS key signs with, nor keys that only sign, Bywash or not.
        for one, other in () if name in ("pss", "ed25519") else ((ours, plain), (plain, ours)):
            one.openssl("cms", "-sign", "-in", "message", "-signer", cert, "-inkey", key, "-out", "signed")
            other.openssl("cms", "-verify", "-in", "signed", "-CAfile", cert, "-out", "verified")
            one.openssl("cms", "-encrypt", "-aes128", "-in", "message", "-out", "sealed", cert)
            text = other.openssl("cms", "-decrypt", "-in", "sealed", "-recip", cert, "-inkey", key)
            check(text.strip() == b"a message", f"cms {name}: {text!r}")
            if name == "rsa2048":
                oaep = ["-recip", cert, "-keyopt", "rsa_padding_mode:oaep"]
                one.openssl("cms", "-encrypt", "-aes128", "-in", "message", "-out", "sealed", *oaep)
                check(other.openssl("cms", "-decrypt", "-in", "sealed", "-inkey", key).strip() == b"a message", "cms oaep")
                one.openssl("smime", "-sign", "-in", "message", "-signer", cert, "-inkey", key, "-out", "signed")
                other.openssl("smime", "-verify", "-in", "signed", "-CAfile", cert, "-out", "verified")
    ours.did("RSA-2048 private", "ECDSA-P256 sign", "ECDSA-P256 verify", "ECDSA-P384 sign", "ECDSA-P384 verify", "Ed25519 sign")


def commands(ours, plain):
    for part in (keys, signatures, ciphers, certificates):
        part(ours, plain)


CRYPTOGRAPHY = """
import os, sys
from cryptography.hazmat.primitives import hashes, serialization as s
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils, x25519
key = rsa.generate_private_key(65537, 2048)
sha = hashes.SHA256()
pads = [padding.PKCS1v15(), padding.PSS(padding.MGF1(sha), 32), padding.PSS(padding.MGF1(sha), padding.PSS.MAX_LENGTH)]
for pad in pads:
    key.public_key().verify(key.sign(b"m", pad, sha), b"m", pad, sha)
for pad in (padding.PKCS1v15(), padding.OAEP(padding.MGF1(sha), sha, b"label")):
    assert key.decrypt(key.public_key().encrypt(b"text", pad), pad) == b"text"
pem = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.TraditionalOpenSSL, s.NoEncryption())
again = s.load_pem_private_key(pem, None)
assert again.private_numbers() == key.private_numbers()
assert again.sign(b"m", pads[0], sha) == key.sign(b"m", pads[0], sha)
for curve in (ec.SECP256R1(), ec.SECP384R1()):
    one, other = ec.generate_private_key(curve), ec.generate_private_key(curve)
    assert one.exchange(ec.ECDH(), other.public_key()) == other.exchange(ec.ECDH(), one.public_key())
    one.public_key().verify(one.sign(b"m", ec.ECDSA(sha)), b"m", ec.ECDSA(sha))
    der = one.private_bytes(s.Encoding.DER, s.PrivateFormat.PKCS8, s.BestAvailableEncryption(b"secret"))
    assert s.load_der_private_key(der, b"secret").private_numbers() == one.private_numbers()
    point = other.public_key().public_bytes(s.Encoding.X962, s.PublicFormat.CompressedPoint)
    assert ec.EllipticCurvePublicKey.from_encoded_point(curve, point).public_numbers() == other.public_key().public_numbers()
signer = ed25519.Ed25519PrivateKey.generate()
signer.public_key().verify(signer.sign(b"m"), b"m")
raw = signer.private_bytes(s.Encoding.Raw, s.PrivateFormat.Raw, s.NoEncryption())
assert ed25519.Ed25519PrivateKey.from_private_bytes(raw).sign(b"m") == signer.sign(b"m")
one, other = x25519.X25519PrivateKey.generate(), x25519.X25519PrivateKey.generate()
assert one.exchange(other.public_key()) == other.exchange(one.public_key())
# A key used before and after a fork, in parent and child.
child = os.fork()
signature = key.sign(b"m", pads[0], sha)
key.public_key().verify(signature, b"m", pads[0], sha)
one.exchange(x25519.X25519PrivateKey.generate().public_key())
if child:
    assert os.waitpid(child, 0)[1] == 0
"""

PYTHON_SSL = """
import socket, ssl, sys, threading
cert, key = sys.argv[1:3]
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server.load_cert_chain(cert, key)
listener = socket.create_server(("127.0.0.1", 0))
def serve(connection):
    with server.wrap_socket(connection, server_side=True) as tls:
        tls.sendall(tls.recv(100)[::-1])
def accept():
    for _ in range(8):
        serving.append(threading.Thread(target=serve, args=(listener.accept()[0],)))
        serving[-1].start()
serving = [threading.Thread(target=accept)]
serving[0].start()
def connect():
    client = ssl.create_default_context(cafile=cert)
    client.check_hostname = False
    with client.wrap_socket(socket.create_connection(listener.getsockname())) as tls:
        tls.sendall(b"hello")
        assert tls.recv(100) == b"olleh"
        done.append(tls.version())
done = []
clients = [threading.Thread(target=connect) for _ in range(8)]
[client.start() for client in clients]
# All are joined, so that nothing of libcrypto is in use when it takes its leave.
[client.join() for client in clients + serving[:1]]
[server.join() for server in serving[1:]]
assert done == ["TLSv1.3"] * 8, done
"""


def python(ours, plain):
    for name in ("rsa2048", "p256", "p384", "ed25519"):
        if not os.path.exists(f"{name}.crt"):
            plain.openssl("genpkey", "-out", f"bywash-{name}.pem", *KEYS[name])
            plain.openssl("req", "-x509", "-new", "-key", f"bywash-{name}.pem", "-subj", f"/CN={name}", "-days", "2", "-out", f"{name}.crt")
        ours.run("/usr/bin/python3", "-c", PYTHON_SSL, f"{name}.crt", f"bywash-{name}.pem")
    # No proof of engines here: Python does not always free all of libcrypto's objects at exit, and then the provider gives no account.
    if subprocess.run(["/usr/bin/python3", "-c", "import cryptography"], capture_output=True).returncode != 0:
        print("skipped: Python's cryptography is not installed; apt-get install python3-cryptography")
        return
    ours.run("/usr/bin/python3", "-c", CRYPTOGRAPHY)


LEGACY = r"""
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define CHECK(x) do { if (!(x)) { fprintf(stderr, "line %d: %s\n", __LINE__, #x); ERR_print_errors_fp(stderr); return 1; } } while (0)
#include <openssl/err.h>
static int sign(EVP_PKEY *key) {
    unsigned char sig[1024]; size_t len = sizeof sig;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 && EVP_DigestSign(ctx, sig, &len, (void *)"m", 1) == 1
        && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 && EVP_DigestVerify(ctx, sig, len, (void *)"m", 1) == 1;
    EVP_MD_CTX_free(ctx);
    return ok;
}
static int travel(EVP_PKEY *key) {
    unsigned char *der = NULL; const unsigned char *at; int len;
    CHECK((len = i2d_PrivateKey(key, &der)) > 0); at = der;
    EVP_PKEY *back = d2i_AutoPrivateKey(NULL, &at, len);
    CHECK(back && EVP_PKEY_eq(key, back) == 1 && sign(back));
    EVP_PKEY_free(back); OPENSSL_free(der); der = NULL;
    CHECK((len = i2d_PUBKEY(key, &der)) > 0); at = der;
    back = d2i_PUBKEY(NULL, &at, len);
    CHECK(back && EVP_PKEY_eq(key, back) == 1);
    EVP_PKEY_free(back); OPENSSL_free(der);
    return 0;
}
int main(void) {
    EVP_PKEY *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256"), *legacy = EVP_PKEY_new();
    CHECK(rsa && ec && legacy && sign(rsa) && sign(ec));
    CHECK(EVP_PKEY_get_base_id(rsa) == EVP_PKEY_RSA && EVP_PKEY_get_base_id(ec) == EVP_PKEY_EC);
    CHECK(EVP_PKEY_get_size(rsa) == 256 && EVP_PKEY_get_bits(ec) == 256 && EVP_PKEY_get_security_bits(ec) == 128);
    RSA *r = EVP_PKEY_get1_RSA(rsa);
    CHECK(r && RSA_check_key(r) == 1 && RSA_size(r) == 256);
    const EC_KEY *e = EVP_PKEY_get0_EC_KEY(ec);
    CHECK(e && EC_KEY_check_key(e) == 1);
    unsigned char in[32] = {1}, out[256], back[256]; unsigned n;
    CHECK(RSA_sign(NID_sha256, in, 32, out, &n, r) == 1 && RSA_verify(NID_sha256, in, 32, out, n, r) == 1);
    CHECK(RSA_public_encrypt(32, in, out, r, RSA_PKCS1_OAEP_PADDING) == 256);
    CHECK(RSA_private_decrypt(256, out, back, r, RSA_PKCS1_OAEP_PADDING) == 32 && memcmp(in, back, 32) == 0);
    CHECK(EVP_PKEY_set1_RSA(legacy, r) == 1 && EVP_PKEY_eq(legacy, rsa) == 1 && sign(legacy));
    RSA_free(r);
    CHECK(travel(rsa) == 0 && travel(ec) == 0);
    EVP_PKEY *copy = EVP_PKEY_dup(ec);
    CHECK(copy && EVP_PKEY_eq(copy, ec) == 1 && sign(copy));
    pid_t child = fork();
    CHECK(sign(rsa) && sign(ec));
    if (child == 0) _exit(0);
    int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
    EVP_PKEY_free(copy); EVP_PKEY_free(rsa); EVP_PKEY_free(ec); EVP_PKEY_free(legacy);
    // OpenSSL 4 does not at exit, and an account is given by who is taken down.
    OPENSSL_cleanup();
    return 0;
}
"""


def legacy(ours, plain):
    if shutil.which("cc") is None:
        print("skipped: no C compiler; apt-get install gcc")
        return
    open("legacy.c", "w").write(LEGACY)
    plain.run("cc", "-w", "-o", "legacy", "legacy.c", "-lcrypto")
    for side in (plain, ours):
        side.run("./legacy")
    ours.did("RSA-2048 private", "ECDSA-P256 sign", "ECDSA-P256 verify", "ECDH-P256 public")


class Server:
    """An s_server that ends by itself after so many connections, so that the provider gives its account."""

    def __init__(self, side, connections, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.side = side
        command = ["timeout", "100", "openssl", "s_server", "-accept", f"127.0.0.1:{self.port}", "-naccept", str(connections), "-www", "-quiet", *options]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors, env=side.environment())

    def finish(self):
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed(f"{self.side.name}: s_server did not end: {self.log()}")
        check(status == 0, f"{self.side.name}: s_server: {self.log()}")
        self.side.account(self.log())

    def log(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


def converse(side, port, *options):
    """One s_client that asks for the server's page and hears it to its end; what it reported."""
    command = ["timeout", "20", "openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-ign_eof", *map(str, options)]
    for _ in range(100):
        done = subprocess.run(command, input=b"GET / HTTP/1.0\r\n\r\n", capture_output=True, env=side.environment())
        out, err = done.stdout.decode(errors="replace"), side.account(done.stderr.decode(errors="replace"))
        if "Connection refused" in err:
            time.sleep(0.02)
            continue
        check("HTTP/1.0 200 ok" in out, f"{side.name}: {' '.join(command)}: {out}{err}")
        return out
    raise Failed(f"nothing listens on port {port}")


SIDES = [("bywash", "plain"), ("plain", "bywash"), ("bywash", "bywash")]
GROUPS = {"P-256": "ECDH, prime256v1", "X25519": "X25519", "P-384": "ECDH, secp384r1"}
TEMP_KEY = "Peer Temp Key" if VERSION >= (3, 5) else "Server Temp Key"


def handshakes(server, client, cert):
    """Every version, group, client certificate and resumption against one server."""
    cases = list(itertools.product(("-tls1_2", "-tls1_3"), GROUPS, (None, "rsa2048", "p256", "p384", "ed25519")))
    options = ["-cert", f"{cert}.crt", "-key", f"bywash-{cert}.pem", "-verify", "1"]
    process = Server(server, 2 * len(cases), *options)
    for version, group, identity in cases:
        what = f"{server.name} to {client.name}, {cert} {version} {group} {identity}"
        # TLS 1.2 wants the curves of certificates among the groups; a server of OpenSSL 3.5 takes the one that it likes best.
        groups = [group] if version == "-tls1_3" else [group, *(other for other in GROUPS if other != group)]
        common = [version, "-groups", ":".join(groups), "-CAfile", f"{cert}.crt", "-verify_return_error"]
        if identity:
            common += ["-cert", f"{identity}.crt", "-key", f"bywash-{identity}.pem"]
        full = converse(client, process.port, *common, "-sess_out", "session")
        check(f"{TEMP_KEY}: {GROUPS[group]}" in full and "Verify return code: 0" in full, f"{what}: {full}")
        again = converse(client, process.port, *common, "-sess_in", "session")
        check("Reused, TLSv1" in again, f"{what}: not resumed: {again}")
    process.finish()


def key_transport(server, client):
    """TLS 1.2 with RSA key exchange, and pre-shared keys."""
    process = Server(server, 3, "-cert", "rsa2048.crt", "-key", "bywash-rsa2048.pem", "-psk", "0102030405060708")
    for cipher in ("AES128-GCM-SHA256", "AES256-SHA", "PSK-AES128-CBC-SHA256"):
        psk = ["-psk", "0102030405060708"] if "PSK" in cipher else []
        said = converse(client, process.port, "-tls1_2", "-cipher", cipher, *psk)
        check(f"Cipher is {cipher}" in said, f"{cipher}: {said}")
    process.finish()


def tls(ours, plain):
    sides = {"bywash": ours, "plain": plain}
    certificates = ("rsa2048", "p256", "p384", "ed25519")
    for name in certificates:
        plain.openssl("genpkey", "-out", f"bywash-{name}.pem", *KEYS[name])
        plain.openssl("req", "-x509", "-new", "-key", f"bywash-{name}.pem", "-subj", f"/CN={name}", "-days", "2", "-out", f"{name}.crt")
    for server, client in SIDES:
        for cert in certificates:
            handshakes(sides[server], sides[client], cert)
        key_transport(sides[server], sides[client])
        signed = ("RSA-2048 private", "ECDSA-P256 sign", "ECDSA-P256 verify", "ECDSA-P384 sign", "ECDSA-P384 verify", "Ed25519 sign")
        ours.did(*signed, "ECDH-P256", "ECDH-P256 public", "ECDH-P384", "ECDH-P384 public", "X25519", "X25519 public")


def main():
    global checks
    module, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["commands", "python", "legacy", "tls"]
    with tempfile.TemporaryDirectory(prefix="bywash-pkey.") as folder:
        os.chdir(folder)
        sides = []
        for name, first in (("bywash", "bywash = bywash_sect\n"), ("plain", "")):
            open(f"{name}.cnf", "w").write(CONFIGURATION.format(first=first, module=module, folder=folder))
            sides.append(Side(name, f"{folder}/{name}.cnf"))
        for part in wanted:
            checks = 0
            try:
                globals()[part](*sides)
            except Failed as failure:
                sys.exit(f"pkey-programs: {part}: {failure}")
            print(f"{part}: {checks} outcomes as they must be", flush=True)
            sides[0].used = {}


if __name__ == "__main__":
    main()
