"""Polynomials: arrays of their coefficients, highest power first.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import operator
from importlib import import_module
from typing import Any

import numpy as np

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, rank_of
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .array_manipulation import atleast_1d, roll, transpose
from .binary_ufuncs import add, subtract
from .concrete_values import known_array
from .convolution import convolve
from .promotion import (
    check_arraylike,
    ensure_arraylike,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_inexact,
    strong,
)
from .reductions import sum
from .shape_base import vander
from .tensor_contractions import matmul, outer
from .unary_ufuncs import isfinite


def _linalg() -> Any:
    """Loaded at the first call, as it is by users."""
    return import_module(".linalg", __package__)


def _vector(name: str, p: Value) -> Value:
    if p.aval.ndim != 1:
        raise OperandError(f"{name}: coefficients have one dimension, not {p.aval.str_short()}", name)
    return p


def _aligned(name: str, a1: ArrayLike, a2: ArrayLike) -> tuple[Value, Value]:
    """Two polynomials with equally many coefficients."""
    pair = [_vector(name, atleast_1d(v)) for v in promote_dtypes(a1, a2, name=name)]
    size = max(v.aval.size for v in pair)
    first, second = (lax.pad(v, lax.full_like(v, 0, shape=()), [(size - v.aval.size, 0, 0)]) for v in pair)
    return first, second


@compound()
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Value:
    """The sum of two polynomials, given as vectors of coefficients, highest power first. Dtypes promote.

    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1, 3, 4], dtype=int32)
    """
    return add(*_aligned("polyadd", a1, a2))


@compound()
def polysub(a1: ArrayLike, a2: ArrayLike) -> Value:
    """The difference of two polynomials, given as vectors of coefficients, highest power first. Dtypes promote.

    >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    return subtract(*_aligned("polysub", a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Value:
    """The product of two polynomials, with floats as coefficients (NumPy keeps integers); highest power first.

    trim_leading_zeros: leave out zeros in front, of the factors too; not under jit, where sizes are constant.

    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    x, y = (_vector("polymul", atleast_1d(v)) for v in promote_dtypes_inexact(a1, a2, name="polymul"))
    if trim_leading_zeros:
        x, y = (_trimmed("polymul", v, 0.0) for v in (x, y))
    x, y = (v if v.aval.size else lax.full((1,), 0, v.aval.dtype) for v in (x, y))
    return convolve(x, y)


def _trimmed(name: str, p: Value, tolerance: float) -> Value:
    """Without leading coefficients with an absolute value within the tolerance (NaN is not within it); one is left."""
    known = known_array(f"{name}, whose size depends on leading zeros,", p, "Use trim_leading_zeros=False under jit.")
    above = np.flatnonzero(~(np.abs(known) <= tolerance))
    first = int(above[0]) if above.size else max(0, p.aval.size - 1)
    return lax.slice_in_dim(p, first, p.aval.size)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Value, Value]:
    """(quotient, remainder) of two polynomials, with floats as coefficients; the remainder has as many as u.

    trim_leading_zeros: leave out leading coefficients of the remainder that are 0 up to rounding; not under jit.

    >>> jnp.polydiv(jnp.array([1, 0, -4]), jnp.array([1, 2]))
    (Array([ 1., -2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    quotient, rest = _polydiv(u, v)
    if trim_leading_zeros:
        rest = _trimmed("polydiv", rest, float(np.sqrt(dtypes.finfo(rest.aval.dtype).eps)))
    return quotient, rest


@compound()
def _polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Value, Value]:
    rest, divisor = (_vector("polydiv", strong(atleast_1d(x))) for x in promote_dtypes_inexact(u, v, name="polydiv"))
    if not divisor.aval.size:
        raise OperandError("polydiv: a polynomial has one coefficient at least", "polydiv")
    steps = rest.aval.size - divisor.aval.size + 1
    if steps < 1:
        return lax.full((1,), 0, rest.aval.dtype), rest
    lead = divisor[0]

    def step(k: Value, state: tuple[Value, Value]) -> tuple[Value, Value]:
        quotient, rest = state
        factor = rest[k] / lead
        part = lax.dynamic_slice_in_dim(rest, k, divisor.aval.size) - factor * divisor
        first = part[0]  # 0 but for the rounding of the factor; NaN where the factor is not finite
        part = part.at[0].set(lax.select(isfinite(first), lax.full_like(first, 0), first))
        return quotient.at[k].set(factor), lax.dynamic_update_slice_in_dim(rest, part, k, 0)

    start = lax.full((steps,), 0, rest.aval.dtype), rest
    found: tuple[Value, Value] = lax.fori_loop(0, steps, step, start)
    return found


def _order(name: str, m: Any) -> int:
    try:
        order = operator.index(m)
    except TypeError:
        raise OperandError(f"{name}: m must be an integer, not {m!r}", name) from None
    if order < 0:
        kind = "derivative" if name == "polyder" else "integral"
        raise ValueError(f"{name}: Order of {kind} must be positive, not {order}")
    return order


def _falling(low: int, count: int, order: int) -> np.ndarray[Any, Any]:
    """n (n - 1) ... (n - order + 1) for n = low + count - 1, ..., low."""
    powers = np.arange(low, low + count, dtype=np.float64)[::-1]
    product = np.ones(count)
    for k in range(order):
        product = product * (powers - k)
    return product


@compound(static=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Value:
    """The derivative of order m, with floats as coefficients (NumPy keeps integers); highest power first.

    >>> jnp.polyder(jnp.array([1, 3, 5]))
    Array([2., 3.], dtype=float32)
    """
    check_arraylike("polyder", p)
    order = _order("polyder", m)
    (x,) = promote_dtypes_inexact(p)
    if not order:
        return x
    size = max(0, _vector("polyder", x).aval.size - order)
    factors = _falling(order, size, order).astype(x.aval.dtype)
    return strong(lax.slice_in_dim(x, 0, size)) * factors


@compound(static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Value:
    """The integral of order m, with floats as coefficients. k: the constants of integration, in the order of the
    integrations; default 0.

    >>> jnp.polyint(jnp.array([2, 3]), k=7)
    Array([1., 3., 7.], dtype=float32)
    """
    order = _order("polyint", m)
    check_arraylike("polyint", p, *([] if k is None else [k]))
    x, constants = promote_dtypes_inexact(p, 0 if k is None else k)
    x, constants = _vector("polyint", strong(atleast_1d(x))), strong(atleast_1d(constants))
    if constants.aval.size == 1:
        constants = lax.broadcast_in_dim(lax.reshape(constants, ()), (order,), ())
    if constants.aval.shape != (order,):
        raise ValueError(
            f"k must be a scalar or a rank-1 array of length 1 or m={order}, not {constants.aval.str_short()}"
        )
    if not order:
        return x
    all_of = lax.concatenate([x, constants], 0)
    size = x.aval.size
    # The k-th constant is integrated order - 1 - k times more.
    divisors = [1.0] * order
    for place in range(order):
        for j in range(1, order - place):
            divisors[place] *= j
    scale = np.concatenate([_falling(order, size, order), np.array(divisors)])
    return all_of / scale.astype(x.aval.dtype)


@compound()
def poly(seq_of_zeros: ArrayLike) -> Value:
    """The coefficients of the polynomial with these zeros, or of a square matrix's characteristic polynomial: n + 1 of
    them, the first is 1. For a matrix they are complex.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    (zeros,) = promote_inexact("poly", seq_of_zeros)
    zeros = atleast_1d(zeros)
    shape = zeros.aval.shape
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        zeros = _linalg().eigvals(zeros)
    if zeros.aval.ndim != 1:
        raise ValueError(f"input must be 1d or non-empty square 2d array, not {zeros.aval.str_short()}")
    if not zeros.aval.size:
        return lax.full((), 1, zeros.aval.dtype)
    count = zeros.aval.size
    zeros = strong(zeros)

    def times(k: Value, found: Value) -> Value:
        shifted = lax.pad(found, lax.full_like(found, 0, shape=()), [(1, -1, 0)])
        return found - zeros[k] * shifted

    start = lax.full((count + 1,), 0, zeros.aval.dtype).at[0].set(1)
    found: Value = lax.fori_loop(0, count, times, start)
    return found


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Value:
    """The zeros of a polynomial, complex: the eigenvalues of its companion matrix. In no order.

    strip_zeros: leading coefficients that are 0 make no zeros; under jit, where the size is constant, it must be False.
    Then there are NaN at the end in their place.

    >>> jnp.sort(jnp.roots(jnp.array([1.0, -3.0, 2.0])).real).round(4)
    Array([1., 2.], dtype=float32)
    """
    (x,) = promote_dtypes_inexact(atleast_1d(ensure_arraylike("roots", p)))
    x = strong(x)
    if x.aval.ndim != 1:
        raise ValueError(f"Input must be a rank-1 array, not {x.aval.str_short()}")
    target = dtypes.to_complex(x.aval.dtype)
    if x.aval.size < 2:
        return lax.full((0,), 0, target)
    if not strip_zeros:
        return _roots_with_zeros(x)
    known = known_array("roots, whose size depends on leading zeros,", x, "Use strip_zeros=False under jit.")
    other = np.flatnonzero(known)
    if not other.size:
        return lax.full((0,), 0, target)
    first, last = int(other[0]), int(other[-1])
    zeros = lax.full((x.aval.size - 1 - last,), 0, target)
    return lax.concatenate([_companion_roots(lax.slice_in_dim(x, first, last + 1)), zeros], 0)


@compound()
def _companion_roots(p: Value) -> Value:
    size = p.aval.size - 1
    if not size:
        return lax.full((0,), 0, dtypes.to_complex(p.aval.dtype))
    row, column = (lax.broadcasted_iota(np.int32, (size, size), d) for d in (0, 1))
    below = lax.convert_element_type(row == column + 1, p.aval.dtype)
    top = lax.broadcast_in_dim(-lax.slice_in_dim(p, 1, size + 1) / p[0], (size, size), (1,))
    found: Value = _linalg().eigvals(lax.select(row == 0, top, below))
    return found


@compound()
def _roots_with_zeros(p: Value) -> Value:
    """With leading zeros moved to the end, where each adds a zero that is no root of p. They are the smallest."""
    size = p.aval.size
    number = lax.iota(np.int32, size)
    leading = lax.reduce_min(lax.select(p != 0, number, lax.full_like(number, size)), [0])
    every = leading == size
    moved = lax.select(every, lax.full_like(p, 1), roll(p, -leading))
    found = _companion_roots(moved)
    order = lax.sort_key_val(-lax.abs(found), lax.iota(np.int32, size - 1))[1]
    kept = (lax.iota(np.int32, size - 1) < size - 1 - leading) & ~every
    nothing = lax.full_like(found, complex(np.nan, np.nan))
    return lax.select(kept, found[order], nothing)


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of degree `deg` that is nearest to the points (x, y) in the sense of least squares.

    y: [n] or [n, k], k fits at once. w: weights of the residuals.
    rcond: smaller singular values, relative to the largest, count as zero; by default n times eps.
    full: also residuals, rank, singular values and rcond.
    cov: also the covariance of the coefficients; "unscaled": not multiplied by the variance of the residuals.

    >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(4)
    Array([2., 1.], dtype=float32)
    """
    return _polyfit(x, y, w, operator.index(deg), None if rcond is None else float(rcond), bool(full), cov)


@compound(static=("deg", "rcond", "full", "cov"))
def _polyfit(x: Any, y: Any, w: Any, deg: int, rcond: float | None, full: bool, cov: bool | str) -> Any:
    check_arraylike("polyfit", x, y, *([] if w is None else [w]))
    points, values = (strong(v) for v in promote_dtypes_inexact(x, y))
    if deg < 0:
        raise ValueError(f"expected deg >= 0, not {deg}")
    if points.aval.ndim != 1:
        raise TypeError(f"expected 1D vector for x, not {points.aval.str_short()}")
    if not points.aval.size:
        raise TypeError("expected non-empty vector for x")
    if values.aval.ndim not in (1, 2):
        raise TypeError(f"expected 1D or 2D array for y, not {values.aval.str_short()}")
    count, order = points.aval.size, deg + 1
    if values.aval.shape[0] != count:
        what = f"{points.aval.str_short()} and {values.aval.str_short()}"
        raise TypeError(f"expected x and y to have same length, not {what}")
    limit = count * float(dtypes.finfo(points.aval.dtype).eps) if rcond is None else rcond
    lhs = vander(points, order)
    if w is not None:
        (weights,) = promote_dtypes_inexact(w)
        if weights.aval.shape != (count,):
            raise TypeError(f"expected w and y to have the same length, not {weights.aval.str_short()}")
        lhs = lhs * weights[:, None]
        values = values * (weights if values.aval.ndim == 1 else weights[:, None])
    scale = lax.sqrt(sum(lhs * lhs, 0))
    lhs = lhs / scale[None, :]
    found, residuals, rank, singular = _linalg().lstsq(lhs, values, limit)
    found = found / (scale if found.aval.ndim == 1 else scale[:, None])
    if full:
        return found, residuals, rank, singular, as_value(np.asarray(limit, points.aval.dtype))
    if not cov:
        return found
    base = _linalg().inv(matmul(transpose(lhs), lhs)) / outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1.0
    else:
        if count <= order:
            raise ValueError(
                f"the number of data points must exceed order to scale the covariance matrix: {count} points and "
                f"order {order}"
            )
        factor = residuals / (count - order)
    if values.aval.ndim == 1:
        return found, base * factor
    each = factor[None, None, :] if rank_of(factor) else factor
    return found, base[:, :, None] * each


@compound(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Value:
    """The polynomial with coefficients p, highest power first, at x: p[0] x**(n-1) + ... + p[n-1], in the shape of x.

    `unroll` is for JAX's sake: no loop is left.

    >>> jnp.polyval(jnp.array([1, 0, -1]), jnp.array([2, 3]))
    Array([3, 8], dtype=int32)
    """
    coefficients, point = promote_dtypes(p, x, name="polyval")
    result = lax.full_like(point, 0)
    for k in range(coefficients.aval.shape[0]):
        result = result * point + lax.index_in_dim(coefficients, k, 0, False)
    return strong(result)
