"""Where in its grid a kernel is: `program_id`, `num_programs`.

While a kernel or an index map is traced, `within` says what the grid is. The positions are parameters of the traced
computation, so one computation serves all points of the grid.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a grid: values for its indices, and the grid's sizes, integers or values."""

    indices: Sequence[Any]
    sizes: Sequence[Any]


class _Points(threading.local):
    """The points of the kernels that this thread traces, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[Point] = []


_points = _Points()


@contextmanager
def within(point: Point) -> Iterator[None]:
    """Within the block, `program_id` and `num_programs` have the values of `point`."""
    _points.stack.append(point)
    try:
        yield
    finally:
        _points.stack.pop()


def _current(what: str) -> Point:
    if not _points.stack:
        raise ValueError(f"{what} is used outside of a kernel: it is for functions that pallas_call runs on a grid")
    return _points.stack[-1]


def _entry(entries: Sequence[Any], axis: int, sizes: Sequence[Any]) -> Any:
    try:
        return entries[axis]
    except IndexError:
        grid = ", ".join([str(s) if isinstance(s, int) else "DynamicGridDim" for s in sizes])
        raise ValueError(f"Axis {axis} is out of bounds for grid ({grid}{',' if len(sizes) == 1 else ''})") from None


def program_id(axis: int) -> Any:
    """The kernel's position along an axis of its grid, an int32. ValueError outside of a kernel, and for an axis that
    the grid does not have.

    >>> from hloom.experimental import pallas as pl
    >>> def kernel(o_ref):
    ...     o_ref[pl.program_id(0)] = pl.program_id(0) ** 2
    >>> pl.pallas_call(kernel, out_shape=hloom.ShapeDtypeStruct((4,), jnp.int32), grid=(4,))()
    Array([0, 1, 4, 9], dtype=int32)
    """
    point = _current("program_id")
    return _entry(point.indices, axis, point.sizes)


def num_programs(axis: int) -> Any:
    """The size of the kernel's grid along an axis: an integer, or a traced int32 where the grid has a traced size.

    >>> from hloom.experimental import pallas as pl
    >>> def kernel(o_ref):
    ...     o_ref[pl.program_id(0)] = pl.num_programs(0)
    >>> pl.pallas_call(kernel, out_shape=hloom.ShapeDtypeStruct((2,), jnp.int32), grid=(2,))()
    Array([2, 2], dtype=int32)
    """
    point = _current("num_programs")
    return _entry(point.sizes, axis, point.sizes)
