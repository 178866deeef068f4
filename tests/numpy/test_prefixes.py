"""associative_scan, and the cumulative functions that are one: against a loop, in both directions, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.grad_check import check_derivatives

pytestmark = pytest.mark.usefixtures("evaluator")
"""The rules are tested here, not the code of the operations in them: test_ops.py has that."""

NDArray = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)


def prefixes(f: Callable[[Any, Any], Any], rows: list[Any]) -> list[Any]:
    found = rows[:1]
    for row in rows[1:]:
        found.append(f(found[-1], row))
    return found


def affine(a: Any, b: Any) -> Any:
    """Composition of x -> m x + s; not commutative."""
    return {"m": a["m"] * b["m"], "s": a["s"] * b["m"] + b["s"]}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 31])
def test_every_size(size: int, reverse: bool) -> None:
    x = {
        "m": RNG.uniform(0.5, 1.5, (2, size)).astype(np.float32),
        "s": RNG.uniform(-1, 1, (2, size)).astype(np.float32),
    }
    rows = [{k: v[:, i] for k, v in x.items()} for i in range(size)]
    wanted = prefixes(affine, rows[::-1])[::-1] if reverse else prefixes(affine, rows)
    for run, axis in ((lax.associative_scan, -1), (hloom.jit(lax.associative_scan, static_argnums=(0, 2, 3)), 1)):
        found = run(affine, x, reverse, axis)
        for k in x:
            assert found[k].shape == (2, size)
            for i in range(size):
                np.testing.assert_allclose(np.asarray(found[k])[:, i], wanted[i][k], rtol=2e-5, atol=1e-5)


def test_products_of_matrices_keep_their_order() -> None:
    m = RNG.normal(size=(7, 3, 3)).astype(np.float32)
    np.testing.assert_allclose(lax.associative_scan(jnp.matmul, m)[6], np.linalg.multi_dot(list(m)), rtol=1e-3)


def test_no_element_is_computed_with() -> None:
    """Signs of zeros and NaN are kept; booleans and keys have prefixes, too."""
    x = jnp.array([-0.0, 1.0, jnp.nan, -0.0])
    np.testing.assert_array_equal(np.signbit(lax.associative_scan(lambda a, b: b, x)), [True, False, False, True])
    flags = lax.associative_scan(jnp.logical_or, jnp.array([False, True, False]))
    np.testing.assert_array_equal(flags, [False, True, True])


class Pair(NamedTuple):
    m: Any
    s: Any


def test_the_containers_that_the_function_returns_do_not_matter() -> None:
    m, s = POSITIVE
    wanted = lax.associative_scan(affine, {"m": m, "s": s})

    def combine(a: Any, b: Any) -> Any:
        assert type(a) is type(b) is Pair
        return list(affine(a._asdict(), b._asdict()).values())

    for run in (lax.associative_scan, hloom.jit(lax.associative_scan, static_argnums=0)):
        found = run(combine, Pair(m, s))
        assert type(found) is Pair
        np.testing.assert_array_equal(found, [wanted["m"], wanted["s"]])


def scan_of_pairs(x: Any) -> Any:
    m, s = x
    found = lax.associative_scan(affine, {"m": m, "s": s}, axis=1)
    return [found["m"], found["s"]]


POSITIVE = RNG.uniform(0.5, 1.5, (2, 5))
DIFFERENTIATED: dict[str, tuple[Callable[[Any], Any], list[NDArray]]] = {
    "affine": (scan_of_pairs, [POSITIVE, RNG.normal(size=(2, 5))]),
    "in reverse": (lambda x: [lax.associative_scan(jnp.multiply, x[0], reverse=True)], [POSITIVE[0]]),
    **{
        f"{name} {axis} {reverse}": (
            lambda x, name=name, axis=axis, reverse=reverse: [getattr(lax, name)(x[0], axis, reverse)],
            [POSITIVE],
        )
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
        for axis, reverse in ((0, True), (1, False))
    },
    "cumprod of zeros": (lambda x: [lax.cumprod(x[0])], [np.array([1.0, 0.0, 2.0, 0.0, 3.0])]),
    "complex": (lambda x: [lax.cumprod(x[0])], [np.array([1 + 1j, 0.5, 2 - 1j])]),
    "batched": (lambda x: [hloom.vmap(lax.cumprod)(x[0])], [POSITIVE]),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives_to_second_order(name: str) -> None:
    function, inputs = DIFFERENTIATED[name]
    check_derivatives(function, inputs, tolerance=1e-5)


NUMPY = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate}


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32", "complex64"])
def test_cumulative_functions(name: str, dtype: str) -> None:
    if dtype == "complex64" and name in ("cummax", "cummin"):
        pytest.skip("NumPy orders complex numbers in another way")
    x = RNG.integers(0, 4, (3, 37)).astype(dtype)
    for axis in (0, 1):
        wanted = NUMPY[name](x, axis=axis).astype(dtype)
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(getattr(lax, name)(x, axis).astype(x.dtype), wanted, rtol=1e-2)
        flipped = getattr(lax, name)(np.flip(x, axis).copy(), axis, reverse=True)
        np.testing.assert_allclose(np.flip(np.asarray(flipped), axis), wanted, rtol=1e-2)


def test_a_sum_is_as_exact_as_a_tree() -> None:
    """A running sum in f32 would be off by 1e-3 here."""
    x = np.full(100_000, 0.1, np.float32)
    exact = np.cumsum(x.astype(np.float64))
    np.testing.assert_allclose(hloom.jit(lax.cumsum)(x), exact, rtol=2e-6)
    np.testing.assert_allclose(hloom.jit(jnp.cumsum)(x), exact, rtol=2e-6)


def test_ties_share_as_in_jax() -> None:
    """The derivative of an extremum that several elements have: it follows the tree of comparisons."""
    weights = jnp.arange(1.0, 7.0)
    x = jnp.array([1.0, 1.0, 1.0, 2.0, 2.0, 0.0])
    gradient = hloom.grad(lambda x: (lax.cummax(x) * weights).sum())(x)
    np.testing.assert_allclose(gradient, [2.75, 1.75, 1.5, 9.5, 5.5, 0.0])
