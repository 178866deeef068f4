"""dot: the general product of two arrays over contracting dimensions, along batch dimensions.

Source: XLA's ShapeInference::InferDotOpShape; the section "DotGeneral" of the operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..attributes import DotAttributes
from ..element_type import ElementType
from ..opcode import Opcode
from ..shape import Shape
from .checks import array_of, fail, require_arrays, require_distinct_dimensions
from .spec import OpSpec, Trait


def _kind(element_type: ElementType) -> str:
    if element_type.is_integral:
        return "integer"
    if element_type.is_complex:
        return "complex"
    return "float" if element_type.is_floating else "pred"


def _dot_rule(operands: Sequence[Shape], attributes: DotAttributes, declared: Shape | None) -> Shape:
    """The result has the batch dimensions, then lhs's free ones, then rhs's free ones.

    c1: both operands are arrays; c2: their element types are of one kind (integer, float, complex, pred); c3: each
    operand's batch and contracting dimensions are its own, each once; c4: both operands have as many of them;
    c5: and of the same sizes; c6: the result element type is declared where two equally wide ones differ, and is of
    the operands' kind and not narrower than either.
    """
    require_arrays(Opcode.DOT, operands, 1)
    lhs, rhs = operands
    if _kind(lhs.element) != _kind(rhs.element):
        fail(Opcode.DOT, operands, "element types must both be integers, floats, complex or pred", 2)
    lhs_fixed = (*attributes.lhs_batch_dims, *attributes.lhs_contracting_dims)
    rhs_fixed = (*attributes.rhs_batch_dims, *attributes.rhs_contracting_dims)
    require_distinct_dimensions(Opcode.DOT, operands, lhs_fixed, lhs.rank, "lhs batch and contracting dimensions", 3)
    require_distinct_dimensions(Opcode.DOT, operands, rhs_fixed, rhs.rank, "rhs batch and contracting dimensions", 3)
    if len(attributes.lhs_batch_dims) != len(attributes.rhs_batch_dims) or len(attributes.lhs_contracting_dims) != len(
        attributes.rhs_contracting_dims
    ):
        fail(Opcode.DOT, operands, "both operands must have as many batch and as many contracting dimensions", 4)
    for i, j in zip(lhs_fixed, rhs_fixed):
        if lhs.dimensions[i] != rhs.dimensions[j]:
            sizes = f"{lhs.dimensions[i]} and {rhs.dimensions[j]}"
            fail(Opcode.DOT, operands, f"lhs dimension {i} must match rhs dimension {j}, but the sizes are {sizes}", 5)
    element_type = lhs.element if lhs.element.byte_width >= rhs.element.byte_width else rhs.element
    if declared is not None and declared.element_type is not None:
        wanted = declared.element_type
        if _kind(wanted) != _kind(element_type) or wanted.byte_width < element_type.byte_width:
            fail(Opcode.DOT, operands, f"the result type {wanted.value} must be of the operands' kind, not narrower", 6)
        element_type = wanted
    elif lhs.element is not rhs.element and lhs.element.byte_width == rhs.element.byte_width:
        fail(Opcode.DOT, operands, "the result element type must be given", 6)
    dimensions = (
        *(lhs.dimensions[d] for d in attributes.lhs_batch_dims),
        *(size for d, size in enumerate(lhs.dimensions) if d not in lhs_fixed),
        *(size for d, size in enumerate(rhs.dimensions) if d not in rhs_fixed),
    )
    return array_of(element_type, dimensions)


SPECS: tuple[OpSpec, ...] = (OpSpec(Opcode.DOT, "dot", 2, DotAttributes, _dot_rule, Trait.EXPENSIVE),)
