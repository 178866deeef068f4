"""Sorting by a comparator, and the k largest.

Source: XLA's ShapeVerifier::HandleSort and ShapeInference::InferTopK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes, HloComputation
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BOOLEAN, COMPUTATION, INTEGER, ONE_DIMENSION
from .checks import array_of, fail, in_default_layout, require_arrays, require_signature
from .declare import Attr, Dims, Of
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class SortAttributes(Attributes):
    """Operands: N arrays of equal dimensions. `to_apply` takes 2 N scalars, (a0, b0, a1, b1, ...): is a before b?"""

    dimension: Annotated[int, Attr(ONE_DIMENSION, key="dimensions", dims=Dims(names=Of.ARRAYS))]
    to_apply: Annotated[HloComputation, Attr(COMPUTATION, after="is_stable")]
    is_stable: Annotated[bool, Attr(BOOLEAN)] = False


@dataclass(frozen=True, slots=True)
class TopKAttributes(Attributes):
    """The k largest (or smallest) elements along the last dimension, and their indices."""

    k: Annotated[int, Attr(INTEGER)]
    largest: Annotated[bool, Attr(BOOLEAN, always=True)] = True
    is_stable: Annotated[bool, Attr(BOOLEAN)] = True
    """Of equal elements those with lower indices come first; they do in any case here."""


def _sort_rule(operands: Sequence[Shape], attributes: SortAttributes, declared: Shape | None) -> Shape:
    """Operands: N arrays, all permuted in the same way. The result is an array for N = 1, else a tuple.

    c1: there is an operand, and all are arrays; c2: they have the same dimensions; c3: they have the dimension along
    which to sort; c4: the comparator takes two elements of each operand, (a0, b0, a1, b1, ...), all scalars, and
    returns a predicate.
    """
    if not operands:
        fail(Opcode.SORT, operands, "there must be an operand", 1)
    require_arrays(Opcode.SORT, operands, 1)
    first = operands[0]
    if any(o.dimensions != first.dimensions for o in operands):
        fail(Opcode.SORT, operands, "operands must have the same dimensions", 2)
    if not 0 <= attributes.dimension < first.rank:
        fail(Opcode.SORT, operands, f"dimension {attributes.dimension} must be in [0, {first.rank})", 3)
    scalars = [array_of(o.element, ()) for o in operands for _ in range(2)]
    comparator = attributes.to_apply
    require_signature(Opcode.SORT, operands, comparator, scalars, 4)
    if comparator.root.shape.element_type is not ElementType.PRED or comparator.root.shape.dimensions:
        fail(Opcode.SORT, operands, f"comparator {comparator.name} returns {comparator.root.shape}, not pred[]", 4)
    results = [in_default_layout(o) for o in operands]
    return results[0] if len(results) == 1 else Shape.tuple(results)


def _topk_rule(operands: Sequence[Shape], attributes: TopKAttributes, declared: Shape | None) -> Shape:
    """The result is (values, their s32 indices). c1: the operand is an array of real numbers or predicates, of at least
    rank 1; c2: k is not negative and no more than the last dimension's size."""
    require_arrays(Opcode.TOPK, operands, 1)
    operand = operands[0]
    if not operand.rank or operand.element.is_complex:
        fail(Opcode.TOPK, operands, "the operand must be an array of ordered elements of rank 1 at least", 1)
    if not 0 <= attributes.k <= operand.dimensions[-1]:
        fail(Opcode.TOPK, operands, f"k = {attributes.k} must be in [0, {operand.dimensions[-1]}]", 2)
    dimensions = (*operand.dimensions[:-1], attributes.k)
    return Shape.tuple([array_of(operand.element, dimensions), array_of(ElementType.S32, dimensions)])


_FAMILY = "sort"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.SORT, _FAMILY, None, SortAttributes, _sort_rule, Trait.ALIGNED | Trait.APPLIES),
    OpSpec(_O.TOPK, _FAMILY, 1, TopKAttributes, _topk_rule, last_dimensions=1),
)
