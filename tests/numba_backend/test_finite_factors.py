"""Products with the zeros of a mask are left out while the other factors are finite, and give NaN where one is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.expressions import Name
from hloom.numba_backend.loops.finite import with_finite_factors, without_finite_factors
from hloom.numba_backend.loops.printer import lines_of
from hloom.numba_backend.loops.reader import read

import hloom
import hloom.numpy as jnp
from hloom import lax


class InNumPy:
    """NumPy under the names that the programs use."""

    arange, where, sum, sqrt = np.arange, np.where, np.sum, np.sqrt
    dot = np.dot

    @staticmethod
    def loop(start: Any, stop: Any, body: Callable[[Any, Any], Any], state: Any) -> Any:
        for i in range(start, stop):
            state = body(i, state)
        return state

    @staticmethod
    def put(x: Any, index: Any, value: Any) -> Any:
        x = x.copy()
        x[index] = value
        return x


class InLoops:
    """hloom's functions under these names."""

    arange, where, sum, sqrt = jnp.arange, jnp.where, jnp.sum, jnp.sqrt
    dot = jnp.dot
    loop = lax.fori_loop

    @staticmethod
    def put(x: Any, index: Any, value: Any) -> Any:
        return x.at[index].set(value)


def forward(xp: Any, low: Any, b: Any) -> Any:
    index = xp.arange(b.size)

    def row(i: Any, y: Any) -> Any:
        return xp.put(y, i, (y[i] - xp.dot(xp.where(index < i, low[i], b.dtype.type(0)), y)) / low[i, i])

    return xp.loop(0, b.size, row, b)


def backward(xp: Any, low: Any, b: Any) -> Any:
    index, n = xp.arange(b.size), b.size

    def row(k: Any, x: Any) -> Any:
        i = n - 1 - k
        return xp.put(x, i, (x[i] - xp.dot(xp.where(index > i, low[:, i], b.dtype.type(0)), x)) / low[i, i])

    return xp.loop(0, n, row, b)


def cholesky(xp: Any, low: Any, b: Any) -> Any:
    n, index, zero = b.size, xp.arange(b.size), b.dtype.type(0)
    a = low @ low.T

    def row(i: Any, low: Any) -> Any:
        def element(j: Any, low: Any) -> Any:
            left = a[i, j] - xp.dot(xp.where(index < j, low[i], zero), low[j])
            return xp.put(low, (i, j), left / low[j, j])

        low = xp.loop(0, i, element, low)
        square = a[i, i] - xp.sum(xp.where(index < i, low[i] * low[i], zero))
        return xp.put(low, (i, i), xp.sqrt(square))

    return xp.loop(0, n, row, xp.where(a == a, zero, zero))


def inverse(xp: Any, low: Any, b: Any) -> Any:
    n, index, zero = b.size, xp.arange(b.size), b.dtype.type(0)

    def row(i: Any, found: Any) -> Any:
        known = xp.dot(xp.where(index < i, low[i], zero), found)
        return xp.put(found, i, (xp.where(index == i, b.dtype.type(1), zero) - known) / low[i, i])

    return xp.loop(0, n, row, low * 0 + b * 0)


def matrix_times_masked(xp: Any, low: Any, b: Any) -> Any:
    """The masked vector is on the right, and the matrix changes by one element a step."""
    n, index = b.size, xp.arange(b.size)

    def row(i: Any, state: Any) -> Any:
        a, y = state
        known = xp.dot(a, xp.where(index <= i, y, b.dtype.type(0)))
        return xp.put(a, (i, i), known[i] / 8), xp.put(y, i, known[n - 1 - i] / 64)

    return xp.loop(0, n, row, (low, b))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "forward": forward, "backward": backward, "cholesky": cholesky, "inverse": inverse,
    "matrix times masked": matrix_times_masked,
}  # fmt: skip


def arguments(n: int, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    low = np.tril(rng.standard_normal((n, n)) / max(n, 1)) + 2 * np.eye(n)
    return low.astype(dtype), rng.standard_normal(n).astype(dtype)


def in_loops(name: str) -> Callable[[Any, Any], Any]:
    return lambda low, b: PROGRAMS[name](InLoops, low, b)


def check(name: str, compiled: Any, *own: Any) -> None:
    """The compiled program has NumPy's numbers and NaN."""
    with np.errstate(all="ignore"):
        wanted = hloom.tree.leaves(PROGRAMS[name](InNumPy, *own))
    for one, other in zip(hloom.tree.leaves(compiled(*own)), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def loops_of(compiled: Any) -> str:
    return "\n".join(text for text in compiled.kernels().values() if "native_loop" in text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_hidden_products_are_left_out(name: str) -> None:
    own = arguments(90)
    compiled = hloom.jit(in_loops(name)).lower(*own).compile()
    text = loops_of(compiled)
    assert "if spoiled0 == float32(0):" in text and "all_finite" not in text, text
    check(name, compiled, *own)


@pytest.mark.parametrize("name", PROGRAMS)
def test_hidden_numbers_that_are_not_finite_give_nan(name: str) -> None:
    """Before the loop, and from some iteration on: where the diagonal of a matrix is not finite, or 0 divides."""
    compiled = hloom.jit(in_loops(name)).lower(*arguments(90)).compile()
    for number in (np.nan, np.inf, -np.inf, 0):
        for place in (0, 40, 89):
            low, b = arguments(90)
            b[place] = number
            check(name, compiled, low, b)
            low, b = arguments(90)
            if name != "cholesky" or number:  # rounding decides between 0 and a small number
                low[place, place] = number
                check(name, compiled, low, b)
            low, b = arguments(90)
            low[-1 if name == "backward" else place, 3] = number
            check(name, compiled, low, b)


@pytest.mark.parametrize("n", [1, 2, 17, 65])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes(name: str, n: int) -> None:
    check(name, hloom.jit(in_loops(name)), *arguments(n))


@pytest.mark.parametrize("name", PROGRAMS)
def test_f64(name: str) -> None:
    with hloom.enable_x64(True):
        own = arguments(70, "float64")
        compiled = hloom.jit(in_loops(name)).lower(*own).compile()
        assert "if spoiled0 == float64(0):" in loops_of(compiled)
        check(name, compiled, *own)


def test_an_array_that_is_stored_as_often_as_it_is_read() -> None:
    """Looking at each element would take as long as the terms that are left out."""

    def f(x: Any, y: Any) -> Any:
        index = jnp.arange(y.size)

        def step(i: Any, y: Any) -> Any:
            return y * 0.5 + jnp.dot(jnp.where(index < i, x, 0), y)

        return lax.fori_loop(0, 90, step, y)

    x, y = arguments(90)[1] / 64, arguments(90)[1][::-1].copy()
    compiled = hloom.jit(f).lower(x, y).compile()
    text = loops_of(compiled)
    assert "spoiled" not in text and "all_finite" not in text and "select(" in text, text
    assert np.isfinite(compiled(x, y)).all()
    y[3] = np.inf
    assert np.isnan(compiled(x, y)).sum() == 90


def test_a_batch_of_loops() -> None:
    low, b = arguments(70)
    many = np.stack([b, b[::-1], b])
    many[2, 30] = np.inf
    found = hloom.jit(hloom.vmap(in_loops("forward"), (None, 0)))(low, many)
    for one, own in zip(found, many, strict=True):
        check("forward", lambda *_, one=one: one, low, own)


BODY = """def kernel(lo, hi, out, x, y, w, n0):
    for t in range(n0):
        acc0 = float32(0)
        if all_finite(y):
            for i in range(minimum(n0, t)):
                acc0 = reduce_add(acc0, x[i] * y[i])
        else:
            for i in range(n0):
                acc0 = reduce_add(acc0, select(i < t, x[i], float32(0)) * y[i])
        y[t] = acc0
"""


def written(body: str = BODY, given: tuple[str, ...] = ("x", "y"), count: int = 90) -> str:
    types = dict.fromkeys(("out", "x", "y", "w"), "float32*") | dict.fromkeys(("lo", "hi", "n0"), "int64")
    numbers = iter(range(99))
    block = with_finite_factors(
        read(body, types).body, given, {"n0": 90}, dict.fromkeys(("x", "y", "w"), count), lambda n: Name("n0"),
        lambda name: f"{name}{next(numbers)}",
    )  # fmt: skip
    return "\n".join(lines_of(block))


def test_what_is_stored_is_noted() -> None:
    text = written()
    assert "if spoiled0 == float32(0):" in text
    assert "spoiled0 = reduce_add(spoiled0, y[i] * float32(0))" in text
    assert "y[t] = kept1\n" in text and "spoiled0 = reduce_add(spoiled0, kept1 * float32(0))" in text


@pytest.mark.parametrize(
    "other",
    [
        {"given": ("x",)},  # nothing has filled the array before the loop
        {"count": 90 * 90},  # it is larger than all that is left out
        {"body": BODY.replace("y[t] = acc0", "y[t] = acc0\n        fill(y)")},
        {"body": BODY.replace("        y[t] = acc0", "        for j in lanes(16):\n            y[t + j] = acc0")},
        {"body": BODY.replace("        y[t] = acc0", "        for j in range(n0):\n            y[j] = acc0")},
    ],
)
def test_whole_sums_stay(other: dict[str, Any]) -> None:
    body = other.get("body", BODY)
    if "fill(y)" in body:
        body = body.replace("        fill(y)", "        out[t] = first(y)")
    text = written(**{**other, "body": body})
    assert "spoiled" not in text and "all_finite" not in text and "for i in range(n0):" in text, text


def test_an_array_that_a_loop_has_filled_before() -> None:
    body = BODY.replace("    for t", "    for i in range(n0):\n        y[i] = x[i]\n    for t", 1)
    assert "if spoiled0" in written(body, given=("x",))
    assert "spoiled" not in written(body.replace("y[i] = x[i]", "y[i + 1] = x[i]"), given=("x",))


def test_without_tests() -> None:
    types = dict.fromkeys(("out", "x", "y", "w"), "float32*") | dict.fromkeys(("lo", "hi", "n0"), "int64")
    text = "\n".join(lines_of(without_finite_factors(read(BODY, types).body)))
    assert "all_finite" not in text and "minimum" not in text and "select" in text
