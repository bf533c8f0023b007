"""A client in Python: http.client, and urllib. It reads jobs, a line of JSON each, and answers in kind."""
import hashlib
import http.client
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

BLOCK = b"".join(b"%015d\n" % i for i in range(1 << 16))
connections = {}


def told(response):
    hashed, length, start = hashlib.sha256(), 0, b""
    while piece := response.read(1 << 16):
        hashed.update(piece)
        length += len(piece)
        start = start + piece if length < 8192 else b""
    return {"status": response.status, "fields": [list(f) for f in response.headers.items()], "length": length,
            "hash": hashed.hexdigest(), "body": start.decode("latin1"), "trailers": [], "early": []}


def by_client(job, body):
    host = urllib.parse.urlsplit(job["base"]).netloc
    connection = connections.setdefault(host, http.client.HTTPConnection(host, timeout=60))
    connection.putrequest(job["method"], job["target"], skip_accept_encoding=True)
    for name, value in job["fields"]:
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    elif job["method"] in ("POST", "PUT", "PATCH"):
        connection.putheader("Content-Length", "0")
    connection.endheaders(body)
    return told(connection.getresponse())


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay)


def by_urllib(job, body):
    request = urllib.request.Request(job["base"] + job["target"], data=body, headers=dict(job["fields"]), method=job["method"])
    try:
        with opener.open(request, timeout=60) as response:
            return told(response)
    except urllib.error.HTTPError as response:
        return told(response)


for line in sys.stdin:
    job = json.loads(line)
    body = BLOCK * job["blocks"] if job["blocks"] else job["body"].encode() or None
    try:
        answer = by_urllib(job, body) if job["via"] == "urllib" else by_client(job, body)
    except Exception as error:
        connections.clear()
        answer = {"error": repr(error)}
    print(json.dumps(answer), flush=True)
