"""Rows written by non-temporal stores: moved arrays of all types, in pieces, with lines that begin anywhere."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.numba_backend.emit import large_results

import hloom
import hloom.aot
from hloom import numpy as jnp

_CASES: dict[str, Callable[[Any, Any], Any]] = {
    "reverse": lambda np, x: x[:, ::-1],
    "reverse rows": lambda np, x: x[::-1],
    "roll": lambda np, x: np.roll(x, 7, 1),
    "roll rows": lambda np, x: np.roll(x, 3, 0),
    "pad": lambda np, x: np.pad(x, ((1, 2), (3, 1))),
    "concatenate": lambda np, x: np.concatenate([x, x[:, ::-1], x[:, 1:5]], 1),
    "concatenate rows": lambda np, x: np.concatenate([x, x[1:3]], 0),
    "slice": lambda np, x: x[1:, 1:-1],
    "tile": lambda np, x: np.tile(x, (1, 2)),
    "repeat": lambda np, x: np.repeat(x, 2, 1),
    "stack": lambda np, x: np.stack([x, x[:, ::-1]], -1),
    "flat": lambda np, x: x.reshape(-1)[::-1],
    "many": lambda np, x: np.concatenate([x[:, k::17] for k in range(17)], 1),
    "many rows": lambda np, x: np.concatenate([x[k::17] for k in range(17)], 0),
    "many flat": lambda np, x: np.concatenate([x.reshape(-1)[k::17] for k in range(17)], 0),
    "many pairs": lambda np, x: np.concatenate([(x if x.size % 2 else x.reshape(-1, 2))[k::17] for k in range(17)]),
}


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_results, "least_bytes", lambda: 0)
    monkeypatch.setattr(large_results, "LEAST_ROW", 0)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("name", _CASES)
def test_values(name: str) -> None:
    """Rows shorter than a line, of a piece, and of more; a few rows and enough for two threads."""
    case = _CASES[name]
    dtypes = [np.float32, np.int8, np.complex64, np.bool_, ml_dtypes.bfloat16, np.float64, np.complex128]
    for number, shape in enumerate(((5, 8), (3, 64), (7, 1023), (2, 5000), (301, 1100), (1, 9), (6, 2051))):
        for dtype in (dtypes[number % len(dtypes)], np.float32):
            x = (np.arange(shape[0] * shape[1]) % 113 + 1).astype(dtype).reshape(shape)
            found = np.asarray(hloom.jit(lambda x: case(jnp, x))(x))
            np.testing.assert_array_equal(found, case(np, x), err_msg=f"{name} {shape} {np.dtype(dtype)}")


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("name", ["reverse", "roll", "pad", "stack", "many"])
def test_kernels(name: str) -> None:
    """Long rows are streamed; two neighbours are a part of one."""
    case = _CASES[name]
    kernels = hloom.jit(lambda x: case(jnp, x)).lower(jnp.zeros((9, 2053 + len(name)), "float32")).compile().kernels()
    assert "streamed(16)" in str(kernels)


def test_small_results_stay() -> None:
    def kernels(f: Callable[[Any], Any], *shape: int) -> str:
        return str(hloom.jit(f).lower(hloom.ShapeDtypeStruct(shape, "float32")).compile().kernels())

    assert "streamed" not in kernels(lambda x: x[:, ::-1], 64, 1000)
    assert "streamed" in kernels(lambda x: x[:, ::-1], 4096, 4097)
    assert "streamed" not in kernels(lambda x: jnp.repeat(x, 4, 1), 4096, 1025)
    assert "streamed" in kernels(lambda x: x[:, ::-1], 4097 * 4096, 2)  # the last two dimensions together are a row


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")
@pytest.mark.usefixtures("everything_is_large")
def test_ahead_of_time(tmp_path: Path) -> None:
    """As C and as object code, with results that begin anywhere."""

    def f(x: Any) -> tuple[Any, ...]:
        return jnp.concatenate([x, x[:, ::-1]], 1), jnp.pad(x, 1), jnp.roll(x, 3, 1)

    x = np.arange(7 * 1030, dtype=np.float32).reshape(7, 1030)
    program = hloom.aot.compile(f, (x,), name="rows")
    assert "row0" in program.c_source
    program.write(tmp_path)
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    for source in ("rows.c", "rows.o"):
        library = tmp_path / f"{source}.so"
        subprocess.run(["cc", *flags, source, "-o", str(library), "-lm", "-lpthread"], cwd=tmp_path, check=True)
        results = [np.zeros(np.prod(r.shape.dimensions) + 1, np.float32)[1:] for r in program.results]
        tables = [(ctypes.c_void_p * len(g))(*[a.ctypes.data for a in g]) for g in ([x], results)]
        assert ctypes.CDLL(str(library)).rows_run(*tables, None, None) == 0
        for found, expected in zip(results, f(x), strict=True):
            np.testing.assert_array_equal(found, np.asarray(expected).ravel())
