"""The orders of operands and result that each op requires.

For each opcode `rule_of` answers: which orders can the result have, and which order must each operand have for that,
without a copy? A requirement is a list of dimensions, perhaps not all of them, that must come in this sequence; the
others can be anywhere. Most rules follow from the op's declaration in `hlo/ops/`; only the special ones are written by
hand.

`layout_assignment.py` chooses orders by these rules, and `layout_normalization.py` applies the choice by them.
Source of the idea: the propagation rules of XLA's LayoutAssignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops import Trait, spec_of
from ...ops.convolution import ConvolutionAttributes
from ...ops.declare import declared
from ...ops.dimensions import correspondence, corresponds, last_dimensions, works_along_last
from ...ops.dot import DotAttributes
from ...ops.indexing import GatherAttributes, ScatterAttributes
from ...shape import Shape
from ...support.records import dataclass
from ...text.codecs_dimensions import WINDOW
from ...window import ConvolutionDimensionNumbers
from ..expand.convolution import canonical_numbers
from .orders import Order, completed, identity, reshaped_order


def is_free_to_remake(instruction: HloInstruction) -> bool:
    """True for values that can be made in any order at no cost."""
    return instruction.opcode in (Opcode.CONSTANT, Opcode.IOTA, Opcode.BROADCAST)


def anything(instruction: HloInstruction, order: Order) -> bool:
    """The result can have any order."""
    return True


@dataclass(frozen=True, slots=True)
class OrderRule:
    """The orders that an op accepts. If it has several arrays as results, all have one order."""

    needs: Callable[[HloInstruction, int, Order], Sequence[int]]
    """needs(instruction, k, result's order): the dimensions of operand k (an array) that must come in this sequence."""
    gives: Callable[[HloInstruction, int, Order], Order | None]
    """gives(instruction, k, order of operand k): an order that the result may then have; None if any."""
    allows: Callable[[HloInstruction, Order], bool] = anything
    """allows(instruction, order): can the result be made in this order at all?"""


def first_result(instruction: HloInstruction) -> Shape:
    """The shape of the result; if there are several arrays, of the first."""
    return instruction.shape if instruction.shape.is_array else instruction.shape.elements[0]


# Ops that treat all dimensions alike


def _same(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    return order if i.operands[k].shape.rank == len(order) else ()


def _same_back(i: HloInstruction, k: int, order: Order) -> Order | None:
    return order if len(order) == first_result(i).rank else None


SAME = OrderRule(_same, _same_back)
"""Element i of the result depends on element i of the operands, or the dimensions at least correspond."""


def _row_major(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    return identity(i.operands[k].shape.rank)


ROW_MAJOR = OrderRule(_row_major, lambda i, k, order: None, lambda i, order: order == identity(len(order)))
"""The op takes and returns only row-major arrays."""


def _convert_needs(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    source = i.operands[k].shape.rank
    return order if source == len(order) else identity(source)


def _convert_allows(i: HloInstruction, order: Order) -> bool:
    return i.operands[0].shape.rank == len(order) or order == identity(len(order))


BITCAST_CONVERT = OrderRule(_convert_needs, _same_back, _convert_allows)
"""Between types of different widths the last dimension is added or removed: row-major."""


def _trailing_allows(i: HloInstruction, order: Order) -> bool:
    last, rank = last_dimensions(i), len(order)
    return order[rank - last :] == tuple(range(rank - last, rank))


def _trailing_gives(i: HloInstruction, k: int, order: Order) -> Order | None:
    return order if len(order) == first_result(i).rank and _trailing_allows(i, order) else None


TRAILING = OrderRule(_same, _trailing_gives, _trailing_allows)
"""The last dimensions, along which the op works, must be the most minor ones, in their order, on all sides."""


def _ascending_allows(i: HloInstruction, order: Order) -> bool:
    windowed = [d for d, part in enumerate(i.attributes.window) if part.size > 1]
    return [d for d in order if d in windowed] == windowed


ASCENDING = OrderRule(_same, _same_back, _ascending_allows)
"""The dimensions along which a window slides keep their order among themselves: it visits elements in order."""


# Some dimensions correspond


def _corresponding_needs(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    source = {result: d for d, result in correspondence(i, k).items()}
    return [source[d] for d in order if d in source]


def _corresponding_gives(i: HloInstruction, k: int, order: Order) -> Order | None:
    result = correspondence(i, k)
    return completed([result[d] for d in order if d in result], identity(first_result(i).rank)) if result else None


CORRESPONDING = OrderRule(_corresponding_needs, _corresponding_gives)
"""The declarations say which dimension of the result is which of the operand: broadcast, transpose, reduce."""


# Reshape


def _reshape_needs(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    source = i.operands[k].shape
    return reshaped_order(i.shape.dimensions, source.dimensions, order) or identity(source.rank)


def _reshape_gives(i: HloInstruction, k: int, order: Order) -> Order | None:
    return reshaped_order(i.operands[k].shape.dimensions, i.shape.dimensions, order)


def _reshape_allows(i: HloInstruction, order: Order) -> bool:
    return reshaped_order(i.shape.dimensions, i.operands[0].shape.dimensions, order) is not None


# Products, gather, scatter


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """Which dimension of a dot's result is which of its operands: batch dimensions, then free ones."""

    batch: tuple[int, ...]
    """Batch dimensions of the operand, in the order of the attribute."""
    free: tuple[int, ...]
    first: int
    """The number of the first free dimension in the result."""

    def result(self, d: int) -> int | None:
        """The result's dimension that corresponds to dimension d of the operand."""
        if d in self.batch:
            return self.batch.index(d)
        return self.first + self.free.index(d) if d in self.free else None


def dot_dimensions(i: HloInstruction, k: int) -> DotDimensions:
    """The dimensions of operand k of a dot."""
    a: DotAttributes = i.attributes
    sides = ((a.lhs_batch_dims, a.lhs_contracting_dims), (a.rhs_batch_dims, a.rhs_contracting_dims))
    free = [
        tuple(d for d in range(o.shape.rank) if d not in batch and d not in contracting)
        for o, (batch, contracting) in zip(i.operands, sides, strict=True)
    ]
    return DotDimensions(sides[k][0], free[k], len(a.lhs_batch_dims) + (len(free[0]) if k else 0))


def _dot_needs(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    """The free dimensions in the result's order; batch and contracting dimensions may be anywhere."""
    sides = dot_dimensions(i, k)
    return [sides.free[d - sides.first] for d in order if sides.first <= d < sides.first + len(sides.free)]


def _dot_gives(i: HloInstruction, k: int, order: Order) -> Order | None:
    sides = dot_dimensions(i, k)
    free = [sides.first + sides.free.index(d) for d in order if d in sides.free]
    return completed(free, identity(i.shape.rank))


def _dot_allows(i: HloInstruction, order: Order) -> bool:
    """Batch dimensions first, then the free dimensions of one operand, then the other's."""
    batches, right = len(i.attributes.lhs_batch_dims), dot_dimensions(i, 1)
    sides = [0 if d < batches else 1 if d < right.first else 2 for d in order]
    starts = [side for place, side in enumerate(sides) if not place or sides[place - 1] != side]
    return len(starts) == len(set(starts)) and 0 not in starts[1:]


@dataclass(frozen=True, slots=True)
class WindowDimensions:
    """Of a gather's result or a scatter's updates: which dimensions are the window's, which the indices'."""

    window: tuple[int, ...]
    """Dimensions of the result (the updates) that hold the window."""
    array: tuple[int, ...]
    """The array's dimensions that correspond to `window`, in the same sequence."""
    others: tuple[int, ...]
    """The other dimensions of the result (the updates)."""
    indices: tuple[int, ...]
    """The dimensions of the indices that correspond to `others`."""


def window_dimensions(i: HloInstruction) -> WindowDimensions:
    """The window's and the indices' dimensions of a gather or a scatter."""
    a: GatherAttributes | ScatterAttributes = i.attributes
    if isinstance(a, GatherAttributes):
        window, inserted, batching = a.offset_dims, a.collapsed_slice_dims, a.operand_batching_dims
        indices, result = i.operands[1], i.shape
    else:
        window, inserted, batching = a.update_window_dims, a.inserted_window_dims, a.input_batching_dims
        indices, result = i.operands[len(i.operands) // 2], i.operands[-1].shape
    return WindowDimensions(
        window,
        tuple(d for d in range(i.operands[0].shape.rank) if d not in inserted and d not in batching),
        tuple(d for d in range(result.rank) if d not in window),
        tuple(d for d in range(indices.shape.rank) if d != a.index_vector_dim),
    )


def _gather_needs(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    found = window_dimensions(i)
    here, there = ((found.window, found.array), (found.others, found.indices))[k]
    source = dict(zip(here, there, strict=True))
    return [source[d] for d in order if d in source]


def _gather_gives(i: HloInstruction, k: int, order: Order) -> Order | None:
    found = window_dimensions(i)
    here, there = ((found.window, found.array), (found.others, found.indices))[k]
    result = dict(zip(there, here, strict=True))
    return completed([result[d] for d in order if d in result], identity(i.shape.rank))


def _scatter_needs(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    """The arrays as the result, the windows of the updates in the same order. The indices keep their order, in which
    updates of the same element follow each other."""
    count = len(i.operands) // 2
    found = window_dimensions(i)
    if k < count:
        return order
    if k == count:
        return found.indices
    update = dict(zip(found.array, found.window, strict=True))
    window = [update[d] for d in order if d in update]
    return completed(window, identity(i.operands[k].shape.rank))


def _scatter_gives(i: HloInstruction, k: int, order: Order) -> Order | None:
    if k < len(i.operands) // 2:
        return order
    if k == len(i.operands) // 2:
        return None
    found = window_dimensions(i)
    array = dict(zip(found.window, found.array, strict=True))
    return completed([array[d] for d in order if d in array], identity(first_result(i).rank))


# Convolution


def convolution_orders(i: HloInstruction) -> list[tuple[Order, Order, Order]]:
    """The orders of (input, kernel, result) in which a convolution has a form that backends have code for: the present
    one, and the other canonical one if BLAS multiplies it."""
    a: ConvolutionAttributes = i.attributes
    shapes = (*[o.shape for o in i.operands], i.shape)
    found = [(identity(shapes[0].rank), identity(shapes[1].rank), identity(shapes[2].rank))]
    forms = [canonical_numbers(len(a.window), last) for last in (False, True)]
    if a.dimension_numbers not in forms or not i.shape.element.is_inexact or a.feature_group_count > 1:
        return found
    other = forms[a.dimension_numbers == forms[0]]
    orders = []
    for here, there in zip(convolution_places(a.dimension_numbers), convolution_places(other), strict=True):
        order = [0] * len(here)
        for d, place in zip(here, there, strict=True):
            order[place] = d
        orders.append(tuple(order))
    return [*found, (orders[0], orders[1], orders[2])]


def convolution_places(n: ConvolutionDimensionNumbers) -> tuple[Order, Order, Order]:
    """The dimensions of input, kernel and result in one sequence: batch, feature (kernel: input, output), spatial."""
    return (
        (n.input_batch, n.input_feature, *n.input_spatial),
        (n.kernel_input_feature, n.kernel_output_feature, *n.kernel_spatial),
        (n.output_batch, n.output_feature, *n.output_spatial),
    )


def _convolution_needs(i: HloInstruction, k: int, order: Order) -> Sequence[int]:
    return next((orders[k] for orders in convolution_orders(i) if orders[2] == order), identity(len(order)))


def _convolution_gives(i: HloInstruction, k: int, order: Order) -> Order | None:
    return next((orders[2] for orders in convolution_orders(i) if orders[k] == order), None)


def _convolution_allows(i: HloInstruction, order: Order) -> bool:
    return any(orders[2] == order for orders in convolution_orders(i))


_O = Opcode

STRUCTURE = frozenset({
    _O.TUPLE, _O.GET_TUPLE_ELEMENT, _O.OPT_BARRIER, _O.WHILE, _O.CONDITIONAL, _O.CALL,
})  # fmt: skip
"""Ops that pass arrays on in the order that they have."""

_BY_HAND: dict[Opcode, OrderRule] = {
    _O.BITCAST_CONVERT: BITCAST_CONVERT,
    _O.RESHAPE: OrderRule(_reshape_needs, _reshape_gives, _reshape_allows),
    _O.DOT: OrderRule(_dot_needs, _dot_gives, _dot_allows),
    _O.CONVOLUTION: OrderRule(_convolution_needs, _convolution_gives, _convolution_allows),
    _O.GATHER: OrderRule(_gather_needs, _gather_gives),
    _O.SCATTER: OrderRule(_scatter_needs, _scatter_gives),
}
"""The rules that do not follow from declarations."""


_ALIGNED = Trait.ELEMENTWISE | Trait.ALIGNED


@cache
def rule_of(opcode: Opcode) -> OrderRule:
    """The rule of `opcode`: written by hand, or else derived from its declarations.

    An op that declares nothing takes and returns row-major arrays: its function sees memory, it takes elements in
    order, or it is rewritten with other ops before. STRUCTURE ops have no rule: they take the layouts of the values
    that flow through.
    """
    assert opcode not in STRUCTURE, opcode
    if opcode in _BY_HAND:
        return _BY_HAND[opcode]
    spec = spec_of(opcode)
    if works_along_last(spec):
        return TRAILING
    if not spec.traits & _ALIGNED:
        return CORRESPONDING if corresponds(spec) else ROW_MAJOR
    return ASCENDING if any(f.attr.codec is WINDOW for f in declared(spec.attributes)) else SAME
