"""The rule of the operations that the table of ops has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..element_type import ElementType
from ..instruction import HloComputation, HloInstruction
from ..mlir.tree import Operation, Tensor
from ..opcode import Opcode
from ..ops import SPECS
from ..shape import Shape
from .instruction_builders import convert
from .ops import OP_NAMED, Op, fields_of, regions_of
from .scope import Scope, declared
from .types import element_of


def read_by_table(scope: Scope, operation: Operation) -> Sequence[HloInstruction]:
    """The rule of the operations in the table."""
    return by_table(scope, operation, OP_NAMED[operation.name], scope.operands(operation))


def by_table(
    scope: Scope, operation: Operation, row: Op, operands: Sequence[HloInstruction], **changed: Any
) -> Sequence[HloInstruction]:
    """An operation on these operands, by a row of the table. `changed`: values of fields that its attributes do not
    tell."""
    shapes = [o.shape for o in operands]
    fields = {**fields_of(row, operation.attributes, shapes), **changed}
    computations = [
        (field, scope.applied(region, f"{field}.{operation.name.rpartition('.')[2]}"))
        for field, region in zip(regions_of(row), operation.regions)
    ]
    if computations:
        operands = _promoted(scope, row.opcode, operands, computations[-1][1])
    attributes = SPECS[row.opcode].attributes(**fields, **dict(computations))
    return made(scope, operation, row.opcode, operands, attributes.as_read([o.shape for o in operands]))


def made(
    scope: Scope, operation: Operation, opcode: Opcode, operands: Sequence[HloInstruction], attributes: Any
) -> Sequence[HloInstruction]:
    """The results of one instruction that is the operation."""
    shape = declared(operation)
    if shape is None:
        shape = _inferred(operation, opcode, [o.shape for o in operands], attributes)
    return scope.unpacked(scope.main(opcode, operands, attributes, shape), len(operation.results))


def _inferred(operation: Operation, opcode: Opcode, shapes: Sequence[Shape], attributes: Any) -> Shape | None:
    """The shape of results with sizes `?`: of the declared element type, where that is a choice."""
    if len(operation.results) != 1 or not shapes or not shapes[0].is_array:
        return None
    type_ = operation.results[0].type
    assert isinstance(type_, Tensor)
    element, dimensions = element_of(type_), shapes[0].dimensions
    if opcode is Opcode.BITCAST_CONVERT:
        dimensions = _reinterpreted(shapes[0], element)
    return SPECS[opcode].shape_rule(shapes, attributes, Shape.array(element, dimensions))


def _reinterpreted(shape: Shape, element: ElementType) -> tuple[int, ...]:
    before, after = shape.element.bit_width, element.bit_width
    if before > after:
        return (*shape.dimensions, before // after)
    return shape.dimensions[:-1] if before < after else shape.dimensions


_REDUCING = (Opcode.REDUCE, Opcode.REDUCE_WINDOW)
_WITH_ONE_TYPE = (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, Opcode.SELECT_AND_SCATTER)


def _promoted(
    scope: Scope, opcode: Opcode, operands: Sequence[HloInstruction], computation: HloComputation
) -> list[HloInstruction]:
    """The operands in the types in which the region computes, which may be wider: HLO has no such conversion."""
    types = [p.shape for p in computation.parameters]
    count = len(types) // 2
    if opcode in _REDUCING:
        types = types[count:] + types[:count]
    elif opcode is Opcode.SCATTER:
        types = [*types[:count], operands[count].shape, *types[count:]]
    elif opcode in _WITH_ONE_TYPE:
        types = types[:1] * len(operands)
    else:
        return list(operands)
    return [convert(scope, o, t.element) for o, t in zip(operands, types, strict=False)]
