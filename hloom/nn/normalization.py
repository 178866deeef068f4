"""Functions that normalise: to a distribution, or to mean 0 and variance 1. Names and semantics follow jax.nn."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .. import lax
from .. import numpy as jnp
from ..extend.primitive import Primitive
from ..numpy.promotion import Axis, canonical_axes, check_arraylike, promote_inexact
from ..tracer import dtypes
from ..tracer.arrays.array import shape_of
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value


@compound(static=("axis",))
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Value:
    """exp(x) normalised to sum 1 over `axis`; elements where `where` is false count as 0.

    Integers become floats; the shape remains.

    >>> nn.softmax(jnp.array([0.0, 0.0, 1000.0]))
    Array([0., 0., 1.], dtype=float32)
    >>> nn.softmax(jnp.array([1.0, 1.0, 5.0]), where=jnp.array([True, True, False]))
    Array([0.5, 0.5, 0. ], dtype=float32)
    """
    (value,) = promote_inexact("softmax", x)
    result: Value = _softmax.bind(value, *_masks(where), axes=canonical_axes(axis, value.ndim))
    return result


_softmax = Primitive("softmax")


@_softmax.def_meaning
def _softmax_meaning(x: Any, where: Any = None, *, axes: tuple[int, ...]) -> Any:
    unnormalized = jnp.exp(_shifted(x, axes, where))
    result = unnormalized / jnp.sum(unnormalized, axes, keepdims=True, where=where)
    return result if where is None else jnp.where(where, result, 0.0)


@_softmax.def_jvp
def _softmax_jvp(primals: Any, tangents: Any, *, axes: tuple[int, ...]) -> tuple[Any, Any]:
    _, *masks = primals
    y = _softmax.bind(*primals, axes=axes)
    weighted = y * (jnp.where(masks[0], tangents[0], 0.0) if masks else tangents[0])
    moved = weighted - y * jnp.sum(weighted, axes, keepdims=True)
    return y, jnp.where(masks[0], moved, 0.0) if masks else moved


@compound(static=("axis",))
def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Value:
    """log(softmax(x)), accurate where softmax underflows; -inf where `where` is false.

    Integers become floats; the shape remains.

    >>> nn.log_softmax(jnp.array([0.0, 0.0, -200.0])).round(3)
    Array([  -0.693,   -0.693, -200.693], dtype=float32)
    """
    (value,) = promote_inexact("log_softmax", x)
    result: Value = _log_softmax.bind(value, *_masks(where), axes=canonical_axes(axis, value.ndim))
    return result


_log_softmax = Primitive("log_softmax")


@_log_softmax.def_meaning
def _log_softmax_meaning(x: Any, where: Any = None, *, axes: tuple[int, ...]) -> Any:
    shifted = _shifted(x, axes, where)
    result = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axes, keepdims=True, where=where))
    return result if where is None else jnp.where(where, result, -math.inf)


@_log_softmax.def_jvp
def _log_softmax_jvp(primals: Any, tangents: Any, *, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Uses exp(x) and its sum, which the result already contains, rather than softmax(x), which divides each
    element."""
    (x, *masks), t = primals, tangents[0]
    t = jnp.where(masks[0], t, 0.0) if masks else t
    unnormalized = jnp.exp(_shifted(x, axes, *masks))
    moved = t - jnp.sum(unnormalized * t, axes, keepdims=True) / jnp.sum(unnormalized, axes, keepdims=True)
    return _log_softmax.bind(*primals, axes=axes), jnp.where(masks[0], moved, 0.0) if masks else moved


def _masks(where: Any) -> tuple[Any, ...]:
    return () if where is None else (where,)


def _shifted(x: Any, axes: tuple[int, ...], where: Any = None) -> Any:
    """x minus its largest value over `axes` (a constant for differentiation); -inf for elements that do not count."""
    if where is not None:
        x = jnp.where(where, x, -math.inf)
    return x - lax.stop_gradient(jnp.max(x, axes, keepdims=True, where=where, initial=-math.inf))


@compound(static=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """log(sum(b * exp(a))) over `axis` without overflow, of elements where `where` is true and b is not zero.

    With `return_sign`: (log of the modulus, sign).

    >>> nn.logsumexp(jnp.array([1000.0, 1000.0])).round(2)
    Array(1000.69, dtype=float32)
    >>> nn.logsumexp(jnp.log(jnp.array([[1.0, 2.0], [3.0, 4.0]])), axis=1).round(3)
    Array([1.099, 1.946], dtype=float32)
    """
    check_arraylike("logsumexp", a)
    values = promote_inexact("logsumexp", *((a,) if b is None else (a, b)))
    axes = canonical_axes(axis, max(v.ndim for v in values))
    kept: Any = _logsumexp.bind(*values, *_masks(where), axes=axes, is_weighted=b is not None, signed=return_sign)
    if return_sign:
        logarithm, sign = kept
        return (logarithm, sign) if keepdims else (lax.squeeze(logarithm, axes), lax.squeeze(sign, axes))
    return kept if keepdims else lax.squeeze(kept, axes)


_logsumexp = Primitive("logsumexp")
"""Operands: the exponents, the weights if `is_weighted`, the mask if there is one. Sizes along `axes` become 1.

Result: the logarithm of the sum; with `signed` the logarithm of its modulus, and its sign.
"""


class _Sum(NamedTuple):
    """exp(top) * total is the sum. `counts`: which elements take part (None: all of them)."""

    x: Any
    counts: Any
    top: Any
    terms: Any
    total: Any


def _weighted_sum(x: Any, weights: Any, where: Any, axes: tuple[int, ...]) -> _Sum:
    """An element of weight zero takes no part, for any value, as one that `where` leaves out.

    A largest element that is infinite is not subtracted.
    """
    counts = where
    if weights is not None:
        x, weights = jnp.broadcast_arrays(x, weights)
        is_weighted = weights != 0
        counts = is_weighted if where is None else is_weighted & where
    if counts is not None:
        x, counts = jnp.broadcast_arrays(x, counts)
        x = jnp.where(counts, x, 0)
    top = jnp.max(lax.stop_gradient(jnp.real(x)), axes, keepdims=True, initial=-math.inf, where=counts)
    terms = jnp.exp(x - jnp.where(jnp.isfinite(top), top, 0).astype(x.dtype))
    if weights is not None:
        terms = terms * weights
    if counts is not None:
        terms = jnp.where(counts, terms, 0)
    return _Sum(x, counts, top, terms, jnp.sum(terms, axes, keepdims=True))


def _logarithm(found: _Sum, signed: bool) -> Any:
    top = jnp.where(jnp.isfinite(found.top), found.top, 0)
    if signed:
        return jnp.log(abs(found.total)) + top, jnp.sign(found.total)
    return jnp.log(found.total) + top.astype(found.total.dtype)


def _weights_and_mask(others: Any, is_weighted: bool) -> tuple[Any, Any]:
    weights, *mask = others if is_weighted else (None, *others)
    return weights, mask[0] if mask else None


@_logsumexp.def_meaning
def _logsumexp_meaning(x: Any, *others: Any, axes: tuple[int, ...], is_weighted: bool, signed: bool) -> Any:
    return _logarithm(_weighted_sum(x, *_weights_and_mask(others, is_weighted), axes), signed)


def _logsumexp_jvp(primals: Any, tangents: Any, *, axes: tuple[int, ...], is_weighted: bool, signed: bool) -> Any:
    """The sum of b exp(a) da + exp(a) db, over the sum.

    Where the largest of real exponents is infinite, those that are equal to it share the derivative, as they do in
    `logaddexp`. The derivative by a weight of zero is exp(a) over the sum, too.
    """
    x, *others = primals
    weights, where = _weights_and_mask(others, is_weighted)
    found = _weighted_sum(x, weights, where, axes)
    counts, total, is_complex = found.counts, found.total, dtypes.is_complex(found.total.dtype)
    is_infinite = jnp.isinf(found.top) & (not is_complex)
    if counts is not None:
        is_infinite = is_infinite & jnp.any(counts, axes, keepdims=True)
    is_shared = (found.x == found.top) & is_infinite
    terms = found.terms
    shares = is_shared.astype(terms.dtype) if weights is None else jnp.where(is_shared & counts, weights, 0)
    terms = jnp.where(is_infinite, shares, terms)
    shared = jnp.where(jnp.isnan(total), total, jnp.sum(shares, axes, keepdims=True))
    total = jnp.where(is_infinite, shared, total)
    moved: Any = 0
    if tangents[0] is not None:
        divisor = total if counts is None else jnp.where(jnp.any(counts, axes, keepdims=True), total, 1)
        moved = jnp.sum(terms * tangents[0], axes, keepdims=True) / divisor
    if is_weighted and tangents[1] is not None:
        finite_top = jnp.where(jnp.isfinite(found.top), found.top, 0).astype(x.dtype)
        scale = jnp.where(is_infinite, x == found.top, jnp.exp(jnp.where(is_infinite, 0, x) - finite_top))
        part = scale * tangents[1] if where is None else jnp.where(where, scale * tangents[1], 0)
        moved = moved + jnp.sum(part, axes, keepdims=True) / total
    if not signed:
        return _logarithm(found, signed), moved
    logarithm, sign = _logarithm(found, signed)
    if not is_complex:
        return (logarithm, sign), (moved, None)
    return (logarithm, sign), (jnp.real(moved), lax.complex(lax.full_like(moved.real, 0), jnp.imag(moved)) * sign)


_logsumexp.def_jvp(_logsumexp_jvp, symbolic_zeros=True)


@compound(static=("axis", "keepdims"))
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Value:
    """log(mean(exp(x))) over `axis` without overflow, of elements where `where` is true.

    >>> nn.logmeanexp(jnp.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    """
    total: Any = logsumexp(x, axis, where=where, keepdims=keepdims)
    counted = jnp.ones_like(x) if where is None else jnp.broadcast_to(where, shape_of(x))
    count = jnp.sum(counted, axis, dtype=total.dtype, keepdims=keepdims)
    difference: Value = total - jnp.log(count)
    return difference


@compound(static=("axis", "algorithm"))
def standardize(
    x: Any,
    axis: Axis = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over `axis`.

    algorithm: "fast" computes the variance from the mean of squares; "stable" from the squared distances to the mean.

    Integers become floats; the shape remains.

    >>> nn.standardize(jnp.array([1.0, 2.0, 3.0, 4.0])).round(3)
    Array([-1.342, -0.447,  0.447,  1.342], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', not {algorithm!r}")
    (value,) = promote_inexact("standardize", x)
    if mean is None:
        mean = jnp.mean(value, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = jnp.mean(jnp.square(value - mean), axis, keepdims=True, where=where)
        else:  # cancellation may leave less than 0
            fast = jnp.mean(jnp.square(value), axis, keepdims=True, where=where) - jnp.square(mean)
            variance = jnp.maximum(fast, 0)
    centered: Value = value - mean
    return centered * lax.rsqrt(variance + epsilon)
