"""The tools that run hloom elsewhere (`tools/places.py`), on a place that is this Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.tool_modules import tool_module

TESTS = {
    "test_right": (
        "import os\n\ndef test_a():\n    assert os.environ['HERE'] == 'yes'\n\ndef test_left_out():\n    assert 0\n"
    ),
    "test_wrong": "import pytest\n\ndef test_b():\n    assert 0\n\ndef test_c():\n    pytest.skip()\n",
    "test_ends": "import os\n\ndef test_d():\n    os._exit(7)\n",
    "test_long": "import time\n\ndef test_e():\n    time.sleep(100)\n",
}


@pytest.fixture
def places(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(root / "tools"))  # as for a script there
    return tool_module(root, "places")


def place(places: Any, folder: Path, **options: Any) -> Any:
    """This Python, by a script as `setup` writes one."""
    made = places.Place(folder=folder, setup=lambda: None, variables={"HERE": "yes"}, **options)
    places.write_program(made.python, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    return made


def test_a_table_of_files(
    places: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = tmp_path / "ended"
    here = place(places, tmp_path / "place", left_out=["test_left_out"], end=["touch", str(ended)])

    def copied(target: Path) -> None:
        target.mkdir()
        for name, text in TESTS.items():
            (target / f"{name}.py").write_text(text)

    monkeypatch.setattr(places.emulation, "copy_checkout", copied)
    assert here.check(["test_right.py", "test_wrong.py", "test_ends.py"], False) == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [[*row[:3], row[-1]] for row in rows[:4]] == [
        ["passed", "failed", "skipped", "file"],
        ["1", "0", "0", "test_right.py"],
        ["0", "1", "1", "test_wrong.py"],
        ["0", "1", "0", "test_ends.py"],
    ]
    assert rows[4][:3] == ["1", "2", "1"] and rows[-2] == ["test_wrong::test_b"]
    assert rows[-1][:4] == ["test_ends.py:", "ended", "with", "7,"]
    assert not ended.exists()
    shutil.rmtree(here.folder / "checkout")
    monkeypatch.setattr(places.emulation, "SECONDS", 2)
    assert here.check(["test_long.py"], False) == 1 and ended.exists()
    assert "test_long.py: ended with -1" in capsys.readouterr().out


def test_commands(
    places: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tool.py", "run", "-c", "import os; print(os.environ['HLOOM_CHECKOUT'])"])
    monkeypatch.delenv("HLOOM_CACHE_DIR", raising=False)
    here = place(places, tmp_path / "place")
    assert places.main(here, "A tool.") == 0
    assert capfd.readouterr().out.split() == [str(places.ROOT)]
    assert here.environment(tmp_path)["HLOOM_CACHE_DIR"] == str(tmp_path / "place" / "kernels")
    here.python.unlink()
    for unfit, message in (("another machine", "another machine"), ("", "run `python tools/tool.py setup` first")):
        with pytest.raises(SystemExit):
            places.main(here, "A tool.", unfit)
        assert message in capfd.readouterr().err


def test_the_starter_of_a_python(places: Any, tmp_path: Path) -> None:
    """Its program finds the library, the checkout, the packages and then what PYTHONPATH had, and all words."""
    script = tmp_path / "python"
    show = 'printf "%s\n" "$PYTHONHOME" "$PYTHONPATH" "$MORE"; printf "%s|" "$@"'
    command = f"sh -c '{show}' sh"
    places.write_program(script, places.starter(command, Path("/h"), Path("/p"), 'MORE="1 2"'))
    given = {**os.environ, "HLOOM_CHECKOUT": "/c", "PYTHONPATH": "/old"}
    said = subprocess.run([script, "-c", "two words"], env=given, capture_output=True, text=True, check=True).stdout
    assert said.split("\n") == ["/h", "/c:/p:/old", "1 2", "-c|two words|"]


def test_the_tests_without_a_gil_are_there(root: Path, places: Any) -> None:
    named = tool_module(root, "free_threaded").TESTS
    assert all((root / name).is_file() for name in named)
