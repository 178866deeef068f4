"""The dimensions that an op's declaration names in its operands and result, and their correspondence.

The layout passes use it; any code that adds, removes or renumbers dimensions of an arbitrary op can. Dot, convolution,
gather, scatter and reshape relate their dimensions in a special way, and have hand-written rules there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..instruction import Attributes, HloInstruction
from . import spec_of
from .declare import Declared, Of, declared
from .spec import OpSpec, Trait


def operands_of(spec: OpSpec, of: Of, count: int) -> Sequence[int]:
    """The numbers of the operands that `of` means, if there are `count` operands; empty for the result."""
    arrays = count // spec.operands_per_array
    match of:
        case Of.RESULT:
            return ()
        case Of.OPERAND_0:
            return (0,)
        case Of.OPERAND_1:
            return (1,)
        case Of.ARRAYS:
            return range(arrays)
        case Of.AFTER_ARRAYS:
            return (arrays,)
        case Of.LAST:
            return range(count - arrays, count)


def fields_with_dimensions(kind: type[Attributes]) -> tuple[Declared, ...]:
    """The fields of an attribute class that say something about dimensions."""
    return tuple(f for f in declared(kind) if f.attr.dims.names is not None or f.attr.dims.per is not None)


def maps_dimensions(kind: type[Attributes]) -> bool:
    """True if a field maps each dimension of one side to one of the other. Then the operand's dimensions can have
    any order: the field can be written for it."""
    return any(f.attr.dims.names is not None and f.attr.dims.per is not None for f in declared(kind))


def last_dimensions(instruction: HloInstruction) -> int:
    """How many of the last dimensions the op works along. It does the same at each index of the others."""
    for field in declared(type(instruction.attributes)):
        if field.attr.dims.last is not None:
            return len(getattr(instruction.attributes, field.name))
    return spec_of(instruction.opcode).last_dimensions


def works_along_last(spec: OpSpec) -> bool:
    """True if the op declares `last_dimensions`."""
    return spec.last_dimensions > 0 or any(f.attr.dims.last is not None for f in declared(spec.attributes))


def corresponds(spec: OpSpec) -> bool:
    """True if `correspondence` knows dimensions of the op."""
    if spec.traits & (Trait.ELEMENTWISE | Trait.ALIGNED) or maps_dimensions(spec.attributes):
        return True
    return any(f.attr.dims.removed for f in declared(spec.attributes))


def correspondence(instruction: HloInstruction, k: int) -> dict[int, int]:
    """Which dimension of operand k, an array, is which of the result: {operand's dimension: result's dimension}.

    A dimension that the other side does not have is missing; all are missing if the declarations say nothing.
    """
    spec = spec_of(instruction.opcode)
    attributes: Any = instruction.attributes
    rank, count = instruction.operands[k].shape.rank, len(instruction.operands)
    for field in declared(spec.attributes):
        dims, value = field.attr.dims, getattr(attributes, field.name)
        if dims.per is Of.RESULT and dims.names is not None and k in operands_of(spec, dims.names, count):
            return {source: d for d, source in enumerate(value)}
        if dims.names is Of.RESULT and dims.per is not None and k in operands_of(spec, dims.per, count):
            return dict(enumerate(value))
        if dims.removed and dims.names is not None:
            if k not in operands_of(spec, dims.names, count):
                return {}
            kept = [d for d in range(rank) if d not in value]
            return {d: new for new, d in enumerate(kept)}
    shape = instruction.shape if instruction.shape.is_array else instruction.shape.elements[0]
    if spec.traits & (Trait.ELEMENTWISE | Trait.ALIGNED) and shape.rank == rank:
        return {d: d for d in range(rank)}
    return {}
