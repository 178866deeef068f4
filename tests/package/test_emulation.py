"""The table of tests that ran on another processor (`tools/emulation.py`), here with files that run on this one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools import emulation

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:xdist")
FILES = {
    "a/test_good.py": "import pytest\ndef test_1(): pass\n@pytest.mark.skip(reason='no boat')\ndef test_2(): pass\n",
    "b/test_good.py": "def test_one(): pass\n",
    "b/test_bad.py": "from pathlib import Path\ndef test_mended(): assert Path('mended').exists()\n",
    "b/test_dies.py": "import os, pathlib\ndef test_it():\n    pathlib.Path('mended').exists() or os._exit(9)\n",
}


@pytest.mark.slow
def test_a_check_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of one name in two folders have a row each; what failed or died runs again, and what passed does not."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def check(goes_on: bool) -> tuple[int, list[str]]:
        code = emulation.check(PYTEST, tmp_path, tmp_path / "results", list(FILES), os.environ, goes_on)
        lines = capsys.readouterr().out.splitlines()
        return code, [" ".join([*line.split()[:3], line.split()[-1]]) for line in lines[1:6]] + lines[6:]

    code, lines = check(goes_on=True)
    assert code == 1
    assert lines[:5] == [
        "1 0 1 a/test_good.py", "1 0 0 b/test_good.py", "0 1 0 b/test_bad.py", "0 1 0 b/test_dies.py", "2 2 1 files",
    ]  # fmt: skip
    assert lines[5:7] == ["1 skipped: no boat", "b.test_bad::test_mended"]
    assert lines[7].startswith("b/test_dies.py: ended with 9, see ")
    (tmp_path / "mended").touch()
    for name in ("a/test_good.py", "b/test_good.py"):  # they would fail now
        (tmp_path / name).write_text("def test_one(): assert False\n")
    code, lines = check(goes_on=True)
    assert code == 0 and lines[:5] == [
        "1 0 1 a/test_good.py", "1 0 0 b/test_good.py", "1 0 0 b/test_bad.py", "1 0 0 b/test_dies.py", "4 0 1 files",
    ]  # fmt: skip
    code, lines = check(goes_on=False)
    assert code == 1 and lines[4] == "2 2 0 files"
