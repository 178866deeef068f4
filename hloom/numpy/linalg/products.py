"""Products of several matrices and vectors."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from ...lax.linalg.lapack import fail
from ...lax.movement import canonical_axis
from ...tracer.arrays.matrices import identity
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..promotion import ensure_arraylike, ensure_arraylikes
from ..tensor_contractions import cross as any_cross
from ..tensor_contractions import matmul
from .solving import inv


@compound(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Value:
    """A square matrix [..., n, n] multiplied n times with itself; its inverse -n times for a negative n.

    n: a Python integer. The dtype stays for n >= 0; a negative n makes floats of integers.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [1, 0]]), 10)
    Array([[89, 55],
           [55, 34]], dtype=int32)
    """
    x = ensure_arraylike("linalg.matrix_power", a)
    if x.aval.ndim < 2 or x.aval.shape[-1] != x.aval.shape[-2]:
        fail("matrix_power", [x], "Last 2 dimensions of the array must be square", "square")
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"matrix_power: the exponent must be an integer, got {n!r}") from None
    if count == 0:
        return identity(x.aval.shape, x.aval.dtype)
    if count < 0:
        x, count = inv(x), -count
    result: Value | None = None
    while count:
        if count & 1:
            result = x if result is None else matmul(result, x)
        count >>= 1
        if count:
            x = matmul(x, x)
    assert result is not None
    return result


def multi_dot(arrays: Any, *, precision: Any = None) -> Value:
    """The product of two or more matrices in the order that takes the fewest operations; the first and the last may be
    vectors.

    >>> a, b, c = jnp.ones((100, 2)), jnp.ones((2, 100)), jnp.ones(100)
    >>> jnp.linalg.multi_dot([a, b, c]).shape
    (100,)
    """
    given = list(arrays)
    values = ensure_arraylikes("linalg.multi_dot", *given)
    shapes = [v.aval.shape for v in values]
    if len(values) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got {len(values)}")
    if any(len(s) != 2 for s in shapes[1:-1]) or any(len(s) not in (1, 2) for s in (shapes[0], shapes[-1])):
        fail("multi_dot", values, "all must be two-dimensional; the first and the last may be vectors", "rank")
    if any(a[-1] != b[0] for a, b in itertools.pairwise(shapes)):
        fail("multi_dot", values, "last dimension of each array must match first dimension of following array", "sizes")
    rows = 1 if len(shapes[0]) == 1 else shapes[0][0]
    columns = 1 if len(shapes[-1]) == 1 else shapes[-1][1]
    cuts = _best_cuts([rows, *(s[0] for s in shapes[1:]), columns])

    def product(first: int, last: int) -> Value:
        if first == last:
            return values[first]
        cut = cuts[first, last]
        return matmul(product(first, cut), product(cut + 1, last), precision=precision)

    return product(0, len(values) - 1)


def _best_cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """For matrices first to last of a chain: after which one to cut it. Matrix i is sizes[i] x sizes[i + 1]."""
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    cuts = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            options = [
                (costs[first, c] + costs[c + 1, last] + sizes[first] * sizes[c + 1] * sizes[last + 1], c)
                for c in range(first, last)
            ]
            costs[first, last], cuts[first, last] = min(options)
    return cuts


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Value:
    """The cross products of vectors of three elements along `axis`; `numpy.cross` takes two elements too.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x, y = ensure_arraylikes("linalg.cross", x1, x2)
    if any(v.aval.shape[canonical_axis(axis, v.aval.ndim)] != 3 for v in (x, y)):
        fail("cross", [x, y], f"both must have vectors of 3 elements along axis {axis}", "size")
    return any_cross(x, y, axis=axis)
