"""dot: the general product of two arrays over contracting dimensions, along batch dimensions.

Source: XLA's ShapeInference::InferDotOpShape; the section "DotGeneral" of the operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..attributes import DotAttributes, RaggedDotAttributes
from ..element_type import ElementType
from ..opcode import Opcode
from ..shape import Shape
from .checks import array_of, fail, not_checked, require_arrays, require_distinct_dimensions
from .spec import OpSpec, Trait


def _rank_of_kind(element_type: ElementType) -> int:
    """Pred, integers, floats, complex numbers: each kind holds those before it."""
    return 3 if element_type.is_complex else 2 if element_type.is_floating else 1 if element_type.is_integral else 0


def _dot_rule(operands: Sequence[Shape], attributes: DotAttributes, declared: Shape | None) -> Shape:
    """The result has the batch dimensions, then lhs's free ones, then rhs's free ones.

    The operands are multiplied and added up in the result's element type: by default the operands' common one.

    c1: both operands are arrays; c2: the result type is declared if theirs differ; c3: each operand's batch and
    contracting dimensions are its own, each once; c4: both operands have as many of them; c5: and of the same sizes;
    c6: a declared type does not lose the operands' kind (floats do not become integers, nor complex numbers floats).
    """
    require_arrays(Opcode.DOT, operands, 1)
    lhs, rhs = operands
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
    element_type = lhs.element
    if declared is not None and declared.element_type is not None:
        element_type = declared.element_type
        if _rank_of_kind(element_type) < max(_rank_of_kind(lhs.element), _rank_of_kind(rhs.element)):
            fail(Opcode.DOT, operands, f"the result type {element_type.value} cannot hold the products", 6)
    elif lhs.element is not rhs.element:
        fail(Opcode.DOT, operands, "the element types differ, so the result's must be given", 2)
    dimensions = (
        *(lhs.dimensions[d] for d in attributes.lhs_batch_dims),
        *(size for d, size in enumerate(lhs.dimensions) if d not in lhs_fixed),
        *(size for d, size in enumerate(rhs.dimensions) if d not in rhs_fixed),
    )
    return array_of(element_type, dimensions)


SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.DOT, "dot", 2, DotAttributes, _dot_rule, Trait.EXPENSIVE),
    OpSpec(Opcode.RAGGED_DOT, "dot", 3, RaggedDotAttributes, not_checked),
    OpSpec(Opcode.SCALED_DOT, "dot", None, DotAttributes, not_checked),
)
