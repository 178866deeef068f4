"""Derivatives of sort and topk: both choose elements, so tangents are gathered from where the elements were."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...hlo.builder import make_computation, make_parameter
from ...hlo.element_type import ElementType, element_type_of
from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...hlo.ops.sort import SortAttributes, TopKAttributes
from ...hlo.shape import Shape
from ...tracer.arrays.indices import index_dtype, iota, take_along
from ...tracer.core import Value, bind_multi
from ..tangents import Tangent, Zero
from .computations import in_other_ops
from .tables import JVP

_O = Opcode


@JVP.register(_O.SORT)
def _sort_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: SortAttributes, shape: Shape) -> Any:
    """The indices are sorted with the operands: they are the permutation."""
    d = attributes.dimension
    sizes = primals[0].aval.shape
    dtype = index_dtype(sizes[d])
    comparator = with_indices(attributes.to_apply, element_type_of(dtype))
    with_order = SortAttributes(d, comparator, attributes.is_stable)
    *results, order = bind_multi(_O.SORT, [*primals, iota(dtype, sizes, d)], with_order)
    moved = [
        Zero(r.aval) if isinstance(t, Zero) else take_along(t, order, d) for r, t in zip(results, tangents, strict=True)
    ]
    return (results, moved) if shape.is_tuple else (results[0], moved[0])


@lru_cache(maxsize=256)
def with_indices(comparator: HloComputation, element_type: ElementType) -> HloComputation:
    """The comparator of a sort of one more operand, which it ignores."""
    count = len(comparator.parameters)
    more = [make_parameter(count + k, Shape.array(element_type)) for k in range(2)]
    return make_computation(f"{comparator.name}_with_indices", comparator.root, [*comparator.parameters, *more])


@JVP.register(_O.TOPK)
def _topk_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: TopKAttributes, shape: Shape) -> Any:
    """The tangents of the chosen elements."""
    values, indices = bind_multi(_O.TOPK, primals, attributes)
    (t,) = tangents
    assert not isinstance(t, Zero), "an op whose operands all have zero tangents needs no rule"
    return [values, indices], [take_along(t, indices, len(values.aval.shape) - 1), Zero(indices.aval)]


for _opcode in (_O.SORT, _O.TOPK):
    in_other_ops(_opcode, "it chooses elements, and its tangent is a gather")
