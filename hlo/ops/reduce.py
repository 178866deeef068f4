"""Reductions with any computation. Source: XLA's ShapeInference::InferReduceShape and VerifyReducerShape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..instruction import Attributes, HloComputation
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import COMPUTATION, INTEGER_LIST
from .checks import array_of, fail, require_arrays, require_distinct_dimensions, require_signature
from .declare import Attr, Dims, Of
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class ReduceAttributes(Attributes):
    """Operands: N arrays of equal dimensions, then N scalar init values. `to_apply` takes N + N scalars."""

    dimensions: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.ARRAYS, is_set=True, removed=True))]
    to_apply: Annotated[HloComputation, Attr(COMPUTATION)]


def _reduce_rule(operands: Sequence[Shape], attributes: ReduceAttributes, declared: Shape | None) -> Shape:
    """Operands: N arrays, then N scalars, the init values. The result is an array for N = 1, else a tuple.

    c1: there are N arrays and N init values; c2: the arrays have the same dimensions; c3: each init value is a scalar
    of its array's element type; c4: they are distinct dimensions of the arrays; c5: the reducer takes the N
    accumulators, then the N elements, all scalars; c6: it returns the accumulators.
    """
    count, odd = divmod(len(operands), 2)
    if odd or not count:
        fail(Opcode.REDUCE, operands, "there must be as many init values as arrays, and one at least", 1)
    require_arrays(Opcode.REDUCE, operands, 1)
    arrays, inits = operands[:count], operands[count:]
    first = arrays[0]
    for array, init in zip(arrays, inits):
        if array.dimensions != first.dimensions:
            fail(Opcode.REDUCE, operands, "the arrays must have the same dimensions", 2)
        if init.dimensions or init.element_type is not array.element_type:
            found = "reduce found non-scalar initial value: " if init.dimensions else ""
            fail(Opcode.REDUCE, operands, f"{found}an init value must be a scalar of its array's element type", 3)
    require_distinct_dimensions(Opcode.REDUCE, operands, attributes.dimensions, first.rank, "dimensions", 4)
    reducer = attributes.to_apply
    require_signature(Opcode.REDUCE, operands, reducer, (*inits, *inits), 5)
    accumulators = inits[0] if count == 1 else Shape.tuple(inits)
    if not reducer.root.shape.compatible(accumulators):
        why = f"reducer {reducer.name} returns {reducer.root.shape}, not {accumulators}"
        fail(Opcode.REDUCE, operands, why, 6)
    kept = tuple(size for d, size in enumerate(first.dimensions) if d not in attributes.dimensions)
    results = [array_of(array.element, kept) for array in arrays]
    return results[0] if count == 1 else Shape.tuple(results)


_TRAITS = Trait.APPLIES | Trait.EXPENSIVE

SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.REDUCE, "reduce", None, ReduceAttributes, _reduce_rule, _TRAITS, operands_per_array=2),
)
