"""A headless Chromium, driven through chromedriver by the W3C's WebDriver protocol, for tests of pages."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

_TOOLS = [shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")]


def has_browser() -> bool:
    """Whether a browser can be driven here."""
    return all(_TOOLS)


needs_browser = pytest.mark.skipif(not has_browser(), reason="needs chromium and chromedriver")

KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015"}
"""Keys that are no characters, as WebDriver (W3C) numbers them."""

Stroke = Sequence[tuple[int, int]]


class Browser:
    """One window."""

    def __init__(self, address: str) -> None:
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        chrome = {"binary": _TOOLS[1], "args": [*arguments, "--window-size=760,640"]}
        logs = {"goog:loggingPrefs": {"browser": "ALL"}}
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": chrome, **logs}}}
        self._address = address
        self._session = f"/session/{self._ask('/session', wanted)['sessionId']}"

    def _ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"})
        request.method = method or request.get_method()
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        """Open a page, and wait until it is loaded."""
        self._ask(f"{self._session}/url", {"url": url})

    def ask(self, script: str) -> Any:
        """The result of a script; for a promise, its value."""
        return self._ask(f"{self._session}/execute/sync", {"script": script, "args": []})

    def wait(self, script: str) -> None:
        """Wait until a script returns true."""
        end = time.monotonic() + 60
        while not self.ask(script):
            assert time.monotonic() < end, f"still not so: {script}"
            time.sleep(0.05)

    def draw(self, strokes: Sequence[Stroke], left: int, top: int) -> None:
        """Draw lines with the mouse, from point to point."""
        for stroke in strokes:
            moves = [
                {"type": "pointerMove", "x": left + x, "y": top + y, "duration": 0 if k == 0 else 10}
                for k, (x, y) in enumerate(stroke)
            ]
            actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
            mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
            self._ask(f"{self._session}/actions", {"actions": [mouse]})

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, where the focus is: characters, or names of `KEYS`."""
        codes = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": code} for code in codes for kind in ("keyDown", "keyUp")]
        self._ask(f"{self._session}/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def errors(self) -> list[str]:
        """What the console has logged as an error since the last question."""
        logged = self._ask(f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in logged if entry["level"] == "SEVERE"]

    def resize(self, width: int, height: int) -> None:
        """Give the window another size, in pixels."""
        self._ask(f"{self._session}/window/rect", {"width": width, "height": height})

    def picture(self) -> bytes:
        """The window, as PNG."""
        return base64.b64decode(self._ask(f"{self._session}/screenshot"))

    def close(self) -> None:
        """End the browser."""
        self._ask(self._session, method="DELETE")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with an empty window."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen([str(_TOOLS[0]), "--port=0"], **pipes) as driver:
        try:
            assert driver.stdout is not None
            said = ""
            for line in driver.stdout:
                said += line
                if found := re.search(r"started successfully on port (\d+)", line):
                    break
            else:
                raise RuntimeError(f"chromedriver does not start:\n{said}")
            window = Browser(f"http://localhost:{found[1]}")
            try:
                yield window
            finally:
                window.close()
        finally:
            driver.terminate()
