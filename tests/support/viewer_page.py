"""The viewer's page in a browser, for tests: a server of its files and of one program, keys, times."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.browser import Browser
from support.node import VIEWER_PAGE

READY = "return document.documentElement.dataset.ready === 'yes'"


@contextmanager
def served(program: dict[str, Any] | bytes) -> Iterator[str]:
    """The address of the page that shows a program."""
    data = program if isinstance(program, bytes) else json.dumps(program).encode()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(VIEWER_PAGE))

        def do_GET(self) -> None:
            if not self.path.startswith("/data.json"):
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def show(window: Browser, url: str, fragment: str = "") -> None:
    """Open the page anew, and wait until it answers."""
    window.open("about:blank")
    window.open(url + fragment)
    window.wait(READY)


def milliseconds(window: Browser) -> dict[str, float]:
    """When the page had its data, its indices, and answered; each since it was opened."""
    marks = "Object.fromEntries(performance.getEntriesByType('mark').map((m) => [m.name, m.startTime]))"
    found: dict[str, float] = window.ask(f"return {marks}")
    return {name: round(found[name], 1) for name in ("data", "indices", "panes", "drawn", "ready")}
