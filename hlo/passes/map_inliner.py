"""Inline a computation on scalars over arrays: its ops become ops on whole arrays.

This is the meaning of `map`, and of a reduction over one element.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import make_constant, make_get_tuple_element, make_instruction, make_tuple
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..shape import Shape
from .patterns import broadcast

_O = Opcode
_STRUCTURE = frozenset((_O.PARAMETER, _O.CONSTANT, _O.CALL, _O.TUPLE, _O.GET_TUPLE_ELEMENT, _O.MAP))
_ON_SCALARS = frozenset((_O.RESHAPE, _O.BROADCAST, _O.TRANSPOSE, _O.COPY))
"""Ops that, from a scalar to a scalar, return their operand."""


def apply_to_arrays(
    computation: HloComputation, arguments: Sequence[HloInstruction], dimensions: Sequence[int]
) -> HloInstruction | None:
    """The root of `computation` on arrays of `dimensions` instead of scalars. None if an op is not element-wise."""
    return _applied(computation, arguments, dimensions) if _takes_arrays(computation) else None


def _takes_arrays(computation: HloComputation) -> bool:
    """True if every op is element-wise, also in called computations."""
    for i in computation.instructions:
        if i.opcode in _STRUCTURE:
            if not all(map(_takes_arrays, i.called_computations())):
                return False
        elif i.opcode in _ON_SCALARS:
            if i.shape.rank or i.operands[0].shape.rank:
                return False
        elif i.opcode is _O.BITCAST_CONVERT:
            if i.shape.rank or i.shape.element.bit_width != i.operands[0].shape.element.bit_width:
                return False
        elif not has_trait(i.opcode, Trait.ELEMENTWISE) or i.shape.rank:
            return False
    return True


def _applied(
    computation: HloComputation, arguments: Sequence[HloInstruction], dimensions: Sequence[int]
) -> HloInstruction:
    arrays = dict(zip(computation.parameters, arguments, strict=True))
    for i in computation.instructions:
        if i in arrays:
            continue
        operands = tuple([arrays[o] for o in i.operands])
        if i.opcode is _O.CONSTANT:
            arrays[i] = broadcast(make_constant(i.attributes.literal), Shape.array(i.shape.element, dimensions), ())
        elif i.opcode in (_O.CALL, _O.MAP):
            arrays[i] = _applied(i.attributes.to_apply, operands, dimensions)
        elif i.opcode in _ON_SCALARS:
            arrays[i] = operands[0]
        elif i.opcode is _O.TUPLE:
            arrays[i] = make_tuple(operands)
        elif i.opcode is _O.GET_TUPLE_ELEMENT:
            arrays[i] = make_get_tuple_element(operands[0], i.attributes.index)
        else:
            shape = Shape.array(i.shape.element, dimensions)
            arrays[i] = make_instruction(i.opcode, operands, i.attributes, shape)
    return arrays[computation.root]
