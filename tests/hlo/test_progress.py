"""Long work says how far it is: on a terminal, after some time, in one line that disappears."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest
from hloom.hlo.support import progress
from hloom.hlo.support.progress import SILENT, current, working
from hloom.hlo.targets import target_named
from hloom.numba_backend.compiling import compiled
from hloom.numba_backend.runtime import program, store

import hloom
import hloom.numpy as jnp


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """stderr, on which work shows at once. (No fixture: pytest sets stderr after all fixtures.)"""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "REDRAWN", 0.0)
    monkeypatch.setenv("COLUMNS", "80")
    return found


def deep(x: hloom.Array) -> hloom.Array:
    for k in range(4):
        x = jnp.sin(x) + jnp.cumsum(x) * k
        x = x @ jnp.outer(x, x)
    return x


def test_titles_are_one_visible_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with progress.working("a\x1b[2Jtitle") as work:
        work.stage("two\nlines")
        work.stage("plain")
    bar = progress.draw("of\x1b]0;a loop", 0.0, total=3, leave=False)
    progress.erase(bar)
    text = terminal.getvalue()
    assert "a\\033[2Jtitle: two\\nlines" in text and "of\\033]0;a loop" in text and "title: plain" in text
    assert "[2J" in text and "\x1b[2J" not in text and "\x1b]" not in text and "two\n" not in text


def test_compile_names_its_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    empty = store.KernelStore(None)
    monkeypatch.setattr(program, "default_store", lambda: empty)
    compiled(hloom.jit(deep).lower(jnp.ones(5)).module, target_named("cpu"))
    for text in ("compile jit_deep: pass fusion", "compile jit_deep: code:", "instructions", "LLVM:", "kernels"):
        assert text in terminal.getvalue()
    assert terminal.getvalue().rstrip(" ").endswith("\r")  # the line is gone
    assert not progress.BARS


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 60.0)
    with working("work", 3) as work:
        work.advance(3)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("why", ["no terminal", "the setting", "nested"])
def test_silent(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    terminal_of(monkeypatch)
    if why == "no terminal":
        monkeypatch.setattr(sys, "stderr", io.StringIO())
    with hloom.progress_bars(why != "the setting"):
        if why == "nested":
            with working("outer") as outer:
                assert working("inner") is SILENT
                assert current() is outer
        else:
            assert working("work") is SILENT
    assert working("work") is not SILENT or why == "no terminal"


def test_an_exception_removes_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with pytest.raises(KeyboardInterrupt), working("work", 3) as work:
        work.advance()
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\r")
    assert current() is SILENT
    assert not progress.BARS


def test_output_in_between(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = terminal_of(monkeypatch)
    with working("work", 3) as work:
        work.advance()
        before = terminal.getvalue()
        with progress.cleared():
            pass
        assert terminal.getvalue() == before
        with progress.cleared():
            print("text")
        assert "\r" + " " * 20 in terminal.getvalue()[len(before) :]
    assert capsys.readouterr().out == "text\n"


def test_threads_have_lines_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    both = threading.Barrier(2)

    def run(name: str) -> None:
        with working(name, 2) as work:
            work.advance()
            both.wait()
            assert len(progress.BARS) == 2
            both.wait()

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "one:" in terminal.getvalue()
    assert "two:" in terminal.getvalue()


def on_a_terminal(program: str, tmp_path: Path, **environment: str) -> str:
    """The bytes that a program writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env={**os.environ, "HLOOM_CACHE_DIR": str(tmp_path), **environment},
    )  # fmt: skip
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        found += part
    os.close(ours)
    assert process.wait(60) == 0, found.decode()
    return found.decode()


PROGRAM = """
import sys
import hloom, hloom.numpy as jnp
from hloom.hlo.support import progress
hloom.jit(jnp.sin)(jnp.ones(3))
print("tqdm" in sys.modules)
progress.DELAY = 0.0
hloom.jit(lambda x: jnp.cumsum(jnp.sin(x)) * 2)(jnp.ones(3))
print("tqdm" in sys.modules)
"""


@pytest.mark.parametrize("value", ["1", "0"])
def test_tqdm_is_imported_when_it_draws(value: str, tmp_path: Path) -> None:
    text = on_a_terminal(PROGRAM, tmp_path, HLOOM_PROGRESS_BARS=value)
    assert text.startswith("False")
    assert ("compile jit_lambda" in text) == (value == "1")
    assert text.rstrip().endswith("True" if value == "1" else "False")


NOTEBOOK = """
import sys, types, warnings
warnings.simplefilter("error")
sys.modules["ipykernel"], sys.modules["ipywidgets"] = types.ModuleType("ipykernel"), None
from hloom.hlo.support import progress
progress.DELAY = 0.0
with progress.working("work", 3, "parts") as work:
    work.advance()
"""


def test_a_notebook_without_widgets_shows_text() -> None:
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, timeout=60, check=True)
    assert "work:  33%" in done.stderr
    assert "Exception" not in done.stderr
