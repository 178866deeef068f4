"""Reading operations on arrays that HLO has in another form: constants, broadcasts that stretch, sizes as operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..builder import make_constant
from ..errors import ShapeError, UnsupportedError
from ..instruction import HloInstruction
from ..mlir.tree import Dense, Operation, Record, Tensor
from ..opcode import Opcode
from ..ops.convolution import ConvolutionAttributes
from ..ops.dot import DotAttributes
from ..ops.indexing import GatherAttributes
from ..ops.movement import (
    BroadcastAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ..ops.random import RngAttributes
from ..ops.reduce import ReduceAttributes
from ..shape import Shape
from .attributes import integers, read_integer, read_integers, read_string, wrong
from .attributes import table as dense_table
from .instruction_builders import combination, reshape
from .ops import OP_NAMED, RNG_DISTRIBUTION, fields_of
from .refine import check_sizes, integer_of, integers_of, is_size, pairs_of
from .scope import Rule, Scope, declared
from .table_rules import by_table, made
from .types import element_of, shape_of

Results = Sequence[HloInstruction]


def _constant(scope: Scope, operation: Operation) -> Results:
    """A splat is a scalar that is broadcast. PyTorch's exporter also writes constants of the dialect arith."""
    value = operation.attributes.get("value")
    if not isinstance(value, Dense):
        raise wrong(value, "value = dense<...>")
    shape = shape_of(operation.results[0].type)
    array = value.array.astype(shape.element.dtype, copy=False)
    if value.is_splat and array.size > 1:
        scalar = scope.add(make_constant(array.reshape(-1)[:1].reshape(())))
        return [scope.op(Opcode.BROADCAST, (scalar,), BroadcastAttributes(()), shape)]
    return [scope.add(make_constant(array.reshape(shape.dimensions)))]


def broadcast(
    scope: Scope, operand: HloInstruction, dimensions: Sequence[int], sizes: Sequence[int]
) -> HloInstruction:
    """Dimension i of the operand is dimension `dimensions[i]` of the result; one of size 1 is stretched."""
    before = operand.shape.dimensions
    if len(before) != len(dimensions) or any(not 0 <= d < len(sizes) for d in dimensions):
        raise UnsupportedError(f"broadcast dimensions {list(dimensions)} do not lead from {operand.shape} to {sizes}")
    kept = [k for k, d in enumerate(dimensions) if before[k] == sizes[d]]
    if any(before[k] != 1 for k in range(len(before)) if k not in kept):
        raise UnsupportedError(f"{operand.shape} cannot be broadcast to sizes {list(sizes)} along {list(dimensions)}")
    if len(kept) < len(before):
        shape = Shape.array(operand.shape.element, [before[k] for k in kept])
        operand = scope.op(Opcode.RESHAPE, (operand,), shape=shape)
    attributes = BroadcastAttributes(tuple(dimensions[k] for k in kept))
    return scope.main(Opcode.BROADCAST, (operand,), attributes, Shape.array(operand.shape.element, sizes))


def _broadcast_in_dim(scope: Scope, operation: Operation) -> Results:
    """`broadcast_in_dim`, and `dynamic_broadcast_in_dim`, which takes the sizes as an operand."""
    operand, *sizes = scope.operands(operation)
    dimensions = read_integers(operation.attributes.get("broadcast_dimensions"))
    return [broadcast(scope, operand, dimensions, _sizes(operation, *sizes))]


def _sizes(operation: Operation, *given: HloInstruction) -> tuple[int, ...]:
    """The sizes of the only result, from its type, or from an operand. ShapeError if the two differ."""
    shape = declared(operation)
    if shape is None and not given:
        raise UnsupportedError("its result has sizes that nothing says")
    if shape is None:
        return integers_of(given[0], "the sizes of the result")
    for operand in given:
        check_sizes(operand, shape)
    return shape.dimensions


def _shape(operation: Operation, *given: HloInstruction) -> Shape:
    type_ = operation.results[0].type
    assert isinstance(type_, Tensor)
    return Shape.array(element_of(type_), _sizes(operation, *given))


def _older_broadcast(scope: Scope, operation: Operation) -> Results:
    """`broadcast` adds dimensions in front."""
    (operand,) = scope.operands(operation)
    sizes = read_integers(operation.attributes.get("broadcast_sizes"))
    dimensions = range(len(sizes), len(sizes) + operand.shape.rank)
    return [broadcast(scope, operand, dimensions, (*sizes, *operand.shape.dimensions))]


def _dynamic_reshape(scope: Scope, operation: Operation) -> Results:
    operand, sizes = scope.operands(operation)
    return [scope.op(Opcode.RESHAPE, (operand,), shape=_shape(operation, sizes))]


def _dynamic_iota(scope: Scope, operation: Operation) -> Results:
    dimension = read_integer(operation.attributes.get("iota_dimension"))
    return [scope.op(Opcode.IOTA, (), IotaAttributes(dimension), _shape(operation, *scope.operands(operation)))]


def _dynamic_pad(scope: Scope, operation: Operation) -> Results:
    operand, value, *amounts = scope.operands(operation)
    low, high, interior = (integers_of(amount, "the amounts of padding") for amount in amounts)
    return made(scope, operation, Opcode.PAD, (operand, value), PadAttributes(low, high, interior))


def _real_dynamic_slice(scope: Scope, operation: Operation) -> Results:
    """A slice with constant bounds. With a computed start and strides of 1, if the size is known, from the type or
    because the limit is the start plus a constant, it is a dynamic slice."""
    operand, start, limit, strides = scope.operands(operation)
    steps = integers_of(strides, "the strides of a slice")
    shape, sizes = declared(operation), _added(start, limit)
    if shape is not None and sizes is not None and set(steps) == {1} and sizes != shape.dimensions:
        raise ShapeError(f"its limits are its starts plus {list(sizes)}, but its result is {shape}")
    if shape is not None:
        sizes = shape.dimensions
    if start.opcode is Opcode.CONSTANT or sizes is None or set(steps) - {1}:
        starts, limits = integers_of(start, "the start of a slice"), integers_of(limit, "the limit of a slice")
        return made(scope, operation, Opcode.SLICE, (operand,), SliceAttributes(starts, limits, steps))
    parts = [
        reshape(scope, scope.op(Opcode.SLICE, (start,), SliceAttributes((k,), (k + 1,), (1,))), ())
        for k in range(operand.shape.rank)
    ]
    return [scope.op(Opcode.DYNAMIC_SLICE, (operand, *parts), DynamicSliceAttributes(sizes))]


def _added(start: HloInstruction, limit: HloInstruction) -> tuple[int, ...] | None:
    """The constant that the limit is more than the start."""
    if limit.opcode is not Opcode.ADD or start not in limit.operands:
        return None
    (other,) = [o for o in limit.operands if o is not start] or [start]
    return integers_of(other, "the size of a slice") if is_size(other) else None


def _dynamic_gather(scope: Scope, operation: Operation) -> Results:
    operand, indices, sizes = scope.operands(operation)
    with_sizes = Operation(
        operation.name, [], operation.results,
        {**operation.attributes, "slice_sizes": integers(integers_of(sizes, "the sizes of slices"))},
    )  # fmt: skip
    return by_table(scope, with_sizes, OP_NAMED["stablehlo.gather"], (operand, indices))


def _dynamic_conv(scope: Scope, operation: Operation) -> Results:
    lhs, rhs, padding = scope.operands(operation)
    row = OP_NAMED["stablehlo.convolution"]
    attributes = {**operation.attributes, "padding": dense_table(pairs_of(padding, "the padding"))}
    fields = fields_of(row, attributes, [lhs.shape, rhs.shape])
    return made(scope, operation, Opcode.CONVOLUTION, (lhs, rhs), ConvolutionAttributes(**fields))


def _sort(scope: Scope, operation: Operation) -> Results:
    """The dimension may count from the end."""
    operands = scope.operands(operation)
    dimension = read_integer(operation.attributes.get("dimension", -1))
    rank = operands[0].shape.rank if operands else 0
    return by_table(
        scope, operation, OP_NAMED["stablehlo.sort"], operands, dimension=dimension + rank * (dimension < 0)
    )  # fmt: skip


def _map(scope: Scope, operation: Operation) -> Results:
    operands = scope.operands(operation)
    return by_table(
        scope, operation, OP_NAMED["stablehlo.map"], operands, dimensions=tuple(range(operands[0].shape.rank))
    )  # fmt: skip


def _set_dimension_size(scope: Scope, operation: Operation) -> Results:
    """The size must be the whole one: shapes are static."""
    operand, size = scope.operands(operation)
    dimension = read_integer(operation.attributes.get("dimension"))
    if not 0 <= dimension < operand.shape.rank:
        raise ShapeError(f"{operand.shape} has no dimension {dimension}")
    if integer_of(size, "a size") != operand.shape.dimensions[dimension]:
        raise UnsupportedError(f"a size other than that of dimension {dimension} of {operand.shape} is not supported")
    return [operand]


def _rng(scope: Scope, operation: Operation) -> Results:
    low, high, sizes = scope.operands(operation)
    distribution = operation.attributes.get("rng_distribution")
    assert distribution is not None
    attributes = RngAttributes(RNG_DISTRIBUTION.read(distribution))
    return [scope.main(Opcode.RNG, (low, high), attributes, _shape(operation, sizes))]


# ---- operations that newer versions do not have


def _dot(scope: Scope, operation: Operation) -> Results:
    """The last dimension of one with the first of the other."""
    lhs, rhs = scope.operands(operation)
    precision = fields_of(
        OP_NAMED["stablehlo.dot_general"], {**operation.attributes, "dot_dimension_numbers": _NO_NUMBERS}, ()
    )["operand_precision"]  # fmt: skip
    attributes = DotAttributes((), (), (lhs.shape.rank - 1,), (0,), precision)
    return made(scope, operation, Opcode.DOT, (lhs, rhs), attributes)


def _einsum(scope: Scope, operation: Operation) -> Results:
    """`"ij,jk->ik"`: each letter at most once in an operand, no dots."""
    operands = scope.operands(operation)
    config = read_string(operation.attributes.get("einsum_config"))
    before, _, result = config.replace(" ", "").partition("->")
    labels = before.split(",")
    if len(labels) == 2 and not labels[0] and len(operands) == 1:
        labels = labels[1:]
    for label, operand in zip(labels, operands, strict=False):
        if len(set(label)) != len(label) or "." in config or len(label) != operand.shape.rank:
            raise UnsupportedError(f"the configuration {config!r} of an einsum is not supported")
    if len(labels) != len(operands) or len(set(result)) != len(result):
        raise UnsupportedError(f"the configuration {config!r} of an einsum is not supported")
    needed = [set(result) | set("".join(labels[:k] + labels[k + 1 :])) for k in range(len(labels))]
    pairs = [_summed(scope, o, label, kept) for o, label, kept in zip(operands, labels, needed, strict=True)]
    array, label = pairs[0]
    if len(pairs) == 2:
        other, theirs = pairs[1]
        both = [letter for letter in label if letter in theirs]
        batch, summed = [x for x in both if x in result], [x for x in both if x not in result]
        attributes = DotAttributes(
            tuple(map(label.index, batch)), tuple(map(theirs.index, batch)),
            tuple(map(label.index, summed)), tuple(map(theirs.index, summed)),
        )  # fmt: skip
        array = scope.op(Opcode.DOT, (array, other), attributes)
        label = "".join([*batch, *(x for x in label if x not in both), *(x for x in theirs if x not in both)])
    if sorted(label) != sorted(result):
        raise UnsupportedError(f"the configuration {config!r} of an einsum is not supported")
    order = TransposeAttributes(tuple(map(label.index, result)))
    return [scope.op(Opcode.TRANSPOSE, (array,), order, declared(operation))]


def _summed(scope: Scope, operand: HloInstruction, label: str, kept: set[str]) -> tuple[HloInstruction, str]:
    """The operand without the dimensions whose letter is in nothing else."""
    dimensions = tuple(d for d, letter in enumerate(label) if letter not in kept)
    if not dimensions:
        return operand, label
    zero = scope.add(make_constant(np.zeros((), operand.shape.element.dtype)))
    attributes = ReduceAttributes(dimensions, combination(Opcode.ADD, operand.shape.element))
    return scope.op(Opcode.REDUCE, (operand, zero), attributes), "".join(x for x in label if x in kept)


def _torch_index_select(scope: Scope, operation: Operation) -> Results:
    """Along `dim` the slices that the indices name; the first `batch_dims` dimensions belong together."""
    operand, index = scope.operands(operation)
    dim, batch = (read_integer(operation.attributes.get(name)) for name in ("dim", "batch_dims"))
    rank, added = operand.shape.rank, index.shape.rank - batch
    if not 0 <= batch <= min(index.shape.rank, dim) or dim >= rank:
        raise UnsupportedError(f"dimension {dim} and {batch} dimensions that belong together, of {operand.shape}")
    sizes = tuple(1 if d < batch or d == dim else size for d, size in enumerate(operand.shape.dimensions))
    offsets = [*range(batch, dim), *range(dim + added, rank - 1 + added)]
    attributes = GatherAttributes(
        tuple(offsets), (dim,), (dim,), index.shape.rank, sizes, tuple(range(batch)), tuple(range(batch))
    )
    return made(scope, operation, Opcode.GATHER, (operand, index), attributes)


_NO_NUMBERS = Record("stablehlo", "dot", {})

RULES: dict[str, Rule] = {
    "stablehlo.constant": _constant,
    "chlo.constant": _constant,
    "arith.constant": _constant,
    "sdy.constant": _constant,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.broadcast": _older_broadcast,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "chlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.dynamic_iota": _dynamic_iota,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_conv": _dynamic_conv,
    "stablehlo.sort": _sort,
    "stablehlo.map": _map,
    "stablehlo.set_dimension_size": _set_dimension_size,
    "stablehlo.rng": _rng,
    "stablehlo.dot": _dot,
    "stablehlo.einsum": _einsum,
    "stablehlo.unary_einsum": _einsum,
    "stablehlo.torch_index_select": _torch_index_select,
}
