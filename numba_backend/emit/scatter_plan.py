"""The loops of scatter's kernels: over the indices, and over the elements of a window.

Every array is dense, so an offset in it is a sum of loop variables times strides. Loops of one step are left out, and
loops that step evenly through all arrays are merged.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...hlo.ops.indexing import ScatterAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class PlanLoop:
    """`extent` steps; the strides, in elements, in the array, in the indices and in the updates."""

    extent: int
    array: int
    indices: int
    updates: int

    def around(self, inner: PlanLoop) -> PlanLoop | None:
        """One loop that replaces this one around `inner`, if that gives the same offsets in all arrays."""
        ours = (self.array, self.indices, self.updates)
        theirs = (inner.array, inner.indices, inner.updates)
        if any(a != b * inner.extent for a, b in zip(ours, theirs, strict=True)):
            return None
        return replace(inner, extent=self.extent * inner.extent)


@dataclass(frozen=True, slots=True)
class Start:
    """A component of the index: its distance in memory from the first one, the stride that it multiplies, and its
    largest value."""

    distance: int
    stride: int
    last: int
    fits: bool
    """True if all are known to be in range."""
    single: bool
    """True if the window has one element along it: windows that overlap have equal components."""


def _merged(loops: Sequence[PlanLoop]) -> list[PlanLoop]:
    """The loops, without loops of one step; neighbours are merged where that gives the same offsets."""
    result: list[PlanLoop] = []
    for loop in loops:
        if loop.extent == 1:
            continue
        joined = result[-1].around(loop) if result else None
        if joined is None:
            result.append(loop)
        else:
            result[-1] = joined
    return result


@dataclass(frozen=True, slots=True)
class ScatterPlan:
    """The loops over the indices, those over a window, and the components of an index."""

    outer: tuple[PlanLoop, ...]
    inner: tuple[PlanLoop, ...]
    starts: tuple[Start, ...]

    @property
    def steps(self) -> int:
        """How many indices there are."""
        return math.prod(loop.extent for loop in self.outer)

    @property
    def window(self) -> int:
        """The number of elements of a window."""
        return math.prod(loop.extent for loop in self.inner)


def scatter_plan(
    array: Shape, indices: Shape, update: Shape, attributes: ScatterAttributes, fits: Collection[int]
) -> ScatterPlan:
    """`fits`: the dimensions of the array along which all indices are known to be in range."""
    vector = attributes.index_vector_dim
    array_strides, index_strides, update_strides = (s.strides() for s in (array, indices, update))
    window_dims = attributes.update_window_dims
    batch_dims = [d for d in range(update.rank) if d not in window_dims]
    index_dims = [d for d in range(indices.rank) if d != vector]
    partners = dict(zip(attributes.scatter_indices_batching_dims, attributes.input_batching_dims, strict=True))
    outer = [
        PlanLoop(
            update.dimensions[d], array_strides[partners[b]] if b in partners else 0, index_strides[b],
            update_strides[d],
        )
        for d, b in zip(batch_dims, index_dims, strict=True)
    ]  # fmt: skip
    left_out = (*attributes.inserted_window_dims, *attributes.input_batching_dims)
    kept = [d for d in range(array.rank) if d not in left_out]
    sizes = dict.fromkeys(range(array.rank), 1)
    sizes.update((d, update.dimensions[w]) for d, w in zip(kept, window_dims, strict=True))
    inner = [
        PlanLoop(update.dimensions[w], array_strides[d], 0, update_strides[w])
        for d, w in zip(kept, window_dims, strict=True)
    ]
    stride = index_strides[vector] if vector < indices.rank else 0
    starts = [
        Start(component * stride, array_strides[d], array.dimensions[d] - sizes[d], d in fits, sizes[d] == 1)
        for component, d in enumerate(attributes.scatter_dims_to_operand_dims)
    ]
    return ScatterPlan(tuple(_merged(outer)), tuple(_merged(inner)), tuple(starts))
