"""Gather and scatter: read and write slices at computed start indices.

Source: XLA's ShapeInference::InferGatherShape and InferScatterShape, and https://openxla.org/xla/operation_semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..instruction import Attributes, HloComputation
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BOOLEAN, COMPUTATION, INTEGER, INTEGER_LIST
from .checks import array_of, fail, in_default_layout, require_arrays, require_distinct_dimensions, require_signature
from .declare import SIZE, Attr, Dims, Of
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class GatherAttributes(Attributes):
    """Operands: the array, and the integer start indices of the slices to take from it."""

    offset_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.RESULT, is_set=True))]
    collapsed_slice_dims: Annotated[
        tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0, is_set=True))
    ]
    start_index_map: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0))]
    index_vector_dim: Annotated[int, Attr(INTEGER, dims=Dims(names=Of.OPERAND_1))]
    slice_sizes: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(per=Of.OPERAND_0, whole=SIZE))]
    operand_batching_dims: Annotated[
        tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0), after="start_index_map")
    ] = ()
    start_indices_batching_dims: Annotated[
        tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_1), after="operand_batching_dims")
    ] = ()
    indices_are_sorted: Annotated[bool, Attr(BOOLEAN)] = False


@dataclass(frozen=True, slots=True)
class ScatterAttributes(Attributes):
    """Operands: N arrays, the integer indices, N arrays of updates. `to_apply` takes N + N scalars."""

    update_window_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.LAST, is_set=True))]
    inserted_window_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.ARRAYS, is_set=True))]
    scatter_dims_to_operand_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.ARRAYS))]
    index_vector_dim: Annotated[int, Attr(INTEGER, dims=Dims(names=Of.AFTER_ARRAYS))]
    to_apply: Annotated[HloComputation, Attr(COMPUTATION, after="unique_indices")]
    input_batching_dims: Annotated[
        tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.ARRAYS), after="scatter_dims_to_operand_dims")
    ] = ()
    scatter_indices_batching_dims: Annotated[
        tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.AFTER_ARRAYS), after="input_batching_dims")
    ] = ()
    indices_are_sorted: Annotated[bool, Attr(BOOLEAN)] = False
    unique_indices: Annotated[bool, Attr(BOOLEAN)] = False


def _require_sorted(
    opcode: Opcode, operands: Sequence[Shape], dimensions: Sequence[int], rank: int, what: str, rule: int
) -> None:
    require_distinct_dimensions(opcode, operands, dimensions, rank, what, rule)
    if list(dimensions) != sorted(dimensions):
        fail(opcode, operands, f"{what} in {opcode.value} op must be sorted, got {list(dimensions)}", rule)


def _index_sizes(
    opcode: Opcode, operands: Sequence[Shape], indices: Shape, index_vector_dim: int, rules: tuple[int, int]
) -> tuple[int, ...]:
    """The index array's dimensions, with a last one of size 1 if index_vector_dim == rank."""
    if indices.element_type is None or not indices.element_type.is_integral:
        fail(opcode, operands, f"the indices {indices} must be an array of integers", rules[0])
    if not 0 <= index_vector_dim <= indices.rank:
        fail(opcode, operands, f"index_vector_dim {index_vector_dim} must be in [0, {indices.rank}]", rules[1])
    return (*indices.dimensions, 1) if index_vector_dim == indices.rank else indices.dimensions


def _require_index_map(
    opcode: Opcode, operands: Sequence[Shape], index_map: Sequence[int], vector: int, components: int, rank: int,
    what: str, rule: int,
) -> None:  # fmt: skip
    if len(index_map) != components:
        why = (
            f"{_op(opcode)} has {len(index_map)} elements in {what} and the bound of dimension "
            f"index_vector_dim={vector} of indices is {components}. These two numbers must be equal."
        )
        fail(opcode, operands, why, rule)
    if any(not 0 <= d < rank for d in index_map):
        why = f"Invalid {what} mapping in {opcode.value} op; valid range is [0, {rank}), got {list(index_map)}"
        fail(opcode, operands, why, rule)
    require_distinct_dimensions(opcode, operands, index_map, rank, what, rule)


def _op(opcode: Opcode) -> str:
    return f"{opcode.value.capitalize()} op"


def _require_batching(
    opcode: Opcode, operands: Sequence[Shape], array: Shape, index_sizes: Sequence[int], index_vector_dim: int,
    array_dims: Sequence[int], index_dims: Sequence[int], left_out: tuple[str, Sequence[int]],
    index_map: tuple[str, Sequence[int]], rule: int,
) -> None:  # fmt: skip
    """The batching dimensions are sorted dimensions of the array, and are neither `left_out` nor in the `index_map`.
    The indices have the same number of batching dimensions, of the same sizes, without the index vector's dimension."""
    op, of_array = _op(opcode), "operand_batching_dims"
    of_indices = "start_indices_batching_dims" if opcode is Opcode.GATHER else "scatter_indices_batching_dims"
    _require_sorted(opcode, operands, array_dims, array.rank, of_array, rule)
    require_distinct_dimensions(opcode, operands, index_dims, len(index_sizes), of_indices, rule)
    for name, taken in (left_out, index_map):
        if set(array_dims) & set(taken):
            why = f"{name} and {of_array} in {opcode.value} op must be disjoint, got {list(taken)}, {list(array_dims)}"
            fail(opcode, operands, why, rule)
    if index_vector_dim in index_dims:
        why = f"{op} cannot have the index vector dimension as a batching dimension, got {index_vector_dim}"
        fail(opcode, operands, why, rule)
    if len(array_dims) != len(index_dims):
        why = f"{op} requires equal numbers of {of_array} and {of_indices}, got {list(array_dims)}, {list(index_dims)}"
        fail(opcode, operands, why, rule)
    sizes = [array.dimensions[d] for d in array_dims], [index_sizes[d] for d in index_dims]
    if sizes[0] != sizes[1]:
        why = f"{op} requires operand batching dimensions and indices batching dimensions to have the same shape"
        fail(opcode, operands, f"{why}, got {sizes[0]} and {sizes[1]}", rule)


def _gather_rule(operands: Sequence[Shape], attributes: GatherAttributes, declared: Shape | None) -> Shape:
    """Operands: array, indices. The result's offset_dims hold the slices; its other dimensions are the indices'
    dimensions without the index vector's.

    c1: the operands are arrays, the indices integers; c2: index_vector_dim is a dimension of the indices, or the one
    after the last; c3: start_index_map names a dimension of the array, each at most once, for each component of an
    index; c4: collapsed_slice_dims are sorted dimensions of the array, each once; c5: operand_batching_dims are sorted
    dimensions of the array that are neither collapsed nor in start_index_map, and start_indices_batching_dims as many
    of the indices, of the same sizes and not the index vector's; c6: there is a slice size a dimension, and it fits;
    c7: it is at most 1 in collapsed and batching dimensions; c8: offset_dims are sorted dimensions of the result, one
    for each dimension of the array that is neither collapsed nor batching.
    """
    require_arrays(Opcode.GATHER, operands, 1)
    array, indices = operands
    vector, sizes = attributes.index_vector_dim, attributes.slice_sizes
    index_sizes = _index_sizes(Opcode.GATHER, operands, indices, vector, (1, 2))
    components = index_sizes[vector]
    index_map, collapsed = attributes.start_index_map, attributes.collapsed_slice_dims
    rank = len(index_sizes) - 1 + len(attributes.offset_dims)
    for k, d in enumerate(attributes.offset_dims):
        if not 0 <= d < rank:
            why = f"Offset dimension {k} in gather op is out of bounds; got {d}, but should have been in [0, {rank})"
            fail(Opcode.GATHER, operands, why, 8)
    _require_sorted(Opcode.GATHER, operands, attributes.offset_dims, rank, "offset_dims", 8)
    _require_index_map(Opcode.GATHER, operands, index_map, vector, components, array.rank, "start_index_map", 3)
    _require_sorted(Opcode.GATHER, operands, collapsed, array.rank, "collapsed_slice_dims", 4)
    batching = attributes.operand_batching_dims
    _require_batching(
        Opcode.GATHER, operands, array, index_sizes, vector, batching, attributes.start_indices_batching_dims,
        ("collapsed_slice_dims", collapsed), ("start_index_map", index_map), 5,
    )  # fmt: skip
    if len(sizes) != array.rank:
        why = f"Gather op must have one slice size for every input dimension, got slice sizes {list(sizes)}"
        fail(Opcode.GATHER, operands, why, 6)
    for d, (size, whole) in enumerate(zip(sizes, array.dimensions)):
        if not 0 <= size <= whole:
            why = f"Slice size at index {d} in gather op is out of range, must be within [0, {whole}], got {size}"
            fail(Opcode.GATHER, operands, why, 6)
    if len(attributes.offset_dims) + len(collapsed) + len(batching) != array.rank:
        why = (
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching; got slice sizes {list(sizes)}, offset_dims {list(attributes.offset_dims)}, "
            f"collapsed_slice_dims {list(collapsed)}, operand_batching_dims {list(batching)}"
        )
        fail(Opcode.GATHER, operands, why, 8)
    limits = ("collapse slice dims with bound 1", "have operand batching dims with bound 0/1")
    for limit, left_out in zip(limits, (collapsed, batching), strict=True):
        for place, d in enumerate(left_out):
            if sizes[d] > 1:
                why = f"Gather op can only {limit}, but bound is {sizes[d]} for index {d} at position {place}."
                fail(Opcode.GATHER, operands, why, 7)
    offsets = [sizes[d] for d in range(array.rank) if d not in collapsed and d not in batching]
    batch = [size for d, size in enumerate(index_sizes) if d != vector]
    offset, rest = iter(offsets), iter(batch)
    return array_of(array.element, tuple(next(offset if d in attributes.offset_dims else rest) for d in range(rank)))


def _scatter_rule(operands: Sequence[Shape], attributes: ScatterAttributes, declared: Shape | None) -> Shape:
    """Operands: N arrays, indices, N arrays of updates. The result is an array for N = 1, else a tuple: the arrays with
    the updates combined into them.

    c1: there are N arrays, the indices and N updates, for an N of 1 at least; the indices are integers; c2: the arrays
    have the same dimensions, and so have the updates; each update has its array's element type; c3: index_vector_dim is
    a dimension of the indices, or the one after the last; c4: update_window_dims are sorted dimensions of the updates,
    each once; c5: inserted_window_dims are sorted dimensions of the array, each once; c6: input_batching_dims are
    sorted dimensions of the array that are neither inserted nor in scatter_dims_to_operand_dims, and
    scatter_indices_batching_dims as many of the indices, of the same sizes and not the index vector's; c7: the array
    has a dimension for each window, inserted and batching dimension; c8: scatter_dims_to_operand_dims names a dimension
    of the array, each at most once, for each component of an index; c9: the updates have the window dimensions, which
    are no larger than the array's, and the dimensions of the indices without the index vector's, of the same sizes;
    c10: the combiner takes N elements of the arrays, then N of the updates, all scalars, and returns N.
    """
    count, odd = divmod(len(operands), 2)
    if not odd or not count:
        fail(Opcode.SCATTER, operands, "there must be N arrays, the indices and N updates, N at least 1", 1)
    require_arrays(Opcode.SCATTER, operands, 1)
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    if indices.element_type is None or not indices.element_type.is_integral:
        fail(Opcode.SCATTER, operands, f"the indices {indices} must be an array of integers", 1)
    array, update = arrays[0], updates[0]
    for a, u in zip(arrays, updates):
        if a.dimensions != array.dimensions or u.dimensions != update.dimensions:
            fail(Opcode.SCATTER, operands, "arrays must have the same dimensions, and so must updates", 2)
        if a.element_type is not u.element_type:
            fail(Opcode.SCATTER, operands, "updates must have the element types of their arrays", 2)
    vector, window = attributes.index_vector_dim, attributes.update_window_dims
    index_sizes = _index_sizes(Opcode.SCATTER, operands, indices, vector, (1, 3))
    _require_sorted(Opcode.SCATTER, operands, window, update.rank, "update_window_dims", 4)
    inserted, batching = attributes.inserted_window_dims, attributes.input_batching_dims
    _require_sorted(Opcode.SCATTER, operands, inserted, array.rank, "inserted_window_dims", 5)
    index_map = attributes.scatter_dims_to_operand_dims
    _require_batching(
        Opcode.SCATTER, operands, array, index_sizes, vector, batching, attributes.scatter_indices_batching_dims,
        ("inserted_window_dims", inserted), ("scatter_dims_to_operand_dims", index_map), 6,
    )  # fmt: skip
    window_rank = len(window) + len(inserted) + len(batching)
    if array.rank != window_rank:
        why = (
            f"Scatter op has window of size {window_rank}; doesn't match operand of rank {array.rank}. There are "
            f"{len(window)} window, {len(inserted)} inserted and {len(batching)} batching dimensions"
        )
        fail(Opcode.SCATTER, operands, why, 7)
    components, name = index_sizes[vector], "scatter_dims_to_operand_dims"
    _require_index_map(Opcode.SCATTER, operands, index_map, vector, components, array.rank, name, 8)
    _require_window(operands, attributes, index_sizes)
    _require_combiner(operands, attributes, arrays)
    results = [in_default_layout(a) for a in arrays]
    return results[0] if count == 1 else Shape.tuple(results)


def _require_window(operands: Sequence[Shape], attributes: ScatterAttributes, index_sizes: Sequence[int]) -> None:
    """scatter_c9"""
    array, update = operands[0], operands[-1]
    batch = [size for d, size in enumerate(index_sizes) if d != attributes.index_vector_dim]
    window = attributes.update_window_dims
    if update.rank != len(batch) + len(window):
        why = f"Updates tensor must be of rank {len(batch) + len(window)}; got {update.rank}. There are"
        fail(Opcode.SCATTER, operands, f"{why} {len(window)} window and {len(batch)} index dimensions", 9)
    left_out = (*attributes.inserted_window_dims, *attributes.input_batching_dims)
    kept = [size for d, size in enumerate(array.dimensions) if d not in left_out]
    for d, size in zip(window, kept):
        if update.dimensions[d] > size:
            why = "Bounds of the window dimensions of updates must not exceed those of the array: dimension"
            fail(Opcode.SCATTER, operands, f"{why} {d} is {update.dimensions[d]}, more than {size}", 9)
    rest = [size for d, size in enumerate(update.dimensions) if d not in window]
    if rest != batch:
        why = "Bounds of the scatter dimensions of updates must be those of the indices"
        fail(Opcode.SCATTER, operands, f"{why}, got {rest} and {batch}", 9)


def _require_combiner(operands: Sequence[Shape], attributes: ScatterAttributes, arrays: Sequence[Shape]) -> None:
    """scatter_c10"""
    scalars = [array_of(a.element, ()) for a in arrays]
    combiner = attributes.to_apply
    require_signature(Opcode.SCATTER, operands, combiner, (*scalars, *scalars), 10)
    expected = scalars[0] if len(scalars) == 1 else Shape.tuple(scalars)
    if not combiner.root.shape.compatible(expected):
        why = f"combiner {combiner.name} returns {combiner.root.shape}, not {expected}"
        fail(Opcode.SCATTER, operands, why, 10)


_FAMILY = "indexing"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.GATHER, _FAMILY, 2, GatherAttributes, _gather_rule, Trait.MOVEMENT),
    OpSpec(_O.SCATTER, _FAMILY, None, ScatterAttributes, _scatter_rule, Trait.APPLIES, operands_per_array=2),
)
