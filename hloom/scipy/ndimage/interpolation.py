"""`map_coordinates`. Names and semantics follow scipy.ndimage, and jax.scipy.ndimage where they differ."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

from ... import lax
from ... import numpy as jnp
from ...hlo.errors import UnsupportedError
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


@compound(static=("order", "mode"))
def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Value:
    """The values of an array between its elements.

    Args:
      input: the array, of n dimensions.
      coordinates: for each dimension an array of places; all have the result's shape.
      order: 0 takes the nearest element, 1 interpolates between neighbours.
      mode: the values outside: "constant" `cval`, "nearest" the nearest element, "wrap" the array again, "mirror" its
        mirror image about the centre of the last element, "reflect" about its edge.

    Raises:
      ValueError: not as many arrays of coordinates as dimensions. UnsupportedError (a NotImplementedError): another
      order or mode.

    >>> x = jnp.array([[0.0, 1.0], [10.0, 11.0]])
    >>> ndimage.map_coordinates(x, [jnp.array([0.5, 1.0, 5.0]), jnp.array([0.5, 0.0, 0.0])], order=1)
    Array([ 5.5, 10. ,  0. ], dtype=float32)
    """
    array, places = jnp.asarray(input), [jnp.asarray(c) for c in coordinates]
    if len(places) != array.ndim:
        raise ValueError(f"coordinates must be a sequence of length input.ndim, but {len(places)} != {array.ndim}")
    if mode not in _MODES:
        raise UnsupportedError(f"map_coordinates does not yet support mode {mode!r}: there are {', '.join(_MODES)}")
    if order not in (0, 1):
        raise UnsupportedError(f"map_coordinates currently requires order<=1, not {order}")
    outside = jnp.asarray(cval, array.dtype)
    neighbours = [_neighbours(p, order) for p in places]
    terms: list[Any] = []
    for chosen in itertools.product(*neighbours):
        indices = [_inside(index, size, mode) for (index, _), size in zip(chosen, array.shape, strict=True)]
        found: Any = array[tuple(indices)]
        if mode == "constant" and array.ndim:
            valid = [(index >= 0) & (index < size) for (index, _), size in zip(chosen, array.shape, strict=True)]
            found = jnp.where(functools.reduce(operator.and_, valid), found, outside)
        terms.append(functools.reduce(operator.mul, [weight for _, weight in chosen], found))
    result: Any = functools.reduce(operator.add, terms)
    if dtypes.is_integer(array.dtype) and dtypes.is_inexact(result.dtype):
        result = lax.round(result)
    return result.astype(array.dtype)  # type: ignore[no-any-return]


def _neighbours(place: Any, order: int) -> list[tuple[Any, Any]]:
    """The indices of elements around a place, with their weights."""
    if order == 0:
        nearest = lax.round(place) if dtypes.is_inexact(place.dtype) else place
        return [(nearest.astype(jnp.int32), jnp.ones((), place.dtype))]
    lower = jnp.floor(place)
    above = place - lower
    index = lower.astype(jnp.int32)
    return [(index, 1 - above), (index + 1, above)]


def _inside(index: Any, size: int, mode: str) -> Any:
    """The element that stands for an index, which may be outside."""
    if mode == "constant":
        return index
    if mode == "nearest":
        return jnp.clip(index, 0, size - 1)
    if mode == "wrap":
        return index % size
    if mode == "mirror":
        if size == 1:
            return jnp.zeros_like(index)
        return jnp.abs((index + size - 1) % (2 * size - 2) - (size - 1))
    turned = index % (2 * size)
    return jnp.minimum(turned, 2 * size - 1 - turned)
