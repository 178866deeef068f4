"""What the declarations of an op say about an instruction's dimensions: which are whose, and which correspond.

The layout passes ask here, and whatever else adds, removes or renumbers dimensions without knowing the op. Ops whose
dimensions correspond in a way of their own (dot, convolution, gather, scatter, reshape) have rules by hand there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..instruction import Attributes, HloInstruction
from . import spec_of
from .declare import Declared, Of, declared
from .spec import OpSpec, Trait


def operands_of(spec: OpSpec, of: Of, count: int) -> Sequence[int]:
    """The numbers of the operands that `of` means, where there are `count`; none for the result."""
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
    """True if a field says for each dimension of one side which dimension of the other it is. So any order of the
    operand's dimensions will do: the field can be written for it."""
    return any(f.attr.dims.names is not None and f.attr.dims.per is not None for f in declared(kind))


def last_dimensions(instruction: HloInstruction) -> int:
    """Along how many last dimensions of its arrays the op works. It does the same at each place of those before."""
    for field in declared(type(instruction.attributes)):
        if field.attr.dims.last is not None:
            return len(getattr(instruction.attributes, field.name))
    return spec_of(instruction.opcode).last_dimensions


def works_along_last(spec: OpSpec) -> bool:
    """True if `last_dimensions` says something of the op."""
    return spec.last_dimensions > 0 or any(f.attr.dims.last is not None for f in declared(spec.attributes))


def corresponds(spec: OpSpec) -> bool:
    """True if `correspondence` says something of the op."""
    if spec.traits & (Trait.ELEMENTWISE | Trait.ALIGNED) or maps_dimensions(spec.attributes):
        return True
    return any(f.attr.dims.removed for f in declared(spec.attributes))


def correspondence(instruction: HloInstruction, k: int) -> dict[int, int]:
    """Which dimension of the result is which of operand k, an array: {operand's dimension: result's dimension}.

    Dimensions that the other side does not have are missing; all are where the declarations do not say.
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
