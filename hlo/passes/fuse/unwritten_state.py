"""unwritten-state: a loop's initial value is not written if the loop overwrites it in full before it reads it.

    ys = broadcast(0)                           ys = custom-call(), custom_call_target="AllocateBuffer"
    ys = while(i, ys): ys[i] = f(i)      ->     ys = while(i, ys): ys[i] = f(i)

A scan's stacked results begin as zeros: that is one pass over all of their memory more than there has to be. Where the
loop writes a range of rows and the others are there before it, as in ``concatenate(first, zeros)``, only these are
written. It must run after all passes that merge equal values or move them: each loop needs memory of its own.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from ...analyses.in_bounds import window_sizes
from ...analyses.trip_count import (
    InductionVariable,
    body_results,
    constant_step,
    induction_variable,
    initial_value,
    state_element,
)
from ...builder import make_constant, make_instruction
from ...custom_call_targets.table import UNWRITTEN
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.custom_call import CustomCallAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import splat_value
from ..rewrite import map_computations, rewrite_computation
from ..simplify.loops import has_tuple_state, is_only_written, is_unchanged

_DEPTH = 16
"""The longest chain of instructions that is looked through for the value of an index."""

_MOST_KEPT = 2
"""Parts of a concatenation that are written for themselves, as those before and after the rows of a loop: each takes a
kernel."""


@dataclass(frozen=True, slots=True)
class UnwrittenState:
    """Replaces initial values that a loop never reads by uninitialised memory."""

    name: str = "unwritten-state"
    least: int = 65
    """Elements of an array: a smaller one is written in no time, and a loop may hold it in registers."""

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, lambda computation: _rewritten(computation, self.least))


@dataclass(frozen=True, slots=True)
class _Range:
    """The rows `low` to `high` along a dimension; every element of them."""

    dimension: int
    low: int
    high: int

    def covers(self, low: int, high: int) -> bool:
        return self.low <= low and high <= self.high


def _rewritten(computation: HloComputation, least: int) -> HloComputation:
    loops = [i for i in computation.instructions if i.opcode is Opcode.WHILE and has_tuple_state(i)]
    found: dict[HloInstruction, dict[int, _Range]] = {}
    users = computation.users if loops else {}
    for loop in loops:
        state = loop.operands[0]
        if state.opcode is Opcode.TUPLE and list(users[state]) == [loop]:
            written = {k: w for k in range(len(state.operands)) if (w := _written(loop, k, least)) is not None}
            if written:
                found[state] = written
    if not found:
        return computation

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old not in found:
            return moved
        operands = list(moved.operands)
        for k, written in found[old].items():
            operands[k] = _without(operands[k], written) or operands[k]
        return moved if operands == list(moved.operands) else moved.with_operands(tuple(operands))

    return rewrite_computation(computation, visit)


# The rows that a loop writes


def _written(loop: HloInstruction, k: int, least: int) -> _Range | None:
    """The rows of element k of the state that the loop writes in any case, if it does not read the element."""
    results = body_results(loop.attributes.body)
    assert results is not None
    update = results[k]
    if update.shape.is_tuple or update.shape.num_elements < least or not is_only_written(loop, k):
        return None
    counter = induction_variable(loop)
    if counter is None or not counter.trip_count:
        return None
    sizes, window = update.shape.dimensions, window_sizes(update)
    cut = [d for d, size in enumerate(sizes) if window[d] != size]  # along others an index is clamped to 0
    if not cut:
        return _Range(0, 0, sizes[0])
    if len(cut) > 1:
        return None
    d = cut[0]
    start = _Indices(loop, counter).of(update.operands[2 + d])
    if start is None:
        return None
    first, last = start
    low, high = min(first, last), max(first, last)
    if low < 0 or high + window[d] > sizes[d]:
        return None  # it would be clamped
    if high - low > (counter.trip_count - 1) * window[d]:
        return None  # there are gaps
    return _Range(d, low, high + window[d])


@dataclass(frozen=True, slots=True)
class _Indices:
    """Integer scalars of a loop's body that grow by the same number in each iteration."""

    loop: HloInstruction
    counter: InductionVariable
    seen: dict[HloInstruction, tuple[int, int] | None] = field(default_factory=dict)

    def of(self, i: HloInstruction, depth: int = _DEPTH) -> tuple[int, int] | None:
        """The values in the first and in the last iteration; between them it goes in even steps. None if that is not
        known, or if a type could not hold one of the values."""
        if i not in self.seen:
            self.seen[i] = self._within_limits(i, depth)
        return self.seen[i]

    def _within_limits(self, i: HloInstruction, depth: int) -> tuple[int, int] | None:
        found = self._values(i, depth) if depth else None
        if found is None or not i.shape.is_scalar or not i.shape.element.is_integral:
            return None
        lowest, highest = i.shape.element.limits
        return found if all(lowest <= value <= highest for value in found) else None

    def _values(self, i: HloInstruction, depth: int) -> tuple[int, int] | None:
        index = state_element(i)
        if index is not None:
            return self._element(index)
        if i.opcode is Opcode.CONSTANT:
            return _constant(i)
        known = [self.of(o, depth - 1) for o in i.operands]
        if not known or None in known:
            return None
        values = [pair for pair in known if pair is not None]
        match i.opcode:
            case Opcode.CONVERT | Opcode.RESHAPE | Opcode.COPY | Opcode.BITCAST:
                return values[0]
            case Opcode.ADD:
                (a, b), (c, d) = values
                return a + c, b + d
            case Opcode.SUBTRACT:
                (a, b), (c, d) = values
                return a - c, b - d
            case Opcode.MULTIPLY if any(a == b for a, b in values):
                (a, b), (c, d) = values
                return a * c, b * d
            case Opcode.CLAMP:
                low, value, high = values
                return value if max(low) <= min(value) and max(value) <= min(high) else None
            case _:
                return None

    def _element(self, index: int) -> tuple[int, int] | None:
        initial = initial_value(self.loop, index)
        start = None if initial is None else _constant(initial)
        if start is None or is_unchanged(self.loop, index):
            return start
        results = body_results(self.loop.attributes.body)
        assert results is not None
        step = constant_step(results[index], index)
        return None if step is None else (start[0], start[0] + step * (self.counter.trip_count - 1))


def _constant(i: HloInstruction) -> tuple[int, int] | None:
    if i.opcode is not Opcode.CONSTANT or not i.shape.is_scalar or not i.shape.element.is_integral:
        return None
    value = int(i.attributes.literal.array)
    return value, value


# The remaining part of an initial value


def _without(value: HloInstruction, written: _Range) -> HloInstruction | None:
    """The initial value, in which the rows of `written` may be anything; None if that saves nothing."""
    shape, d = value.shape, written.dimension
    if splat_value(value) is not None:
        return _memory(shape) if written.covers(0, shape.dimensions[d]) else None
    if value.opcode is not Opcode.CONCATENATE or value.attributes.dimension != d:
        return None
    kept: list[tuple[int, HloInstruction]] = []
    at = 0
    for part in value.operands:
        size = part.shape.dimensions[d]
        if not written.covers(at, at + size):
            kept.append((at, part))
        at += size
    if len(kept) > _MOST_KEPT or sum(part.shape.dimensions[d] for _, part in kept) > at // 2:
        return None
    whole = _memory(shape)
    for start, part in kept:
        starts = [make_constant(np.asarray(start if e == d else 0, np.int64)) for e in range(shape.rank)]
        whole = make_instruction(Opcode.DYNAMIC_UPDATE_SLICE, (whole, part, *starts))
    return whole


def _memory(shape: Shape) -> HloInstruction:
    return make_instruction(Opcode.CUSTOM_CALL, (), CustomCallAttributes(UNWRITTEN[0]), shape)

