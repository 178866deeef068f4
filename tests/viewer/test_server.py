"""The viewer's server refuses all but its own page's requests; the single file needs nothing and lets nothing in."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.client
import json
import re
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from hloom.viewer import bundle
from hloom.viewer.server import ViewServer

HOSTILE = '</script><script>alert(1)</script><!-- \u2028 ]]> & "quoted" \\u003c'


@pytest.fixture(scope="module")
def server() -> Iterator[ViewServer]:
    with ViewServer(json.dumps({"title": "test", "strings": ["x" * 1000]})) as running:
        yield running


def ask(
    server: ViewServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": f"127.0.0.1:{server.port}" if host is None else host})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_the_page_and_its_data(server: ViewServer) -> None:
    assert server.address == f"http://127.0.0.1:{server.port}/?token={server.token}" and len(server.token) >= 32
    page, body = ask(server, f"/?token={server.token}")
    assert page.status == 200 and body == bundle.read("index.html").encode()
    data, body = ask(server, f"/data.json?token={server.token}")
    assert data.headers["Content-Encoding"] == "gzip" and len(body) < 500
    assert json.loads(gzip.decompress(body))["title"] == "test"
    for name in bundle.names():
        found, body = ask(server, f"/{name}")
        assert found.status == 200 and body and "charset=utf-8" in found.headers["Content-Type"]
    head, body = ask(server, f"/data.json?token={server.token}", "HEAD")
    assert head.status == 200 and body == b""


@pytest.mark.parametrize("path", ["/", "/data.json"])
@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token={}x", "?token={}&token={}", "?Token={}"])
def test_a_wrong_token_is_refused(server: ViewServer, path: str, query: str) -> None:
    answer, body = ask(server, path + query.replace("{}", server.token))
    assert answer.status == 403 and b"token" in body


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}"])
def test_another_host_is_refused(server: ViewServer, host: str) -> None:
    answer, _ = ask(server, f"/data.json?token={server.token}", host=host.replace("{port}", str(server.port)))
    assert answer.status == 403


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/%2e%2e/server.py", "/page/main.js", "/dagre.LICENSE", "/nothing", "/x/data.json"],
)
def test_nothing_else_is_served(server: ViewServer, path: str) -> None:
    assert ask(server, f"{path}?token={server.token}")[0].status in (403, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(server: ViewServer, method: str) -> None:
    assert ask(server, f"/?token={server.token}", method)[0].status == 501


@pytest.mark.parametrize("path", ["http://[", "http://[x]/", "http://[::1/main.js"])
def test_an_address_that_is_none(server: ViewServer, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert ask(server, path)[0].status == 404
    assert capfd.readouterr().err == ""


def test_a_browser_that_goes_away(capfd: pytest.CaptureFixture[str]) -> None:
    """It closes its connection in the middle of the answer, as for a page that is loaded again."""
    with ViewServer(json.dumps(secrets.token_hex(5_000_000))) as running:
        threads = threading.active_count()
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request = f"GET /data.json?token={running.token} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n\r\n"
            connection.sendall(request.encode())
            assert connection.recv(12) == b"HTTP/1.0 200"
        deadline = time.monotonic() + 10
        while threading.active_count() > threads and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ask(running, "/main.js")[0].status == 200
    assert capfd.readouterr().err == ""


def test_headers(server: ViewServer) -> None:
    for path in (f"/?token={server.token}", "/main.js", "/nothing", "/data.json"):
        headers = ask(server, path)[0].headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in headers and headers["Cache-Control"] == "no-store"


def test_it_stops() -> None:
    server = ViewServer("{}")
    server.stop()
    server.wait()
    with pytest.raises(ConnectionError):
        ask(server, "/")


def test_two_servers_have_their_own_tokens() -> None:
    with ViewServer("{}") as one, ViewServer("{}") as other:
        assert one.token != other.token and one.port != other.port
        assert ask(one, f"/?token={other.token}")[0].status == 403


def test_the_single_file() -> None:
    data = {"title": HOSTILE, "strings": [HOSTILE]}
    page = bundle.single_file(json.dumps(data, ensure_ascii=False), HOSTILE)
    texts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert len(texts) == 3 and page.count("<script") == page.count("</script>") == 3
    (inside,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert "<" not in inside and "\u2028" not in inside and json.loads(inside) == data
    assert re.search(r"<title>(.*?)</title>", page, re.DOTALL)[1].startswith("&lt;/script&gt;")  # type: ignore[index]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and "unsafe" not in policy[1] and "'self'" not in policy[1]
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text in (*[t for t in texts if t != inside], *styles):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy[1]
    assert policy[1].count("sha256-") == 3
    without_data = page.replace(inside, "")
    assert not re.search(r"""(src|href)=["'](?!data:)""", without_data)
    assert not re.search(r"@import|url\((?!['\"]?data:)", styles[0])


def test_the_modules_are_one_script() -> None:
    text = bundle.modules()
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)
    for name in bundle.names():
        if name.endswith(".js") and name != "dagre.min.js":
            last = [line for line in bundle.read(name).splitlines() if line.strip()][-1]
            assert last.removeprefix("export ") in text, name
