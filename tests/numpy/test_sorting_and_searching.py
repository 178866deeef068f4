"""Sorting, searching, counting, sets, order statistics, taking and putting: a table of calls.

Each expression is computed outside of jit and under it, and compared with NumPy's values; where JAX is installed, also
with its values, dtypes and weak types.
"""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import ConcretizationTypeError
from hloom.test_util import check_grads

R = np.random.default_rng(7)
GIVEN: dict[str, Any] = {
    "a": R.standard_normal((3, 4)).astype(np.float32),
    "b": R.standard_normal((3, 4)).astype(np.float32),
    "cube": R.standard_normal((2, 3, 4)).astype(np.float32),
    "v": np.array([3, 1, 2, 1, 5, 2, 0.5], np.float32),
    "w": np.array([0.5, 2, 1, 1, 3, 0.25, 2], np.float32),
    "n": np.array([4, -2, 4, 7, 0, -2, 4], np.int32),
    "u": np.array([4, 2, 4, 7, 0, 2, 4], np.uint8),
    "m": R.integers(-3, 4, (3, 4)).astype(np.int32),
    "i": np.array([2, 0, 1, 1], np.int32),
    "j": np.array([[1, -1], [0, 2]], np.int32),
    "far": np.array([0, 9, -9, 2], np.int32),
    "p": np.array([True, False, True, True]),
    "q": np.array([[True, False, True, True], [False] * 4, [True, True, False, False]]),
    "c": np.array([2 + 1j, 1 - 1j, 2 - 3j, 1 - 1j], np.complex64),
    "h": np.array([3, 1, 2, 1, -4], np.float16),
    "bf": np.array([3, 1, 2, 1, -4], ml_dtypes.bfloat16),
    "x": np.array([2, np.nan, -1, np.nan, -0.0, 0.0, np.inf, 5], np.float32),
    "nan": np.array([[1, np.nan, 3], [np.nan] * 3, [2, 5, 4]], np.float32),
    "edges": np.array([0, 1, 2.5, 4], np.float32),
    "e": np.zeros((0, 3), np.float32),
    "k": np.array([0.1, 0.5, 0.8], np.float32),
}
"""The arrays of the expressions."""

BOTH = """
xp.sort(a) | xp.sort(a, 0) | xp.sort(cube, 1) | xp.sort(a, None) | xp.sort(n) | xp.sort(u) | xp.sort(x) | xp.sort(c)
xp.sort(h) | xp.sort(p) | xp.sort(e) | xp.sort(bf)
xp.argsort(a) | xp.argsort(a, 0) | xp.argsort(v, stable=True) | xp.argsort(n, stable=True)
xp.argsort(x, stable=True)
xp.argsort(a, None) | xp.argsort(c, stable=True) | xp.argsort(cube, axis=-2)
xp.lexsort((v, n)) | xp.lexsort((n, v)) | xp.lexsort((a, m)) | xp.lexsort((m, a), axis=0) | xp.lexsort([n])
xp.sort_complex(c) | xp.sort_complex(v)
xp.partition(v, 3)[3] | xp.partition(a, 1)[:, :1] | xp.partition(a, -2, 0)[1] | xp.partition(u, 2)[2]
xp.searchsorted(xp.sort(v), w) | xp.searchsorted(xp.sort(v), w, side="right") | xp.searchsorted(xp.sort(x), x)
xp.searchsorted(xp.sort(x), x, "right") | xp.searchsorted(v, w, sorter=xp.argsort(v)) | xp.searchsorted(edges, 2.5)
xp.searchsorted(xp.sort(n), v) | xp.searchsorted(xp.sort(c), c, "right") | xp.searchsorted(edges, a)
xp.searchsorted(edges[:0], v) | xp.searchsorted(xp.sort(u), u) | xp.searchsorted(edges[:1], v)
xp.digitize(v, edges) | xp.digitize(v, edges, right=True) | xp.digitize(v, edges[::-1])
xp.digitize(a, edges[::-1], True)
xp.take(a, i) | xp.take(a, j, axis=1) | xp.take(cube, i, axis=-1) | xp.take(a, far, mode="clip") | xp.take(v, 2)
xp.take(a, far, axis=0, mode="wrap") | xp.take(a, j, axis=0, mode="clip") | xp.take(n, i) | xp.take(a, i[:0], 1)
xp.take_along_axis(a, xp.argsort(a, 1), 1) | xp.take_along_axis(a, xp.argsort(a, 0), 0)
xp.take_along_axis(a, i[None], 1) | xp.take_along_axis(a, i[None, :1], 0) | xp.take_along_axis(a[:1], i[:3, None], 1)
xp.take_along_axis(cube, xp.argmax(cube, 1)[:, None], 1) | xp.take_along_axis(v, n % 7, 0)
xp.take_along_axis(a, i, None)
xp.choose(i, [i, 2 * i, 3 * i]) | xp.choose(i, (10, 20, 30)) | xp.choose(far, [i, 2 * i], mode="clip")
xp.choose(far, [i, 2.5], mode="wrap") | xp.choose(j % 2, [v[:2], 5])
xp.unravel_index(i, (2, 3)) | xp.unravel_index(n % 24, (2, 3, 4)) | xp.unravel_index(u, (8,))
xp.unravel_index(5, (2, 3))
xp.ravel_multi_index((i % 2, i), (2, 3)) | xp.ravel_multi_index((far, far), (2, 3), mode="clip")
xp.ravel_multi_index((far, i), (2, 3), mode="wrap", order="F")
xp.nonzero(a) | xp.nonzero(n) | xp.nonzero(q) | xp.flatnonzero(q) | xp.argwhere(q) | xp.argwhere(n) | xp.where(q)
xp.argwhere(e) | xp.nonzero(e) | xp.argwhere(np.float32(3)) | xp.where(x) | xp.argwhere(np.float32(0))
xp.extract(q, a) | xp.compress(p, a, axis=1) | xp.compress(p, a) | xp.compress(p[:2], a, axis=0) | xp.extract(n, n)
xp.trim_zeros(xp.array([0, 0, 1, 0, 2, 0])) | xp.trim_zeros(xp.array([0.0, 1, 0]), "f") | xp.trim_zeros(n * 0)
xp.delete(v, 2) | xp.delete(v, -1) | xp.delete(a, 1, axis=0) | xp.delete(a, i[:2], axis=1)
xp.delete(v, slice(1, None, 2))
xp.delete(a, p, axis=1) | xp.delete(a, [0, 2], 1) if xp is np else xp.delete(a, np.array([0, 2]), 1) | xp.delete(a, 5)
xp.insert(v, 2, 9.0) | xp.insert(v, i, v[:4]) | xp.insert(a, 1, v[:3], axis=1) | xp.insert(a, i[:2], 7, axis=0)
xp.insert(a, 1, v[:4], axis=0) | xp.insert(v, slice(1, 4), 8) | xp.insert(a, 3, 1.0) | xp.insert(v, -2, v[:3])
xp.piecewise(v, [v < 1, v > 2], [lambda t: -t, lambda t: t * t, 7]) | xp.piecewise(n, [n < 0], [lambda t: -t])
xp.piecewise(v, [v > 1, v > 2], [1, lambda t: t + 1])
xp.piecewise(a, [a > 0, a <= 0], [lambda t, s: t * s, -1], 3.0)
xp.median(a) | xp.median(a, 0) | xp.median(cube, (0, 2)) | xp.median(v) | xp.median(n)
xp.median(a, 1, keepdims=True)
xp.median(x) | xp.median(nan, 1) | xp.nanmedian(nan) | xp.nanmedian(nan[::2], 1)
xp.median(cube, (-1, 0), keepdims=True)
xp.quantile(a, 0.3) | xp.quantile(a, k, axis=0) | xp.quantile(cube, k, axis=(0, 1)) | xp.quantile(v, 0.0)
xp.quantile(v, 1.0)
xp.quantile(a, k, 1, keepdims=True) | xp.quantile(nan, 0.5, axis=1) | xp.nanquantile(nan[::2], k, axis=1)
xp.nanquantile(nan, k[:2]) | xp.quantile(n, 0.3) | xp.nanquantile(a, k, axis=0, keepdims=True) | xp.quantile(v, 0.37)
xp.quantile(v, k, method="lower") | xp.quantile(v, k, method="higher") | xp.quantile(v, k, method="midpoint")
xp.quantile(v, k, method="inverted_cdf") | xp.quantile(v, k, method="inverted_cdf", weights=w)
xp.quantile(a, k, axis=1, method="inverted_cdf", weights=v[:4])
xp.nanquantile(nan[::2], 0.4, 1, method="inverted_cdf")
xp.percentile(a, 30) | xp.percentile(a, 100 * k, axis=-1) | xp.nanpercentile(nan[::2], 70.0, axis=1)
xp.percentile(a, 50, 0)
xp.nanargmax(nan[::2], 1) | xp.nanargmin(nan) | xp.nanargmax(n) | xp.nanargmin(x, 0, keepdims=True) | xp.nanargmax(a)
xp.argmax(c) | xp.argmin(c) | xp.nanargmax(c) | xp.argmax(xp.stack([c, c[::-1] * 2]), 1)
xp.argmax(xp.stack([c, c / 0 * 0]), 0) | xp.nancumsum(nan, 1) | xp.nancumprod(nan, 0) | xp.nancumsum(x)
xp.nancumsum(v)
xp.cumulative_sum(v) | xp.cumulative_sum(a, axis=0, include_initial=True)
xp.cumulative_prod(a, axis=-1, include_initial=True)
xp.cov(a) | xp.cov(a, b) | xp.cov(a, rowvar=False) | xp.cov(a, bias=True) | xp.cov(a, ddof=0) | xp.cov(v)
xp.cov(v, w)
xp.cov(a, fweights=u[:4]) | xp.cov(a, aweights=w[:4]) | xp.cov(a, aweights=w[:4], fweights=u[:4], ddof=2)
xp.cov(c, c[::-1])
xp.corrcoef(a) | xp.corrcoef(a, b, rowvar=False) | xp.corrcoef(v) | xp.corrcoef(c, c[::-1] * 2j)
xp.bincount(u) | xp.bincount(u, minlength=20) | xp.bincount(u, weights=w) | xp.bincount(i, v[:4]) | xp.bincount(n[:0])
xp.histogram(v) | xp.histogram(v, 3) | xp.histogram(v, edges) | xp.histogram(v, 4, range=(0, 3))
xp.histogram(v, 4, density=True)
xp.histogram(v, 3, weights=w) | xp.histogram(a, 5) | xp.histogram(xp.ones(3), 2) | xp.histogram(n, 4)
xp.histogram_bin_edges(v, 5) | xp.histogram_bin_edges(v, 5, (0, 8)) | xp.histogram_bin_edges(n)
xp.histogram2d(v, w) | xp.histogram2d(v, w, 3) | xp.histogram2d(v, w, (2, 4)) | xp.histogram2d(v, w, edges)
xp.histogram2d(v, w, [edges, edges[1:]], density=True) | xp.histogram2d(v, w, 3, range=((0, 3), (0, 2)), weights=w)
xp.histogramdd(a.T[:, :2], 3) | xp.histogramdd(a.T, (2, 3, 2), weights=v[:4])
xp.unique(n) | xp.unique(v, return_counts=True) | xp.unique(n, True, True, True) | xp.unique(m) | xp.unique(c)
xp.unique(x)
xp.unique(m % 2, axis=0) | xp.unique(m % 2, axis=1, return_index=True, return_counts=True) | xp.unique(e)
xp.unique(x, equal_nan=False)
xp.unique(p) | xp.unique(h, return_inverse=True) | xp.unique(m, return_inverse=True)
xp.unique(e, axis=1, return_counts=True)
xp.unique_all(n) | xp.unique_counts(v) | xp.unique_inverse(m) | xp.unique_values(x)
xp.union1d(n, v) | xp.union1d(m, n) | xp.intersect1d(n, m) | xp.intersect1d(n, v)
xp.intersect1d(v, w, return_indices=True)
xp.intersect1d(i[:3], i[:2], assume_unique=True, return_indices=True) | xp.intersect1d(n, n[:0])
xp.setdiff1d(n, m) | xp.setdiff1d(v, w) | xp.setdiff1d(n, n[:2], assume_unique=True) | xp.setdiff1d(n[:0], n)
xp.setdiff1d(m, e)
xp.setxor1d(n, m) | xp.setxor1d(v, w) | xp.setxor1d(i[:3], i[1:3] + 1, assume_unique=True) | xp.setxor1d(n[:0], n[:0])
xp.isin(n, m) | xp.isin(a, a[0]) | xp.isin(n, i, invert=True) | xp.isin(x, x) | xp.isin(v, e)
xp.isin(R_LONG, R_LONG[::3])
"""
"""Calls that NumPy has too."""

ONLY_JAX = """
xp.sort(a, descending=True) | xp.sort(x, descending=True) | xp.argsort(n, descending=True)
xp.sort(3.0 + xp.zeros(()), None)
xp.argsort(n, descending=True, stable=False)[0] | xp.argsort(a, dtype="int16") | xp.sort(xp.broadcast_to(2.0, (3,)))
xp.partition(v, 3) | xp.argpartition(v, 3) | xp.argpartition(a, 1, 0) | xp.argpartition(u, 2) | xp.partition(a, 1)
xp.digitize(v, edges[:0]) | xp.lexsort((np.float32(1), np.float32(2)))
xp.take(a, far) | xp.take(a, far, axis=1) | xp.take(n, far) | xp.take(u, far) | xp.take(p, far)
xp.take(a, j, 0, fill_value=7)
xp.take_along_axis(a, far[None], 1) | xp.take_along_axis(a, far[None], 1, mode="clip")
xp.take_along_axis(n, far, 0, fill_value=3)
xp.take_along_axis(a, far[None], 1, mode="one_hot") | xp.take_along_axis(a, j[:, :1], 0, mode="promise_in_bounds")
xp.put(v, i, v[:2], inplace=False) | xp.put(a, far, 5, inplace=False) | xp.put(a, far, v, mode="clip", inplace=False)
xp.put(a, far, v, mode="wrap", inplace=False) | xp.put(n, i[:0], 3, inplace=False)
xp.put(v, i, n[:4], inplace=False)
xp.put_along_axis(a, xp.argmax(a, 1)[:, None], 9, 1, inplace=False)
xp.put_along_axis(a, i, v[:4], None, inplace=False)
xp.put_along_axis(a, i[None], v[:4], 0, inplace=False)
xp.put_along_axis(cube, m[None, :, :] % 4, 0, -1, inplace=False)
xp.place(a, q, v, inplace=False) | xp.place(v, v > 1, v[:2], inplace=False) | xp.place(n, n > 0, 7, inplace=False)
xp.fill_diagonal(a, 3, inplace=False) | xp.fill_diagonal(a.T, v[:2], inplace=False)
xp.fill_diagonal(cube[:, :2, :2], 5, inplace=False)
xp.nonzero(q, size=3) | xp.nonzero(q, size=9) | xp.nonzero(q, size=9, fill_value=-1)
xp.nonzero(q, size=9, fill_value=(7, 8))
xp.flatnonzero(n, size=8, fill_value=99) | xp.argwhere(q, size=7) | xp.where(v, size=9, fill_value=2.5)
xp.nonzero(e, size=2)
xp.argwhere(q, size=9, fill_value=-2) | xp.nonzero(q, size=0)
xp.extract(q, a, size=7) | xp.compress(p, a, 1, size=4, fill_value=9) | xp.compress(p, a, 1, size=2)
xp.compress(p[:2], a, 1, size=1)
xp.delete(v, i[:2], assume_unique_indices=True) | xp.delete(a, i[:2] - 3, 1, assume_unique_indices=True)
xp.ravel_multi_index((far, i), (2, 3), mode="ignore") | xp.ravel_multi_index((i % 2, i), (2, 3), dtype="int16")
xp.unravel_index(far, (2, 3)) | xp.unravel_index(xp.array([6, -7, 5, -1]), (2, 3))
xp.cumulative_sum(u) | xp.cumulative_sum(p) | xp.cumulative_prod(p) | xp.cumulative_sum(u, dtype="float32")
xp.nancumsum(p)
xp.nanargmax(nan, 1) | xp.nancumsum(u) | xp.median(h) | xp.quantile(bf, 0.3) | xp.nanquantile(h, k)
xp.nanmedian(nan, 1)
xp.quantile(v, k, method="nearest") | xp.nanquantile(nan, 0.5, 1, method="inverted_cdf")
xp.cov(e) | xp.cov(n) | xp.cov(h) | xp.cov(a, dtype="complex64") | xp.cov(a[:, :0]) | xp.cov(v[:0])
xp.cov(a, rowvar=False, y=b)
xp.bincount(n) | xp.bincount(u, length=3) | xp.bincount(u, w, length=12) | xp.bincount(i, weights=u[:4])
xp.bincount(p)
xp.histogram(h, 3) | xp.histogram(v, xp.array([0, 2, 4])) | xp.histogramdd(a.T[:, :2], 2, density=True)
xp.histogram_bin_edges(v, edges) | xp.histogram_bin_edges(h, 3)
xp.unique(n, size=3) | xp.unique(n, size=7) | xp.unique(n, size=7, fill_value=-9)
xp.unique(n, True, True, True, size=3)
xp.unique(n, True, True, True, size=6) | xp.unique(m % 2, axis=0, size=4, fill_value=5)
xp.unique(e, size=2, fill_value=1)
xp.unique_all(n, size=6) | xp.unique_counts(x, size=9, fill_value=0) | xp.unique(x, size=9, return_counts=True)
xp.union1d(n, m, size=12) | xp.union1d(n, m, size=12, fill_value=99) | xp.intersect1d(n, m, size=4)
xp.intersect1d(n, m, size=1)
xp.intersect1d(n, m, size=5, fill_value=-7, return_indices=True) | xp.setdiff1d(n, m, size=5)
xp.setdiff1d(n, m, size=5, fill_value=3)
xp.setdiff1d(n, m, assume_unique=True, size=9) | xp.setxor1d(n, m, size=9) | xp.setxor1d(n, m, size=3, fill_value=1)
xp.setxor1d(n[:0], n[:0], size=2) | xp.intersect1d(n, n[:0], size=2) | xp.isin(n, m, method="sort")
xp.isin(v, w, method="binary_search")
xp.isin(x, n, method="compare_all", invert=True) | xp.sum(p, promote_integers=False) | xp.prod(p, initial=0)
xp.prod(p, promote_integers=False) | xp.max(p, initial=False)
"""
"""Calls with arguments, an order of results or types of JAX's own."""

R_LONG = R.integers(0, 60, 100).astype(np.int32)
_FREE = (
    *("nonzero", "argwhere", "where(", "extract", "compress", "trim", "delete", "insert", "choose", "multi_index"),
    *("unique", "union", "intersect", "setdiff", "setxor", "bincount"),
)
"""Parts of the names of functions that need values."""


def _expressions(table: str) -> list[str]:
    return [each.strip() for line in table.strip().splitlines() for each in line.split(" | ")]


def _names_of(expression: str) -> list[str]:
    code = compile(expression, "", "eval")
    inner = [c.co_names for c in code.co_consts if hasattr(c, "co_names")]
    return [n for n in GIVEN if n in code.co_names or any(n in names for names in inner)]


def _value(xp: Any, expression: str, arrays: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return eval(expression, {"xp": xp, "np": np, "R_LONG": xp.asarray(R_LONG), **arrays})


def _leaves(result: Any) -> list[Any]:
    return [leaf for each in result for leaf in _leaves(each)] if isinstance(result, tuple | list) else [result]


def _same(found: Any, expected: Any) -> None:
    one, other = _leaves(found), _leaves(expected)
    assert len(one) == len(other)
    for f, e in zip(one, other):
        assert f.shape == np.shape(e)
        e = np.asarray(e)
        wide = np.complex128 if e.dtype.kind == "c" else np.float64
        tolerance = 2e-2 if f.dtype.itemsize == 2 and f.dtype.kind not in "iu" else 2e-5
        np.testing.assert_allclose(np.asarray(f).astype(wide), e.astype(wide), rtol=tolerance, atol=tolerance)


def _needs_values(expression: str) -> bool:
    return any(name in expression for name in _FREE) and "size=" not in expression and ", length=" not in expression


def _arrays(expression: str, asarray: Any) -> dict[str, Any]:
    return {n: asarray(GIVEN[n]) for n in _names_of(expression)}


def _kinds(result: Any) -> list[Any]:
    return [(np.dtype(f.dtype), f.weak_type) for f in _leaves(result)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("expression", _expressions(BOTH))
def test_values_are_those_of_numpy(expression: str) -> None:
    _same(
        _value(jnp, expression, _arrays(expression, jnp.asarray)),
        _value(np, expression, _arrays(expression, np.asarray)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("expression", _expressions(ONLY_JAX))
def test_values_and_types_are_those_of_jax_and_under_jit(expression: str) -> None:
    concrete = _arrays(expression, jnp.asarray)
    found = _value(jnp, expression, concrete)
    if not _needs_values(expression):
        jitted = hloom.jit(lambda arrays: _value(jnp, expression, arrays))(concrete)
        _same(jitted, found)
        assert _kinds(jitted) == _kinds(found)
    jax = pytest.importorskip("jax")
    expected = _value(jax.numpy, expression, _arrays(expression, jax.numpy.asarray))
    _same(found, expected)
    assert _kinds(found) == _kinds(expected)


@pytest.mark.slow
@pytest.mark.parametrize("expression", [e for e in _expressions(BOTH) if not _needs_values(e)])
def test_types_are_those_of_jax(expression: str) -> None:
    jax = pytest.importorskip("jax")
    expected = jax.eval_shape(
        lambda arrays: _value(jax.numpy, expression, arrays), _arrays(expression, jax.numpy.asarray)
    )
    concrete = _arrays(expression, jnp.asarray)
    traced = hloom.eval_shape(lambda arrays: _value(jnp, expression, arrays), concrete)
    assert _kinds(_value(jnp, expression, concrete)) == _kinds(traced) == _kinds(expected)


GRADIENTS = {
    "sort": "xp.sort(v) * w",
    "sort of columns": "xp.sort(a, 0, descending=True) * b",
    "take": "xp.take(a, j, 1, mode='wrap')",
    "take_along_axis": "xp.take_along_axis(a, i[None, :3], 1) + xp.take_along_axis(a, i[:3, None], 0)[:, :1].sum()",
    "put_along_axis": "xp.put_along_axis(a, i[None], v[:4], 0, inplace=False) * b",
    "put": "xp.put(v, i, w[:2], inplace=False) * w",
    "place": "xp.place(a, q, v, inplace=False) * b",
    "choose": "xp.choose(i, [v[:4], w[:4], 3.0], mode='wrap') * w[3:]",
    "fill_diagonal": "xp.fill_diagonal(a, v[:2], inplace=False) * b",
    "compress": "xp.compress(p, a, 1) * 2",
    "compress to a size": "xp.compress(p, a, 1, size=4) * b",
    "insert": "xp.insert(v, i, w[:4]) ** 2",
    "delete": "xp.delete(a, i[:2], 1, assume_unique_indices=True) ** 2",
    "median": "xp.median(a, 0)",
    "quantile": "xp.quantile(a, k, axis=1)",
    "nanquantile": "xp.nanquantile(a, k, axis=1)",
    "weighted quantile": "xp.quantile(a, k * 0.9, axis=1, method='inverted_cdf')",
    "cov": "xp.cov(a, b)",
    "corrcoef": "xp.corrcoef(a)",
    "bincount": "xp.bincount(i, w[:4], length=3)",
    "histogram": "xp.histogram(k * 2.9, 4, range=(0, 3), weights=v[:3])[0]",
    "cumulative_prod": "xp.cumulative_prod(a, axis=1, include_initial=True)",
    "nancumsum": "xp.nancumsum(v) * w",
    "piecewise": "xp.piecewise(v, [v > 1.1], [lambda t: t * t, lambda t: -t])",
    "unique": "xp.unique(w) ** 2",
    "union1d": "xp.union1d(v[4:5], w) ** 2",
}


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives(name: str) -> None:
    """The first two orders by both modes; batches agree with a loop."""
    expression = GRADIENTS[name]
    given = _arrays(expression, jnp.asarray)
    # No equal elements: there is no derivative.
    apart = {"v": [3, 1, 2, 1.25, 5, 2.5, 0.5], "w": [0.5, 2, 1, 1.5, 3, 0.25, 2.25]}
    given |= {n: jnp.asarray(x, "float32") for n, x in apart.items() if n in given}
    floats = {n: x for n, x in given.items() if x.dtype.kind == "f"}
    rest = {n: x for n, x in given.items() if x.dtype.kind != "f"}
    check_grads(
        lambda floats: _value(jnp, expression, {**rest, **floats}), (floats,), 2, atol=3e-2, rtol=3e-2, eps=1e-3
    )
    if name in ("unique", "union1d", "compress"):
        return
    twice = {n: jnp.stack([x, x[::-1]]) for n, x in floats.items()}
    found = hloom.vmap(lambda floats: _value(jnp, expression, {**rest, **floats}))(twice)
    for row in range(2):
        one = _value(jnp, expression, {**rest, **{n: x[row] for n, x in twice.items()}})
        np.testing.assert_allclose(found[row], one, rtol=1e-5, atol=1e-6)


METHODS = """
x.sort(0) | x.argsort(axis=1) | x.take(i, 1) | x[0].searchsorted(x[1]) | x.compress(p, axis=1)
i.choose([x[0], x[1], x[2]]) | x.nonzero() | x.nonzero(size=3, fill_value=-1) | x.argpartition(1)[:, :1]
x.compress(p, axis=1, size=2)
"""


@pytest.mark.parametrize("expression", _expressions(METHODS))
def test_methods_are_the_functions(expression: str) -> None:
    x, i, p = np.sort(GIVEN["a"], 1)[:, ::-1], GIVEN["i"] % 3, GIVEN["p"]
    method, _, rest = expression.partition(".")[2].partition("(")
    owner = expression.partition(".")[0]
    function = f"jnp.compress(p, {owner}, {rest[3:]}" if method == "compress" else f"jnp.{method}({owner}, {rest}"
    scope = {"x": jnp.asarray(x), "i": jnp.asarray(i), "p": jnp.asarray(p), "jnp": jnp}
    for found, expected in zip(_leaves(eval(expression, scope)), _leaves(eval(function.replace(", )", ")"), scope))):
        np.testing.assert_array_equal(found, expected)


ERRORS = {
    "xp.sort(a, 2)": ValueError,
    "xp.sort(a, kind='quicksort')": TypeError,
    "xp.argsort(a, order='x')": TypeError,
    "xp.sort([1, 2])": TypeError,
    "xp.lexsort(())": TypeError,
    "xp.lexsort((v, a))": ValueError,
    "xp.partition(c, 1)": NotImplementedError,
    "xp.partition(v, 9)": ValueError,
    "xp.searchsorted(a, v)": ValueError,
    "xp.searchsorted(v, v, 'middle')": ValueError,
    "xp.searchsorted(v, v, method='magic')": ValueError,
    "xp.digitize(v, a)": ValueError,
    "xp.take(a, v)": ValueError,
    "xp.take(a, i, out=a)": NotImplementedError,
    "xp.take(a, i, mode='raise')": NotImplementedError,
    "xp.take(a, i, mode='other')": ValueError,
    "xp.take(e, i, 0)": IndexError,
    "xp.take_along_axis(a, v, 0)": TypeError,
    "xp.take_along_axis(a, i, 0)": ValueError,
    "xp.take_along_axis(a, j, None)": ValueError,
    "xp.put(v, i, 1)": ValueError,
    "xp.put(v, i, 1, 'raise', inplace=False)": NotImplementedError,
    "xp.put_along_axis(a, i[None], 1, 0)": ValueError,
    "xp.put_along_axis(a, i, 1, 0, inplace=False)": ValueError,
    "xp.put_along_axis(a, i[None], v, 0, inplace=False)": ValueError,
    "xp.place(a, p, v, inplace=False)": ValueError,
    "xp.place(a, q, v[:0], inplace=False)": ValueError,
    "xp.fill_diagonal(a, 1)": NotImplementedError,
    "xp.fill_diagonal(v, 1, inplace=False)": ValueError,
    "xp.fill_diagonal(cube, 1, inplace=False)": ValueError,
    "xp.choose(i, [i, i])": ValueError,
    "xp.choose(v, [i, i])": ValueError,
    "xp.choose(i, [i, i], mode='x')": ValueError,
    "xp.ravel_multi_index((far, i), (2, 3))": ValueError,
    "xp.ravel_multi_index((v, v), (2, 3), 'clip')": ValueError,
    "xp.ravel_multi_index((i, i), (2, 3), 'x')": ValueError,
    "xp.ravel_multi_index((i, i), (200, 300), 'clip', dtype='int8')": ValueError,
    "xp.nonzero(np.float32(1))": ValueError,
    "xp.nonzero(a, size=3, fill_value=(1, 2, 3))": ValueError,
    "xp.where(q, a)": TypeError,
    "xp.where(q, a, a, size=3)": ValueError,
    "xp.compress(q, a)": ValueError,
    "xp.compress(p, a, 0)": ValueError,
    "xp.compress(p, a, 1, size=9)": ValueError,
    "xp.delete(a, 9, 1)": ValueError,
    "xp.delete(a, p, 0)": ValueError,
    "xp.delete(a, v, 0)": ValueError,
    "xp.insert(a, q, 1)": ValueError,
    "xp.insert(a, v, 1)": ValueError,
    "xp.piecewise(v, [v > 1], [1, 2, 3])": ValueError,
    "xp.quantile(c, 0.5)": ValueError,
    "xp.quantile(a, 0.5, method='x')": ValueError,
    "xp.quantile(a, a)": ValueError,
    "xp.quantile(a, 0.5, out=a)": ValueError,
    "xp.quantile(a, 0.5, weights=a)": NotImplementedError,
    "xp.quantile(a, 0.5, method='inverted_cdf', weights=v)": ValueError,
    "xp.quantile(a, 0.5, axis=0, method='inverted_cdf', weights=v)": ValueError,
    "xp.cov(cube)": ValueError,
    "xp.cov(a, fweights=v[:4])": TypeError,
    "xp.cov(a, fweights=u)": RuntimeError,
    "xp.cov(a, aweights=a)": RuntimeError,
    "xp.cov(a, dtype='int32')": ValueError,
    "xp.bincount(v)": TypeError,
    "xp.bincount(m)": ValueError,
    "xp.bincount(i, v)": ValueError,
    "xp.histogram(v, 3, weights=i)": ValueError,
    "xp.histogram_bin_edges(v, 'auto')": NotImplementedError,
    "xp.histogram(v, 3, range=(1, 2, 3))": ValueError,
    "xp.histogramdd(a, (2, 3))": ValueError,
    "xp.histogramdd(a, 3, weights=v)": ValueError,
    "xp.unique(e, size=2)": ValueError,
    "xp.unique(a, axis=2)": ValueError,
    "xp.isin(a, a, method='x')": ValueError,
    "xp.cumulative_sum(a)": ValueError,
    "xp.cumulative_sum(np.float32(2))": ValueError,
    "xp.sort(a, axis=1.5)": TypeError,
    "xp.sum(a, initial=v)": ValueError,
    "xp.nanmin(a, initial=v[:1])": ValueError,
    "xp.var(a, ddof=1, correction=1)": ValueError,
    "xp.std(a, ddof=1, correction=0)": ValueError,
    "xp.trim_zeros([1, 2])": TypeError,
}


@pytest.mark.parametrize("expression", ERRORS)
def test_errors(expression: str) -> None:
    with pytest.raises(ERRORS[expression]):
        _value(jnp, expression, _arrays(expression, jnp.asarray))


@pytest.mark.slow
@pytest.mark.parametrize("expression", ERRORS)
def test_errors_are_those_of_jax(expression: str) -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(ERRORS[expression]):
        _value(jax.numpy, expression, _arrays(expression, jax.numpy.asarray))


TRACED = [
    *("xp.nonzero(a)", "xp.where(q)", "xp.argwhere(q)", "xp.flatnonzero(a)", "xp.unique(n)", "xp.unique_counts(n)"),
    *("xp.union1d(n, m)", "xp.intersect1d(n, m)", "xp.setdiff1d(n, m)", "xp.setxor1d(n, m)", "xp.bincount(i)"),
    *("xp.compress(p, a, 1)", "xp.extract(q, a)", "xp.delete(a, i, 1)", "xp.trim_zeros(v)", "xp.choose(i, [i, i, i])"),
    *("xp.ravel_multi_index((i, i), (9, 9))", "xp.histogram(v, n[0])", "xp.nonzero(a, size=i[0])"),
]


@pytest.mark.parametrize("expression", TRACED)
def test_sizes_that_depend_on_values_are_refused_under_jit(expression: str) -> None:
    with pytest.raises(ConcretizationTypeError, match=r"(?s)at .*test_sorting_and_searching.py"):
        hloom.jit(lambda arrays: _value(jnp, expression, arrays))(_arrays(expression, jnp.asarray))


def test_piecewise_is_traced_once() -> None:
    calls = []

    def double(t: Any) -> Any:
        calls.append(t)
        return t * 2

    for k in range(4):
        x = jnp.arange(4.0) + k
        np.testing.assert_array_equal(jnp.piecewise(x, [x < 2], [double, 5.0]), np.where(x < 2, 2 * x, 5))
    assert len(calls) == 1


def test_sizes_of_unravel_index_may_be_traced() -> None:
    found = hloom.jit(jnp.unravel_index)(jnp.arange(6), (jnp.int32(2), 3))
    np.testing.assert_array_equal(found, np.unravel_index(np.arange(6), (2, 3)))


def test_the_dtype_of_a_number() -> None:
    assert [hloom.lax.dtype(v) for v in (1, 2.0, True, 1j, np.float16(1), jnp.zeros(2, "int8"))] == [
        *("int32", "float32", "bool", "complex64", "float16", "int8")
    ]
    assert [hloom.lax.dtype(t) for t in (float, int, np.int16, "uint8")] == ["float32", "int32", "int16", "uint8"]


def test_out_sharding_has_no_meaning_on_one_device() -> None:
    x = jnp.ones((2, 3), out_sharding=None)
    calls = [
        *(jnp.zeros(3, out_sharding=None), jnp.full(3, 1.5, out_sharding=None), jnp.arange(3, out_sharding=None)),
        *(jnp.array([1], out_sharding=None), jnp.asarray(x, out_sharding=None), jnp.zeros_like(x, out_sharding=None)),
        *(jnp.reshape(x, 6, out_sharding=None), jnp.ravel(x, out_sharding=None), jnp.repeat(x, 2, out_sharding=None)),
        *(jnp.broadcast_to(x, (2, 2, 3), out_sharding=None), jnp.einsum("ij->j", x, out_sharding=None)),
        *(jnp.bincount(jnp.arange(3), out_sharding=None), jnp.percentile(x, 5.0, out_sharding=None)),
    ]
    lax = hloom.lax
    calls += [
        *(lax.full((2,), 1.0, sharding=None), lax.full_like(x, 0, sharding=None)),
        lax.reshape(x, (6,), out_sharding=None),
        *(lax.broadcast(x, (2,), out_sharding=None), lax.broadcast_in_dim(x, (2, 3), (0, 1), out_sharding=None)),
        *(lax.broadcasted_iota("int32", (2, 3), 1, out_sharding=None), lax.reduce_sum(x, (0,), out_sharding=None)),
        *(lax.reduce(x, 0.0, lax.add, (0,), None), lax.dot(x, x.T, out_sharding=None)),
    ]
    assert all(isinstance(found, hloom.Array) for found in calls)


def test_numpy_arrays_beside_weak_ones_are_weak_too() -> None:
    weak = jnp.broadcast_to(2.0, (3,))
    assert jnp.concatenate([weak, np.arange(3, dtype=np.int16)]).weak_type
    assert jnp.add(weak, np.arange(3, dtype=np.int16)).weak_type
    assert not jnp.add(weak, np.ones(3, np.float32)).weak_type


def test_wide_types() -> None:
    with hloom.enable_x64(True):
        v, n = jnp.asarray([3.0, 1.0, 2.0]), jnp.asarray([2, 0, 2])
        assert jnp.argsort(v).dtype == jnp.unique(n, return_index=True)[1].dtype == jnp.nonzero(n)[0].dtype == "int64"
        assert jnp.searchsorted(jnp.sort(v), v).dtype == "int32"
        assert jnp.bincount(n).dtype == jnp.bincount(n, length=3).dtype == "int64"
        assert jnp.median(v).dtype == jnp.quantile(v, 0.5).dtype == jnp.cov(v).dtype == "float64"
        np.testing.assert_array_equal(jnp.take(v, n), [2, 3, 2])
        np.testing.assert_array_equal(jnp.sort(jnp.asarray([2**40, -(2**50)])), [-(2**50), 2**40])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [0, 1, 2, 5, 31, 32, 33, 1000])
def test_long_lines(size: int) -> None:
    """Sizes around powers of two, where a binary search goes wrong first."""
    x, points = np.sort(R.integers(0, size + 1, size)).astype(np.int32), np.arange(-1, size + 3, dtype=np.int32)
    floats = np.sort(np.where(x < 3, np.float32([np.nan, -0.0, 0.0])[x.clip(0, 2)], x - np.float32(5)))
    others = np.concatenate([floats, points - np.float32(5.5), np.float32([np.nan, -0.0, -np.inf, np.inf])])
    for side in ("left", "right"):
        np.testing.assert_array_equal(jnp.searchsorted(x, points, side), np.searchsorted(x, points, side))
        np.testing.assert_array_equal(jnp.searchsorted(floats, others, side), np.searchsorted(floats, others, side))
    np.testing.assert_array_equal(jnp.unique(x, size=size + 2, fill_value=-1)[: len(np.unique(x))], np.unique(x))
    np.testing.assert_array_equal(jnp.isin(points, x), np.isin(points, x))
    np.testing.assert_array_equal(jnp.nonzero(x, size=size)[0][: np.count_nonzero(x)], np.nonzero(x)[0])


@pytest.mark.parametrize("name", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_beside_infinities(name: str) -> None:
    """An infinity at one side does not make NaN of the other."""
    x = jnp.asarray([-np.inf, 1.0, 2.0, np.inf])
    np.testing.assert_array_equal(
        jnp.quantile(x, jnp.asarray([0.0, 1 / 3, 1.0]), method=name)[jnp.array([0, 2])], [-np.inf, np.inf]
    )
    assert float(jnp.median(jnp.asarray([np.inf, np.inf]))) == np.inf


LAX = """
lax.index_take(a, [i[:3] * 5 - 6, i[:3]], (0, 1)) | lax.index_take(cube, [i], (1,)) | lax.stack([a, b])
lax.stack([v, w], -1)
lax.unstack(a) | lax.unstack(cube, axis=-1) | lax.tile(a, (2, 1)) | lax.tile(v, (0,)) | lax.tile(cube, (1, 3, 2))
lax.empty((2, 3), "int16") | lax.broadcast_like(v[:4], a) | lax.broadcast_like(2.0, a)
"""


@pytest.mark.parametrize("expression", _expressions(LAX))
def test_lax(expression: str) -> None:
    """Against JAX's own, or what the same call of NumPy is."""
    arrays = _arrays(expression, jnp.asarray)
    found = eval(expression, {"lax": hloom.lax, **arrays})
    assert all(isinstance(f, hloom.Array) for f in _leaves(found))
    jax = pytest.importorskip("jax")
    expected = eval(expression, {"lax": jax.lax, **_arrays(expression, jax.numpy.asarray)})
    _same(found, expected)
    assert _kinds(found) == _kinds(expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: hloom.lax.tile(x, (2,)),
        lambda x: hloom.lax.tile(x, (-1, 2)),
        lambda x: hloom.lax.stack([x, x[0]]),
        lambda x: hloom.lax.stack([x, x.astype("int32")]),
        lambda x: hloom.lax.stack([]),
        lambda x: hloom.lax.unstack(x, 2),
        lambda x: hloom.lax.broadcast_like(x, x[0]),
        lambda x: hloom.lax.argmax(x, 0, "float32"),
    ],
)
def test_errors_of_lax(call: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"test_sorting_and_searching\.py"):
        call(jnp.ones((2, 3)))
