"""Polynomials of one variable, and 1 - x². JAX has these names since 0.12."""

from __future__ import annotations

import operator as operators
from collections.abc import Sequence
from typing import Any

from ..autodiff.custom import custom_jvp
from ..tracer.arrays.array import as_value
from ..tracer.control_flow.scan import scan
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import convert
from .instructions import add, mul, neg, sub
from .movement import broadcast_in_dim, broadcast_shapes, full_like, stack

_UNROLLED = 8
"""How many terms are written out where the caller does not say."""


def polynomial(x: Any, coeffs: Sequence[Any], *, unroll: int | None = None) -> Value:
    """The sum of coeffs[k] * x**k, by Horner's rule.

    Args:
      x: an array of numbers.
      coeffs: from the constant term on; scalars, or arrays of x's rank that broadcast with it. They are converted to
        the dtype of x. Without coefficients the result is 0.
      unroll: with more terms than that (8 by default) the rule is a scan.

    Returns:
      An array of the dtype of x, and of the shape that x and the coefficients broadcast to.

    Raises:
      OperandError: a coefficient has another rank, or a size that does not fit.

    >>> lax.polynomial(3.0, [1.0, 5.0, 2.0])
    Array(34., dtype=float32, weak_type=True)
    """
    value = as_value(x)
    given = [as_value(c) for c in coeffs]
    if wrong := [c for c in given if c.aval.ndim not in (0, value.aval.ndim)]:
        raise OperandError(
            "polynomial: arrays must have the same number of dimensions, got coefficients of "
            f"{wrong[0].aval.str_short()} and x of {value.aval.str_short()}",
            "polynomial_rank",
        )
    shape = broadcast_shapes(value.aval.shape, *[c.aval.shape for c in given])
    point = _broadcast(value, shape)
    terms = [_broadcast(convert(c, value.aval.dtype, value.aval.weak_type), shape) for c in given]
    if not terms:
        return full_like(point, 0)
    *lower, found = terms
    if len(terms) <= (_UNROLLED if unroll is None else operators.index(unroll)):
        for term in reversed(lower):
            found = add(mul(found, point), term)
        return found
    last, _ = scan(lambda total, term: (add(mul(total, point), term), None), found, stack(lower), reverse=True)
    result: Value = last
    return result


def _broadcast(x: Value, shape: tuple[int, ...]) -> Value:
    return broadcast_in_dim(x, shape, range(len(shape) - x.aval.ndim, len(shape)))


def one_minus_square(x: Any) -> Value:
    """1 - x**2 as (1 + x)(1 - x), which keeps its digits near x = 1 and x = -1. Its derivative is -2 x.

    Element by element, of arrays of numbers of any shape; shape and dtype remain.

    >>> lax.one_minus_square(jnp.array([0.0, 1.0, 1 - 2.0**-20]))
    Array([1.0000000e+00, 0.0000000e+00, 1.9073477e-06], dtype=float32)
    """
    return _one_minus_square(as_value(x))


@custom_jvp
def _one_minus_square(x: Value) -> Value:
    one = full_like(x, 1)
    return mul(add(one, x), sub(one, x))


@_one_minus_square.defjvp
def _one_minus_square_jvp(primals: tuple[Value], tangents: tuple[Value]) -> tuple[Value, Value]:
    (x,), (moved,) = primals, tangents
    return _one_minus_square(x), neg(mul(add(x, x), moved))
