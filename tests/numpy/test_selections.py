"""`x[mask]` with a traced mask: reductions, functions of elements, products, updates; NumPy is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import ConcretizationTypeError, NonConcreteBooleanIndexError

RNG = np.random.default_rng(5)
X = RNG.standard_normal(12).astype(np.float32)
Y = RNG.standard_normal(12).astype(np.float32)
M = X > 0
A = RNG.standard_normal((12, 3)).astype(np.float32)
B = RNG.standard_normal((12, 3)).astype(np.float32)
K = RNG.integers(-5, 5, 12).astype(np.int32)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda np, x, y, m, a, b, k: np.sum(x[m]),
    "method": lambda np, x, y, m, a, b, k: x[m].sum(),
    "prod": lambda np, x, y, m, a, b, k: np.prod(x[m]),
    "mean": lambda np, x, y, m, a, b, k: np.mean(x[m]),
    "var": lambda np, x, y, m, a, b, k: np.var(x[m]),
    "std with ddof": lambda np, x, y, m, a, b, k: np.std(x[m], ddof=1),
    "max": lambda np, x, y, m, a, b, k: np.max(-x[m]),
    "max of integers": lambda np, x, y, m, a, b, k: np.max(k[k < 0]),
    "min": lambda np, x, y, m, a, b, k: np.min(x[m]),
    "amin with initial": lambda np, x, y, m, a, b, k: np.amin(x[m], initial=-7.0),
    "any": lambda np, x, y, m, a, b, k: np.any(y[m] > 1),
    "all": lambda np, x, y, m, a, b, k: np.all(x[m] > 0),
    "count_nonzero": lambda np, x, y, m, a, b, k: np.count_nonzero(k[m]),
    "nansum": lambda np, x, y, m, a, b, k: np.nansum(np.sqrt(y[m])),
    "nanmax": lambda np, x, y, m, a, b, k: np.nanmax(np.sqrt(y[m]) - 5),
    "nanmin of rows": lambda np, x, y, m, a, b, k: np.nanmin(np.sqrt(a[m] + 1), axis=0, keepdims=True),
    "nanmax of integers": lambda np, x, y, m, a, b, k: np.nanmax(-k[k > 0]),
    "nanmin with initial": lambda np, x, y, m, a, b, k: np.nanmin(np.sqrt(y[m]), initial=-2, where=x[m] > 0.5),
    "where": lambda np, x, y, m, a, b, k: np.sum(x[m], where=y[m] > 0),
    "shifts": lambda np, x, y, m, a, b, k: np.sum((abs(k)[m] << 2) + (k[m] >> 1)) + np.sum(divmod(k[m], 3)[1]),
    "operators": lambda np, x, y, m, a, b, k: np.sum((2 * x[m] - y[m]) ** 2 / x[m]),
    "floats and integers": lambda np, x, y, m, a, b, k: np.sum(x[m] * k[m]),
    "equal masks": lambda np, x, y, m, a, b, k: np.sum(x[x > 0] * y[x > 0]),
    "unary": lambda np, x, y, m, a, b, k: np.sum(np.log(x[m]) + np.abs(y[m]) - np.square(x[m]) + np.floor(y[m])),
    "chosen": lambda np, x, y, m, a, b, k: np.sum(np.where(y[m] > 0, x[m], 0)),
    "maximum, clip, mod": lambda np, x, y, m, a, b, k: np.sum(np.maximum(np.clip(x[m], 0, 1), k[m] % 3)),
    "isnan": lambda np, x, y, m, a, b, k: np.sum(np.isnan(np.sqrt(y[m]))),
    "not": lambda np, x, y, m, a, b, k: np.sum(~(y[m] > 0) & (x[m] > 0.5)),
    "rows": lambda np, x, y, m, a, b, k: np.sum(a[m], axis=0),
    "rows in columns": lambda np, x, y, m, a, b, k: np.sum(np.sum(a[m], axis=1)),
    "kept dimensions": lambda np, x, y, m, a, b, k: np.mean(a[m], axis=0, keepdims=True),
    "weights of columns": lambda np, x, y, m, a, b, k: np.sum(a[m] * b[0], axis=0),
    "columns": lambda np, x, y, m, a, b, k: np.max(a.T[:, m], axis=1),
    "masks of all dimensions": lambda np, x, y, m, a, b, k: np.mean(a[a > 0]),
    "slices beside": lambda np, x, y, m, a, b, k: np.sum(a[m, 1:]),
    "an integer beside": lambda np, x, y, m, a, b, k: np.sum(a[m, 1]),
    "dot": lambda np, x, y, m, a, b, k: np.dot(x[m], y[m]),
    "@": lambda np, x, y, m, a, b, k: x[m] @ y[m],
    "vdot": lambda np, x, y, m, a, b, k: np.vdot(x[m], y[m]),
    "gram": lambda np, x, y, m, a, b, k: a[m].T @ b[m],
    "vector and matrix": lambda np, x, y, m, a, b, k: x[m] @ a[m],
    "rows times matrix": lambda np, x, y, m, a, b, k: np.sum(a[m] @ (b.T @ b), axis=0),
    "matrix times columns": lambda np, x, y, m, a, b, k: np.sum(b @ a[m].T),
    "centred": lambda np, x, y, m, a, b, k: np.sum((a[m] - np.mean(a[m], axis=0)) ** 2),
    "nonzero": lambda np, x, y, m, a, b, k: np.sum(np.nonzero(m)[0]),
    "indices": lambda np, x, y, m, a, b, k: np.sum(y[np.nonzero(x > 0)]),
    "indices of rows": lambda np, x, y, m, a, b, k: np.sum(a[np.where(m)], axis=0),
    "flatnonzero": lambda np, x, y, m, a, b, k: np.max(x[np.flatnonzero(m)]),
    "unique": lambda np, x, y, m, a, b, k: np.sum(np.unique(k) ** 2),
    "count of unique": lambda np, x, y, m, a, b, k: np.sum(np.isfinite(np.unique(k))),
    "unique rows": lambda np, x, y, m, a, b, k: np.sum(np.unique(k.reshape(6, 2) % 2, axis=0), axis=0),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_in_numpy(name: str) -> None:
    given = X, Y, M, A, B, K
    with np.errstate(invalid="ignore"):
        wanted = FUNCTIONS[name](np, *given)
    found = hloom.jit(lambda *arrays: FUNCTIONS[name](jnp, *arrays))(*given)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert found.shape == np.shape(wanted)


UFUNCS = sorted(n for n in jnp.__all__ if isinstance(f := getattr(np, n, None), np.ufunc) and not f.signature)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*UFUNCS, "round"])
def test_each_universal_function(name: str) -> None:
    """Of floats, of integers or of booleans: of all for which it has a meaning."""
    function, count = getattr(jnp, name), getattr(getattr(np, name), "nin", 1)
    found = 0
    for array in (abs(X) / 4, abs(K), M):

        def sums(values: Any, function: Any = function) -> Any:
            results = function(*[values] * count)
            return [r.sum() for r in (results if isinstance(results, tuple) else (results,))]

        try:
            wanted = sums(jnp.asarray(array[M]))
        except (TypeError, ValueError):
            continue
        found += 1
        np.testing.assert_allclose(hloom.jit(lambda x, m: sums(x[m]))(array, M), wanted, rtol=1e-5)
    assert found


def test_updates_with_values_of_the_same_places() -> None:
    @hloom.jit
    def logs(x: Any, a: Any) -> Any:
        return x.at[x > 0].set(jnp.log(x[x > 0])), a.at[x > 0, 1:].add(2 * a[x > 0, 1:])

    x, a = X.copy(), A.copy()
    x[M] = np.log(x[M])
    a[M, 1:] += 2 * a[M, 1:]
    for found, wanted in zip(logs(X, A), (x, a), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_derivatives_do_not_see_other_elements() -> None:
    f = hloom.jit(lambda x: jnp.sum(jnp.log(x[x > 0])))
    np.testing.assert_allclose(hloom.grad(f)(X), np.where(M, 1 / np.where(M, X, 1), 0), rtol=1e-6)
    np.testing.assert_array_equal(hloom.grad(f)(-abs(X)), np.zeros(12))
    mean = hloom.jit(lambda x, m: jnp.mean(x[m]))
    np.testing.assert_allclose(hloom.grad(mean)(X, M), M / M.sum(), rtol=1e-6)


def test_in_batches() -> None:
    rows = RNG.standard_normal((4, 6)).astype(np.float32)
    found = hloom.vmap(lambda x: jnp.max(x[x < 0]))(rows)
    np.testing.assert_array_equal(found, [row[row < 0].max() for row in rows])


def test_no_elements() -> None:
    none = np.zeros(12, bool)
    f = hloom.jit(lambda x, m: (x[m].sum(), x[m].prod(), x[m].max(), x[m].min(), x[m].any(), x[m].all(), x[m].mean()))
    np.testing.assert_array_equal(f(X, none), [0, 1, -np.inf, np.inf, False, True, np.nan])
    assert hloom.jit(lambda x, m: jnp.isnan(jnp.nanmax(x[m])) & jnp.isnan(jnp.nanmin(x[m])))(X, none)
    assert hloom.jit(lambda k, m: jnp.nanmin(k[m]))(K, none) == np.iinfo(np.int32).max
    assert hloom.jit(lambda k, m: jnp.max(k[m]))(K, none) == np.iinfo(np.int32).min
    assert hloom.jit(lambda x, m: x[m].sum())(X[:0], none[:0]) == 0


REFUSED: dict[str, Callable[..., Any]] = {
    "returned": lambda x, y, m: x[m],
    "an element": lambda x, y, m: x[m][0],
    "a selection of it": lambda x, y, m: x[m][y[m] > 0],
    "shape": lambda x, y, m: x[m].shape[0],
    "size": lambda x, y, m: x[m].size,
    "len": lambda x, y, m: len(x[m]),
    "iteration": lambda x, y, m: list(x[m]),
    "sort": lambda x, y, m: jnp.sum(jnp.sort(x[m])),
    "concatenate": lambda x, y, m: jnp.concatenate([x[m], y]),
    "lax": lambda x, y, m: hloom.lax.add(x[m], y[m]),
    "an array of the mask's size": lambda x, y, m: jnp.sum(x[m] * y),
    "two masks": lambda x, y, m: jnp.sum(x[m] * y[y > 0]),
    "product with an array": lambda x, y, m: x[m] @ y,
    "update of other places": lambda x, y, m: x.at[y > 0].set(x[m]),
    "median": lambda x, y, m: jnp.median(x[m]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_number_of_elements_is_not_known(name: str) -> None:
    with pytest.raises(NonConcreteBooleanIndexError, match=r"the size of x\[mask\] depends on the mask's values"):
        hloom.jit(REFUSED[name])(X, Y, M)


def test_errors_name_the_function_that_made_it() -> None:
    for function in (jnp.nonzero, jnp.unique):
        with pytest.raises(ConcretizationTypeError, match=f"{function.__name__} needs the values of an array"):
            hloom.jit(function)(K)
    with pytest.raises(ConcretizationTypeError, match="unique needs the values"):
        hloom.jit(lambda k: jnp.unique(k, return_counts=True)[1].sum())(K)
