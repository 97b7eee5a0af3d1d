"""Pages out of PostgreSQL, over HTTP/1.1 with kept connections: the back end behind a TLS server.

    python3 database.py PORT SOCKET_FOLDER

Each connection of the server has a thread and a database connection of its own. A page is one query by key.
"""
import http.server
import random
import sys
import threading

import psycopg2

port, folder = int(sys.argv[1]), sys.argv[2]
local = threading.local()


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if not hasattr(local, "cursor"):
            connection = psycopg2.connect(host=folder, user="postgres", dbname="postgres")
            connection.autocommit = True
            local.cursor = connection.cursor()
        local.cursor.execute("select body from page where id = %s", (random.randrange(10_000),))
        body = local.cursor.fetchone()[0].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


Server(("127.0.0.1", port), Page).serve_forever()
