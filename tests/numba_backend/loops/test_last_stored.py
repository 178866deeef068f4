"""Loops that load, at indices that are no sums, what they have stored in the iteration before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.compiler import NumbaCompiler

import hloom
from hloom import lax


def loop(step: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A loop from a to b, which are arguments; indices outside of the array are clamped."""

    def run(x: Any, a: Any, b: Any) -> Any:
        return lax.fori_loop(a, b, step, x)

    return run


def at(x: Any, j: Any) -> Any:
    return lax.dynamic_index_in_dim(x, j, keepdims=False)


def to(x: Any, j: Any, value: Any) -> Any:
    return lax.dynamic_update_index_in_dim(x, value, j, 0)


def first_of(x: Any) -> Any:
    return to(x, 0, at(x, 0) + 1)


CARRIED: dict[str, Callable[[Any, Any], Any]] = {
    "the one before": lambda j, x: to(x, j, at(x, j) + 2 * at(x, j - 1)),
    "the one before, twice": lambda j, x: to(x, j, at(x, j - 1) - at(x, j) + at(x, j - 1)),
    "the next one is stored": lambda j, x: to(x, j + 1, at(x, j + 1) - at(x, j)),
    "backwards": lambda j, x: to(x, 8 - j, at(x, 8 - j) - at(x, 9 - j)),
}
NOT_CARRIED: dict[str, Callable[[Any, Any], Any]] = {
    "two before": lambda j, x: to(x, j, at(x, j) + at(x, j - 2)),
    "the next one": lambda j, x: to(x, j, at(x, j) + at(x, j + 1)),
    "always the same": lambda j, x: to(x, 3, at(x, 3) + at(x, j)),
    "two stores": lambda j, x: first_of(to(x, j, at(x, j) + 2 * at(x, j - 1))),
    "a remainder": lambda j, x: to(x, j % 5, at(x, j % 5) + at(x, (j - 1) % 4)),
}
ENDS = [(1, 8), (0, 9), (-4, 3), (-3, 15), (5, 30), (4, 4), (6, 2), (8, 9)]


def kernels(step: Callable[[Any, Any], Any], dtype: Any, size: int = 9) -> str:
    """The kernels of the loop, after results for all ends were compared with the evaluator's."""
    with hloom.enable_x64(True):
        x = np.random.default_rng(0).integers(-3, 4, size).astype(dtype)
        module = hloom.make_hlo(loop(step))(x, 0, 1)
        executable = NumbaCompiler().compile(module)
        for ends in ENDS:
            inputs = (x, *map(np.int64, ends))
            (found,), (expected,) = executable.execute(inputs), evaluate(module, *inputs)
            np.testing.assert_array_equal(found, expected, err_msg=str(ends))
        return "\n".join(map(str, executable.kernels().values()))


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.float16])
@pytest.mark.parametrize("name", CARRIED)
def test_the_last_one_is_kept(name: str, dtype: Any) -> None:
    assert "carried0 = kept0" in kernels(CARRIED[name], dtype)


@pytest.mark.parametrize("name", NOT_CARRIED)
def test_others_are_loaded(name: str) -> None:
    assert "carried" not in kernels(NOT_CARRIED[name], np.float64)


@pytest.mark.parametrize("ends", [(1, 5), (-3, 12), (3, 3)])
def test_rows_of_a_table(ends: tuple[int, int]) -> None:
    """A Gauss-Seidel sweep whose number of rows and columns is an argument."""

    def sweep(x: Any, a: Any, b: Any) -> Any:
        def row(i: Any, x: Any) -> Any:
            return lax.fori_loop(a, b, lambda j, x: x.at[i, j].set((x[i, j] + x[i, j - 1] + x[i - 1, j]) / 3), x)

        return lax.fori_loop(a, b, row, x)

    with hloom.enable_x64(True):
        inputs = (np.random.default_rng(0).standard_normal((9, 9)), *map(np.int64, ends))
        module = hloom.make_hlo(sweep)(*inputs)
        executable = NumbaCompiler().compile(module)
        np.testing.assert_array_equal(executable.execute(inputs)[0], evaluate(module, *inputs)[0])
        assert "carried0 = kept0" in "\n".join(map(str, executable.kernels().values()))


def test_what_is_not_finite() -> None:
    x = np.array([np.nan, -0.0, np.inf, 0.0, -np.inf, 1.0])
    with hloom.enable_x64(True):
        module = hloom.make_hlo(loop(CARRIED["the one before"]))(x, 0, 1)
        inputs = (x, np.int64(1), np.int64(6))
        expected = evaluate(module, *inputs)[0]
        np.testing.assert_array_equal(NumbaCompiler().compile(module).execute(inputs)[0], expected)


def test_long_values_of_a_counter() -> None:
    """Each value has the one before twice: written out, they would be 2**60 names."""

    def step(j: Any, x: Any) -> Any:
        bits = j
        for _ in range(60):
            bits = bits * 3 ^ bits
        return to(x, j, at(x, j - 1) + (bits & 1))

    assert "carried0 = kept0" in kernels(step, np.int64)
