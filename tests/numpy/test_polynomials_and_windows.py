"""Windows, polynomials, grids, blocks, calculus of samples, parts of floats, bits, questions about dtypes: calls.

Each expression is computed outside of jit and under it, and compared with NumPy's values; where JAX is installed, also
with its values, dtypes and weak types.
"""

from __future__ import annotations

import io
import pickle
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import ConcretizationTypeError
from hloom.test_util import check_grads
from support.evaluator_fixture import on_the_evaluator, x64  # noqa: F401  # fixtures

R = np.random.default_rng(7)
GIVEN: dict[str, Any] = {
    "a": R.standard_normal((3, 4)).astype(np.float32),
    "cube": R.standard_normal((2, 3, 4)).astype(np.float32),
    "v": np.array([3, 1, -2, 1, 5, 2.25, 0.5], np.float32),
    "w": np.array([0.5, 2, 1, 1.5, 3, 0.25, 2], np.float32),
    "t": np.array([0, 0.5, 1.5, 2, 4, 4.25, 7], np.float32),
    "at": np.array([-1, 0, 0.3, 1.7, 4.1, 7, 9, np.nan], np.float32),
    "s": np.array([0, -0.0, 1, -1, 3.7, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32),
    "h": np.array([3, 1, 2, 1, -4], np.float16),
    "bf": np.array([3, 1, 2, 1, -4], ml_dtypes.bfloat16),
    "c": np.array([2 + 1j, 1 - 1j, 2 - 3j, 1], np.complex64),
    "n": np.array([12, -18, 0, 7, 100], np.int32),
    "m": np.array([8, 27, 0, -14, 75], np.int32),
    "u": np.array([3, 200, 255], np.uint8),
    "k": np.array([2, 3, 4], np.int32),
    "p": np.array([True, False, True]),
    "q": R.random((3, 11)) > 0.5,
    "e": np.zeros((0,), np.float32),
    "i": np.array([0, 2, 1, 0], np.int32),
}
"""The arrays of the expressions."""

BOTH = """
xp.frexp(s) | xp.frexp(v) | xp.frexp(h) | xp.frexp(-t) | xp.ldexp(v, k[0]) | xp.ldexp(s, np.int32(-3))
xp.ldexp(s, np.int32(140)) | xp.ldexp(s, np.int32(-140)) | xp.ldexp(h, np.int32(-20)) | xp.ldexp(v[:3], k)
xp.modf(v) | xp.modf(-t) | xp.modf(h) | xp.modf(s[:7]) | xp.nextafter(s, v[0]) | xp.nextafter(v, w)
xp.spacing(v) | xp.spacing(s) | xp.spacing(h)
xp.gcd(n, m) | xp.lcm(n, m) | xp.gcd(n, 6) | xp.lcm(n[:3], k) | xp.gcd(u, u[::-1]) | xp.gcd(n[:, None], m)
xp.bitwise_count(n) | xp.bitwise_count(u) | xp.bitwise_count(p)
xp.packbits(q) | xp.packbits(q, 1) | xp.packbits(q, 0, "little") | xp.packbits(n) | xp.packbits(q[:, :0], 1)
xp.unpackbits(u) | xp.unpackbits(u, 0, 5) | xp.unpackbits(u[:, None], 1, -3, "little") | xp.unpackbits(u, None, 30)
xp.ediff1d(a) | xp.ediff1d(n, 5) | xp.ediff1d(n, to_begin=m) | xp.ediff1d(v, w, w) | xp.ediff1d(e)
xp.gradient(v) | xp.gradient(v, 2.0) | xp.gradient(v, t) | xp.gradient(a) | xp.gradient(a, 2.0, axis=1)
xp.gradient(a, 0.5, t[:4]) | xp.gradient(cube, axis=(0, 2)) | xp.gradient(v[:2]) | xp.gradient(h)
xp.trapezoid(v) | xp.trapezoid(v, t) | xp.trapezoid(a, dx=2.0, axis=0) | xp.trapezoid(a, t[:4]) | xp.trapezoid(n)
tuple(xp.gradient(v, axis=())) | xp.trapezoid(e) | xp.trapezoid(c) | xp.trapezoid(a, a)
xp.unwrap(v * 4) | xp.unwrap(v, 3.0) | xp.unwrap(v * 4, axis=0, period=4) | xp.unwrap(n, period=7)
xp.unwrap(n, period=8) | xp.unwrap(a * 9, axis=0)
xp.interp(at, t, v) | xp.interp(at, t, v, -7) | xp.interp(at, t, v, right=9.0) | xp.interp(at, t[:1], v[:1])
xp.interp(at, t, v, period=8.0) | xp.interp(at, w[:3], v[:3], period=2.5) | xp.interp(at, k, k) | xp.interp(a, t, v)
xp.interp(1.75, t, v)
xp.tril_indices(3) | xp.tril_indices(3, 1, 4) | xp.triu_indices(3, -1) | xp.triu_indices(0) | xp.triu_indices(2, m=4)
xp.tril_indices_from(a, -1) | xp.triu_indices_from(a) | xp.diag_indices(3) | xp.diag_indices(2, 3)
xp.diag_indices_from(a[:, :3]) | xp.mask_indices(3, xp.triu) | xp.mask_indices(3, xp.tril, 1)
xp.diagflat(a[:2, :2], 1) | xp.diagflat(2.5, -1) | xp.ix_(n, k) | xp.ix_(p, k) | xp.ix_(k) | a[xp.ix_(i[:3], i)]
xp.mgrid[0:3] | xp.mgrid[0:3, 1:6:2] | xp.mgrid[0:1:5j] | xp.mgrid[0:1:3j, 0:2] | xp.ogrid[0:3, 1:6:2]
xp.ogrid[0:1:3j, 0:2] | xp.ogrid[-1:1:0.5]
xp.r_[k, 0, 0, v] | xp.r_[1:4, 7, k] | xp.r_["-1", a, a] | xp.r_["0,2", k, k] | xp.r_["0,2,0", k, k] | xp.r_[a, a]
xp.r_["1,2,0", k, k] | xp.r_[-1:1:6j, k] | xp.r_["0,3,-1", a, a] | xp.r_["r", k, k] | xp.r_["c", k, k] | xp.r_[5]
xp.c_[k, v[:3]] | xp.c_[a, a] | xp.c_[a, k] | xp.c_[1:4, k] | xp.c_["0", a, a]
a[xp.s_[1:, ::2]] | a[xp.index_exp[1]] | a[xp.s_[..., 0]]
xp.block([[a, a[:, :1]], [a[:1], a[:1, :1]]]) | xp.block([k, v, 2]) | xp.block([[[cube, cube]]]) | xp.block(k)
xp.block([[k], [k]]) | xp.atleast_3d(v) | xp.atleast_3d(a) | xp.atleast_3d(cube) | xp.atleast_3d(n[0])
xp.vsplit(cube, 2) | xp.hsplit(a, [1, 3]) | xp.hsplit(v, [2]) | xp.dsplit(cube, 2)
xp.unstack(a) | xp.unstack(cube, axis=-1)
xp.rollaxis(cube, 2) | xp.rollaxis(cube, 0, 2) | xp.rollaxis(cube, -1, -2) | xp.rollaxis(cube, 0, 3)
xp.resize(a, (2, 3)) | xp.resize(k, 7) | xp.resize(e, 3) | xp.resize(k, (0, 2))
xp.vander(v[:3]) | xp.vander(k, 2) | xp.vander(k, 5, increasing=True) | xp.vander(c)
xp.apply_along_axis(xp.sum, 1, a) | xp.apply_along_axis(xp.outer, 0, cube, k) | xp.apply_along_axis(xp.sum, 0, v)
xp.apply_over_axes(xp.sum, cube, [0, 2]) | xp.apply_over_axes(xp.cumsum, cube, (1,))
xp.fromfunction(lambda i, j: i * 10 + j, (2, 3)) | xp.fromfunction(lambda i: i % 2, (4,), dtype=int)
xp.polyadd(v, k) | xp.polysub(k, v) | xp.polymul(v, w[:2]) | xp.polyadd(n, m[:2]) | xp.polymul(c, c)
xp.polydiv(v, w[:3])[0] | xp.polydiv(w[:2], v) | xp.polydiv(v, 2 * k[:1])[0]
xp.polyder(v) | xp.polyder(v, 3) | xp.polyder(c) | xp.polyder(v, 9) | xp.polyint(v) | xp.polyint(v, 3)
xp.polyint(v, 1, 2.0) | xp.polyint(v, 2, w[:2])
xp.poly(v[:4]) | xp.poly(c) | xp.poly(e) | abs(xp.poly(a[:, :3]))
abs(xp.sum(xp.roots(v) ** 3)) | abs(xp.roots(e)) | abs(xp.sum(xp.roots(xp.r_[0, 0, 1, -3, 2, 0.0])))
xp.roots(t[:3]).shape
xp.polyfit(t, v, 2) | xp.polyfit(t, v, 1, w=w) | xp.polyfit(t, xp.c_[v, w], 2) | xp.polyfit(t, v, 2, cov=True)
xp.polyfit(t, v, 2, full=True)[:4] | xp.polyfit(t, v, 1, cov="unscaled", w=w)
xp.bartlett(7) | xp.blackman(8) | xp.hamming(5) | xp.hanning(6) | xp.hanning(1) | xp.bartlett(0)
xp.kaiser(7, 3.5) | xp.kaiser(1, 2) | xp.kaiser(0, 2) | xp.i0(v) | xp.i0(20 * v) | xp.i0(n[2]) | xp.i0(h)
xp.matvec(cube, v[:4]) | xp.matvec(a, a[0]) | xp.vecmat(v[:3], cube) | xp.vecmat(c[:3], a)
xp.matvec(cube[:, :2], cube[:, 0])
xp.geomspace(1.0, 256.0, 9) | xp.geomspace(-1.0, -8.0, 4, endpoint=False) | xp.geomspace(v[0], 81.0, 1)
xp.geomspace(1.0, w, 4, axis=1) | xp.geomspace(1j, 16j, 5) | xp.geomspace(1.0, 2.0, 0)
xp.isreal(c) | xp.iscomplex(c) | xp.isreal(v) | xp.iscomplex(n)
xp.array_equiv(k, k) | xp.array_equiv(a, a[0]) | xp.array_equiv(k, n) | xp.array_equiv(p, True)
xp.frombuffer(bytes(range(16)), dtype="int32") | xp.frombuffer(bytes(range(9)), "uint8", 3, 2)
xp.fromstring("1 2.5", sep=" ") | xp.fromstring("1,2", int, sep=",")
"""
"""Expressions that mean the same in NumPy. A line has several, with bars between."""

UFUNCS = """
xp.add.reduce(a) | xp.add.reduce(a, 1) | xp.add.reduce(a, None, keepdims=True) | xp.add.reduce(a, (0, 1), initial=2.0)
xp.multiply.reduce(k) | xp.maximum.reduce(a, 1, keepdims=True) | xp.minimum.reduce(n, initial=-99)
xp.subtract.reduce(a, 1) | xp.subtract.reduce(n) | xp.logaddexp.reduce(a, 1) | xp.logaddexp2.reduce(a, None)
xp.bitwise_or.reduce(n) | xp.bitwise_and.reduce(n) | xp.bitwise_xor.reduce(n, keepdims=True) | xp.bitwise_xor.reduce(q)
xp.logical_and.reduce(q, 1) | xp.logical_or.reduce(n) | xp.logical_xor.reduce(q, 0) | xp.logical_xor.reduce(q, None)
xp.add.reduce(a, 1, where=a > 0) | xp.maximum.reduce(a, 1, initial=0, where=a < 0) | xp.logaddexp.reduce(e)
xp.bitwise_and.reduce(n, where=n > 0) | xp.multiply.reduce(a, 0, where=a > 0) | xp.add.reduce(e)
xp.add.accumulate(a, 1) | xp.multiply.accumulate(k) | xp.maximum.accumulate(a) | xp.minimum.accumulate(n)
xp.subtract.accumulate(v) | xp.bitwise_or.accumulate(n) | xp.logaddexp.accumulate(a, 1) | xp.subtract.accumulate(a, 1)
xp.logical_xor.accumulate(p) | xp.logaddexp2.accumulate(v)
xp.add.outer(k, v) | xp.multiply.outer(a, k) | xp.logical_and.outer(p, p) | xp.maximum.outer(n[0], a)
xp.add.reduceat(v, i[:3]) | xp.maximum.reduceat(a, i, 1) | xp.subtract.reduceat(a, i[:2])
xp.add(k, v[:3]) | xp.negative(a) | xp.subtract(a, 1) | xp.logaddexp2(v, w)
"""
"""Expressions with ufuncs, in NumPy too."""

ONLY_JAX = """
xp.interp(at, t, v, "extrapolate", "extrapolate") | xp.interp(at, t, v, 1, "extrapolate")
xp.mask_indices(3, xp.triu, size=4) | xp.mask_indices(3, xp.triu, 1, size=5)
xp.polymul(xp.r_[0, v], w, trim_leading_zeros=True) | xp.polydiv(v, w[:3], trim_leading_zeros=True)
xp.roots(xp.r_[0.0, 0, v], strip_zeros=False).shape | xp.apply_along_axis(lambda x: (x, x.sum()), 1, a)
xp.add.at(v, i, w[:4], inplace=False) | xp.multiply.at(a, i[:2], 2.0, inplace=False)
xp.maximum.at(v, i, 2.0, inplace=False) | xp.subtract.at(v, i[:2], w[:2], inplace=False)
xp.negative.at(v, i, inplace=False) | xp.bitwise_or.at(n, i, 3, inplace=False)
xp.frompyfunc(lambda x, y: x * 2 + y, 2, 1)(a, v[:4]) | xp.frompyfunc(lambda x, y: x * 2 + y, 2, 1).reduce(a)
xp.frompyfunc(lambda x, y: x * 2 + y, 2, 1).reduce(a, None, initial=1.0, keepdims=True)
xp.frompyfunc(lambda x, y: x * 2 + y, 2, 1).accumulate(a, 1) | xp.frompyfunc(lambda x: (x, -x), 1, 2)(a)
xp.frompyfunc(lambda x, y: x * 2 + y, 2, 1).at(v, i, 5.0, inplace=False)
xp.frompyfunc(lambda x, y: x * 2 + y, 2, 1).outer(k, k) | xp.frompyfunc(lambda x, y: x * y, 2, 1, identity=1).reduce(e)
xp.frompyfunc(lambda x, y: x * 2 + y, 2, 1).reduceat(v, i[:2])
"""
"""Functions that NumPy lacks, or that work in place there."""

DIFFERENT = (
    *("xp.gradient(a)", "xp.gradient(cube", "xp.modf(-t)", "xp.modf(s", "xp.poly(a", "xp.ldexp(s", "xp.spacing(s)"),
    *("period=", "xp.ix_(p", "xp.ogrid[-1:1:0.5]", "xp.geomspace(1j", "xp.frexp(s)", "xp.ldexp(h", "xp.nextafter(s"),
)  # fmt: skip
"""Parts of expressions in which JAX differs from NumPy: in values with subnormal numbers or infinities, in defects."""


def _expressions(table: str) -> list[str]:
    return [each.strip() for line in table.strip().splitlines() for each in line.split(" | ")]


def _value(xp: Any, expression: str, arrays: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"xp": xp, "np": np, **arrays})


def _leaves(result: Any) -> list[Any]:
    return [leaf for each in result for leaf in _leaves(each)] if isinstance(result, tuple | list) else [result]


def _same(found: Any, expected: Any) -> None:
    one, other = _leaves(found), _leaves(expected)
    assert len(one) == len(other)
    for f, e in zip(one, other, strict=True):
        assert np.shape(f) == np.shape(e)
        if not hasattr(f, "dtype"):
            assert f == e
            continue
        wide = np.complex128 if np.asarray(e).dtype.kind == "c" else np.float64
        tolerance = 2e-3 if f.dtype.itemsize == 2 and f.dtype.kind not in "iu" else 1e-4
        np.testing.assert_allclose(np.asarray(f).astype(wide), np.asarray(e).astype(wide), tolerance, tolerance)


def _arrays(expression: str, asarray: Any) -> dict[str, Any]:
    names: set[str] = set()
    codes = [compile(expression, "", "eval")]
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [c for c in code.co_consts if hasattr(c, "co_names")]
    return {n: asarray(GIVEN[n]) for n in GIVEN if n in names}


def _kinds(result: Any) -> list[Any]:
    return [(np.dtype(f.dtype), f.weak_type) for f in _leaves(result) if hasattr(f, "weak_type")]


def _needs_values(expression: str) -> bool:
    return any(part in expression for part in ("trim_leading", "roots(", "ix_(p", "mask_indices"))


@pytest.mark.parametrize("expression", [*_expressions(BOTH), *_expressions(UFUNCS)])
def test_values_are_those_of_numpy(expression: str) -> None:
    wanted = _value(np, expression, _arrays(expression, np.asarray))
    arrays = _arrays(expression, jnp.asarray)
    _same(_value(jnp, expression, arrays), wanted)
    if not _needs_values(expression):
        _same(hloom.jit(lambda given: _value(jnp, expression, given))(arrays), wanted)


REFUSED = ("xp.trapezoid(e)", "xp.ix_(p, k)", "xp.array_equiv(k, n)")
"""What JAX refuses."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    [e for e in _expressions("\n".join([BOTH.strip(), UFUNCS.strip(), ONLY_JAX.strip()])) if e not in REFUSED],
)
def test_values_and_types_are_those_of_jax(expression: str) -> None:
    jax = pytest.importorskip("jax")
    found = _value(jnp, expression, _arrays(expression, jnp.asarray))
    expected = _value(jax.numpy, expression, _arrays(expression, jax.numpy.asarray))
    assert _kinds(found) == _kinds(expected)
    if not any(part in expression for part in DIFFERENT):
        _same(found, expected)


@pytest.mark.parametrize("expression", _expressions(ONLY_JAX))
def test_beyond_numpy(expression: str) -> None:
    """Outside of jit and under it."""
    arrays = _arrays(expression, jnp.asarray)
    found = _value(jnp, expression, arrays)
    if not _needs_values(expression):
        _same(hloom.jit(lambda given: _value(jnp, expression, given))(arrays), found)


GRADIENTS = {
    "frexp": "xp.frexp(w + 0.1)[0] * v",
    "ldexp": "xp.ldexp(w, np.int32(3))",
    "modf": "xp.modf(w + 0.1)[0] * v",
    "gradient": "xp.gradient(v, t)",
    "gradient by the coordinates": "xp.gradient(w, t**2 + t)",
    "gradient of edges": "xp.gradient(v, t, edge_order=2)",
    "trapezoid": "xp.trapezoid(v, w)",
    "unwrap": "xp.unwrap(w * 4) * v",
    "interp": "xp.interp(at[1:5] + 0.01, t, v)",
    "interp on a circle": "xp.interp(at[1:5] + 0.01, t, v, period=8.0)",
    "polyfit": "xp.polyfit(t, v, 2, w=w)",
    "polydiv": "xp.polydiv(v, w[:3])[0]",
    "poly": "xp.poly(v[:4])",
    "polymul": "xp.polymul(v, w)",
    "polyint": "xp.polyint(v, 2, w[:2])",
    "vander": "xp.vander(w, 3)",
    "resize": "xp.resize(v, (2, 5)) ** 2",
    "block": "xp.block([[v, w], [w, v]]) ** 2",
    "c_": "xp.c_[v, w] ** 2",
    "geomspace": "xp.geomspace(w[0], w[1], 5)",
    "apply_along_axis": "xp.apply_along_axis(lambda x: x**2, 0, a)",
    "matvec": "xp.matvec(a, w[:4])",
    "a reduction": "xp.frompyfunc(lambda x, y: x * y + y, 2, 1).reduce(v)",
    "an accumulation": "xp.frompyfunc(lambda x, y: x * y + y, 2, 1).accumulate(v)",
    "subtract.at": "xp.subtract.at(v, i, w[:4], inplace=False) ** 2",
    "at of a function": "xp.frompyfunc(lambda x, y: x * y, 2, 1).at(v, i, w[:4], inplace=False)",
    "reduceat": "xp.multiply.reduceat(v, i[:3])",
    "logaddexp.reduce": "xp.logaddexp.reduce(a, 1)",
    "logaddexp2.accumulate": "xp.logaddexp2.accumulate(v)",
    "outer": "xp.multiply.outer(v, w)",
    "i0": "xp.i0(v)",
    "kaiser": "xp.kaiser(7, w[0] + 2)",
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives(name: str) -> None:
    """The first two orders by both modes; batches agree with a loop."""
    expression = GRADIENTS[name]
    given = _arrays(expression, jnp.asarray)
    floats = {n: x for n, x in given.items() if x.dtype.kind == "f"}
    rest = {n: x for n, x in given.items() if x.dtype.kind != "f"}

    def function(floats: Any) -> Any:
        return _value(jnp, expression, {**rest, **floats})

    with hloom.enable_x64():
        wide = {n: jnp.asarray(x, "float64") for n, x in floats.items()}
        check_grads(function, (wide,), 2, atol=1e-4, rtol=1e-4)
    twice = {n: jnp.stack([x, x + 0.125]) for n, x in floats.items()}
    found = hloom.vmap(function)(twice)
    for row in range(2):
        _same([f[row] for f in _leaves(found)], function({n: x[row] for n, x in twice.items()}))


ERRORS = """
xp.gcd(v, n) | xp.lcm([1, 2], n) | xp.ldexp(v, w) | xp.ldexp(c, k) | xp.frexp(c) | xp.modf(c) | xp.bitwise_count(v)
xp.packbits(v) | xp.packbits(n, bitorder="x") | xp.unpackbits(n) | xp.unpackbits(u, 3) | xp.spacing(c)
xp.gradient(v, axis=1) | xp.gradient(v[:1]) | xp.gradient(a, 1.0, 2.0, 3.0) | xp.gradient(v, edge_order=3)
xp.gradient(v, w[:3]) | xp.trapezoid([1, 2]) | xp.unwrap(c) | xp.unwrap(v, axis=1)
xp.interp(at, t, v[:2]) | xp.interp(at, t, v, left="end") | xp.interp(at, a, a) | xp.interp(c, t, v)
xp.interp(at, e, e) | xp.interp(at, t, v, period=k)
xp.tril_indices(2.5) | xp.tril_indices_from(v) | xp.diag_indices(-1) | xp.diag_indices_from(a) | xp.diag_indices_from(v)
xp.ix_(a) | xp.ix_([1]) | xp.mgrid[1:2, 3] | xp.mgrid[1:] | xp.r_["x", k] | xp.r_[k, "r"] | xp.r_[()] | xp.r_[k, a]
xp.block((k, k)) | xp.block([[k], k]) | xp.block([]) | xp.block([[k, a]]) | xp.hsplit(n[0], 1) | xp.dsplit(a, 2)
xp.vsplit(a, 2) | xp.unstack(n[0]) | xp.unstack(a, axis=2) | xp.rollaxis(a, 2) | xp.rollaxis(a, 0, 4)
xp.resize(a, (-1, 2)) | xp.vander(a) | xp.vander(v, -1) | xp.apply_along_axis(xp.sum, 2, a)
xp.apply_over_axes(lambda x, axis: x.sum(), cube, (0, 1)) | xp.polyadd(a, v) | xp.polyder(v, -1) | xp.polyint(v, 2, w)
xp.polyfit(t, v, -1) | xp.polyfit(a, v, 1) | xp.polyfit(t, v[:3], 1) | xp.polyfit(t, v, 1, w=k) | xp.poly(a)
xp.polyfit(e, e, 1) | xp.polyfit(t[:2], v[:2], 1, cov=True) | xp.roots(a) | xp.polymul(a, a) | xp.polydiv(v, e)
xp.hanning(2.5) | xp.kaiser(3, [1]) | xp.i0(c) | xp.matvec(v, v) | xp.vecmat(n[0], a) | xp.matvec(a, v)
xp.isdtype("float32", "real")
xp.fromfile("x") | xp.fromiter([1]) | xp.load("no such file") | xp.einsum_path("ij,jk->x", a, a)
xp.array_repr(3, 1, 2, 3, 4)
xp.isdtype("no dtype", "bool") | xp.can_cast(3, "no dtype") | xp.fromfunction(lambda: 1, (2, 2))
xp.float6_e2m3fn([1.0])
xp.add(v) | xp.add(v, v, v) | xp.add(v, v, out=v) | xp.add(v, v, where=p) | xp.add.at(v, 0, 1) | xp.add.reduce(v, 1)
xp.add.at(v, 0, inplace=False) | xp.negative.reduce(v) | xp.negative.outer(v, v) | xp.maximum.reduce(e)
xp.add.accumulate(a, (0, 1)) | xp.subtract.accumulate(a, None) | xp.add.reduceat(v, a) | xp.add.reduceat(v, v)
xp.maximum.reduce(a, where=a > 0) | xp.bitwise_or.reduce(v) | xp.add.reduce(a, out=a) | xp.add.outer([1], v)
xp.add.reduce(a, where=n) | xp.add.reduceat(n[0], i) | xp.add.reduceat(v, i, None)
xp.power(k, -1) | k ** -2 | xp.power(p, -1)
"""
"""Calls that are refused, as NumPy or JAX refuse them, or for a reason of ours."""


@pytest.mark.parametrize("expression", _expressions(ERRORS))
def test_errors(expression: str) -> None:
    with pytest.raises((TypeError, ValueError, NotImplementedError, IndexError, OSError)) as caught:
        _value(jnp, expression, _arrays(expression, jnp.asarray))
    assert len(str(caught.value)) > 15, "the message says what is wrong"


@pytest.mark.parametrize("expression", ["xp.roots(v)", "xp.polymul(v, w, trim_leading_zeros=True)", "xp.ix_(p)"])
def test_sizes_that_depend_on_values_are_refused_under_jit(expression: str) -> None:
    with pytest.raises((ConcretizationTypeError, NotImplementedError), match=r"size|number"):
        hloom.jit(lambda given: _value(jnp, expression, given))(_arrays(expression, jnp.asarray))


def test_mask_indices_of_a_traced_mask() -> None:
    def places(k: Any, size: int | None) -> Any:
        return jnp.mask_indices(4, lambda x, k: jnp.triu(x) * (x > k), k, size=size)

    for size in (4, 9, 12):
        for found, wanted in zip(hloom.jit(places, static_argnums=1)(0, size), np.triu_indices(4), strict=True):
            assert found.tolist() == (wanted.tolist() + [0] * size)[:size]
    with pytest.raises(ConcretizationTypeError, match="size is needed"):
        hloom.jit(places, static_argnums=1)(0, None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_parts_make_the_whole(dtype: str) -> None:
    """Exactly, for numbers of all sizes: subnormal ones, those that overflow, zeros of both signs."""
    with hloom.enable_x64():
        info = jnp.finfo(dtype)
        ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal)]
        drawn = R.uniform(-2, 2, 200) * 2.0 ** R.integers(int(info.minexp), int(info.maxexp) - 1, 200)
        x = jnp.asarray([*ends, *(-3 * np.array(ends[1:])), 0.0, -0.0, np.inf, np.nan, 1.0, *drawn], dtype)
        mantissa, exponent = jnp.frexp(x)
        fraction, whole = jnp.modf(x)
        finite = np.isfinite(np.asarray(x, "float64"))
        size = np.abs(np.asarray(mantissa, "float64"))[finite & (np.asarray(x) != 0)]
        assert (mantissa.dtype, exponent.dtype, fraction.dtype) == (x.dtype, np.int32, x.dtype)
        assert ((size >= 0.5) & (size < 1)).all()
        for found in (jnp.ldexp(mantissa, exponent), fraction + whole):
            np.testing.assert_array_equal(np.asarray(found, "float64"), np.asarray(x, "float64"))
        for step in (-1100, -150, -25, -14, -3, 3, 40, 1100):
            with np.errstate(all="ignore"):
                wanted = np.ldexp(np.asarray(x, "float64"), step).astype(x.dtype).astype("float64")
            np.testing.assert_array_equal(np.asarray(jnp.ldexp(x, step), "float64"), wanted)


def test_files() -> None:
    for x in (jnp.arange(3), jnp.ones((2, 2), "bfloat16"), jnp.asarray(2.5)):
        file = io.BytesIO()
        jnp.save(file, x)
        file.seek(0)
        again = jnp.load(file)
        assert again.dtype == x.dtype and again.tolist() == x.tolist()
    file = io.BytesIO()
    jnp.savez(file, jnp.arange(3), x=jnp.ones(2))
    file.seek(0)
    assert {n: y.tolist() for n, y in jnp.load(file).items()} == {"arr_0": [0, 1, 2], "x": [1.0, 1.0]}


@pytest.mark.parametrize("kind", [object, "U2", "S3", "M8[s]", "V4", [("a", "i4")]])
def test_what_is_no_array_of_numbers_is_loaded_as_numpy_does(kind: Any) -> None:
    file = io.BytesIO()
    x = np.zeros(2, kind)
    jnp.save(file, x)
    file.seek(0)
    found = jnp.load(file, allow_pickle=True)
    assert type(found) is np.ndarray and found.dtype == x.dtype and (found == x).all()


def test_printing() -> None:
    x = jnp.asarray([1.23456, 1000.0])
    with jnp.printoptions(precision=2, suppress=True):
        assert repr(x) == "Array([   1.23, 1000.  ], dtype=float32)" and jnp.get_printoptions()["precision"] == 2
    before = jnp.get_printoptions()
    try:
        jnp.set_printoptions(precision=3)
        assert str(jnp.asarray([1.23456])) == "[1.235]"
    finally:
        jnp.set_printoptions(**{k: v for k, v in before.items() if k != "override_repr"})
    assert jnp.array_str(x[:1], precision=1) == "[1.2]"


DTYPE_QUESTIONS = {
    "float32": {"real floating", "numeric"},
    "bfloat16": {"real floating", "numeric"},
    "float8_e5m2": {"real floating", "numeric"},
    "int4": {"signed integer", "integral", "numeric"},
    "uint8": {"unsigned integer", "integral", "numeric"},
    "complex64": {"complex floating", "numeric"},
    "bool": {"bool"},
}
ALL_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


@pytest.mark.parametrize("dtype", DTYPE_QUESTIONS)
def test_kinds_of_dtypes(dtype: str) -> None:
    own = getattr(jnp, dtype)
    assert {kind for kind in ALL_KINDS if jnp.isdtype(own, kind)} == DTYPE_QUESTIONS[dtype]
    assert jnp.isdtype(own, own) and jnp.isdtype(own, ("bool", own)) and not jnp.isdtype(own, jnp.int16)


def test_names_of_types() -> None:
    same = {"single": "float32", "double": "float64", "csingle": "complex64", "cdouble": "complex128"}
    assert all(getattr(jnp, a) is getattr(jnp, b) for a, b in same.items())
    assert jnp.int1([0, -1]).dtype == ml_dtypes.int1 and jnp.uint1([1]).tolist() == [1]
    assert (jnp.flexible, jnp.character, jnp.object_) == (np.flexible, np.character, np.object_)
    assert jnp.can_cast(jnp.bfloat16, jnp.float32) and not jnp.can_cast(jnp.ones(2), jnp.int8)
    assert jnp.can_cast("float64", "float32", casting="same_kind")


# ---- ufuncs


def test_what_a_ufunc_is() -> None:
    larger = jnp.frompyfunc(jnp.maximum, 2, 1)
    assert isinstance(jnp.add, jnp.ufunc) and isinstance(larger, jnp.ufunc) and not isinstance(jnp.sin, jnp.ufunc)
    assert (jnp.add.nin, jnp.add.nout, jnp.add.nargs, jnp.add.identity, jnp.negative.nin) == (2, 1, 2, 0, 1)
    assert (jnp.add.__name__, jnp.add.__module__) == ("add", "hloom.numpy")
    assert (jnp.add.__doc__ or "").startswith("x + y for each element")
    assert larger == jnp.frompyfunc(jnp.maximum, 2, 1) != jnp.frompyfunc(jnp.minimum, 2, 1)
    assert hash(larger) == hash(jnp.frompyfunc(jnp.maximum, 2, 1)) and repr(jnp.add) == "<hloom.numpy.ufunc 'add'>"
    assert pickle.loads(pickle.dumps(jnp.add)) is jnp.add and pickle.loads(pickle.dumps(larger)) == larger


def test_a_ufunc_is_a_function() -> None:
    x, y = jnp.arange(3.0), jnp.ones((2, 3))
    for found in (hloom.jit(jnp.add)(x, y), hloom.vmap(jnp.add, (None, 0))(x, y), jnp.add(x, y)):
        assert found.tolist() == [[1, 2, 3]] * 2
    assert float(hloom.grad(jnp.multiply)(2.0, 3.0)) == 3
    assert hloom.jit(lambda f, x: f.reduce(x), static_argnums=0)(jnp.maximum, x) == 2
    assert hloom.jit(jnp.add.reduce)(x) == 3
    assert hloom.jit(jnp.frompyfunc(lambda x: x + 1, 1, 1))(x).tolist() == [1, 2, 3]


def test_a_reduction_keeps_the_dtype_of_what_is_left_out() -> None:
    """A reduction with `where` and `initial` has the array's dtype, for any number in place of masked elements."""
    p = jnp.asarray([True, False])
    assert jnp.max(p, initial=False, where=p).dtype == bool and jnp.min(p, initial=1, where=p).dtype == bool


# ---- the array API standard


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_expm1_of_infinities_without_an_angle(dtype: str) -> None:
    with hloom.enable_x64():
        x = jnp.asarray([complex(a, b) for a in (np.inf, -np.inf) for b in (np.inf, -np.inf, np.nan)], dtype)
        hloom.config.update("hloom_backend", "numba")
        for found in (jnp.expm1(x), hloom.jit(jnp.expm1)(x)):
            assert np.isinf(np.asarray(found.real[:3])).all() and np.isnan(np.asarray(found.imag[:3])).all()
            assert found.real[3:].tolist() == [-1] * 3 and found.imag[3:].tolist() == [0] * 3


def test_the_namespace_of_an_array() -> None:
    x = jnp.ones(3)
    assert x.__array_namespace__() is jnp and x.__array_namespace__(api_version="2023.12") is jnp
    assert float(hloom.jit(lambda x: x.__array_namespace__().sum(x))(x)) == 3
    assert jnp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="2019"):
        x.__array_namespace__(api_version="2019.12")


def test_what_the_namespace_says_of_itself() -> None:
    info = jnp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}
    assert info.dtypes(kind="real floating") == {"float32": np.float32}
    assert info.default_dtypes()["integral"] == np.int32
    with hloom.enable_x64():
        assert set(info.dtypes(kind=("real floating", "bool"))) == {"float32", "float64", "bool"}
        assert info.default_dtypes() == {
            "real floating": np.float64, "complex floating": np.complex128, "integral": np.int64, "indexing": np.int64,
        }  # fmt: skip
