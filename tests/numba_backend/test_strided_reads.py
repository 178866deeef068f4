"""Reads of every second, third, ... element: LLVM may read whole vectors, and nothing outside of the array is read."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hloom.hlo import ElementType
from hloom.numba_backend.runtime import dialect
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter

from hloom import hlo
from tests.support.guarded import GuardedProgram, small_pieces

E = ElementType
KERNEL = """def k(lo, hi, x, out, n, k0):
    for i in range(lo, hi):
        for j in range(n):
            out[i * n + j] = x[{index}]
"""


@pytest.mark.parametrize(
    ("index", "steps"),
    [
        ("j * 2", 1),
        ("i * 2 * n + j * 2", 2),
        ("i * n + j * 8", 2),
        ("i * n + (j * 3 + k0)", 3),
        ("i * n + (j * 3 + 1)", 3),
        ("i * n + j", 0),
        ("i * 2 + j", 0),
        ("i * n + j * 9", 0),
        ("i * n + j * k0", 0),
        ("i * n + (n - j * 2)", 0),
    ],
)
def test_addresses_that_do_not_wrap(index: str, steps: int) -> None:
    """One step for operands that do not change in the loop, one for strided elements."""
    parameters = (*[Parameter("pointer", "f32")] * 2, *[Parameter("size", "s64")] * 2)
    text = to_llvm(KernelSource("k", KERNEL.format(index=index), parameters), dialect.SCOPE, "one pass")
    assert len(re.findall(r"getelementptr inbounds float", text)) == steps


@pytest.mark.one_in(2)
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("t", [E.F32, E.S8, E.BF16, E.F64], ids=str)
def test_slices_stay_inside(t: ElementType, at_end: bool) -> None:
    """Lengths around the lengths of vectors and remainders; the last element is the last of the array."""
    rng = np.random.default_rng(0)
    for step, start, rows, count in ((2, 0, 3, 65), (2, 1, 1, 200), (3, 2, 5, 34), (4, 0, 2, 33), (8, 5, 2, 17)):
        size = start + (count - 1) * step + 1
        text = f"""HloModule m
        ENTRY e {{ x = {t.value}[{rows},{size}] parameter(0)
          ROOT r = {t.value}[{rows},{count}] slice(x), slice={{[0:{rows}],[{start}:{size}:{step}]}} }}"""
        x = rng.integers(-100, 100, (rows, size)).astype(t.dtype)
        with small_pieces():
            (found,) = GuardedProgram(hlo.parse(text), at_end=at_end).run([x])
        np.testing.assert_array_equal(found, x[:, start::step])
