"""Products of vectors and a matrix that is in no cache: sums that read the matrix once, several rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.machine import compiling_for, this_machine
from hloom.numba_backend.schedule.steps import Split

import hloom
import hloom.numpy as jnp


@pytest.fixture(autouse=True)
def small_caches() -> Iterator[None]:
    """A machine whose last cache has 64 KiB, so that products with 16 KiB are in no cache."""
    small = replace(this_machine(), second_cache=32 << 10, third_cache=64 << 10)
    with compiling_for(small), hloom.enable_x64(True):
        yield


def numbers(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Whole ones: sums are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


def compiled(f: Callable[..., Any], *inputs: np.ndarray) -> Any:
    """The program, after its results were compared with the evaluator's."""
    module = hloom.make_hlo(f)(*inputs)
    executable = NumbaCompiler().compile(module)
    for ours, expected in zip(executable.execute(inputs), evaluate(module, *inputs), strict=True):
        np.testing.assert_array_equal(ours, expected)
    return executable


def reads(executable: Any, name: str) -> int:
    """How often the program reads a parameter, in rows of its own."""
    entry = executable.module.entry
    (found,) = [p for p in entry.parameters if p.name == name]
    return sum(len(entry.users[user]) if user.opcode.value == "reshape" else 1 for user in entry.users[found])


def gradient(a: Any, w: Any, y: Any) -> Any:
    """Of a linear model."""
    return (jnp.tanh(a @ w) - y) @ a


ONCE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "both sides": lambda a, x, y: (y @ a, a @ x),
    "another matrix made of it": lambda a, x, y: (a @ x, jnp.abs(a) @ x),
    "one after the other": lambda a, x, y: (a @ x) @ a,
    "transposed": lambda a, x, y: a.T @ (a @ x),
    "with a residual": lambda a, x, y: (a @ x - y) @ a,
    "of a row": lambda a, x, y: (y[None] @ a, a @ x[:, None]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ONCE)
def test_the_matrix_is_read_once(name: str, dtype: Any) -> None:
    inputs = numbers(352, 200, dtype=dtype), numbers(200, dtype=dtype), numbers(352, dtype=dtype)
    found = compiled(ONCE[name], *inputs)
    assert "dot(" not in found.as_text() and reads(found, "a") == 1, found.as_text()


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 127, 128, 129, 321])
@pytest.mark.parametrize("columns", [1, 3, 17, 200])
def test_any_size(rows: int, columns: int) -> None:
    with compiling_for(replace(this_machine(), second_cache=1024, third_cache=1024)):
        for f in ONCE.values():
            compiled(f, numbers(rows, columns), numbers(columns), numbers(rows))


def test_not_finite() -> None:
    a, x, y = numbers(352, 200), numbers(200), numbers(352)
    a[7, 3], a[9, 5], a[:, 11] = np.nan, np.inf, -0.0
    compiled(ONCE["both sides"], a, x, y)


def test_a_small_matrix_stays_a_product() -> None:
    found = compiled(ONCE["both sides"], numbers(32, 50), numbers(50), numbers(32))
    assert found.as_text().count("dot(") == 2


def test_a_product_of_matrices_stays() -> None:
    found = compiled(lambda a, b: a @ b, numbers(352, 200), numbers(200, 40))
    assert "reduce(" not in found.as_text()


def together(executable: Any) -> list[int]:
    """How many rows at a time kernels compute."""
    steps = [step for kernel in executable.kernels().values() for step in kernel.schedule or ()]
    return [int(s.size) for s in steps if isinstance(s, Split) and s.outer == "together"]


def test_rows_are_computed_together() -> None:
    a, x, y = numbers(352, 200), numbers(200), numbers(352)
    assert together(compiled(ONCE["both sides"], a, x, y)) == [4]
    assert together(compiled(lambda a, x: a @ x, a, x)) == [4], "the vector is read once for all"
    assert together(compiled(lambda a, x: a[:-1] @ x, a, x)) == [], "bits would depend on what threads share"
    assert together(compiled(lambda a: a.sum(1), a)) == [], "nothing is shared"
    assert together(compiled(ONCE["one after the other"], a, x, y)) == [4]
    wide = numbers(160, 800)  # two rows of them stay in the second cache until the second stage
    assert together(compiled(ONCE["one after the other"], wide, numbers(800), numbers(160))) == [2]
    wide = numbers(160, 2000)
    assert together(compiled(ONCE["one after the other"], wide, numbers(2000), numbers(160))) == []


@pytest.mark.parametrize("shape, parts", [((64, 20000), 8), ((256, 8000), 16), ((130, 20000), 10), ((300, 70000), 0)])
def test_parts_of_columns_have_several_rows(shape: tuple[int, int], parts: int) -> None:
    """Wide columns have parts, too, as long as a part's accumulators stay in a cache."""
    text = compiled(lambda x: x.sum(0), numbers(*shape, dtype=np.float32)).as_text()
    assert (f"[{parts},{shape[0] // parts},{shape[1]}]" in text) if parts else "reshape" not in text, text
