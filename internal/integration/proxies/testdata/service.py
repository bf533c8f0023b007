"""The service in Python: the same as serveGo, over HTTP/1.1. It prints its port."""
import gzip
import hashlib
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNFORWARDED = set(sys.argv[1].split(","))
BLOCK = b"".join(b"%015d\n" % i for i in range(1 << 16))
PACKED = gzip.compress(b"a body that is compressed\n" * 40, mtime=0)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def log_message(self, *args):
        pass

    def handle_expect_100(self):
        self.send_response_only(100)
        self.end_headers()
        self.wfile.flush()
        return True

    def read(self):
        """Reads the body, and the trailers behind it; returns length and hash of the one, and the others."""
        length, hashed, trailers = 0, hashlib.sha256(), {}
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                piece = self.rfile.read(size)
                length += len(piece)
                hashed.update(piece)
                self.rfile.readline()
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode("latin1").partition(":")
                trailers[name.strip().lower()] = value.strip()
        else:
            left = int(self.headers.get("Content-Length") or 0)
            while left and (piece := self.rfile.read(min(left, 1 << 16))):
                left -= len(piece)
                length += len(piece)
                hashed.update(piece)
        return f"{length} {hashed.hexdigest()}\n", trailers

    def send(self, status, body, fields=(), kind="text/plain"):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def start(self, fields):
        """Starts an answer whose length is not known."""
        self.send_response(200)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def piece(self, text):
        if self.command != "HEAD":
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text.encode()))
            self.wfile.flush()

    def last(self, trailers=""):
        if self.command != "HEAD":
            self.wfile.write(f"0\r\n{trailers}\r\n".encode())

    def echo(self, summed):
        seen, lines = {}, []
        for name, value in self.headers.items():
            name = name.lower()
            if name not in UNFORWARDED:
                seen[name] = seen.get(name, -1) + 1
                lines.append(f"{name} {seen[name]}: {value}\n")
        self.send(200, f"{self.command} {self.path}\n{''.join(sorted(lines))}{summed}")

    def serve(self):
        summed, trailers = self.read()
        word, _, rest = self.path.split("?")[0][1:].partition("/")
        if word == "small":
            self.send(200, "hello\n")
        elif word == "empty":
            self.send(200, "")
        elif word == "nothing":
            self.send_response(204)
            self.end_headers()
        elif word == "tagged":
            fields = [("ETag", '"v1"'), ("Last-Modified", "Mon, 02 Feb 2026 10:00:00 GMT"),
                      ("Cache-Control", "max-age=60, must-revalidate"), ("Vary", "Accept-Encoding")]
            if self.headers.get("If-None-Match") == '"v1"':
                self.send_response(304)
                for name, value in fields:
                    self.send_header(name, value)
                self.end_headers()
            else:
                self.send(200, "the first version\n", fields)
        elif word == "range":
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if not asked:
                self.send(200, BLOCK[:4096], [("Accept-Ranges", "bytes")])
            elif (first := int(asked[1])) > 4095:
                self.send(416, "", [("Content-Range", "bytes */4096")])
            else:
                last = int(asked[2])
                self.send(206, BLOCK[first:last + 1], [("Content-Range", f"bytes {first}-{last}/4096"), ("ETag", '"v1"')])
        elif word == "packed":
            self.send(200, PACKED, [("Content-Encoding", "gzip")])
        elif word == "chunked":
            self.start([("Content-Type", "text/plain")])
            for i in range(3):
                self.piece(f"piece {i}\n")
            self.last()
        elif word == "trailers":
            self.start([("Content-Type", "text/plain"), ("Trailer", "X-Sum, X-Got")])
            self.piece("what the sum is of\n")
            self.last(f"X-Sum: 42\r\nX-Got: {trailers.get('x-sum', '')}\r\n")
        elif word == "early":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n\r\n")
            self.wfile.flush()
            self.send(200, "late\n")
        elif word == "events":
            self.start([("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")])
            for i in range(3):
                self.piece(f'id: {i}\nevent: tick\ndata: {{"n":{i}}}\n\n')
            self.last()
        elif word == "cookies":
            self.send(200, "cookies\n", [
                ("Set-Cookie", "a=1; Path=/; HttpOnly"), ("Set-Cookie", "b=2; Max-Age=5; SameSite=Lax"),
                ("WWW-Authenticate", 'Basic realm="one, two"'), ("WWW-Authenticate", 'Bearer scope="x"'),
                ("Link", "</1>; rel=next"), ("Link", "</2>; rel=prev")])
        elif word == "fields":
            fields = [(f"X-Field-{i}", chr(97 + i % 26) * i) for i in range(80)]
            self.send(200, "fields\n", fields + [("X-Many", v) for v in ("1", "2", "", "3, 4")] + [("X-Odd", 'tab\tand "quotes"; \xfc=1')])
        elif word == "status":
            more = {"401": [("WWW-Authenticate", "Bearer")], "405": [("Allow", "GET, HEAD")],
                    "429": [("Retry-After", "7")], "503": [("Retry-After", "7")]}
            self.send(int(rest), f'{{"status":{rest}}}\n', more.get(rest, []), "application/problem+json")
        elif word == "moved":
            self.send(int(rest), "elsewhere\n", [("Location", f"/small?from={rest}#part")])
        elif word == "down":
            self.send_response(200)
            self.send_header("Content-Length", str(int(rest) << 20))
            self.end_headers()
            for _ in range(int(rest)):
                self.wfile.write(BLOCK)
        elif word == "up":
            self.send(200, summed)
        elif word == "unending":  # its end is that of the connection
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"until the end\n")
            self.close_connection = True
        else:
            self.echo(summed)

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
print("listening", server.server_address[1], flush=True)
server.serve_forever()
