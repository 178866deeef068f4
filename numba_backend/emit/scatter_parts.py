"""Many updates of a small array: each part of the updates is combined on its own, and then the parts.

Threads cannot share the updates of an array, because two threads may update the same element. If the combiner is
commutative and associative, and the array is much smaller than the updates, each part of the updates gets a copy of the
array, filled with the combiner's identity. How many parts there are depends on the shapes alone, and the copies are
combined in order: so a sum is the same whatever the number of threads::

    def scatter_add_parts(lo, hi, io0, x1, x2, k0, k1, n0, c0):
        for p in range(lo, hi):
            base = p * k0
            for z in range(k0):
                io0[base + z] = c0
            begin = p * k1
            for i in range(begin, minimum(begin + k1, n0)):
                at0 = base + int64(x1[i])
                io0[at0] = io0[at0] + x2[i]

    def scatter_add_joins(lo, hi, io0, own, n0, k0):
        for p in range(n0):
            for j in range(lo, hi):
                at = p * k0 + j
                io0[j] = io0[j] + own[at]

Where an index may be outside of the array, and updates are single elements, a copy has one more element for these.

An element of a small array may get millions of updates, and 1 is lost beside 16,777,216 in f32: copies for sums of f32
are f64 there, and so are their sums::

        for j in range(lo, hi):
            total = float64(io0[j])
            for p in range(n0):
                at = p * k0 + j
                total = total + own[at]
            io0[j] = float32(total)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_identity, reducer_opcode
from ...hlo.passes.simplify.reducers import binary_reducer
from ...hlo.support.records import dataclass
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type
from ..loops.expressions import minimum
from ..loops.writer import cast
from .inlined import Inlined
from .scalar_computations import KernelText
from .scatter import ScatterEmitter

LEAST_UPDATES = 1 << 15
"""Fewer elements of updates are combined by one thread."""

MOST_PARTS = 16
"""More than there are threads, as a rule."""

_PER_ELEMENT = {Opcode.MAXIMUM: 128, Opcode.MINIMUM: 128}
_FEW = 8
"""The least number of updates for each element of a copy, by combiner; and of other combiners. The first updates of an
element are those that change its maximum, which no processor foresees."""

_SMALL = 2048
"""Arrays of at most so many elements have copies in f64, which fit into a first-level cache as copies in f32 do. Larger
ones would take up to half as long again."""



@dataclass(frozen=True, slots=True)
class ScatterParts:
    """`count` parts of `steps` indices each (the last one may have less)."""

    count: int
    steps: int
    room: int
    """Elements from one copy to the next: those of the array, and one more for the updates outside of it."""


def scatter_parts(instruction: HloInstruction) -> ScatterParts | None:
    """How the updates of a scatter are cut; None where that is not worth it or would change the meaning."""
    array, updates = instruction.operands[0].shape, instruction.operands[-1].shape
    if len(instruction.operands) != 3 or updates.num_elements < LEAST_UPDATES or not array.num_elements:
        return None
    element, opcode = array.element, reducer_opcode(instruction.attributes.to_apply)
    if opcode is None or element is ElementType.PRED or element.is_small or element.is_complex:
        return None
    scatter = ScatterEmitter(instruction)
    if scatter.shared[0] is not None or scatter.owned is not None or not scatter.plan.outer:
        return None
    most = updates.num_elements // (_PER_ELEMENT.get(opcode, _FEW) * array.num_elements)
    count = min(MOST_PARTS, 1 << max(0, most.bit_length() - 1))
    extent = scatter.plan.outer[0].extent
    steps = -(-extent // count)
    room = array.num_elements + scatter.has_places
    return ScatterParts(-(-extent // steps), steps, room) if count > 1 and steps > 1 else None


def type_of_parts(instruction: HloInstruction) -> ElementType:
    """The type of the copies."""
    array = instruction.operands[0].shape
    is_sum = reducer_opcode(instruction.attributes.to_apply) is Opcode.ADD
    is_wider = is_sum and array.element is ElementType.F32 and array.num_elements <= _SMALL
    return ElementType.F64 if is_wider else array.element


def _combiner(instruction: HloInstruction) -> HloComputation:
    """The combiner, in the type of the copies."""
    combiner, element = instruction.attributes.to_apply, type_of_parts(instruction)
    return combiner if element is instruction.operands[0].shape.element else binary_reducer(Opcode.ADD, element)


def _identity(opcode: Opcode, element: ElementType) -> Any:
    """The value that changes nothing, not even the sign of a zero."""
    if opcode is Opcode.ADD and element.is_floating:
        return element.dtype.type(-0.0)
    return reducer_identity(opcode, element)


def emit_parts(instruction: HloInstruction, parts: ScatterParts, given: Inlined | None = None) -> EmittedKernel:
    """The kernel that combines each part into a copy of its own: output 0. `given`: see `emit_scatter`."""
    element = type_of_parts(instruction)
    scatter = ScatterEmitter(instruction, "_parts", given, _combiner(instruction))
    text, writer = scatter.text, scatter.writer
    (own,) = scatter.arrays
    first, *others = scatter.plan.outer
    opcode = reducer_opcode(instruction.attributes.to_apply)
    assert opcode is not None
    room, steps = scatter.size("k", parts.room), scatter.size("k", parts.steps)
    end = scatter.extent(first)
    nothing = text.elements.scalar(element, np.asarray(_identity(opcode, element)))
    with writer.loop("p", LO, HI) as p:
        base = writer.assign("base", p * room)
        with writer.loop("z", room) as z:
            text.store(own, base + z, nothing)
        begin = writer.assign("begin", p * steps)
        stop = minimum(begin + steps, end)
        if scatter.has_places:
            scatter.update_places(first, begin, stop, base, room - 1)
        else:
            with writer.loop("i", begin, stop) as i:
                scatter.update_step(first, others, i, base)
    return text.finish(parts.count)


def emit_joins(instruction: HloInstruction, parts: ScatterParts) -> EmittedKernel:
    """The kernel that combines the copies (operand 0) into the array (output 0)."""
    array, element = instruction.operands[0].shape, type_of_parts(instruction)
    combiner = _combiner(instruction)
    text = KernelText(f"scatter_{combiner.root.opcode.name.lower()}_joins", combiner)
    io, own = text.output("io0", array.element, 0), text.operand("own", element, 0)
    copies, count = text.size("n0", parts.count), text.size("k0", parts.room)
    if element is array.element:
        with text.writer.loop("p", copies) as p, text.writer.loop("j", LO, HI) as j:
            at = text.writer.assign("at", p * count + j)
            (result,) = text.apply(combiner, [io.load(j), own.load(at)])
            text.store(io, j, result)
    else:
        with text.writer.loop("j", LO, HI) as j:
            total = text.writer.assign("total", cast(memory_type(element), io.load(j)))
            with text.writer.loop("p", copies) as p:
                at = text.writer.assign("at", p * count + j)
                text.assign([total], text.apply(combiner, [total, own.load(at)]))
            text.store(io, j, cast(memory_type(array.element), total))
    return text.finish(array.num_elements)
