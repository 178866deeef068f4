"""Sizes of dimensions as values. All arrays have static shapes: the size is the one in the type.

Source: XLA's ShapeInference (InferGetDimensionSizeShape, InferSetDimensionSizeShape) and HandleDynamicReshape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..sizes import is_symbolic
from ..support.records import dataclass
from ..text.codecs import ONE_DIMENSION
from .checks import fail, require_declared
from .declare import Attr, Dims, Of
from .spec import OpSpec


@dataclass(frozen=True, slots=True)
class DimensionAttributes(Attributes):
    """The dimension of get- and set-dimension-size."""

    dimension: Annotated[int, Attr(ONE_DIMENSION, key="dimensions", dims=Dims(names=Of.OPERAND_0))]


_FAMILY = "dynamic_size"
_O = Opcode
_SIZE = Shape.array(ElementType.S32)


def _require_dimension(opcode: Opcode, operands: Sequence[Shape], dimension: int, rule: int) -> None:
    if operands[0].is_tuple or not 0 <= dimension < operands[0].rank:
        fail(opcode, operands, f"the operand must be an array with a dimension {dimension}", rule)


def _get_dimension_size_rule(
    operands: Sequence[Shape], attributes: DimensionAttributes, declared: Shape | None
) -> Shape:
    """s32[]. c1: the operand has the dimension; c2: its size fits into s32."""
    _require_dimension(_O.GET_DIMENSION_SIZE, operands, attributes.dimension, 1)
    size = operands[0].dimensions[attributes.dimension]
    if not is_symbolic(size) and size >= 2**31:
        fail(_O.GET_DIMENSION_SIZE, operands, f"dimension {attributes.dimension} does not fit into s32", 2)
    return _SIZE


def _set_dimension_size_rule(
    operands: Sequence[Shape], attributes: DimensionAttributes, declared: Shape | None
) -> Shape:
    """The first operand's type. c1: it has the dimension; c2: the size is s32[]."""
    _require_dimension(_O.SET_DIMENSION_SIZE, operands, attributes.dimension, 1)
    if not operands[1].compatible(_SIZE):
        fail(_O.SET_DIMENSION_SIZE, operands, "the size must be s32[]", 2)
    return operands[0]


def _dynamic_reshape_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """c1: the type is declared, an array of the first operand's element type and number of elements; c2: there is an
    s32[] operand for each dimension of it."""
    result = require_declared(_O.DYNAMIC_RESHAPE, operands, declared, 1)
    if not operands or operands[0].is_tuple or result.is_tuple:
        fail(_O.DYNAMIC_RESHAPE, operands, "an array is reshaped to an array", 1)
    if operands[0].element_type is not result.element_type or operands[0].num_elements != result.num_elements:
        fail(_O.DYNAMIC_RESHAPE, operands, f"{result} has another element type or number of elements", 1)
    if len(operands) != 1 + result.rank or not all(o.compatible(_SIZE) for o in operands[1:]):
        fail(_O.DYNAMIC_RESHAPE, operands, f"{result} needs {result.rank} sizes of type s32[]", 2)
    return result


SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.GET_DIMENSION_SIZE, _FAMILY, 1, DimensionAttributes, _get_dimension_size_rule),
    OpSpec(_O.SET_DIMENSION_SIZE, _FAMILY, 2, DimensionAttributes, _set_dimension_size_rule),
    OpSpec(_O.DYNAMIC_RESHAPE, _FAMILY, None, Attributes, _dynamic_reshape_rule),
)
