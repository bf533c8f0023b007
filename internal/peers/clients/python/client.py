"""Makes HTTP calls with requests, so that riprap audit can watch what it does:

    client.py CONFIGURATION METHOD URL BODY KEY TOKEN CALLS

CONFIGURATION is default or docs. METHOD and what follows URL may be empty or left out: a GET, no body, no Idempotency-Key, no
Authorization, one call. The exit status is 0 if every answer was a 2xx, 1 if not, 2 if the arguments make no sense.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry


def default():
    return requests.request


def docs():
    # The figures of "Example: Automatic Retries" in Requests' page Advanced Usage. The example goes on to limit them to POST,
    # which shows an option rather than advises it: the methods are left as they are here. The timeouts are those of the
    # section Timeouts of the same page.
    session = requests.Session()
    adapter = HTTPAdapter(max_retries=Retry(total=3, backoff_factor=0.1, status_forcelist=[502, 503, 504]))
    session.mount("http://", adapter)
    session.mount("https://", adapter)

    def request(method, url, **arguments):
        return session.request(method, url, timeout=(3.05, 27), **arguments)

    return request


def main(configuration, method, url, body="", key="", token="", calls=""):
    headers = {}
    if body:
        headers["Content-Type"] = "text/plain"
    if key:
        headers["Idempotency-Key"] = key
    if token:
        headers["Authorization"] = "Bearer " + token
    request = {"default": default, "docs": docs}[configuration]()

    def call(_):
        try:
            answer = request(method or "GET", url, data=body or None, headers=headers)
        except requests.RequestException as error:
            print(error, file=sys.stderr)
            return False
        if answer.status_code // 100 != 2:
            print("answered", answer.status_code, file=sys.stderr)
            return False
        return True

    calls = int(calls or 1)
    with ThreadPoolExecutor(max_workers=calls) as pool:
        return all(list(pool.map(call, range(calls))))


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 8 or sys.argv[1] not in ("default", "docs"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(0 if main(*sys.argv[1:]) else 1)
