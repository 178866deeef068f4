"""From a scheduled module with buffers to a program: control flow here, ops by the rules of `LOWER`.

A rule gets the lowering, the instruction, and the arrays of its operands and results. An op that moves elements is one
DMA with the right strides; an elementwise op is a pass through the scratchpad.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hloom.hlo import (
    ElementType,
    HloComputation,
    HloInstruction,
    Opcode,
    Shape,
    make_parameter,
)
from hloom.hlo.buffers.assignment import AllocationKind, BufferAssignment, BufferSlice, is_alias
from hloom.hlo.ops import Trait, has_trait
from hloom.hlo.passes.patterns import convert
from hloom.hlo.rules import RuleTable

from .assembler import Assembler
from .isa import Jump, Label, Start, Switch, ToyProgram, View

Rule = Callable[..., None]
"""rule(lowering, instruction, operands, results)"""
LOWER: RuleTable[Rule] = RuleTable("lowering to the toy accelerator")
_O = Opcode

LOWER.unsupported(
    [_O.CUSTOM_CALL, _O.INFEED, _O.OUTFEED, _O.SEND, _O.SEND_DONE, _O.RECV, _O.RECV_DONE, _O.RAGGED_ALL_TO_ALL,
     _O.RNG_GET_AND_UPDATE_STATE],
    "the device cannot call functions of the host",
)  # fmt: skip


class Lowering:
    """One module. `program` has its commands; `assembler` its constants and its need of scratch memory."""

    def __init__(self, assignment: BufferAssignment) -> None:
        self._assignment = assignment
        self._outputs = len(assignment.parameters)
        self._scratch = self._outputs + len(assignment.outputs)
        self.assembler = Assembler(self._scratch, assignment.arena_size)
        constants = [data.tobytes() for data in assignment.constant_bytes()]
        self._constants = [self.assembler.constant(data, (len(data),), 1).offset for data in constants]
        self._values: dict[HloInstruction, View] = {}
        entry = assignment.module.entry
        self._computation(entry)
        self.program = ToyProgram(assignment.module.name, tuple(self.assembler.commands))

    def _computation(self, computation: HloComputation) -> None:
        for instruction in computation.instructions:
            if instruction.opcode in (_O.PARAMETER, _O.CONSTANT) or is_alias(instruction):
                continue
            self._copies(self._assignment.copies_before(instruction))
            if instruction.opcode is _O.WHILE:
                self._while(instruction)
            elif instruction.opcode is _O.CONDITIONAL:
                self._conditional(instruction)
            elif instruction.opcode is _O.CALL:
                self._computation(instruction.attributes.to_apply)
            else:
                operands = [v for o in instruction.operands for v in self._arrays(o)]
                self._lower(instruction, operands, self._arrays(instruction))
                self.assembler.release()
                self._values.clear()
        self._copies(self._assignment.copies_at_end(computation))

    def _lower(self, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
        if has_trait(instruction.opcode, Trait.ELEMENTWISE) and instruction.opcode is not _O.MAP:
            elementwise(self, instruction, operands, results)
        else:
            LOWER[instruction.opcode](self, instruction, operands, results)

    # ---- memory

    def _arrays(self, instruction: HloInstruction) -> list[View]:
        """Where buffer assignment has put the leaves of a value."""
        leaves = zip(self._assignment.leaves(instruction), instruction.shape.leaves(), strict=True)
        return [self._view(place, shape) for place, shape in leaves]

    def _view(self, place: BufferSlice, shape: Shape) -> View:
        allocation = place.allocation
        block, offset = {
            AllocationKind.PARAMETER: (allocation.index, 0),
            AllocationKind.OUTPUT: (self._outputs + allocation.index, 0),
            AllocationKind.ARENA: (self._scratch, 0),
            AllocationKind.CONSTANT: (self._scratch + 1, 0),
        }[allocation.kind]
        if allocation.kind is AllocationKind.CONSTANT:
            offset = self._constants[allocation.index]
        return View.dense(block, offset + place.offset, shape.dimensions, shape.element.dtype.itemsize)

    def _copies(self, copies: Sequence[Any]) -> None:
        for copy in copies:
            byte, nbytes = Shape.array(ElementType.U8, (copy.target.size,)), copy.target.size
            if nbytes:
                self.assembler.copy(self._view(copy.target, byte), self._view(copy.source, byte))

    def temporary(self, shape: Shape) -> View:
        """An array for the current instruction."""
        return self.assembler.temporary(shape.element, shape.dimensions)

    def parameter(self, element: ElementType, view: View) -> HloInstruction:
        """An expression for a dense array, from which `value` computes others."""
        found = make_parameter(0, Shape.array(element, view.sizes))
        self._values[found] = view
        return found

    def value(self, expression: HloInstruction) -> View:
        """A temporary array with the value of an expression, computed once for the current instruction."""
        found = self._values.get(expression)
        if found is None:
            shape = expression.shape
            if expression.opcode is _O.CONSTANT:
                data = expression.attributes.literal.array
                found = self.assembler.constant(data.tobytes(), shape.dimensions, data.itemsize)
            elif is_alias(expression):
                found = self.value(expression.operands[0]).reshape(*shape.dimensions)
            else:
                operands = [self.value(o) for o in expression.operands]
                found = self.temporary(shape)
                self._lower(expression, operands, [found])
            self._values[expression] = found
        return found

    # ---- control flow

    def _while(self, instruction: HloInstruction) -> None:
        condition, body = instruction.attributes.condition, instruction.attributes.body
        again, done = Label(), Label()
        self.assembler.place(again)
        self._computation(condition)
        self.assembler.commands.append(Jump(done, self._arrays(condition.root)[0]))
        self._computation(body)
        self.assembler.commands.append(Jump(again))
        self.assembler.place(done)

    def _conditional(self, instruction: HloInstruction) -> None:
        branches = instruction.attributes.branch_computations
        index = instruction.operands[0]
        labels, done = [Label() for _ in branches], Label()
        (where,) = self._arrays(index)
        if index.shape.element is ElementType.PRED:
            self.assembler.commands.append(Jump(labels[1], where))
        else:
            self.assembler.commands.append(Switch(where, tuple(labels)))
        for label, branch in zip(labels, branches, strict=True):
            self.assembler.place(label)
            self._computation(branch)
            self.assembler.commands.append(Jump(done))
        self.assembler.place(done)


# ---- arithmetic


def elementwise(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """One op of the vector unit. Scalars among the operands (of clamp and select) are repeated."""
    (result,) = results
    given = [o if o.sizes == result.sizes else o.broadcast((), result.sizes) for o in operands]
    lowering.assembler.apply(instruction, given, results)


@LOWER.register(_O.DOT)
def dot(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """Both operands in the order batch, rows, columns; then the matrix unit, batch by batch."""
    attributes, element = instruction.attributes, instruction.shape.element
    matrices, sizes = [], []
    for number, (view, batch, contracting) in enumerate(
        (
            (operands[0], attributes.lhs_batch_dims, attributes.lhs_contracting_dims),
            (operands[1], attributes.rhs_batch_dims, attributes.rhs_contracting_dims),
        )
    ):
        free = [d for d in range(len(view.sizes)) if d not in batch and d not in contracting]
        order = (*batch, *free, *contracting) if number == 0 else (*batch, *contracting, *free)
        dense = moved = view.transpose(order)
        if not moved.is_dense:
            dense = lowering.assembler.temporary(element, moved.sizes)
            lowering.assembler.copy(dense, moved)
        groups = [_count(view, batch), _count(view, free), _count(view, contracting)]
        matrices.append(dense.reshape(*(groups if number == 0 else (groups[0], groups[2], groups[1]))))
        sizes.append(groups)
    count, rows = sizes[0][:2]
    out = results[0].reshape(count, rows, sizes[1][1])
    for k in range(count):
        c, a, b = (_matrix(view, k) for view in (out, *matrices))
        lowering.assembler.multiply(element, c, a, b)


def _count(view: View, dimensions: Sequence[int]) -> int:
    found = 1
    for d in dimensions:
        found *= view.sizes[d]
    return found


def _matrix(view: View, number: int) -> View:
    part = view.part(0, number, 1)
    return View(part.block, part.offset, part.sizes[1:], part.strides[1:], part.itemsize)


# ---- movement: each is a DMA or two


@LOWER.register(_O.COPY, _O.RESHAPE, _O.BITCAST_CONVERT)
def copy(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """The same bytes."""
    lowering.assembler.copy(results[0], operands[0].reshape(*results[0].sizes))


@LOWER.register(_O.TRANSPOSE)
def transpose(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """The strides in another order."""
    lowering.assembler.copy(results[0], operands[0].transpose(instruction.attributes.dimensions))


@LOWER.register(_O.BROADCAST)
def broadcast(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """Stride 0 along new dimensions."""
    lowering.assembler.copy(
        results[0], operands[0].broadcast(instruction.attributes.dimensions, results[0].sizes)
    )


@LOWER.register(_O.REVERSE)
def reverse(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """Negative strides, from the last element on."""
    view = operands[0]
    for d in instruction.attributes.dimensions:
        if view.count:
            view = view.part(d, view.sizes[d] - 1, view.sizes[d], -1)
    lowering.assembler.copy(results[0], view)


@LOWER.register(_O.SLICE)
def slice_(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """A part of the source."""
    attributes = instruction.attributes
    part = operands[0].slice(attributes.start_indices, attributes.strides, results[0].sizes)
    lowering.assembler.copy(results[0], part)


@LOWER.register(_O.CONCATENATE)
def concatenate(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """Each operand into a part of the target."""
    dimension, first = instruction.attributes.dimension, 0
    for operand in operands:
        lowering.assembler.copy(results[0].part(dimension, first, operand.sizes[dimension]), operand)
        first += operand.sizes[dimension]


@LOWER.register(_O.PAD)
def pad(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """Fill the result with the padding, then copy the operand's inner elements, with holes between them."""
    attributes = instruction.attributes
    lowering.assembler.copy(results[0], operands[1].broadcast((), results[0].sizes))
    steps = [hole + 1 for hole in attributes.interior]
    lowering.assembler.copy(*spread(results[0], operands[0], attributes.low, steps))


def spread(area: View, array: View, low: Sequence[int], steps: Sequence[int]) -> tuple[View, View]:
    """Element i of the array is at place low + i * step of the area along each dimension: the parts of both that have
    such places."""
    for d, (first, step) in enumerate(zip(low, steps, strict=True)):
        skipped = max(0, -(first // step))
        start = first + skipped * step
        count = max(0, min(array.sizes[d] - skipped, -(-(area.sizes[d] - start) // step)))
        area, array = area.part(d, start, count, step), array.part(d, skipped, count)
    return area, array


@LOWER.register(_O.IOTA)
def iota(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """Counted once, then repeated."""
    element, dimension = instruction.shape.element, instruction.attributes.iota_dimension
    size = results[0].sizes[dimension]
    counted_in = element.real if element.is_complex else element
    line = lowering.assembler.temporary(counted_in, (size,))
    lowering.assembler.iota(line, counted_in)
    if element.is_complex:
        line = lowering.value(convert(lowering.parameter(counted_in, line), element))
    lowering.assembler.copy(results[0], line.broadcast((dimension,), results[0].sizes))


@LOWER.register(_O.DYNAMIC_SLICE)
def dynamic_slice(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """The DMA engine reads the start indices."""
    lowering.assembler.copy(results[0], _moving(instruction, operands[0], operands[1:], 1, results[0].sizes))


@LOWER.register(_O.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(
    lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]
) -> None:
    """In place, if buffer assignment has put the result where the operand is."""
    array, update, *starts = operands
    lowering.assembler.copy(results[0], array)
    lowering.assembler.copy(_moving(instruction, results[0], starts, 2, update.sizes), update)


def _moving(
    instruction: HloInstruction, array: View, places: Sequence[View], first: int, sizes: Sequence[int]
) -> View:
    """A part of `array` that starts where scalars in memory say."""
    starts = tuple(
        Start(place.block, place.offset, index.shape.element, array.sizes[d] - sizes[d], array.strides[d])
        for d, (place, index) in enumerate(zip(places, instruction.operands[first:], strict=True))
        if array.sizes[d] != sizes[d]
    )
    return View(array.block, array.offset, tuple(sizes), array.strides, array.itemsize, starts)


@LOWER.register(_O.FUSION)
def fusion(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """Ops that follow one another without a way through the memory."""
    sizes = results[0].sizes
    given = [o if o.sizes == sizes else o.broadcast((), sizes) for o in operands]
    lowering.assembler.apply(instruction.attributes.calls, given, results)


