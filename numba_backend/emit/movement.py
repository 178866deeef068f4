"""Element rules of the ops that move elements: each is a change of index.

transpose: ``x[j * n1 + i]``; pad and concatenate choose by comparing the index::

    if k0 <= i and i < k0 + n1:
        part0 = x[i - k0]
    else:
        part0 = c0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...hlo.analyses.in_bounds import window_sizes
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.permutations import inverse
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, call, is_number
from ..loops.writer import cast
from .element import CAST, ELEMENT, ElementEmitter, movable, moved, rounded
from .indexing import clamped_start
from .sizes import Index


@ELEMENT.register(Opcode.BROADCAST)
def _broadcast(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    operand = instruction.operands[0]
    value = e.value(operand, tuple(index[d] for d in instruction.attributes.dimensions))
    if value.depth < e.writer.depth and operand not in e.literals and not value.is_simple:
        # Values that do not change in the inner loop are computed outside of it.
        return e.writer.let(e.stem(operand), value)
    return value


@ELEMENT.register(Opcode.TRANSPOSE)
def _transpose(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return e.value(instruction.operands[0], tuple([index[d] for d in inverse(instruction.attributes.dimensions)]))


@ELEMENT.register(Opcode.IOTA)
def _iota(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    component = index[instruction.attributes.iota_dimension]
    element = instruction.shape.element
    if element.is_complex:
        return call("complex_from", cast(CAST[element.real], component), e.scalar(element.real, 0))
    if element.is_small and element.is_floating:
        return call(f"f32_to_{element.value}", cast("float32", component))
    return rounded(element, cast(CAST[element], component))


@ELEMENT.register(Opcode.SLICE)
def _slice(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    attributes, sizes = instruction.attributes, e.sizes
    source = tuple(
        component * sizes.step(step) + sizes.constant(start)
        for component, start, step in zip(index, attributes.start_indices, attributes.strides, strict=True)
    )
    return e.value(instruction.operands[0], source)


@ELEMENT.register(Opcode.REVERSE)
def _reverse(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    source = list(index)
    for d in instruction.attributes.dimensions:
        size = e.sizes.of(instruction, d)
        last = Number(size.value - 1) if isinstance(size, Number) else size - 1
        source[d] = last - index[d]
    return e.value(instruction.operands[0], tuple(source))


@ELEMENT.register(Opcode.RESHAPE, Opcode.BITCAST)
def _reshape(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    """Through the row-major linear index; where only dimensions of size 1 differ, without it."""
    operand = instruction.operands[0]
    source, target = operand.shape.dimensions, instruction.shape.dimensions
    if operand.shape.element is not instruction.shape.element:
        raise UnsupportedError("a bitcast that changes the element type inside a fusion")
    kept = [i for i, size in zip(index, target, strict=True) if size != 1]
    if tuple(d for d in source if d != 1) == tuple(d for d in target if d != 1):
        rest = iter(kept)
        return e.value(operand, tuple(ZERO if d == 1 else next(rest) for d in source))
    linear = e.sizes.offset(instruction, index)
    if not isinstance(linear, Name) and len(source) > 1:
        linear = e.writer.let("at", linear)
    components: list[Expr] = []
    for d in range(len(source) - 1, 0, -1):
        if source[d] == 1:
            components.append(ZERO)
            continue
        size = e.sizes.of(operand, d)
        components.append(linear % size)
        linear = linear // size
    return e.value(operand, (linear, *reversed(components)) if source else ())


def clamped_starts(e: ElementEmitter, instruction: HloInstruction, first: int) -> list[Expr]:
    """The start indices of a dynamic slice or update, which are its operands from `first` on."""
    sizes = zip(instruction.operands[0].shape.dimensions, window_sizes(instruction), strict=True)
    starts = zip(instruction.operands[first:], sizes, strict=True)
    return [
        ZERO if window == size else clamped_start(e, instruction, d, window, start, ())
        for d, (start, (size, window)) in enumerate(starts)
    ]


@ELEMENT.register(Opcode.DYNAMIC_SLICE)
def _dynamic_slice(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    starts = clamped_starts(e, instruction, 1)
    return e.value(instruction.operands[0], tuple(s + i for s, i in zip(starts, index, strict=True)))


def _choose(
    e: ElementEmitter, tests: list[Expr], operand: HloInstruction, inside: Index,
    otherwise: HloInstruction, other_index: Index,
) -> Expr:  # fmt: skip
    """``if tests: name = operand[inside]`` / ``else: name = otherwise[other_index]``."""
    writer, element = e.writer, operand.shape.element
    name = writer.fresh("part")
    with writer.if_(all_of(tests), guarded=True):
        part = writer.assign(name, movable(element, e.value(operand, inside)))
    with writer.else_(guarded=True):
        writer.assign(part, movable(element, e.value(otherwise, other_index)))
    return moved(element, part.at(writer.depth))


@ELEMENT.register(Opcode.PAD)
def _pad(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    operand, padding = instruction.operands
    if 0 in operand.shape.dimensions:
        return e.value(padding, ())
    attributes, sizes = instruction.attributes, e.sizes
    tests: list[Expr] = []
    source: list[Expr] = []
    for d, component in enumerate(index):
        low, high, interior = attributes.low[d], attributes.high[d], attributes.interior[d]
        if (low, high, interior) == (0, 0, 0):
            source.append(component)
            continue
        shifted = component if low == 0 else component - sizes.constant(low)
        if not isinstance(shifted, Name):
            shifted = e.writer.let("at", shifted)
        if low > 0:
            tests.append(shifted >= 0)
        if interior:
            step = sizes.step(interior + 1)
            tests.append((shifted % step).eq(0))
            shifted = shifted // step
        tests.append(shifted < sizes.of(operand, d))
        source.append(shifted)
    if not tests:
        return e.value(operand, tuple(source))
    return _choose(e, tests, operand, tuple(source), padding, ())


MANY_PARTS = 16
"""The most parts of a concatenation with ends that are written as sums where they are used, so that loops can be split
there (`loops/split.py`)."""


def part_ends(e: ElementEmitter, parts: Sequence[HloInstruction], axis: int) -> Iterator[Expr]:
    """Where each part of a concatenation ends. Of many parts, each end has a name: the sums would be long."""
    end: Expr = ZERO
    for part in parts:
        size = e.sizes.of(part, axis)
        if len(parts) <= MANY_PARTS:
            end = end + size
        elif isinstance(end, Number) and isinstance(size, Number):
            end = Number(int(end.value) + int(size.value))
        else:
            end = e.writer.let("end", end + size)
        yield end


@ELEMENT.register(Opcode.CONCATENATE)
def _concatenate(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    """One branch for each operand: ``if i < n0: ... elif i < n0 + n1: ... else: ...``."""
    axis, writer = instruction.attributes.dimension, e.writer
    parts = [o for o in instruction.operands if o.shape.dimensions[axis]]
    if len(parts) == 1:
        return e.value(parts[0], index)
    ends = part_ends(e, parts, axis)
    if len(parts) > MANY_PARTS:
        ends = iter([*ends])  # no name may be given between the branches
    name: str | Name = writer.fresh("part")
    component = index[axis]
    start: Expr = ZERO
    for number, (part, end) in enumerate(zip(parts, ends)):
        local = (*index[:axis], component - start, *index[axis + 1 :])
        if number == 0:
            branch = writer.if_(component < end, guarded=True)
        elif number < len(parts) - 1:
            branch = writer.elif_(component < end, guarded=True)
        else:
            branch = writer.else_(guarded=True)
        with branch:
            name = writer.assign(name, movable(part.shape.element, e.value(part, local)))
        start = end
    assert isinstance(name, Name)
    return moved(instruction.shape.element, name.at(writer.depth))


@ELEMENT.register(Opcode.DYNAMIC_UPDATE_SLICE)
def _dynamic_update_slice(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    """Inside a fusion: the update in its range, else the operand. At the root it is a loop over the update alone."""
    operand, update = instruction.operands[:2]
    if 0 in update.shape.dimensions:
        return e.value(operand, index)
    starts = clamped_starts(e, instruction, 2)
    tests: list[Expr] = []
    local: list[Expr] = []
    for d, (start, component) in enumerate(zip(starts, index, strict=True)):
        if is_number(start, 0) and update.shape.dimensions[d] == operand.shape.dimensions[d]:
            local.append(component)
            continue
        tests += [] if is_number(start, 0) else [start <= component]
        tests.append(component < start + e.sizes.of(update, d))
        local.append(component - start)
    if not tests:
        return e.value(update, tuple(local))
    return _choose(e, tests, update, tuple(local), operand, index)
