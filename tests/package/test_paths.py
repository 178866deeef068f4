"""In a checkout the modules of the linked folders have the paths that people open: `tracer/jit.py`, not
`hloom/tracer/jit.py`, whichever way Python, a debugger or a tool comes to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hloom.tracer.ops import convert

from support.source_tree import FOLDERS, is_distribution

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(is_distribution(ROOT), reason="a source distribution has folders, no links")
FILE = "tracer/ops.py"
LINE = sorted({line for *_, line in convert.__code__.co_lines() if line})[1]
"""The first line of `convert`, which `jnp.ones(2).astype(int)` calls."""


def run(*command: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HLOOM_TRACEBACK": "full"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload,no-any-return]


def test_modules_are_where_people_open_them() -> None:
    code = (
        "import hloom, hloom.numpy, inspect, json, sys\n"
        "hloom.grad(lambda x: hloom.jit(hloom.numpy.sin)(x))(1.0)\n"
        "files = {n: m.__file__ for n, m in sys.modules.items() if n.startswith('hloom.')}\n"
        "print(json.dumps([files, inspect.getsourcefile(type(hloom.jit(abs))), hloom.__path__]))"
    )
    files, source, path = json.loads(run(sys.executable, "-c", code).stdout)
    linked = {name: file for name, file in files.items() if name.split(".")[1] in FOLDERS}
    assert len(linked) > 100
    assert [file for name, file in linked.items() if not file.startswith(f"{ROOT}/{name.split('.')[1]}/")] == []
    assert source == f"{ROOT}/tracer/jit.py" and path == [f"{ROOT}/hloom"]


@pytest.mark.parametrize("path", [FILE, f"{ROOT}/{FILE}"])
def test_a_breakpoint_is_hit(path: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import hloom.numpy as jnp\nx = jnp.ones(2)\nprint(x.astype(int))\n")
    commands = f"break {path}:{LINE}\ncontinue\nwhere\np 'at', x.aval\nquit\n"
    said = run(sys.executable, "-m", "pdb", str(program), input=commands).stdout
    assert f"Breakpoint 1 at {ROOT}/{FILE}:{LINE}" in said
    assert f"> {ROOT}/{FILE}({LINE})" in said and "('at', ShapedArray(float32[2]))" in said


def test_a_breakpoint_is_hit_in_a_file_that_is_not_imported_yet(tmp_path: Path) -> None:
    """`bdb`, which most debuggers are made of, compares the path of the code with the path that it was given."""
    code = (
        "import bdb, sys\n"
        "class Debugger(bdb.Bdb):\n"
        "    def user_line(self, frame):\n"
        "        if self.break_here(frame): print('hit', frame.f_code.co_filename, frame.f_lineno)\n"
        "        self.set_continue()\n"
        f"debugger = Debugger(); assert debugger.set_break({FILE!r}, {LINE}) is None\n"
        "debugger.run('import hloom.numpy as jnp; jnp.ones(2).astype(int)', {})\n"
    )
    said = run(sys.executable, "-c", code)
    assert f"hit {ROOT}/{FILE} {LINE}\n" in said.stdout, said.stderr


def test_a_traceback_names_the_file() -> None:
    said = run(sys.executable, "-c", "import hloom, hloom.numpy as jnp\nhloom.jit(lambda x: x + 'a')(1.0)").stderr
    assert f'File "{ROOT}/tracer/jit.py", line' in said
    assert not any(f"{ROOT}/hloom/{folder}/" in said for folder in FOLDERS)


@pytest.mark.parametrize("path", ["tracer/layers.py", "hloom/tracer/layers.py"])
@pytest.mark.parametrize("tool", [pytest.param("mypy", marks=pytest.mark.slow), "ruff", "pyright"])
def test_tools_take_either_path(tool: str, path: str) -> None:
    if tool == "mypy":
        pytest.importorskip("mypy", reason="mypy is not installed")
        command = [sys.executable, "tools/typecheck.py"]
    else:
        found = shutil.which(tool, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
        if found is None:
            pytest.skip(f"{tool} is not installed")
        command = [found, *(["check"] if tool == "ruff" else [])]
    done = run(*command, path)
    assert done.returncode == 0, done.stdout + done.stderr
