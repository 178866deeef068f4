"""Real programs in a browser: from `hloom.view` to the page, served and as one file, without an error."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hloom.viewer import bundle
from hloom.viewer.inspection import inspect
from hloom.viewer.model import model_of, to_text
from hloom.viewer.server import ViewServer
from hloom.viewer.timeline_file import model_of_file
from support.browser import Browser, browser, needs_browser
from support.viewer_page import READY, show
from viewer.test_model import PROGRAMS

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as opened:
        opened.resize(1600, 900)
        yield opened


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_shown(window: Browser, name: str, tmp_path: Path) -> None:
    f, args = PROGRAMS[name]()
    data = model_of(inspect(f, args, {}, calls=2))
    text = to_text(data)
    kernel, instruction = data["kernels"][0]["name"], data["kernels"][0]["instructions"][0]
    with ViewServer(text) as server:
        show(window, server.address, f"#selected=i{instruction}")
        assert kernel in window.ask("return document.body.innerText")
        assert window.errors() == []
    page = tmp_path / "page.html"
    page.write_text(bundle.single_file(text, data["title"]), encoding="utf-8")
    show(window, page.as_uri(), f"#selected=i{instruction}")
    assert kernel in window.ask("return document.body.innerText")
    assert window.ask("return performance.getEntriesByType('resource').length") == 0
    assert window.errors() == []


def test_the_page_without_a_token_shows_nothing(window: Browser) -> None:
    with ViewServer(json.dumps({"title": "hidden"})) as server:
        window.open(f"http://127.0.0.1:{server.port}/")
        assert "token" in window.ask("return document.body.innerText")
        assert "403" in "".join(window.errors())


def test_mnists_step_opens_in_two_seconds(window: Browser) -> None:
    f, args = PROGRAMS["MNIST's step"]()
    lowered = f.lower(*args)
    lowered.compile()
    started = time.perf_counter()
    with ViewServer(to_text(model_of(inspect(lowered, (), {})))) as server:
        window.open(server.address)
        window.wait(READY)
        assert time.perf_counter() - started < 2


def test_a_timeline_is_shown(window: Browser, tmp_path: Path) -> None:
    name = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "Kernels and products"}}
    about = {"program": "jit_step", "instruction": "dot", "bytes": 800, "flops": 100, "source": "/nowhere/train.py:3"}
    row = {"ph": "X", "pid": 7, "tid": 1, "name": "fused_add", "cat": "span", "ts": 3.0, "dur": 5.0, "args": about}
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"traceEvents": [name, row, row]}))
    data = model_of_file(str(path))
    assert [(r["label"], r["calls"], r["bytes"]) for r in data["rows"]] == [("jit_step: fused_add", 2, 800)]
    with ViewServer(to_text(data)) as server:
        show(window, server.address)
        assert "fused_add" in window.ask("return document.body.innerText")
        assert window.errors() == []
