"""Sums of many numbers: their error does not grow with their length faster than the error of a pairwise sum.

0.1 is rounded up in f32, and a sum of many is rounded in one direction for long: added one after the other, a million
of them are 1 % off, and 20 million ones are 16,777,216.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, nn, ops

N = 1_000_003
"""A prime number: no way of cutting it is even."""
TENTH = float(np.float32(0.1))
SQUARE = float(np.float32(0.1) * np.float32(0.1))


def matrix(columns: int = 2, rows: int = N, value: float = 0.1, dtype: Any = "float32") -> Any:
    return jnp.full((rows, columns), value, dtype)


CASES: dict[str, tuple[Callable[[Any], Any], Any, Callable[[], Any]]] = {
    "sum of columns": (lambda x: jnp.sum(x, 0), N * TENTH, matrix),
    "sum of 20 columns": (lambda x: jnp.sum(x, 0), N * TENTH / 4, lambda: matrix(20, N // 4)),
    "sum of a vector": (lambda x: jnp.sum(x[:, 0]), N * TENTH, lambda: matrix(1)),
    "sum of all": (jnp.sum, 2 * N * TENTH, matrix),
    "sum of rows of the transposed": (lambda x: jnp.sum(x.T, 1), N * TENTH, matrix),
    "sum in the middle": (lambda x: jnp.sum(jnp.stack([x, x]), 1), N * TENTH, matrix),
    "sum of two dimensions": (lambda x: jnp.sum(jnp.reshape(x, (N, 2, 2)), (0, 2)), 2 * N * TENTH, lambda: matrix(4)),
    "mean of columns": (lambda x: jnp.mean(x, 0), TENTH, matrix),
    "mean of bf16": (lambda x: jnp.mean(x, 0), float(jnp.bfloat16(0.1)), lambda: matrix(dtype="bfloat16")),
    "mean of f16": (lambda x: jnp.mean(x, 0), float(np.float16(0.1)), lambda: matrix(dtype="float16")),
    "variance": (lambda x: jnp.var(x, 0), TENTH**2, lambda: matrix() * jnp.resize(jnp.float32([1, -1]), (N, 1))),
    "nansum": (lambda x: jnp.nansum(x, 0), N * TENTH, matrix),
    "average": (lambda x: jnp.average(x, 0, weights=x[:, 0]), TENTH, matrix),
    "norm": (lambda x: jnp.linalg.norm(x, axis=0), np.sqrt(N * SQUARE), matrix),
    "logsumexp": (lambda x: jnp.exp(nn.logsumexp(x, 0) - np.log(N)), np.exp(TENTH), matrix),
    "lax.reduce": (lambda x: lax.reduce(x, np.float32(0), lax.add, (0,)), N * TENTH, matrix),
    "lax.reduce with a start": (lambda x: lax.reduce(x, np.float32(7), lax.add, (0,)), N * TENTH + 7, matrix),
    "dot": (lambda x: jnp.dot(x[:, 0], x[:, 1]), N * SQUARE, matrix),
    "a vector and columns": (lambda x: x[:, 0] @ x, N * SQUARE, matrix),
    "columns and a vector": (lambda x: x.T @ x[:, 0], N * SQUARE, matrix),
    "a matrix of products": (lambda x: x.T @ x, N * SQUARE, matrix),
    "products of rows": (lambda x: x @ x.T, N * SQUARE, lambda: jnp.full((2, N), 0.1)),
    "einsum": (lambda x: jnp.einsum("ij,ij->j", x, x), N * SQUARE, matrix),
    "einsum of all": (lambda x: jnp.einsum("ij->", x), 2 * N * TENTH, matrix),
    "gradient of a bias": (lambda x: hloom.grad(lambda b: jnp.sum(x * b))(jnp.ones(2)), N * TENTH, matrix),
    "gradient of weights": (lambda x: hloom.grad(lambda w: jnp.sum(x @ w))(jnp.ones((2, 3))), N * TENTH, matrix),
    "gradient of a broadcast": (
        lambda x: hloom.grad(lambda b: jnp.sum((x + b) * 0.1))(jnp.zeros(2)), N * TENTH, matrix
    ),
    "batched": (lambda x: hloom.vmap(jnp.sum, 1)(x), N * TENTH, matrix),
    "cumulative": (lambda x: jnp.cumsum(x, 0)[-1], N * TENTH, matrix),
    "a trapezoid": (lambda x: jnp.trapezoid(x[:, 0]), (N - 1) * TENTH, matrix),
    "a window": (lambda x: lax.reduce_window(x, np.float32(0), lax.add, (N, 1), (1, 1), "VALID"), N * TENTH, matrix),
    "complex": (lambda x: jnp.sum(x[:, 0]), N * TENTH, lambda: matrix(1, dtype="complex64")),
    "complex columns": (lambda x: jnp.sum(x, 0), N * TENTH, lambda: matrix(2, dtype="complex64")),
}  # fmt: skip
EACH = np.bincount(np.arange(N) % 3)
"""How many of N updates go to each of three places."""
IN_F64: dict[str, tuple[Callable[[Any], Any], Any, Callable[[], Any]]] = {
    "scatter-add to one place": (lambda x: jnp.zeros(1).at[jnp.zeros(N, int)].add(x[:, 0]), N * TENTH, matrix),
    "scatter-add": (lambda x: jnp.zeros(3).at[jnp.arange(N) % 3].add(x[:, 0]), EACH * TENTH, matrix),
    "scatter-add to what is there": (
        lambda x: jnp.full(3, 7.0).at[jnp.arange(N) % 3].add(x[:, 0]), EACH * TENTH + 7, matrix
    ),
    "scatter-add of rows": (lambda x: jnp.zeros((3, 2)).at[jnp.arange(N) % 3].add(x), EACH[:, None] * TENTH, matrix),
    "segment_sum": (lambda x: ops.segment_sum(x[:, 0], jnp.arange(N) % 3, 3), EACH * TENTH, matrix),
    "all in one of 1,000 segments": (
        lambda x: ops.segment_sum(x[:, 0], jnp.zeros(N, int), 1000)[:1], N * TENTH, matrix
    ),
    "bincount": (lambda x: jnp.bincount(jnp.arange(N) % 3, x[:, 0], length=3), EACH * TENTH, matrix),
    "histogram": (lambda x: jnp.histogram(x[:, 0], 2, (0, 0.2), x[:, 0])[0][1:], N * TENTH, matrix),
    "gradient of a lookup": (
        lambda x: hloom.grad(lambda t: jnp.sum(t[jnp.arange(N) % 3] * x[:, 0]))(jnp.ones(3)), EACH * TENTH, matrix
    ),
    "gradient of a convolution's kernel": (
        lambda x: hloom.grad(lambda w: jnp.sum(lax.conv(x, w, (1, 1), "SAME")))(jnp.zeros((2, 1, 3, 3)))[:, :, 1, 1],
        64 * 2**16 * TENTH, lambda: jnp.full((64, 1, 256, 256), 0.1),
    ),
}  # fmt: skip


def check(found: Any, wanted: Any, most: float = 3e-5) -> None:
    error = np.max(np.abs(np.asarray(found).astype(np.complex128) / wanted - 1))
    narrow = found.dtype in (jnp.bfloat16, np.float16)
    assert error < (1e-4 if narrow else most), error


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*CASES, *IN_F64])
def test_sums(name: str) -> None:
    """(The evaluator adds updates one after the other, as they come.)"""
    f, wanted, make = {**CASES, **IN_F64}[name]
    x, most = make(), 2e-6 if name in IN_F64 else 3e-5
    check(f(x), wanted, most)
    check(hloom.jit(f)(x), wanted, most)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", [n for n in CASES if n not in ("a window", "cumulative")])
def test_the_evaluator(name: str) -> None:
    f, wanted, make = CASES[name]
    check(f(make()), wanted)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "shape",
    [(20_000, 3), (20_003, 1, 3), (3, 30_000), (2, 30_001, 5), (100, 9000, 3), (17_000, 1030), (70_000,)],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_blocks_of_all_lengths(shape: tuple[int, ...], dtype: str) -> None:
    """Sums and products beside other reductions, with tails of blocks, against f64."""
    with hloom.enable_x64(dtype == "float64"):
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        axis = int(np.argmax(shape))

        def f(x: Any) -> Any:
            total, square = jnp.sum(x, axis), jnp.sum(x * x.conj(), axis)
            rest = (jnp.max(abs(x), axis), jnp.prod(1 + x * 1e-4, axis), jnp.sum(abs(x - total.mean()), axis))
            return total, square, *rest

        wide = x.astype(np.complex128 if dtype == "complex64" else np.float64)
        total = wide.sum(axis)
        wanted = [
            total, (wide * wide.conj()).sum(axis), abs(wide).max(axis), np.prod(1 + wide * 1e-4, axis),
            abs(wide - total.mean()).sum(axis),
        ]  # fmt: skip
        for k, (found, right) in enumerate(zip(hloom.jit(f)(x), wanted, strict=True)):
            scale = max(float(np.max(np.abs(right))), 1.0)
            bound = 1e-3 if k == 3 else 3e-5  # factors near 1 are rounded before
            np.testing.assert_allclose(np.asarray(found), right, rtol=1e-4, atol=bound * scale)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38])
def test_special_values(special: float) -> None:
    """Infinities and NaN stay; where a partial sum is infinite, so is the sum; -0.0 is the sum of many of them."""
    x = np.zeros((20_000, 2), np.float32)
    x[777, 0] = special
    x[15_000, 0] = special
    for axis in (0, None):
        with np.errstate(over="ignore"):
            wanted = x.sum(axis)
        np.testing.assert_array_equal(np.asarray(hloom.jit(lambda x, axis=axis: jnp.sum(x, axis))(x)), wanted)
    zeros = np.full((20_000, 2), -0.0, np.float32)
    found = hloom.jit(lambda x: lax.reduce(x, np.float32(-0.0), lax.add, (0,)))(zeros)
    assert np.signbit(np.asarray(found)).all()
