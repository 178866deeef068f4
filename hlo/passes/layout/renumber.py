"""Ops on arrays with renumbered dimensions: one rule for all ops that declare their dimensions, and one for each other.

`layout_normalization.py` numbers the dimensions of every array in the order of memory. A rule here gets an instruction
with its renumbered operands, and for each the order in which the old numbers come. It makes the instruction that
computes the same. `order_rules.py` has determined the orders of the operands; the rules rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ...ir import Attributes, HloInstruction
from ...literal import Literal
from ...opcode import Opcode
from ...ops import spec_of
from ...ops.declare import Of
from ...ops.dimensions import fields_with_dimensions, operands_of
from ...ops.indexing import GatherAttributes, ScatterAttributes
from ...ops.structure import ConstantAttributes
from ...shape import Shape
from ...support.records import dataclass
from ...window import ConvolutionDimensionNumbers
from ..patterns import reshape, transpose
from .order_rules import convolution_places, dot_dimensions
from .orders import Order, identity, positions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Renumbering:
    """An instruction to be rewritten."""

    old: HloInstruction
    """The instruction with the old numbers on all sides."""
    operands: tuple[HloInstruction, ...]
    """The operands with the new numbers."""
    orders: tuple[Order, ...]
    """For each operand: its old dimensions in their new order (empty for a tuple)."""
    order: Order
    """The old dimensions of the result in their new order; if it has several arrays, the same for each."""

    @property
    def attributes(self) -> Any:
        return self.old.attributes

    @property
    def places(self) -> dict[int, int]:
        """Old dimension of the result -> new one."""
        return positions(self.order)

    def order_of(self, of: Of) -> Order:
        """The order of the arrays that `of` means."""
        found = operands_of(spec_of(self.old.opcode), of, len(self.operands))
        return self.orders[found[0]] if found else self.order

    def operand_places(self, k: int) -> dict[int, int]:
        return positions(self.orders[k])

    def moved(self, values: Sequence[T]) -> tuple[T, ...]:
        """Values for the dimensions of the result, in the new order."""
        return tuple(values[d] for d in self.order)

    def with_attributes(self, attributes: Attributes | None = None, operands: Sequence[HloInstruction] | None = None
                        ) -> HloInstruction:  # fmt: skip
        """The instruction with new operands, shape and attributes."""
        return replace(
            self.old,
            operands=self.operands if operands is None else tuple(operands),
            shape=_renumbered(self.old.shape, self.order),
            attributes=self.attributes if attributes is None else attributes,
        )


def _renumbered(shape: Shape, order: Order) -> Shape:
    if shape.tuple_shapes is not None:
        return Shape.tuple([_renumbered(s, order) for s in shape.tuple_shapes])
    return renumbered(shape, order)


def renumbered(shape: Shape, order: Order) -> Shape:
    """The row-major array with the same bytes as `shape` in this order."""
    return Shape.array(shape.element, [shape.dimensions[d] for d in order])


def arranged(value: HloInstruction, source: Order, target: Order) -> HloInstruction:
    """Transpose a value with its old dimensions in the order `source`, so that they come as in `target`; a reshape if
    only dimensions of size 1 move."""
    place = positions(source)
    permutation = [place[d] for d in target]
    if [d for d in permutation if value.shape.dimensions[d] != 1] == [
        d for d in range(value.shape.rank) if value.shape.dimensions[d] != 1
    ]:
        return reshape(value, [value.shape.dimensions[d] for d in permutation])
    return transpose(value, permutation)


Rule = Callable[[Renumbering], HloInstruction]


def with_numbers(r: Renumbering) -> HloInstruction:
    """The instruction on the operands with the new numbers. Not for ops that take only row-major arrays."""
    return _BY_HAND.get(r.old.opcode, _as_declared)(r)


def _as_declared(r: Renumbering) -> HloInstruction:
    """Attributes change as their declarations say: numbers of dimensions, and tuples with an entry for each dimension.
    Attributes without declarations do not depend on dimensions, or only on some that keep their numbers."""
    spec = spec_of(r.old.opcode)
    changes: dict[str, Any] = {}
    operands = list(r.operands)
    for field in fields_with_dimensions(spec.attributes):
        dims, value = field.attr.dims, getattr(r.attributes, field.name)
        if dims.per is not None:
            value = tuple(value[d] for d in r.order_of(dims.per))
        if dims.names is not None and value is not None:
            places = positions(r.order_of(dims.names))
            named = (places[d] for d in ([value] if isinstance(value, int) else value))
            found = tuple(sorted(named) if dims.is_set else named)
            value = found[0] if isinstance(value, int) else found
        changes[field.name] = value
        if Of.ARRAYS in (dims.per, dims.names):  # all in the order of the first
            for k in operands_of(spec, Of.ARRAYS, len(operands)):
                operands[k] = arranged(r.operands[k], r.orders[k], r.orders[0])
    if spec.starts is not None:
        operands[spec.starts :] = r.moved(operands[spec.starts :])
    return r.with_attributes(replace(r.attributes, **changes) if changes else None, operands)


def _constant(r: Renumbering) -> HloInstruction:
    array = np.ascontiguousarray(r.attributes.literal.array.transpose(r.order))
    return r.with_attributes(ConstantAttributes(Literal(array, r.old.shape.element)))


def _transpose(r: Renumbering) -> HloInstruction:
    """A transpose that no longer moves anything is removed."""
    made = _as_declared(r)
    permutation = made.attributes.dimensions
    return r.operands[0] if permutation == identity(len(permutation)) else made


def _dot(r: Renumbering) -> HloInstruction:
    """Batch dimensions are listed in the result's order; if it has the rhs's free dimensions first, so has the dot."""
    a = r.attributes
    left, right = r.operand_places(0), r.operand_places(1)
    batches, first_right = len(a.lhs_batch_dims), dot_dimensions(r.old, 1).first
    batch = [d for d in r.order if d < batches]
    free = [d for d in r.order if d >= batches]
    attributes = replace(
        a,
        lhs_batch_dims=tuple(left[a.lhs_batch_dims[d]] for d in batch),
        rhs_batch_dims=tuple(right[a.rhs_batch_dims[d]] for d in batch),
        lhs_contracting_dims=tuple(left[d] for d in a.lhs_contracting_dims),
        rhs_contracting_dims=tuple(right[d] for d in a.rhs_contracting_dims),
    )
    if not free or free[0] < first_right or all(d >= first_right for d in free):
        return r.with_attributes(attributes)
    swapped = replace(
        attributes,
        lhs_batch_dims=attributes.rhs_batch_dims,
        rhs_batch_dims=attributes.lhs_batch_dims,
        lhs_contracting_dims=attributes.rhs_contracting_dims,
        rhs_contracting_dims=attributes.lhs_contracting_dims,
        operand_precision=(a.operand_precision[1], a.operand_precision[0]),
    )
    return r.with_attributes(swapped, r.operands[::-1])


def _convolution(r: Renumbering) -> HloInstruction:
    old = convolution_places(r.attributes.dimension_numbers)
    array, kernel, result = (
        tuple(places[d] for d in dimensions)
        for dimensions, places in zip(old, (r.operand_places(0), r.operand_places(1), r.places), strict=True)
    )
    numbers = ConvolutionDimensionNumbers(
        array[0], array[1], array[2:], kernel[0], kernel[1], kernel[2:], result[0], result[1], result[2:]
    )
    return r.with_attributes(replace(r.attributes, dimension_numbers=numbers))


def _pairs(a: Sequence[int], b: Sequence[int], first: dict[int, int], second: dict[int, int]) -> tuple[Order, Order]:
    """Pairs of corresponding dimensions with their new numbers, sorted by the first."""
    found = sorted((first[x], second[y]) for x, y in zip(a, b, strict=True))
    return tuple(x for x, _ in found), tuple(y for _, y in found)


def _vector_dimension(r: Renumbering, k: int, dimension: int) -> int:
    """index_vector_dim may be equal to the rank."""
    return r.operand_places(k).get(dimension, dimension)


def _gather(r: Renumbering) -> HloInstruction:
    a: GatherAttributes = r.attributes
    array, indices = r.operand_places(0), r.operand_places(1)
    batching, own = _pairs(a.operand_batching_dims, a.start_indices_batching_dims, array, indices)
    attributes = replace(
        a,
        offset_dims=tuple(sorted(r.places[d] for d in a.offset_dims)),
        collapsed_slice_dims=tuple(sorted(array[d] for d in a.collapsed_slice_dims)),
        start_index_map=tuple(array[d] for d in a.start_index_map),
        index_vector_dim=_vector_dimension(r, 1, a.index_vector_dim),
        slice_sizes=tuple(a.slice_sizes[d] for d in r.orders[0]),
        operand_batching_dims=batching,
        start_indices_batching_dims=own,
        indices_are_sorted=a.indices_are_sorted and r.orders[1] == identity(len(r.orders[1])),
    )
    return r.with_attributes(attributes)


def _scatter(r: Renumbering) -> HloInstruction:
    a: ScatterAttributes = r.attributes
    count = len(r.operands) // 2
    array, indices, updates = r.places, r.operand_places(count), r.operand_places(count + 1)
    batching, own = _pairs(a.input_batching_dims, a.scatter_indices_batching_dims, array, indices)
    first = r.orders[count + 1]
    given = zip(r.operands[count + 1 :], r.orders[count + 1 :], strict=True)
    others = [arranged(o, order, first) for o, order in given]
    attributes = replace(
        a,
        update_window_dims=tuple(sorted(updates[d] for d in a.update_window_dims)),
        inserted_window_dims=tuple(sorted(array[d] for d in a.inserted_window_dims)),
        scatter_dims_to_operand_dims=tuple(array[d] for d in a.scatter_dims_to_operand_dims),
        index_vector_dim=_vector_dimension(r, count, a.index_vector_dim),
        input_batching_dims=batching,
        scatter_indices_batching_dims=own,
    )
    return r.with_attributes(attributes, (*r.operands[: count + 1], *others))


_BY_HAND: dict[Opcode, Rule] = {
    Opcode.CONSTANT: _constant,
    Opcode.CONVOLUTION: _convolution,
    Opcode.DOT: _dot,
    Opcode.GATHER: _gather,
    Opcode.SCATTER: _scatter,
    Opcode.TRANSPOSE: _transpose,
}
