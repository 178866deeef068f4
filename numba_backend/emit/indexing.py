"""Element rule of gather: an index that is computed from another array.

    start0 = minimum(maximum(int64(x1[i]), 0), n0 - 1)
    for j in range(n1):
        out[i * n1 + j] = x0[start0 * n1 + j]

The start depends only on the batch dimensions, so it is computed once for all elements of a slice if the slice's
dimensions are the inner loops.
"""

from __future__ import annotations

from ...hlo.analyses.in_bounds import in_bounds
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..loops.expressions import ZERO, Call, Expr, Number, call
from ..loops.writer import cast
from .element import ELEMENT, ElementEmitter
from .sizes import Index


@ELEMENT.register(Opcode.GATHER)
def _gather(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    operand = instruction.operands[0]
    attributes = instruction.attributes
    if 0 in attributes.slice_sizes:
        return e.scalar(instruction.shape.element, 0)
    offsets = iter([index[d] for d in attributes.offset_dims])
    batch = [c for d, c in enumerate(index) if d not in attributes.offset_dims]
    vector = attributes.index_vector_dim
    source: list[Expr] = []
    for d in range(operand.shape.rank):
        if d in attributes.operand_batching_dims:
            partner = attributes.start_indices_batching_dims[attributes.operand_batching_dims.index(d)]
            source.append(batch[partner - (partner > vector)])
            continue
        start = _start(e, instruction, d, batch)
        within = ZERO if d in attributes.collapsed_slice_dims else next(offsets)
        source.append(start + within)
    return e.value(operand, tuple(source))


def _start(e: ElementEmitter, instruction: HloInstruction, dimension: int, batch: list[Expr]) -> Expr:
    """The start index along a dimension of the array, clamped so that the slice fits, if it is not known to."""
    operand, indices = instruction.operands
    attributes = instruction.attributes
    size, window = operand.shape.dimensions[dimension], attributes.slice_sizes[dimension]
    if dimension not in attributes.start_index_map or size == window:
        return ZERO
    component = attributes.start_index_map.index(dimension)
    index = list(batch)
    if attributes.index_vector_dim < indices.shape.rank:
        index.insert(attributes.index_vector_dim, Number(component))
    return clamped_start(e, instruction, dimension, window, indices, tuple(index))


def clamped_start(
    e: ElementEmitter, instruction: HloInstruction, dimension: int, window: int, indices: HloInstruction, index: Index
) -> Expr:
    """The start index ``indices[index]`` along a dimension of the array, clamped so that `window` elements fit, if it
    is not known that they do. It is computed once."""
    fits = dimension in in_bounds(instruction)
    last = None if fits else e.sizes.of(instruction.operands[0], dimension) - e.sizes.constant(window)
    size = instruction.operands[0].shape.dimensions[dimension]
    key = ("start", indices, index, last)
    found = e.writer.recall(key)
    if found is None:
        # In the index's own type, as in XLA: an unsigned index beyond s64 is large, not negative.
        value = e.value(indices, index)
        if last is not None and indices.shape.element is ElementType.S32 and size < 1 << 31:  # one instruction each
            start: Expr = cast("int64", call("minimum", call("maximum", value, cast("int32", 0)), cast("int32", last)))
        else:
            start = as_signed(indices.shape.element, value)
            start = widened(start) if last is None else call("minimum", call("maximum", start, ZERO), last)
        found = e.writer.let("start", start)
        e.writer.remember(key, found)
    return found


def as_signed(element_type: ElementType, value: Expr) -> Expr:
    """An index as s64; unsigned indices are limited to 2**62, which is larger than any dimension."""
    if element_type is ElementType.U64:
        value = call("minimum", value, cast("uint64", 1 << 62))
    return cast("int64", value)


def widened(value: Expr) -> Expr:
    """An index that is known to be in range, as arithmetic on indices: the sums that make it do not wrap around, or it
    would not be known (`in_bounds`)."""
    if isinstance(value, Call) and value.function == "int64":
        (inner,) = value.arguments
        if isinstance(inner, Call) and inner.type in ("int32", "int64"):
            if inner.function in ("add", "subtract"):
                left, right = (widened(cast("int64", side)) for side in inner.arguments)
                return left + right if inner.function == "add" else left - right
            if inner.function == inner.type and isinstance(inner.arguments[0], Number):
                return inner.arguments[0]
    return value
