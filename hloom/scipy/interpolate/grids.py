"""RegularGridInterpolator. Names and semantics follow scipy.interpolate, and jax.scipy.interpolate where they
differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...hlo.support.tracebacks import boundaries
from ...numpy.promotion import check_arraylike, promote_dtypes_inexact
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tree_util import register_pytree_node

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function of n variables, interpolated from its values on a grid. A pytree.

    Args:
      points: n vectors, ascending, with at least two numbers each.
      values: [m1, ..., mn, ...]: the values at the points.
      method: "linear" or "nearest".
      bounds_error: only False: a compiled program cannot raise errors.
      fill_value: the result outside of the grid; None extrapolates.

    Raises:
      ValueError: an unknown method, or values that do not fit the points. UnsupportedError: bounds_error.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import interpolate
    >>> x, y = jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0])
    >>> f = interpolate.RegularGridInterpolator((x, y), x[:, None] + y)
    >>> f(jnp.array([[0.5, 5.0], [2.0, 2.5], [9.0, 0.0]]))
    Array([5.5, 4.5, nan], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = math.nan,
    ) -> None:
        self.method: str = _checked_method(method)
        self.bounds_error = bounds_error
        if bounds_error:
            raise UnsupportedError(
                "RegularGridInterpolator: `bounds_error` takes no effect under JIT: it must be False"
            )
        check_arraylike("RegularGridInterpolator", values, *points)
        (found,) = promote_dtypes_inexact(values)
        shape = found.aval.shape
        if len(points) > len(shape):
            raise ValueError(f"there are {len(points)} point arrays, but values has {len(shape)} dimensions")
        grid = tuple([jnp.asarray(p) for p in points])
        for d, axis in enumerate(grid):
            if axis.ndim != 1:
                raise ValueError(f"the points in dimension {d} must be 1-dimensional")
            if axis.shape[0] != shape[d] or shape[d] < 2:
                raise ValueError(
                    f"there are {axis.shape[0]} points and {shape[d]} values in dimension {d}: they must be as many, "
                    "and at least 2"
                )
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            fill_value = jnp.asarray(fill_value)
            if dtypes.is_complex(fill_value.dtype) and not dtypes.is_complex(found.aval.dtype):
                raise ValueError("fill_value must be either 'None' or of a type compatible with values")
        self.fill_value = fill_value
        self.grid = grid
        self.values = found

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The function at places xi: an array [..., n], or a tuple of n arrays that broadcast to one shape."""
        chosen = self.method if method is None else _checked_method(method)
        places = _places(xi, len(self.grid))
        if places.shape[-1] != len(self.grid):
            raise ValueError(
                f"the requested sample points xi have dimension {places.shape[-1]}, but this RegularGridInterpolator "
                f"has dimension {len(self.grid)}"
            )
        return _interpolated(self.grid, self.values, self.fill_value, places, chosen)


boundaries(RegularGridInterpolator, "__init__", "__call__")


def _checked_method(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"method {method!r} is not defined: there are 'linear' and 'nearest'")
    return method


def _places(xi: Any, rank: int) -> Any:
    """[..., rank]. A vector is one place, or in one dimension a list of them."""
    if isinstance(xi, tuple) and len(xi) == 1:
        (xi,) = xi
    if isinstance(xi, tuple):
        check_arraylike("RegularGridInterpolator", *xi)
        return jnp.stack(promote_dtypes_inexact(*jnp.broadcast_arrays(*xi)), -1)
    check_arraylike("RegularGridInterpolator", xi)
    places = jnp.asarray(xi)
    return places.reshape(-1, rank) if places.ndim == 1 else places


def interval_of(axis: Any, x: Any) -> Any:
    """The i with axis[i] < x <= axis[i + 1], for each x; the first or the last interval for an x outside."""
    return jnp.clip(jnp.searchsorted(axis, x) - 1, 0, axis.shape[0] - 2)


@compound(static=("method",))
def _interpolated(grid: tuple[Any, ...], values: Any, fill: Any, places: Any, method: str) -> Any:
    rank = len(grid)
    lower, parts, outside = [], [], jnp.zeros(places.shape[:-1], bool)
    for d, axis in enumerate(grid):
        x = places[..., d]
        i = interval_of(axis, x)
        lower.append(i)
        parts.append((x - axis[i]) / (axis[i + 1] - axis[i]))
        outside = outside | (x < axis[0]) | (x > axis[-1])
    found: Any
    spread = (..., *[None] * (values.ndim - rank))
    if method == "nearest":
        found = values[tuple([jnp.where(p <= 0.5, i, i + 1) for i, p in zip(lower, parts)])]
    else:
        found = jnp.zeros((), values.dtype)
        for corner in itertools.product((0, 1), repeat=rank):
            weight: Any = math.prod([p if above else 1 - p for p, above in zip(parts, corner)], start=1.0)
            found = found + values[tuple([i + above for i, above in zip(lower, corner)])] * weight[spread]
    return found if fill is None else jnp.where(outside[spread], fill, found)


def _unflattened(method: tuple[str, bool], children: Any) -> RegularGridInterpolator:
    """Without checks: children may be anything that stands for arrays."""
    found = object.__new__(RegularGridInterpolator)
    found.grid, found.values, found.fill_value = children
    found.method, found.bounds_error = method
    return found


register_pytree_node(
    RegularGridInterpolator,
    lambda f: ((f.grid, f.values, f.fill_value), (f.method, f.bounds_error)),
    _unflattened,
)
