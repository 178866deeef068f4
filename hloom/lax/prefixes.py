"""Prefixes of arrays as a tree of slices: derivatives of extrema and products use them.

Source: Blelloch, Prefix Sums and Their Applications (1990).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..tracer import ops
from ..tracer.core import Value


def prefixes(
    combine: Callable[[Sequence[Value], Sequence[Value]], list[Value]], values: list[Value], axes: Sequence[int]
) -> list[Value]:
    """All prefixes of arrays along their `axes`, combined: about two uses of `combine` for each element.

    Prefixes with an odd index are the prefixes of combined neighbours. Each with an even index is the one before it,
    combined with one more element.
    """
    size = values[0].aval.shape[axes[0]]
    if size < 2:
        return values
    pairs = combine(_every_second(values, axes, 0, size - 1), _every_second(values, axes, 1, size))
    odd = prefixes(combine, pairs, axes)
    first = part_of(values, axes, 0, 1)
    if size == 2:
        return _joined([first, odd], axes)
    before = odd if size % 2 else part_of(odd, axes, 0, size // 2 - 1)
    even = combine(before, _every_second(values, axes, 2, size))
    return [_interleaved(e, o, d) for e, o, d in zip(_joined([first, even], axes), odd, axes, strict=True)]


def part_of(values: Sequence[Value], axes: Sequence[int], start: int, stop: int, step: int = 1) -> list[Value]:
    """Elements from `start` to `stop` along each array's axis."""
    found = []
    for v, d in zip(values, axes, strict=True):
        shape = v.aval.shape
        starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
        starts[d], limits[d], strides[d] = start, stop, step
        found.append(ops.slice_(v, starts, limits, strides))
    return found


def _every_second(values: Sequence[Value], axes: Sequence[int], start: int, stop: int) -> list[Value]:
    return part_of(values, axes, start, stop, 2)


def _joined(parts: Sequence[Sequence[Value]], axes: Sequence[int]) -> list[Value]:
    return [ops.concatenate(column, d) for *column, d in zip(*parts, axes, strict=True)]


def _interleaved(even: Value, odd: Value, axis: int) -> Value:
    """even[0], odd[0], even[1], ... along `axis`. No element is computed with, so that signs of zeros are kept."""
    shape = odd.aval.shape
    count = shape[axis]
    with_new = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    (head,) = part_of([even], [axis], 0, count)
    pairs = ops.concatenate([ops.reshape(head, with_new), ops.reshape(odd, with_new)], axis + 1)
    whole = ops.reshape(pairs, (*shape[:axis], 2 * count, *shape[axis + 1 :]))
    if even.aval.shape[axis] == count:
        return whole
    (last,) = part_of([even], [axis], count, count + 1)
    return ops.concatenate([whole, last], axis)
