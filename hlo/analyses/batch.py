"""Loops with a state that is a batch of independent problems: which dimension of each value is the batch.

    x = f32[1000,8] ...        # 1,000 ODEs of state 8
    t = f32[] ...
    loop: x' = x + h * f(t, x @ a),  t' = t + h

Dimension 0 of `x` is the batch: element b of each value that the body makes depends on element b of other values with a
batch, and on values that all members of the batch share (`t`, `a`). So the loop may run for a part of the batch alone.

A value is *shared* if it depends on nothing with a batch; its batch dimension is None. Every member may read all of it.
A value with a batch may be read at the member's own index only; an op that does otherwise (a sum over the batch, a
reversal, neighbours) ends the analysis, as does an op without a rule. Conditions must be shared.

A body is fused and scheduled. Inside of a fusion values are expressions, made where they are needed. Results of a
fusion are memory, which each part of the batch writes for itself: so either the batch is their outermost dimension, or
they are small and shared, and each part makes its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..buffers.values import FirstLeaves, is_alias, leaf_count
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..ops.dimensions import correspondence
from ..shape import Shape
from ..support.records import dataclass

Axis = int | None
"""The batch dimension of an array; None: all members share it."""
Axes = tuple[Axis, ...]
"""Of the leaves of a value."""

FEWEST = 16
"""Members of a batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A loop's batch."""

    size: int
    axes: Mapping[HloInstruction, Axes]
    """Of all instructions outside of fusions: of the loop's body and condition, and of the computations that these
    call."""
    state: Axes
    """Of the loop's state."""


class NotABatch(Exception):
    """The reason why a loop is not a loop over a batch of problems."""


def batch_of(loop: HloInstruction, most_shared: int) -> Batch:
    """The batch of a `while` with a flat state. `most_shared`: elements of the largest array of the state that each
    part of the batch may have for itself. NotABatch says why there is none."""
    sizes = _candidates(loop, most_shared)
    if not sizes:
        raise NotABatch("no dimension that all large arrays of the state have")
    reasons: list[str] = []  # not the errors: each refers to this frame, which would refer to it
    for size in sizes[:2]:
        try:
            return _Analysis(size, most_shared).batch(loop)
        except NotABatch as error:
            reasons.append(str(error))
    raise NotABatch(reasons[0])


def _candidates(loop: HloInstruction, most_shared: int) -> list[int]:
    """Sizes that the batch may have, likely ones first: first or second dimensions of all large arrays that change."""
    changing = _changing(loop)
    found: list[list[int]] = []
    for k, shape in enumerate(loop.shape.elements):
        if k in changing and shape.num_elements > most_shared:
            found.append([d for d in shape.dimensions[:2] if d >= FEWEST])
    if not found:
        return []
    firsts = [sizes[0] for sizes in found if sizes]
    common = {size for size in set(firsts) if all(size in sizes for sizes in found)}
    common |= {size for sizes in found[:1] for size in sizes if all(size in other for other in found)}
    times = Counter(firsts)
    return sorted(common, key=lambda size: (-times[size], -size))


def _changing(loop: HloInstruction) -> set[int]:
    """The elements of the state that the body does not return as it got them."""
    root = loop.attributes.body.root
    if root.opcode is not Opcode.TUPLE:
        raise NotABatch("a state that is no tuple")
    (state,) = loop.attributes.body.parameters
    found = set()
    for k, result in enumerate(root.operands):
        same = result.opcode is Opcode.GET_TUPLE_ELEMENT and result.operands[0] is state
        if not (same and result.attributes.index == k):
            found.add(k)
    return found


class _Analysis:
    def __init__(self, size: int, most_shared: int) -> None:
        self.size, self.most_shared = size, most_shared
        self.axes: dict[HloInstruction, Axes] = {}
        self.first_leaves = FirstLeaves()

    def batch(self, loop: HloInstruction) -> Batch:
        state = self._loop(loop, (None,) * leaf_count(loop.shape))
        if all(axis is None for axis in state):
            raise NotABatch("no part of the state has a batch")
        return Batch(self.size, self.axes, state)

    # Outside of fusions

    def _computation(self, computation: HloComputation, parameters: Sequence[Axes]) -> Axes:
        for instruction in computation.instructions:
            if instruction.opcode is Opcode.PARAMETER:
                self.axes[instruction] = parameters[instruction.attributes.number]
            else:
                self.axes[instruction] = self._instruction(instruction)
        return self.axes[computation.root]

    def _instruction(self, instruction: HloInstruction) -> Axes:
        operands = [self.axes[o] for o in instruction.operands]
        match instruction.opcode:
            case Opcode.CONSTANT:
                return (None,)
            case _ if is_alias(instruction):
                return self._value(instruction, operands)
            case Opcode.FUSION:
                return self._fusion(instruction, operands)
            case Opcode.DOT:
                return self._written(instruction, (self._dot(instruction, operands),), None)
            case Opcode.WHILE:
                return self._loop(instruction, operands[0])
            case Opcode.CONDITIONAL:
                return self._conditional(instruction, operands)
            case Opcode.CALL:
                return self._computation(instruction.attributes.to_apply, operands)
        if any(axis is not None for axes in operands for axis in axes):
            raise NotABatch(f"{instruction.opcode.value} has no rule")
        if any(leaf.num_elements > self.most_shared for leaf in instruction.shape.leaves()):
            raise NotABatch(f"{instruction.opcode.value} makes a large array that all members share")
        return (None,) * leaf_count(instruction.shape)

    def _fusion(self, fusion: HloInstruction, operands: Sequence[Axes]) -> Axes:
        body = fusion.attributes.calls
        inside: dict[HloInstruction, Axes] = {}
        for instruction in body.instructions:
            if instruction.opcode is Opcode.PARAMETER:
                inside[instruction] = operands[instruction.attributes.number]
            else:
                inside[instruction] = self._value(instruction, [inside[o] for o in instruction.operands])
        update = body.root if body.root.opcode is Opcode.DYNAMIC_UPDATE_SLICE else None
        return self._written(fusion, inside[body.root], update)

    def _written(self, instruction: HloInstruction, axes: Axes, update: HloInstruction | None) -> Axes:
        """The batch dimensions of results in memory. `update`: the kernel writes only an update of the result."""
        leaves = list(instruction.shape.leaves())
        found = [self._settled(leaf, axis) for leaf, axis in zip(leaves, axes, strict=True)]
        if all(axis is None for axis in found):
            return tuple(found)
        for leaf, axis in zip(leaves, found, strict=True):
            if axis is None:
                raise NotABatch(f"{instruction.name} writes results with a batch and shared ones")
            written = leaf if update is None else update.operands[1].shape
            if math.prod(written.dimensions[:axis]) != 1:
                raise NotABatch(f"the batch is not the outermost dimension of {instruction.name}")
        return tuple(found)

    def _settled(self, shape: Shape, axis: Axis) -> Axis:
        """A result that all members could share has a batch nevertheless if it has that dimension."""
        if axis is not None:
            return axis
        first = next((d for d, size in enumerate(shape.dimensions) if size != 1), None)
        if first is not None and shape.dimensions[first] == self.size:
            return first
        if shape.num_elements > self.most_shared:
            raise NotABatch(f"a large array, {shape}, that all members share")
        return None

    def _loop(self, loop: HloInstruction, initial: Axes) -> Axes:
        changing = _changing(loop)
        shapes = list(loop.shape.leaves())
        if len(shapes) != len(loop.shape.elements):
            raise NotABatch("a state with tuples in it")
        state: list[Axis] = []
        for k, (shape, axis) in enumerate(zip(shapes, initial, strict=True)):
            state.append(axis if axis is not None or k not in changing else self._state_axis(loop, k, shape))
        for _ in range(len(state) + 1):
            results = self._computation(loop.attributes.body, [tuple(state)])
            new = list(map(_joined, state, results))
            if new == state:
                break
            state = new
        (test,) = self._computation(loop.attributes.condition, [tuple(state)])
        if test is not None:
            raise NotABatch("a condition that depends on the members of the batch")
        return tuple(state)

    def _state_axis(self, loop: HloInstruction, k: int, shape: Shape) -> Axis:
        """The batch dimension of an array of the state that changes."""
        found = [d for d, size in enumerate(shape.dimensions) if size == self.size]
        update = _update_of(loop.attributes.body.root.operands[k])
        if update is not None:  # stacked results: [steps, members, ...]
            whole = [d for d in found if update.operands[1].shape.dimensions[d] == self.size]
            found = whole or found
        if found:
            return found[0]
        if shape.num_elements > self.most_shared:
            raise NotABatch(f"{shape}, a large array of the state, has no batch")
        return None

    def _conditional(self, instruction: HloInstruction, operands: Sequence[Axes]) -> Axes:
        if operands[0] != (None,):
            raise NotABatch("a branch that depends on the members of the batch")
        branches = instruction.attributes.branch_computations
        results = [self._computation(b, [axes]) for b, axes in zip(branches, operands[1:], strict=True)]
        joined = results[0]
        for other in results[1:]:
            joined = tuple(map(_joined, joined, other))
        return joined

    def _dot(self, dot: HloInstruction, operands: Sequence[Axes]) -> Axis:
        a = dot.attributes
        (left,), (right,) = operands
        pairs = list(zip(a.lhs_batch_dims, a.rhs_batch_dims, strict=True))
        rank = dot.operands[0].shape.rank
        free = [d for d in range(rank) if d not in a.lhs_batch_dims and d not in a.lhs_contracting_dims]
        for number, pair in enumerate(pairs):
            if (left, right) == pair or (left, right) in ((pair[0], None), (None, pair[1])):
                return number
        if right is None and left in free:
            return len(pairs) + free.index(left)
        if left is None and right is None:
            return None
        raise NotABatch("a product that sums over the batch, or of different members")

    # Inside of fusions, and aliases

    def _value(self, instruction: HloInstruction, operands: Sequence[Axes]) -> Axes:
        """The batch dimensions of a value that is made of others."""
        opcode = instruction.opcode
        if opcode is Opcode.TUPLE:
            return tuple(axis for axes in operands for axis in axes)
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            first = self.first_leaves.of(instruction.operands[0].shape)[instruction.attributes.index]
            return operands[0][first : first + leaf_count(instruction.shape)]
        if opcode is Opcode.OPT_BARRIER:
            return operands[0]
        if all(axis is None for axes in operands for axis in axes):
            return (None,) * leaf_count(instruction.shape)
        axes = [axis for (axis,) in operands]
        rule = _RULES.get(opcode)
        if rule is not None:
            axis = rule(instruction, axes, self.size)
        elif has_trait(opcode, Trait.ELEMENTWISE) or opcode in _CORRESPONDING:
            axis = _one({_kept(instruction, k, axis) for k, axis in enumerate(axes) if axis is not None})
        else:
            raise NotABatch(f"{opcode.value} has no rule")
        for leaf in instruction.shape.leaves():
            if leaf.dimensions[axis] != self.size:
                raise NotABatch(f"{opcode.value} changes the batch")
        return (axis,) * leaf_count(instruction.shape)


def _joined(a: Axis, b: Axis) -> Axis:
    """The batch dimension of a value that is one of two values. One that all share may be read as one with a batch."""
    if a is None or b is None or a == b:
        return b if a is None else a
    raise NotABatch("two places of the batch for one value")


def _one(axes: set[int]) -> int:
    if len(axes) != 1:
        raise NotABatch("operands with the batch in different dimensions")
    return axes.pop()


def _kept(instruction: HloInstruction, k: int, axis: int) -> int:
    """The dimension of the result that is the batch dimension of operand k, for ops that declare it."""
    found = correspondence(instruction, k).get(axis)
    if found is None:
        raise NotABatch(f"{instruction.opcode.value} along the batch")
    return found


_CORRESPONDING = frozenset((Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.REDUCE))
"""Ops that are not element-wise, but declare which dimensions of operand and result correspond."""


def _update_of(value: HloInstruction) -> HloInstruction | None:
    """The dynamic-update-slice that makes a value, if one does."""
    index = 0
    if value.opcode is Opcode.GET_TUPLE_ELEMENT:
        value, index = value.operands[0], value.attributes.index
    if value.opcode is Opcode.FUSION:
        value = value.attributes.calls.root
        if value.opcode is Opcode.TUPLE:
            value = value.operands[index]
    return value if value.opcode is Opcode.DYNAMIC_UPDATE_SLICE else None


# Rules of ops that change dimensions: (instruction, axes of the operands, size of the batch) -> axis of the result


def _reshape(instruction: HloInstruction, axes: Sequence[Axis], size: int) -> int:
    old, new = instruction.operands[0].shape.dimensions, instruction.shape.dimensions
    (axis,) = axes
    before = math.prod(old[:axis])
    for d, n in enumerate(new):
        if n == size and math.prod(new[:d]) == before:
            return d
    raise NotABatch("a reshape that merges or splits the batch")


def _whole(instruction: HloInstruction, axes: Sequence[Axis], size: int) -> int:
    """Slices, reversals, padding and concatenations along other dimensions than the batch's."""
    attributes = instruction.attributes
    axis = _one({axis for axis in axes if axis is not None})
    match instruction.opcode:
        case Opcode.SLICE:
            along = (attributes.start_indices[axis], attributes.limit_indices[axis], attributes.strides[axis])
            fits = along == (0, size, 1)
        case Opcode.REVERSE:
            fits = axis not in attributes.dimensions
        case Opcode.PAD:
            fits = (attributes.low[axis], attributes.high[axis], attributes.interior[axis]) == (0, 0, 0)
        case Opcode.CONCATENATE:
            fits = axis != attributes.dimension
        case Opcode.DYNAMIC_SLICE:
            fits = instruction.shape.dimensions[axis] == size
        case _:
            assert instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE
            fits = instruction.operands[1].shape.dimensions[axis] == size
    if not fits:
        raise NotABatch(f"{instruction.opcode.value} along the batch")
    return axis


def _gather(instruction: HloInstruction, axes: Sequence[Axis], size: int) -> int:
    a = instruction.attributes
    array, indices = axes
    rank = instruction.operands[1].shape.rank
    partners = [d for d in range(rank) if d != a.index_vector_dim]
    outside = [d for d in range(instruction.shape.rank) if d not in a.offset_dims]
    place = dict(zip(partners, outside, strict=True))
    if array is None:
        if indices not in place:
            raise NotABatch("gather with the batch in its index vectors")
        return place[indices]
    if array in a.operand_batching_dims:
        own = a.start_indices_batching_dims[a.operand_batching_dims.index(array)]
        if indices not in (None, own):
            raise NotABatch("gather of different members")
        return place[own]
    kept = [d for d in range(instruction.operands[0].shape.rank)
            if d not in a.collapsed_slice_dims and d not in a.operand_batching_dims]  # fmt: skip
    if indices is None and array in kept and a.slice_sizes[array] == size:
        offset: int = a.offset_dims[kept.index(array)]
        return offset
    raise NotABatch("gather along the batch")


def _bitcast_convert(instruction: HloInstruction, axes: Sequence[Axis], size: int) -> int:
    axis = axes[0]
    assert axis is not None
    if axis < instruction.shape.rank and axis < instruction.operands[0].shape.rank:
        return axis  # only the last dimension appears or disappears
    raise NotABatch("bitcast-convert of the batch")


_RULES: Mapping[Opcode, Callable[[HloInstruction, Sequence[Axis], int], int]] = {
    Opcode.RESHAPE: _reshape,
    Opcode.BITCAST: _reshape,
    Opcode.SLICE: _whole,
    Opcode.REVERSE: _whole,
    Opcode.PAD: _whole,
    Opcode.CONCATENATE: _whole,
    Opcode.DYNAMIC_SLICE: _whole,
    Opcode.DYNAMIC_UPDATE_SLICE: _whole,
    Opcode.GATHER: _gather,
    Opcode.BITCAST_CONVERT: _bitcast_convert,
}


def leaves_with_axes(batch: Batch) -> Iterator[tuple[HloInstruction, int, Shape, Axis]]:
    """(instruction, number of the leaf, its shape, its batch dimension) for all values outside of fusions."""
    for instruction, axes in batch.axes.items():
        for number, (shape, axis) in enumerate(zip(instruction.shape.leaves(), axes, strict=True)):
            yield instruction, number, shape, axis
