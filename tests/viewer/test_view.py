"""`hloom.view` and `hloom view`: functions, files, scripts and timelines become pages."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import hloom
import hloom.numpy as jnp
from hloom.command_line import main
from hloom.viewer.server import ViewServer
from hloom.viewer.timeline_file import model_of_file
from hloom.viewer.view import show

SCRIPT = """
import hloom, hloom.numpy as jnp

@hloom.jit
def step(w, x):
    return w - 0.1 * hloom.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

@hloom.jit
def predict(w, x):
    return jnp.argmax(x @ w, axis=1)

w, x = jnp.ones((20, 10)), jnp.ones((50, 20))
for _ in range(5):
    w = step(w, x)
print(predict(w, x)[:3])
"""
MODULE = """HloModule axpy
ENTRY e {
  a = f32[] parameter(0)
  x = f32[300] parameter(1)
  b = f32[300] broadcast(a), dimensions={}
  ROOT m = f32[300] multiply(b, x)
}
"""


def data_in(page: Path) -> dict[str, Any]:
    """The data of a page that is one file."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return str(path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hloom", "view", *arguments], capture_output=True, text=True, timeout=120
    )


def test_a_function_as_one_file(tmp_path: Path) -> None:
    page = tmp_path / "f.html"
    hloom.view(lambda x: 2 * jnp.tanh(x), jnp.ones(3), html=page)
    data = data_in(page)
    assert data["stages"] and data["kernels"] and data["profile"] is None
    hloom.view(hloom.jit(lambda x: 2 * jnp.tanh(x)), jnp.ones(3), html=page, profile=2)
    assert data_in(page)["profile"]["calls"] == 2
    with pytest.raises(ValueError, match="profile"):
        hloom.view(lambda x: x, 1.0, html=page, profile=-1)


def test_names_of_the_user_do_not_become_markup(tmp_path: Path) -> None:
    name = '</script><img src=x onerror="alert(1)">'

    def f(x: Any) -> Any:
        with hloom.named_scope(name):
            return jnp.sin(x)

    f.__name__ = name
    page = tmp_path / "f.html"
    hloom.view(f, jnp.ones(3), html=page)
    assert name not in page.read_text() and "<img" not in page.read_text()
    assert any(name in text for text in (*data_in(page)["strings"], html.unescape(page.read_text())))


def test_a_function_is_served(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def look(address: str) -> None:
        """A browser: it gets the page and its data."""
        with urllib.request.urlopen(address, timeout=10) as answer:
            seen.append(answer.read())

    monkeypatch.setattr("webbrowser.open", look)
    monkeypatch.setattr("hloom.viewer.server.ViewServer.wait", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    hloom.view(lambda x: x + 1, 1.5)
    assert len(seen) == 1 and b"<!doctype html>" in seen[0]
    assert "http://127.0.0.1:" in capsys.readouterr().err


def test_a_file(tmp_path: Path) -> None:
    model, page = tmp_path / "axpy.hlo", tmp_path / "axpy.html"
    model.write_text(MODULE)
    assert main(["view", "--html", str(page), str(model)]) == 0
    data = data_in(page)
    assert data["title"] == "axpy" and data["profile"] is None and data["kernels"]
    assert main(["view", "--html", str(page), "--profile", "3", str(model)]) == 0
    assert data_in(page)["profile"]["calls"] == 3


def test_the_programs_of_a_script(script: str, tmp_path: Path) -> None:
    page = str(tmp_path / "page.html")
    ran = run("--html", page, script)
    assert ran.returncode == 0 and ran.stdout == "[0 0 0]\n"
    assert ran.stderr == "shown is predict; --function shows another: step\n"  # it has more instructions
    data = data_in(Path(page))
    assert data["title"] == "predict" and data["sources"][0]["path"] == "train.py"
    ran = run("--html", page, "--function", "step", "--profile", "1", script)
    assert ran.returncode == 0 and ran.stderr == ""
    data = data_in(Path(page))
    assert data["title"] == "step" and any(row["seconds"] for row in data["rows"])
    ran = run("--html", page, "--function", "nothing", script)
    assert ran.returncode == 2 and "these were: step, predict" in ran.stderr


def test_a_timeline(script: str, tmp_path: Path) -> None:
    timeline, page = tmp_path / "out.json", tmp_path / "page.html"
    command = [sys.executable, "-m", "hloom", "profile", "--timeline", str(timeline), script]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert main(["view", "--html", str(page), str(timeline)]) == 0
    data = data_in(page)
    assert data["stages"] == [] and data["rows"] and data["sources"][0]["path"] == "train.py"
    calls = {row["label"]: row["calls"] for row in data["rows"]}
    assert 5 in calls.values() and all(label.startswith(("jit_step: ", "jit_predict: ")) for label in calls)
    assert data["profile"]["lines"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"traceEvents": 3}', "nonsense", "[" * 100_000, '{"traceEvents": [3, {"ph": "X"}]}'],
    ids=lambda text: text[:20],
)
def test_a_file_that_is_no_timeline(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    if text.endswith("}]}"):
        assert model_of_file(str(path))["rows"] == []
        return
    with pytest.raises(ValueError):
        model_of_file(str(path))


def test_a_timeline_with_values_of_odd_types(tmp_path: Path) -> None:
    """A page can be made of it: an event that says no process, or no time, is left out or has none."""
    name = {"ph": "M", "name": "process_name", "args": {"name": "Kernels and products"}}
    run = {"ph": "X", "name": "k", "ts": 1, "dur": 2}
    events = [
        {**name, "pid": 1}, {**name, "pid": [1]}, {**run, "pid": {"a": 1}}, {**run, "pid": 1}, {**run, "pid": [1]},
        {**run, "pid": 1, "ts": float("nan"), "dur": float("inf")}, {**run, "pid": 1, "dur": 10**400},
    ]  # fmt: skip
    path, page = tmp_path / "x.json", tmp_path / "x.html"
    path.write_text(json.dumps({"traceEvents": events}))
    assert main(["view", "--html", str(page), str(path)]) == 0
    (row,) = data_in(page)["rows"]
    assert row["calls"] == 4 and row["seconds"] == pytest.approx(4e-6)


def test_a_title_is_no_command_for_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """The name of a module in a StableHLO file may be any text."""
    monkeypatch.setattr(ViewServer, "wait", lambda self: None)
    show({"title": "a\x1b[31m\nb"}, None, False, 0)
    assert capsys.readouterr().err.startswith("a\\033[31m\\nb: http://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a file or a program"),
        (["missing.hlo"], "cannot read missing.hlo"),
        (["missing.json"], "missing.json is no timeline"),
        (["missing.py"], "there is no file missing.py"),
        (["--function", "f", "m.hlo"], "--function is for scripts"),
        (["m.hlo", "more"], "nothing may follow m.hlo"),
        (["--target", "tpu", "empty.py"], "--target and --input are for files"),
        (["--html", "a.html", "empty.py"], "empty.py compiled no jitted function"),
        (["--html", "no/folder/a.html", "m.hlo"], "cannot write no/folder/a.html"),
        (["--no-open", "--port", "99999999", "m.hlo"], "cannot listen on port 99999999"),
    ],
)
def test_wrong_command_lines(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.hlo").write_text(MODULE)
    (tmp_path / "empty.py").write_text("")
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    assert main(["view", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_it_is_imported_when_it_is_used() -> None:
    code = (
        "import sys, hloom, hloom.numpy as jnp; hloom.jit(jnp.sin)(1.0);"
        "print([m for m in sys.modules if 'viewer' in m or m in ('http.server', 'webbrowser')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "[]\n", ran.stderr
