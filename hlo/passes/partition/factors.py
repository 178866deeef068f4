"""How the dimensions of an op's operands and results belong together: the effect of a cut of one on the others.

A factor is a range of numbers that an op goes through: of `dot` the rows, the columns and the terms of the sums. Each
dimension of an operand or result is a factor, or several, the slowest first (a reshape that merges dimensions). Cut a
factor along an axis of the mesh, and every device goes through a part of its numbers: it needs its parts of the
operands and makes its part of the results. Two kinds are special: devices that share a *summed* factor get terms of the
results, and a *whole* factor cannot be cut (the dimension along which a sort sorts).

Most ops say all this in their declarations (`hlo/ops/declare.py`); the others have a rule here. An op without a rule
is computed whole. Source: the factors of Shardy's op_sharding_rule_attr, and GSPMD's rules (sharding_propagation.cc).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from ...custom_call_targets.table import BUILT_IN
from ...custom_calls import is_batch_partitionable, is_batched_target
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops import Trait, spec_of
from ...ops.declare import SIZE, declared
from ...ops.dimensions import correspondence, corresponds, last_dimensions, operands_of, works_along_last
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import reducer_opcode, splat_value

Dimensions: TypeAlias = tuple[tuple[int, ...], ...]
"""For each dimension of an array its factors, the slowest first."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors of one instruction."""

    sizes: tuple[int, ...]
    operands: tuple[Dimensions, ...]
    """One for each leaf of the operands."""
    results: tuple[Dimensions, ...]
    """One for each leaf of the result."""
    summed: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()

    @property
    def arrays(self) -> tuple[Dimensions, ...]:
        """The operands' dimensions, then the results'."""
        return (*self.operands, *self.results)


@dataclass(slots=True)
class _Table:
    """Factors while a rule writes them: `dims[k]` is the list of an array's factors, -1 for one not yet known."""

    operands: list[list[tuple[int, ...]]]
    results: list[list[tuple[int, ...]]]
    sizes: list[int] = field(default_factory=list)
    summed: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)

    def new(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def join(self, size: int, *places: tuple[list[tuple[int, ...]], int]) -> int:
        """A new factor that is all these dimensions: (array, number of the dimension)."""
        factor = self.new(size)
        for dims, d in places:
            dims[d] = (factor,)
        return factor

    def done(self, instruction: HloInstruction) -> Factors:
        """Dimensions that no rule has set are whole."""
        for dims, shape in zip((*self.operands, *self.results), _arrays(instruction), strict=True):
            for d, factors in enumerate(dims):
                if not factors and shape.dimensions[d] != 1:
                    dims[d] = (self.new(shape.dimensions[d]),)
                    self.whole.add(dims[d][0])
        return Factors(
            tuple(self.sizes), tuple(map(tuple, self.operands)), tuple(map(tuple, self.results)),
            frozenset(self.summed), frozenset(self.whole),
        )  # fmt: skip


Rule: TypeAlias = Callable[[HloInstruction, _Table], None]


def _arrays(instruction: HloInstruction) -> list[Shape]:
    operands = [leaf for o in instruction.operands for leaf in o.shape.leaves()]
    return [*operands, *instruction.shape.leaves()]


def factors_of(instruction: HloInstruction) -> Factors:
    """The factors of an instruction. Without a rule every dimension is whole."""
    table = _Table(
        [[()] * leaf.rank for o in instruction.operands for leaf in o.shape.leaves()],
        [[()] * leaf.rank for leaf in instruction.shape.leaves()],
    )
    rule = _RULES.get(instruction.opcode)
    spec = spec_of(instruction.opcode)
    if rule is not None:
        rule(instruction, table)
    elif all(o.shape.is_array for o in instruction.operands):
        if works_along_last(spec):
            _along_last(instruction, table, last_dimensions(instruction))
        elif corresponds(spec) and instruction.opcode not in _UNSUITED:
            _declared(instruction, table)
    return table.done(instruction)


_UNSUITED = frozenset({Opcode.PARAMETER, Opcode.RNG})
"""Ops with a declared correspondence that does not tell where their elements come from."""


def _along_last(instruction: HloInstruction, table: _Table, last: int) -> None:
    """Ops that do the same at each index of all but the `last` dimensions."""
    shape = next(iter(instruction.shape.leaves()))
    for d in range(max(shape.rank - last, 0)):
        arrays = [dims for dims in (*table.operands, *table.results) if len(dims) > d]
        table.join(shape.dimensions[d], *((dims, d) for dims in arrays))


def _declared(instruction: HloInstruction, table: _Table) -> None:
    """The facts in the declaration: which dimensions correspond, and which an attribute is about."""
    spec, attributes = spec_of(instruction.opcode), instruction.attributes
    shape = next(iter(instruction.shape.leaves()))
    places: list[list[tuple[list[tuple[int, ...]], int]]] = [
        [(dims, d) for dims in table.results] for d in range(shape.rank)
    ]
    whole: set[int] = set()
    for k, operand in enumerate(instruction.operands):
        for source, d in correspondence(instruction, k).items():
            if operand.shape.dimensions[source] == shape.dimensions[d]:
                places[d].append((table.operands[k], source))
            else:
                whole.add(d)
    for d, size in enumerate(shape.dimensions):
        if d not in whole:
            table.join(size, *places[d])
    if not spec.traits & Trait.ELEMENTWISE and instruction.opcode is not Opcode.IOTA:
        _mark_changed(instruction, table, attributes)


def _mark_changed(instruction: HloInstruction, table: _Table, attributes: Any) -> None:
    """Factors of dimensions that an attribute names, or changes with a value other than "as it is"."""
    spec = spec_of(instruction.opcode)
    for each in declared(type(attributes)):
        dims, value = each.attr.dims, getattr(attributes, each.name)
        if value is None or (dims.names is not None and dims.per is not None) or dims.removed:
            continue
        if dims.names is not None:
            about, numbers = dims.names, (value,) if isinstance(value, int) else value
        elif dims.per is not None:
            about = dims.per
            (first, *_) = operands_of(spec, dims.per, len(instruction.operands)) or (None,)
            sizes = (instruction.shape if first is None else instruction.operands[first].shape).dimensions
            numbers = [d for d, v in enumerate(value) if v != (sizes[d] if dims.whole is SIZE else dims.whole)]
        else:
            continue
        concerned = operands_of(spec, about, len(instruction.operands))
        arrays = [table.operands[k] for k in concerned] if concerned else table.results
        table.whole.update(f for array in arrays for d in numbers for f in array[d])


# Rules of ops that are not fully declared


def _identity(instruction: HloInstruction, table: _Table) -> None:
    """Leaf k of the operands is leaf k of the result."""
    for shape, source, target in zip(instruction.shape.leaves(), table.operands, table.results, strict=True):
        for d, size in enumerate(shape.dimensions):
            table.join(size, (source, d), (target, d))


def _along_one(instruction: HloInstruction, table: _Table) -> None:
    """A collective along one dimension, which is whole; it does the same at each index of the others."""
    for shape, source, target in zip(instruction.shape.leaves(), table.operands, table.results):
        for d, size in enumerate(shape.dimensions):
            if d != instruction.attributes.dimension and len(table.operands) == len(table.results):
                table.join(size, (source, d), (target, d))


def _constant(instruction: HloInstruction, table: _Table) -> None:
    """A constant can be cut if all its elements are equal; another one is written whole, and then cut."""
    literal = instruction.attributes.literal.array
    if is_uniform(literal):
        for d, size in enumerate(instruction.shape.dimensions):
            table.join(size, (table.results[0], d))


def is_uniform(array: np.ndarray[Any, Any]) -> bool:
    """True if all elements have the same bits."""
    if array.size <= 1:
        return True
    rows = np.ascontiguousarray(array).reshape(array.size, 1).view(np.uint8).reshape(array.size, -1)
    return bool((rows == rows[0]).all())


def _dynamic_update_slice(instruction: HloInstruction, table: _Table) -> None:
    """A dimension that the update covers can be cut: its start is then 0, for any value of the operand."""
    array, update = (o.shape.dimensions for o in instruction.operands[:2])
    for d, (size, written) in enumerate(zip(array, update, strict=True)):
        if size == written:
            table.join(size, (table.operands[0], d), (table.operands[1], d), (table.results[0], d))


def _reduce(instruction: HloInstruction, table: _Table) -> None:
    """The reduced dimensions are summed, the others belong to the result."""
    reduced, count = instruction.attributes.dimensions, len(instruction.operands) // 2
    d = 0
    for source, size in enumerate(instruction.operands[0].shape.dimensions):
        places = [(table.operands[k], source) for k in range(count)]
        if source in reduced:
            table.summed.add(table.join(size, *places))
        else:
            table.join(size, *places, *((dims, d) for dims in table.results))
            d += 1


def _dot(instruction: HloInstruction, table: _Table) -> None:
    a = instruction.attributes
    left, right = (o.shape.dimensions for o in instruction.operands)
    (of_left, of_right), (of_result,) = table.operands, table.results
    d = 0
    for i, j in zip(a.lhs_batch_dims, a.rhs_batch_dims, strict=True):
        table.join(left[i], (of_left, i), (of_right, j), (of_result, d))
        d += 1
    for i, j in zip(a.lhs_contracting_dims, a.rhs_contracting_dims, strict=True):
        table.summed.add(table.join(left[i], (of_left, i), (of_right, j)))
    for sizes, dims in ((left, of_left), (right, of_right)):
        for k, size in enumerate(sizes):
            if not dims[k]:
                table.join(size, (dims, k), (of_result, d))
                d += 1


def _convolution(instruction: HloInstruction, table: _Table) -> None:
    """Batch, output features and, as terms of the sums, input features. Windows need neighbours: they stay whole."""
    a = instruction.attributes
    n = a.dimension_numbers
    source, kernel = (o.shape.dimensions for o in instruction.operands)
    (of_source, of_kernel), (of_result,) = table.operands, table.results
    if a.batch_group_count != 1:
        return
    table.join(source[n.input_batch], (of_source, n.input_batch), (of_result, n.output_batch))
    if a.feature_group_count == 1:
        made = kernel[n.kernel_output_feature]
        table.join(made, (of_kernel, n.kernel_output_feature), (of_result, n.output_feature))
        taken = source[n.input_feature]
        table.summed.add(table.join(taken, (of_source, n.input_feature), (of_kernel, n.kernel_input_feature)))


def _reshape(instruction: HloInstruction, table: _Table) -> None:
    """The largest common factors of both sides, from the slowest dimension on."""
    old, new = instruction.operands[0].shape.dimensions, instruction.shape.dimensions
    if 0 in old:
        return
    sides = ((old, table.operands[0]), (new, table.results[0]))
    at, rest = [-1, -1], [1, 1]
    while True:
        for side, (sizes, _) in enumerate(sides):
            while rest[side] == 1 and at[side] < len(sizes):
                at[side] += 1
                rest[side] = sizes[at[side]] if at[side] < len(sizes) else 1
        if at[0] == len(old) or at[1] == len(new):
            return
        common = math.gcd(rest[0], rest[1])
        if common == 1 or (rest[0] != common and rest[1] != common):
            common = 1  # neither side ends here: the following sizes do not fit into dimensions of the other side
        if common == 1:
            _skip_to_common_border(sides, at, rest, table)
            continue
        factor = table.new(common)
        for side, (_, dims) in enumerate(sides):
            dims[at[side]] += (factor,)
            rest[side] //= common


def _skip_to_common_border(sides: Any, at: list[int], rest: list[int], table: _Table) -> None:
    """Go on where both sides begin a dimension after the same number of elements; before it all is whole."""
    done = [rest[0], rest[1]]
    first = list(at)
    while done[0] != done[1]:
        side = 0 if done[0] < done[1] else 1
        at[side] += 1
        done[side] *= sides[side][0][at[side]]
    for side, (_, dims) in enumerate(sides):
        for d in range(first[side], at[side] + 1):
            size = rest[side] if d == first[side] else sides[side][0][d]
            factor = table.new(size)
            table.whole.add(factor)
            dims[d] += (factor,)
        rest[side] = 1


def _bitcast_convert(instruction: HloInstruction, table: _Table) -> None:
    """Only the last dimension appears, disappears or, of equal ranks, stays."""
    rank = min(instruction.shape.rank, instruction.operands[0].shape.rank)
    for d in range(rank):
        table.join(instruction.shape.dimensions[d], (table.operands[0], d), (table.results[0], d))


def _gather(instruction: HloInstruction, table: _Table) -> None:
    """Dimensions that every slice takes in full, batching dimensions, and the dimensions of the indices."""
    a = instruction.attributes
    array, indices = (o.shape for o in instruction.operands)
    (of_array, of_indices), (of_result,) = table.operands, table.results
    outside = [d for d in range(instruction.shape.rank) if d not in a.offset_dims]
    partners = [d for d in range(indices.rank) if d != a.index_vector_dim]
    for d, result in zip(partners, outside, strict=True):
        places = [(of_indices, d), (of_result, result)]
        if d in a.start_indices_batching_dims:
            places.append((of_array, a.operand_batching_dims[a.start_indices_batching_dims.index(d)]))
        table.join(indices.dimensions[d], *places)
    left_out = (*a.collapsed_slice_dims, *a.operand_batching_dims)
    kept = [d for d in range(array.rank) if d not in left_out]
    for d, result in zip(kept, a.offset_dims, strict=True):
        if a.slice_sizes[d] == array.dimensions[d]:
            table.join(array.dimensions[d], (of_array, d), (of_result, result))


def _scatter(instruction: HloInstruction, table: _Table) -> None:
    """As gather. If zeros get sums of updates, each device may also add up a part of the updates."""
    a, count = instruction.attributes, len(instruction.operands) // 2
    array, indices, updates = (instruction.operands[k].shape for k in (0, count, count + 1))
    arrays = [*table.operands[:count], *table.results]
    of_indices, of_updates = table.operands[count], table.operands[count + 1 :]
    outside = [d for d in range(updates.rank) if d not in a.update_window_dims]
    partners = [d for d in range(indices.rank) if d != a.index_vector_dim]
    for d, update in zip(partners, outside, strict=True):
        places = [(of_indices, d), *((dims, update) for dims in of_updates)]
        if d in a.scatter_indices_batching_dims:
            batching = a.input_batching_dims[a.scatter_indices_batching_dims.index(d)]
            table.join(indices.dimensions[d], *places, *((dims, batching) for dims in arrays))
        elif adds_to_zeros(instruction):
            table.summed.add(table.join(indices.dimensions[d], *places))
    left_out = (*a.inserted_window_dims, *a.input_batching_dims)
    kept = [d for d in range(array.rank) if d not in left_out]
    for d, update in zip(kept, a.update_window_dims, strict=True):
        if updates.dimensions[update] == array.dimensions[d]:
            places = [(dims, update) for dims in of_updates]
            table.join(array.dimensions[d], *places, *((dims, d) for dims in arrays))


def adds_to_zeros(scatter: HloInstruction) -> bool:
    """True if the result of a scatter is a sum of updates and nothing else."""
    if len(scatter.operands) != 3 or reducer_opcode(scatter.attributes.to_apply) is not Opcode.ADD:
        return False
    operand = scatter.operands[0]
    value = splat_value(operand)
    if value is None and operand.opcode is Opcode.CONSTANT and is_uniform(operand.attributes.literal.array):
        array = operand.attributes.literal.array
        value = array.flat[0] if array.size else None
    return value is not None and bool(value == 0)


def _batch_norm(instruction: HloInstruction, table: _Table) -> None:
    """The features; for inference, which only scales, all dimensions."""
    feature = instruction.attributes.feature_index
    shape = instruction.operands[0].shape
    arrays = [*table.operands, *table.results]
    for d, size in enumerate(shape.dimensions):
        full = [(dims, d) for dims in arrays if len(dims) == shape.rank and (shape.rank > 1 or dims is arrays[0])]
        if d == feature:
            vectors = [(dims, 0) for dims in arrays if len(dims) == 1]
            table.join(size, *(full if shape.rank > 1 else ()), *vectors)
        elif instruction.opcode is Opcode.BATCH_NORM_INFERENCE:
            table.join(size, *full)


def _custom_call(instruction: HloInstruction, table: _Table) -> None:
    """Targets with types that begin with batch dimensions do the same for each element of the batch, and so do those
    that are registered as batch partitionable: the call states how many batch dimensions it has."""
    target = instruction.attributes.custom_call_target
    if target in PASSED_ON:
        if len(table.operands) == len(table.results):
            _identity(instruction, table)
    elif is_batched_target(target) and all(o.shape.is_array for o in instruction.operands):
        first = BUILT_IN[target].signature.partition("]")[0].partition("[")[2]
        _batch_of(instruction, table, instruction.operands[0].shape.rank - first.count(","))
    elif is_batch_partitionable(target) and instruction.operands:
        stated = dict(instruction.frontend_attributes).get("num_batch_dims", "0")
        shapes = [s for each in (*[o.shape for o in instruction.operands], instruction.shape) for s in each.leaves()]
        count = int(stated) if stated.isdecimal() else 0
        if all(s.dimensions[:count] == shapes[0].dimensions[:count] and s.rank >= count for s in shapes):
            _batch_of(instruction, table, count)


def _batch_of(instruction: HloInstruction, table: _Table, rank: int) -> None:
    for d in range(rank):
        arrays = [*table.operands, *table.results]
        table.join(instruction.operands[0].shape.dimensions[d], *((dims, d) for dims in arrays))


PASSED_ON = frozenset(
    {
        *("Sharding", "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier", "annotate_device_placement"),
        *("LayoutConstraint", "MoveToHost", "MoveToDevice", "Pin", "Unpin", "ShardBarrierFrom", "ShardBarrierTo"),
        "InspectSharding",
    }
)
"""Custom calls that return their operands, for any part of them that a device has."""

_O = Opcode
_RULES: dict[Opcode, Rule] = {
    _O.ALL_GATHER: _along_one,
    _O.ALL_REDUCE: _identity,
    _O.ALL_TO_ALL: _along_one,
    _O.BATCH_NORM_GRAD: _batch_norm,
    _O.BATCH_NORM_INFERENCE: _batch_norm,
    _O.BATCH_NORM_TRAINING: _batch_norm,
    _O.BITCAST_CONVERT: _bitcast_convert,
    _O.COLLECTIVE_BROADCAST: _identity,
    _O.COLLECTIVE_PERMUTE: _identity,
    _O.CONSTANT: _constant,
    _O.CONVOLUTION: _convolution,
    _O.CUSTOM_CALL: _custom_call,
    _O.DOT: _dot,
    _O.DYNAMIC_UPDATE_SLICE: _dynamic_update_slice,
    _O.GATHER: _gather,
    _O.OPT_BARRIER: _identity,
    _O.DOMAIN: _identity,
    _O.COPY: _identity,
    _O.REDUCE: _reduce,
    _O.REDUCE_SCATTER: _along_one,
    _O.RESHAPE: _reshape,
    _O.SCATTER: _scatter,
    _O.TUPLE: _identity,
}
