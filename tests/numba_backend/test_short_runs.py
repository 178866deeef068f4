"""Short runs of narrow elements that are moved at once."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.numba_backend.loops.lanes import in_lanes
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import For
from hloom.numba_backend.loops.typing import SHORT, pointer_to
from hloom.numba_backend.runtime import dialect
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter

import hloom
from hloom import numpy as jnp


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.uint16, ml_dtypes.bfloat16, np.float16, np.float32])
def test_transposes_that_keep_a_short_run(dtype: Any) -> None:
    for n in (1, 2, 3, 5, 7, 8, 12, 13, 15, 16, 17, 31):
        shape = (40, 3, 34, n)
        x = (np.arange(math.prod(shape)) % 113).astype(dtype).reshape(shape)
        found = np.asarray(hloom.jit(lambda x: x.transpose(0, 2, 1, 3))(x))
        np.testing.assert_array_equal(found, x.transpose(0, 2, 1, 3), err_msg=f"{n} {np.dtype(dtype)}")


def test_a_run_that_moves_within_its_array() -> None:
    """An update that reads its own array reads the values from before the update."""
    x = np.arange(200, dtype=np.int8).reshape(10, 20)

    def shifted(x: Any) -> Any:
        return hloom.lax.fori_loop(0, 4, lambda i, x: x.at[:, 3:15].set(x[:, 2:14]), x)

    expected = x.copy()
    for _ in range(4):
        expected[:, 3:15] = expected[:, 2:14].copy()
    np.testing.assert_array_equal(np.asarray(hloom.jit(shifted)(jnp.asarray(x))), expected)


_COPY = """def k(lo, hi, x, out):
    for i in range(lo, hi):
        for l in {kind}(12):
            out[i * 12 + l] = {value}
"""


@pytest.mark.parametrize(
    ("value", "dtype", "kind"),
    [
        ("x[i * 20 + l]", "u8", "lanes"),
        ("x[i * 20 + 11 - l]", "u8", "range"),  # in another order
        ("x[i * 20 + 2 * l]", "u8", "range"),  # no neighbours
        ("out[i * 20 + l]", "u8", "range"),  # may overlap
        ("x[i * 20 + l]", "f32", "range"),  # LLVM does it
    ],
)
def test_which_runs_are_moved_at_once(value: str, dtype: str, kind: str) -> None:
    pointer = pointer_to(SHORT[dtype])
    (outer,) = read(_COPY.format(value=value, kind="range"), ["int64", "int64", pointer, pointer]).body
    assert isinstance(outer, For)
    (loop,) = outer.body
    assert isinstance(loop, For)
    assert in_lanes(loop).kind == kind


def test_runs_move_as_halves_of_registers() -> None:
    parameters = (Parameter("pointer", "u8"), Parameter("pointer", "u8"))
    source = _COPY.format(value="x[i * 20 + l]", kind="lanes")
    text = to_llvm(KernelSource("k", source, parameters), dialect.SCOPE, "one pass", register=64)
    assert text.count("load <") == 2
