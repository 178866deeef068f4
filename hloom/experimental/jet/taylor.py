"""Taylor coefficients of a function along a curve. Names and semantics follow jax.experimental.jet.

The curve is a polynomial of one number t, and the coefficients are derivatives by t at 0: forward mode, once for each
order. A compiled program computes common terms of the orders once, but tracing takes twice as long with each order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import numpy as jnp
from ... import tree
from ...autodiff.api import jvp
from ...lax import exp, lgamma
from ...numpy.promotion import promote_dtypes_inexact
from ...tracer import dtypes


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """(fun(*primals), the derivatives of fun along the curve that begins at `primals`).

    Args:
      fun: a function of arrays; it returns a pytree of arrays.
      primals: an array for each argument.
      series: for each argument the derivatives of its curve, of order 1, 2, ...: as many for each.
      factorial_scaled: whether `series` and the result are derivatives; if not, they are Taylor coefficients, which
        are divided by the factorials of their orders.

    Returns:
      The values, and for each a list of derivatives, one for each order.

    Raises:
      ValueError: a primal or a term is not an array, or the lists have different lengths.

    >>> import hloom
    >>> from hloom import numpy as jnp
    >>> from hloom.experimental.jet import jet
    >>> jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],))  # exp and its derivatives at 0
    (Array(1., dtype=float32), [Array(1., dtype=float32), Array(1., dtype=float32), Array(1., dtype=float32)])
    """
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals and {len(series)} series: a series for each")
    lengths = {len(terms) for terms in series}
    if len(lengths) != 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if not tree.structure(x) == _LEAF:
            raise ValueError(f"primal value at position {i} is not an array")
        for j, term in enumerate(terms):
            if not tree.structure(term) == _LEAF:
                raise ValueError(f"term {j} for argument {i} is not an array")
    (order,) = lengths
    curves = [_Curve(x, terms, factorial_scaled) for x, terms in zip(primals, series, strict=True)]

    def start(t: Any) -> tuple[Any, ...]:
        return (fun(*[curve(t) for curve in curves]),)

    along: Callable[[Any], tuple[Any, ...]] = start
    for _order in range(order):
        along = _with_next_derivative(along)
    real = dtypes.real_of(functools.reduce(dtypes.wider, (c.dtype for c in curves), dtypes.float32))
    value, *found = along(jnp.zeros((), real))
    if not factorial_scaled:
        found = [tree.map(lambda leaf, k=k: leaf / math.factorial(k), f) for k, f in enumerate(found, 1)]
    leaves, structure = tree.flatten(value)
    columns = [tree.leaves(f) for f in found]
    return value, tree.unflatten(structure, [[column[i] for column in columns] for i in range(len(leaves))])


def jet2(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    *,
    factorial_scaled: bool = False,
    **_: Any,
) -> tuple[Any, Any]:
    """`jet` with Taylor coefficients, divided by the factorials of their orders, unless `factorial_scaled`.

    >>> import hloom
    >>> from hloom.experimental.jet import jet2
    >>> jet2(lambda x: x**3, (2.0,), ([1.0, 0.0],))  # (2 + t)**3 = 8 + 12 t + 6 t**2 + ...
    (Array(8., dtype=float32), [Array(12., dtype=float32), Array(6., dtype=float32)])
    """
    return jet(fun, primals, series, factorial_scaled)


_LEAF = tree.structure(0)


class _Curve:
    """x(t), in Horner's form."""

    def __init__(self, x: Any, terms: Sequence[Any], factorial_scaled: bool) -> None:
        self.x, *self.terms = promote_dtypes_inexact(x, *terms)
        self.dtype = self.x.aval.dtype
        self.factorial_scaled = factorial_scaled

    def __call__(self, t: Any) -> Any:
        found: Any = None
        t = t.astype(self.dtype)
        for k in range(len(self.terms), 0, -1):
            inner = self.terms[k - 1] if found is None else self.terms[k - 1] + found
            found = inner * (t / k if self.factorial_scaled else t)
        return self.x if found is None else self.x + found


def _with_next_derivative(function: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], tuple[Any, ...]]:
    """From (f, f', ..., up to order k) to the same with order k + 1."""

    def longer(t: Any) -> tuple[Any, ...]:
        values, moved = jvp(function, (t,), (jnp.ones_like(t),))
        return (*values, moved[-1])

    return longer


def fact(n: Any) -> Any:
    """n!, as a number of floating point: a factor in the coefficients of Taylor series.

    >>> from hloom.experimental import jet
    >>> print(f"{jet.fact(3):.4f}")
    6.0000
    """
    return exp(lgamma(n + 1.0))
