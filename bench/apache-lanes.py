#!/usr/bin/env python3
"""Apache's full TLS handshakes per server CPU second, without and with Bywash, side by side.

    make build && bench/apache-lanes.py [--bits 2048] [--tls 1.2] [--mpm event] [--route auto] [--connections 64]

Needs apache2 and openssl. The server runs on processor 0 and the client, bench/tls-load, on processor 1. Both servers are up all the time; their turns alternate,
and medians over the rounds are compared, so that what else the machine does falls on both alike. Server CPU time is that of all processes of its session,
user and system, the broker of `bywash run` included. Latencies at 70 % of the maximum need a tls-load that knows --rate.
"""
import argparse, json, os, pathlib, signal, socket, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent.parent
MODULES = "/usr/lib/apache2/modules"
TICK = os.sysconf("SC_CLK_TCK")
MPM = {  # as Debian ships them
    "event": "StartServers 2\nMinSpareThreads 25\nMaxSpareThreads 75\nThreadLimit 64\nThreadsPerChild 25\nMaxRequestWorkers 150",
    "prefork": "StartServers 5\nMinSpareServers 5\nMaxSpareServers 10\nMaxRequestWorkers 150",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=2048)
    parser.add_argument("--tls", choices=["1.2", "1.3"], default="1.2")
    parser.add_argument("--mpm", choices=sorted(MPM), default="event")
    parser.add_argument("--route", choices=["auto", "here", "queue"], default="auto")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rate", type=float, help="handshakes per second, open loop; default: as many as can be")
    parser.add_argument("--bywash", default=HERE / "target/release/bywash")
    parser.add_argument("--tls-load", default=HERE / "target/release/tls-load")
    return parser.parse_args()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def certificate(folder, bits):
    """A certificate under an authority of its own: a client refuses an authority's own as a server's."""
    (folder / "ext").write_text("subjectAltName=DNS:localhost\n")
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=bench",
        f"req -newkey rsa:{bits} -nodes -keyout key.pem -out csr -subj /CN=localhost",
        "x509 -req -in csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True, cwd=folder)


class Server:
    """One Apache, in a session of its own on processor 0."""

    def __init__(self, folder, name, args, prefix):
        self.port, place = free_port(), folder / name
        place.mkdir()
        (place / "index.html").write_text("hello\n")
        config = f"""ServerRoot {place}
PidFile {place}/pid
ErrorLog {place}/error.log
LoadModule mpm_{args.mpm}_module {MODULES}/mod_mpm_{args.mpm}.so
LoadModule ssl_module {MODULES}/mod_ssl.so
LoadModule authz_core_module {MODULES}/mod_authz_core.so
{MPM[args.mpm]}
User www-data
Group www-data
ServerName localhost
Listen 127.0.0.1:{self.port}
DocumentRoot {place}
KeepAlive Off
SSLEngine on
SSLCertificateFile {folder}/cert.pem
SSLCertificateKeyFile {folder}/key.pem
SSLSessionCache none
SSLSessionTickets off
"""
        (place / "httpd.conf").write_text(config)
        command = ["taskset", "-c", "0", *map(str, prefix), "/usr/sbin/apache2", "-f", str(place / "httpd.conf"), "-D", "FOREGROUND"]
        self.log = open(place / "out", "w+")
        self.process = subprocess.Popen(command, start_new_session=True, stdout=self.log, stderr=subprocess.STDOUT)
        self.place = place
        self.await_port()

    def await_port(self):
        for _ in range(300):
            if self.process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        errors = self.place / "error.log"
        sys.exit(f"{self.process.args} does not answer: {(self.place / 'out').read_text()} {errors.read_text() if errors.exists() else ''}")

    def cpu(self):
        """CPU seconds of all processes of the session, and of those that ended."""
        ticks = 0
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == self.process.pid:
                ticks += sum(map(int, fields[11:15]))
        return ticks / TICK

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.seek(0)
        return self.log.read().strip()


def measure(server, folder, args):
    client = ["taskset", "-c", "1", args.tls_load, "--connect", f"127.0.0.1:{server.port}", "--ca", folder / "ca.pem", "--tls", args.tls]
    client += ["--connections", args.connections, "--seconds", args.seconds, "--json"]
    client += ["--rate", args.rate] if args.rate else []
    before = server.cpu()
    ran = subprocess.run(list(map(str, client)), capture_output=True, text=True)
    used = server.cpu() - before
    try:
        report = json.loads(ran.stdout)
    except ValueError:
        sys.exit(f"{client}: {ran.stdout}{ran.stderr}")
    if ran.returncode:
        sys.exit(f"{client}: {report}")
    return report, used


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="apache-lanes-") as text:
        folder = pathlib.Path(text)
        folder.chmod(0o755)
        certificate(folder, args.bits)
        routed = [args.bywash, "run", "--route", args.route, "--"]
        servers = {"plain": Server(folder, "plain", args, []), "bywash": Server(folder, "bywash", args, routed)}
        try:
            seen = {name: [] for name in servers}
            for turn in range(args.rounds + 1):
                for name, server in servers.items():
                    report, used = measure(server, folder, args)
                    if turn:  # the first warms up
                        latency = report["handshake_us"]
                        seen[name].append((report["handshakes"] / used, report["handshakes_per_s"], latency["p50"], latency["p99"]))
        finally:
            said = {name: server.stop() for name, server in servers.items()}
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in seen.items()}
    print(f"apache {args.mpm}, RSA-{args.bits}, TLS {args.tls}, {args.connections} connections, route {args.route}, medians of {args.rounds} rounds")
    print(f"{'':8} {'per CPU s':>10} {'per s':>8} {'p50 ms':>8} {'p99 ms':>8}")
    for name, row in medians.items():
        print(f"{name:8} {row[0]:10.0f} {row[1]:8.0f} {row[2] / 1000:8.2f} {row[3] / 1000:8.2f}")
    print(f"{'ratio':8} " + " ".join(f"{b / a:{w}.2f}" for a, b, w in zip(medians["plain"], medians["bywash"], (10, 8, 8, 8))))
    print(said["bywash"])


main()
