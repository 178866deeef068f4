"""Where numbers are between the points of a grid."""

from __future__ import annotations

from typing import Any

from ... import lax
from ... import numpy as jnp
from ...tracer.compound import compound


@compound()
def place_in(grid: Any, x: Any) -> Any:
    """The i with grid[i] < x <= grid[i + 1], for each x; the first or the last interval for an x outside.

    grid: [n], ascending, n > 1; x: any shape. A bisection: the bounds of all x shrink together.
    """
    count = grid.shape[0]

    def halve(_: Any, bounds: Any) -> Any:
        low, high = bounds
        middle = (low + high) // 2
        is_above = grid[middle] < x
        return jnp.where(is_above, middle, low), jnp.where(is_above, high, middle)

    low = jnp.zeros(x.shape, jnp.int32)
    return lax.fori_loop(0, (count - 1).bit_length(), halve, (low, low + (count - 1)))[0]
