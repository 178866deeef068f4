"""The kernel of scatter: a loop over the indices; for each index inside the array, a loop over its window.

    def scatter_add(lo, hi, io0, x1, x2, n0, n1, n2):
        for i in range(n0):
            start0 = int64(x1[i])
            if 0 <= start0 and start0 <= n1:
                for j in range(lo, hi):
                    at0 = start0 * n2 + j
                    from0 = i * n2 + j
                    io0[at0] = io0[at0] + x2[from0]

Every array is dense, so an offset in it is a sum of loop variables times strides; loops that step evenly through all
arrays are merged. Updates of one element happen in the order of the indices. Threads therefore split the window, whose
elements go to different offsets, or the indices, if they are declared unique.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ...hlo.analyses.in_bounds import in_bounds
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.indexing import ScatterAttributes
from ...hlo.shape import Shape
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, binary
from ..loops.writer import cast
from .applied import KernelText
from .kernel import HI, LO, EmittedKernel
from .nest import loop_variable
from .sizes import LITERAL_LIMIT

MIN_SHARED_WINDOW = 64
"""The least number of elements of a window for which threads split it: each thread reads all indices."""

_NANOSECONDS = 1.5
"""Nanoseconds of one element's update, roughly."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """`extent` steps; the strides, in elements, in the array, in the indices and in the updates."""

    extent: int
    array: int
    indices: int
    updates: int

    def around(self, inner: _Loop) -> _Loop | None:
        """One loop that replaces this one around `inner`, if that gives the same offsets in all arrays."""
        ours = (self.array, self.indices, self.updates)
        theirs = (inner.array, inner.indices, inner.updates)
        if any(a != b * inner.extent for a, b in zip(ours, theirs, strict=True)):
            return None
        return replace(inner, extent=self.extent * inner.extent)


@dataclass(frozen=True, slots=True)
class _Start:
    """A component of the index: its distance in memory from the first one, the stride that it multiplies, and its
    largest value."""

    distance: int
    stride: int
    last: int
    fits: bool
    """True if all are known to be in range."""


def _strides(dimensions: Sequence[int]) -> list[int]:
    strides = [1] * len(dimensions)
    for d in range(len(dimensions) - 2, -1, -1):
        strides[d] = strides[d + 1] * dimensions[d + 1]
    return strides


def _merged(loops: Sequence[_Loop]) -> list[_Loop]:
    """The loops without those of one step, and with neighbours merged where that gives the same offsets."""
    result: list[_Loop] = []
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
class _Plan:
    """The loops over the indices, those over a window, and the components of an index."""

    outer: tuple[_Loop, ...]
    inner: tuple[_Loop, ...]
    starts: tuple[_Start, ...]


def _plan(
    array: Shape, indices: Shape, update: Shape, attributes: ScatterAttributes, fits: Collection[int]
) -> _Plan:
    """`fits`: the dimensions of the array along which all indices are known to be in range."""
    vector = attributes.index_vector_dim
    array_strides, index_strides, update_strides = (_strides(s.dimensions) for s in (array, indices, update))
    window_dims = attributes.update_window_dims
    batch_dims = [d for d in range(update.rank) if d not in window_dims]
    index_dims = [d for d in range(indices.rank) if d != vector]
    partners = dict(zip(attributes.scatter_indices_batching_dims, attributes.input_batching_dims, strict=True))
    outer = [
        _Loop(
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
        _Loop(update.dimensions[w], array_strides[d], 0, update_strides[w])
        for d, w in zip(kept, window_dims, strict=True)
    ]
    stride = index_strides[vector] if vector < indices.rank else 0
    starts = [
        _Start(component * stride, array_strides[d], array.dimensions[d] - sizes[d], d in fits)
        for component, d in enumerate(attributes.scatter_dims_to_operand_dims)
    ]
    return _Plan(tuple(_merged(outer)), tuple(_merged(inner)), tuple(starts))


def emit_scatter(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a scatter. Its outputs already hold its arrays (operands 0 to N - 1)."""
    return _ScatterEmitter(instruction).emit()


class _ScatterEmitter:
    def __init__(self, instruction: HloInstruction) -> None:
        self.attributes: ScatterAttributes = instruction.attributes
        self.count = len(instruction.operands) // 2
        shapes = [o.shape for o in instruction.operands]
        self.shapes = shapes
        self.plan = _plan(shapes[0], shapes[self.count], shapes[-1], self.attributes, in_bounds(instruction))
        combiner = self.attributes.to_apply
        plain = combiner.root.opcode in (Opcode.PARAMETER, Opcode.TUPLE)
        self.text = KernelText("scatter" if plain else f"scatter_{combiner.root.opcode.name.lower()}", combiner)
        self.writer = self.text.writer
        self.arrays = [self.text.output(f"io{n}", shapes[n].element, n) for n in range(self.count)]
        self.indices, *self.updates = [
            self.text.operand(f"x{n}", shape.element, n) for n, shape in enumerate(shapes) if n >= self.count
        ]
        self._roles: dict[str, int] = {}

    def size(self, role: str, value: int) -> Expr:
        """A number of the shapes, as an argument of the kernel unless it is 0 or 1."""
        if value in (0, 1):
            return Number(value)
        number = self._roles[role] = self._roles.get(role, -1) + 1
        return self.text.argument(f"{role}{number}", value)

    def emit(self) -> EmittedKernel:
        sliced = self._sliced()
        steps = math.prod(loop.extent for loop in self.plan.outer)
        window = math.prod(loop.extent for loop in self.plan.inner)
        with ExitStack() as stack:
            array, indices, updates = self._loops(stack, self.plan.outer, sliced, 0)
            starts = [self._start(start, indices) for start in self.plan.starts]
            for start, (_, value) in zip(self.plan.starts, starts, strict=True):
                array = array + value * self.size("s", start.stride)
            tests = [test for tests, _ in starts for test in tests]
            if tests:
                stack.enter_context(self.writer.if_(all_of(tests), guarded=True))
            within, _, source = self._loops(stack, self.plan.inner, sliced, len(self.plan.outer))
            self._update(array + within, updates + source)
        extent = 1 if sliced is None else sliced.extent
        return self.text.finish(extent, steps * window * _NANOSECONDS / max(extent, 1))

    def _sliced(self) -> _Loop | None:
        """The loop that threads may split, if any."""
        if self.attributes.unique_indices and self.plan.outer:
            return self.plan.outer[0]
        window = max(self.plan.inner, key=lambda loop: loop.extent, default=None)
        return window if window is not None and window.extent >= MIN_SHARED_WINDOW else None

    def _loops(
        self, stack: ExitStack, loops: Sequence[_Loop], sliced: _Loop | None, first: int
    ) -> tuple[Expr, Expr, Expr]:
        """Opens the loops; gives the offsets that their variables add in the array, the indices and the updates."""
        array: Expr = ZERO
        indices: Expr = ZERO
        updates: Expr = ZERO
        for number, loop in enumerate(loops):
            bounds: tuple[Expr, ...]
            if loop is sliced:
                bounds = LO, HI
            elif loop.extent <= LITERAL_LIMIT and number == len(loops) - 1:
                bounds = (Number(loop.extent),)
            else:
                bounds = (self.size("n", loop.extent),)
            i = stack.enter_context(self.writer.loop(loop_variable(first + number), *bounds))
            array = array + i * self.size("s", loop.array)
            indices = indices + i * self.size("t", loop.indices)
            updates = updates + i * self.size("u", loop.updates)
        return array, indices, updates

    def _start(self, start: _Start, offset: Expr) -> tuple[list[Expr], Name]:
        """A component of the index, and the tests that the window fits there."""
        component = self.indices.load(offset + self.size("t", start.distance)).at(self.writer.depth)
        # (A u64 beyond s64 becomes negative here, which is outside too.)
        name = self.writer.let("start", cast("int64", component))
        return [] if start.fits else [binary("<=", ZERO, name), name <= self.size("m", start.last)], name

    def _update(self, target: Expr, source: Expr) -> None:
        """Combine the updates at offset `source` into the arrays at offset `target`."""
        to, origin = (e if isinstance(e, Name) else self.writer.let(s, e) for e, s in ((target, "at"), (source, "of")))
        old = [array.load(to).at(self.writer.depth) for array in self.arrays]
        new = [update.load(origin).at(self.writer.depth) for update in self.updates]
        results = self.text.apply(self.attributes.to_apply, [*old, *new])
        if self.count > 1:
            results = [self.writer.let("next", r) for r in results]
        for array, result in zip(self.arrays, results, strict=True):
            self.text.store(array, to, result)
