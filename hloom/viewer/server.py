"""The page on this machine: a server that only this machine's browsers reach, with the address that is printed.

It listens on the loopback address, on a port that the system chooses. The address has a token, which the data needs:
other users of the machine, and pages of other sites, do not know it. Requests with another `Host` are refused, so that
a site whose name points to this machine gets nothing either. It only answers GET and HEAD, with the files of the page
and one text.
"""

from __future__ import annotations

import gzip
import hmac
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..hlo.support.lazy import lazy_property
from . import bundle

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SECONDS = 30
"""A browser that sends nothing for so long is given up."""


class ViewServer:
    """Serves one program until it is stopped.

    with ViewServer(text) as server:
        print(server.address)
        server.wait()
    """

    def __init__(self, data: str, port: int = 0) -> None:
        """`port`: 0 for one that is free. OSError if the port is taken."""
        self.token: str = secrets.token_urlsafe(24)
        self._data = data
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.view = self
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="hloom view", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The address that a browser opens."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @lazy_property
    def zipped(self) -> bytes:
        """The data as it is sent."""
        return gzip.compress(self._data.encode("ascii"), 5)

    def is_token(self, given: str) -> bool:
        """Whether a request has the token; takes as long for each wrong one."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def wait(self) -> None:
        """Return when the server is stopped. KeyboardInterrupt passes through."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def stop(self) -> None:
        """End. Further requests are refused."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> ViewServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    view: ViewServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes its connection, as it does for a page that is loaded again, is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "hloom"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        port = self.server.view.port
        if self.headers.get("Host", "") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self._send(403, "text/plain", b"this server answers this machine only\n", with_body)
            return
        try:
            url = urlsplit(self.path)
        except ValueError:  # such as http://[
            self._send(404, "text/plain", b"there is no such page\n", with_body)
            return
        name = PurePosixPath(url.path).name or "index.html"
        if url.path not in ("/", f"/{name}"):
            self._send(404, "text/plain", b"there is no such page\n", with_body)
        elif name == "data.json" or url.path == "/":
            tokens = parse_qs(url.query).get("token", [""])
            if len(tokens) != 1 or not self.server.view.is_token(tokens[0]):
                self._send(403, "text/plain", b"the token in the address is missing or wrong\n", with_body)
            elif name == "data.json":
                self._send(200, "application/json", self.server.view.zipped, with_body, zipped=True)
            else:
                self._file(name, with_body)
        else:
            self._file(name, with_body)

    def _file(self, name: str, with_body: bool) -> None:
        if name not in bundle.names():
            self._send(404, "text/plain", b"there is no such page\n", with_body)
            return
        kind = bundle.TYPES[PurePosixPath(name).suffix]
        self._send(200, f"{kind}; charset=utf-8", bundle.read(name).encode(), with_body)

    def _send(self, code: int, kind: str, body: bytes, with_body: bool, *, zipped: bool = False) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        for key, value in _HEADERS.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address with its token would be in it."""
