"""All programs that JAX lowers its functions to, ahead of time: in C and as object code, with the results of JAX.

The programs share one C file in each run of the compiler, with the functions and the kernels that they have in common.
A part of them is run; all are with HLOOM_WHOLE_INTEROP=1, which takes a quarter of an hour.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend.ahead.c_program import programs_in_c
from hloom.numba_backend.ahead.compiling import standalone
from hloom.numba_backend.ahead.standalone import StandaloneProgram

from hloom import hlo
from interop.archive import Recorded, read
from interop.comparing import difference
from tests.aot.test_aot_libraries import KIND, run_program

NDArray = np.ndarray[Any, Any]
RECORDED = read()
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
LIBRARIES = ("linalg", ".fft", "eig", "roots", "polyfit", "signal", "sqrtm", "funm")
"""Parts of the names of functions that call libraries in this process."""
NOT_UNIQUE = {
    "scipy.linalg.schur": "two columns of Schur vectors span what LAPACK's two do, turned by a right angle",
}
WHOLE = "HLOOM_WHOLE_INTEROP" in os.environ
EVERY = 1 if WHOLE else 9
"""Runs one in so many programs without libraries: their kernels are the kernels of the op table."""


def chosen(every: int, start: int = 0) -> dict[str, Recorded]:
    """Programs that need libraries in this process, and some of the others."""
    others = [key for key in RECORDED if not any(part in key for part in LIBRARIES)][start::every]
    return {key: one for key, one in RECORDED.items() if any(part in key for part in LIBRARIES) or key in set(others)}


def lowered(recorded: Mapping[str, Recorded]) -> dict[str, tuple[Recorded, StandaloneProgram]]:
    return {f"f{k}": (one, standalone(hlo.parse(one.text))) for k, one in enumerate(recorded.values())}


def run_c(function: Any, program: StandaloneProgram, inputs: Any) -> list[NDArray]:
    given = [np.ascontiguousarray(x) for x in inputs]
    results = [np.zeros(s.dimensions, s.element.dtype) for s in program.results]
    memory = np.full(program.temporary_bytes + 64, 0xAA, np.uint8)
    start = memory.ctypes.data + (-memory.ctypes.data) % 64
    tables = [(ctypes.c_void_p * max(1, len(g)))(*[a.ctypes.data for a in g]) for g in (given, results)]
    assert function(*tables, ctypes.c_void_p(start), None) == 0
    return results


@needs_cc
@pytest.mark.slow
def test_recorded_programs_in_c_give_jax_results(tmp_path: Path) -> None:
    """A strict compiler accepts the C without a warning."""
    programs = lowered(chosen(EVERY))
    assert len(programs) > 250
    names, size = list(programs), 100
    for start in range(0, len(names), size):
        part = {name: programs[name][1] for name in names[start : start + size]}
        (tmp_path / f"all{start}.c").write_text(programs_in_c(part))
    strict = ["-std=c11", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    files = [f"all{start}.c" for start in range(0, len(names), size)]
    built = subprocess.run(["cc", *strict, "-shared", "-fPIC", "-o", "all.so", *files, "-lm"], cwd=tmp_path,
                           capture_output=True, text=True)  # fmt: skip
    assert built.returncode == 0, built.stderr[:3000]
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    wrong = {}
    for name, (one, program) in programs.items():
        problem = difference(one.id, one.outputs, run_c(KIND((f"{name}_run", library)), program, one.inputs))
        if problem is not None and one.id not in NOT_UNIQUE:
            wrong[one.id] = problem
    assert wrong == {}


@pytest.mark.slow
def test_recorded_programs_as_object_code_give_jax_results() -> None:
    """Few: the C form above has all kernels, and `test_aot_ops.py` all ops."""
    start, step = (0, 1) if WHOLE else (4, 12)
    few = [one for key, one in chosen(EVERY, start).items() if key not in NOT_UNIQUE][::step]
    assert len(few) > 20
    for one in few:
        found = run_program(standalone(hlo.parse(one.text)), one.inputs)
        assert difference(one.id, one.outputs, found) is None, one.id


def test_no_recorded_program_is_refused() -> None:
    """Of a part: each function that calls a library in this process, and some others."""
    for key, one in list(chosen(60).items())[::5]:
        try:
            standalone(hlo.parse(one.text))
        except UnsupportedError as error:
            pytest.fail(f"{key}: {error}")
