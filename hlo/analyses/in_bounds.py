"""Which start indices are known to be in range: the form of the mark on an instruction, and functions that read and
write it.

    dynamic-slice(x, i, j), dynamic_slice_sizes={1,2}, frontend_attributes={hloom.in_bounds="0,1"}

says that the slice fits along dimensions 0 and 1 of the array at its start index, so that the code needs no clamp, and
that the sums that compute the index do not wrap around, so that the code may compute them in wider integers. The
meaning of the instruction is the same with and without it. `passes/fuse/mark_in_bounds.py` finds it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir import HloInstruction
from ..opcode import Opcode
from ..ops import Trait, has_trait
from .intervals import Range, limits
from .ranges import Ranges

KEY = "hloom.in_bounds"


class _Proven(str):
    """A text that this process has derived itself. The text in a file is read as a plain string: it may be wrong, and
    code that relies on it would read outside of arrays."""

    __slots__ = ()


def in_bounds(instruction: HloInstruction) -> frozenset[int]:
    """The dimensions of the array of a dynamic-slice, dynamic-update-slice, gather or scatter along which every start
    index is at least 0 and at most the size less the window's, and does not wrap around if it is a sum. Claims in the
    text of an input file are ignored."""
    for key, value in instruction.frontend_attributes:
        if key == KEY and isinstance(value, _Proven):
            return frozenset(int(d) for d in value.split(","))
    return frozenset()


def with_in_bounds(instruction: HloInstruction, dimensions: Iterable[int]) -> HloInstruction:
    """The instruction saying that its indices along `dimensions` are in range, and nothing of others; itself if it says
    so already."""
    wanted = ",".join(map(str, sorted(dimensions)))
    others = tuple([(key, value) for key, value in instruction.frontend_attributes if key != KEY])
    new = (*others, (KEY, _Proven(wanted))) if wanted else others
    if new == instruction.frontend_attributes and all(isinstance(v, _Proven) for k, v in new if k == KEY):
        return instruction
    return replace(instruction, frontend_attributes=new)


INDEXED = frozenset({Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.GATHER, Opcode.SCATTER})
"""The ops that read or write windows of their first operand at computed indices."""


def window_sizes(i: HloInstruction) -> tuple[int, ...]:
    """The size of a window of one of INDEXED, along each dimension of the array."""
    a, update = i.attributes, i.operands[-1].shape
    match i.opcode:
        case Opcode.DYNAMIC_SLICE:
            return tuple(a.dynamic_slice_sizes)
        case Opcode.DYNAMIC_UPDATE_SLICE:
            return i.operands[1].shape.dimensions
        case Opcode.GATHER:
            return tuple(a.slice_sizes)
    window = iter([update.dimensions[d] for d in a.update_window_dims])
    left_out = (*a.inserted_window_dims, *a.input_batching_dims)
    return tuple([1 if d in left_out else next(window) for d in range(i.operands[0].shape.rank)])


def _indices(i: HloInstruction) -> dict[int, HloInstruction]:
    """By dimension of the array that one of INDEXED has indices for: an array that has them."""
    if i.opcode in (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE):
        first = 1 if i.opcode is Opcode.DYNAMIC_SLICE else 2
        components = list(i.operands[first:])
        dimensions = range(len(components))
    else:
        is_gather = i.opcode is Opcode.GATHER
        indices = i.operands[1 if is_gather else len(i.operands) // 2]
        dimensions = i.attributes.start_index_map if is_gather else i.attributes.scatter_dims_to_operand_dims
        components = _components(indices, i.attributes.index_vector_dim, len(dimensions))
    return dict(zip(dimensions, components, strict=True))


def _components(indices: HloInstruction, vector: int, count: int) -> list[HloInstruction]:
    """For each component of the indices an array that has it; all in one array unless they have just been joined."""
    if indices.opcode is not Opcode.CONCATENATE or indices.attributes.dimension != vector:
        return [indices] * count
    found = [o for o in indices.operands for _ in range(o.shape.dimensions[vector])]
    assert len(found) == count
    return found


def known_in_bounds(i: HloInstruction, ranges: Ranges) -> list[int]:
    """The dimensions along which the indices of one of INDEXED are known to be in range, and computed without a sum
    that wraps around."""
    sizes, window = i.operands[0].shape.dimensions, window_sizes(i)
    found = []
    for d, index in _indices(i).items():
        known = ranges.of(index)
        assert known is not None
        if known.low >= 0 and known.high <= sizes[d] - window[d] and _is_exact(index, ranges):
            found.append(d)
    return found


def _is_exact(index: HloInstruction, ranges: Ranges) -> bool:
    """True if no sum or difference wraps around of those that make an index: of `(i + lowest) + (j + lowest)`, which is
    i + j, the second one does. Other arithmetic ends the sum."""
    seen: set[HloInstruction] = set()
    waiting = [index]
    while waiting:
        i = waiting.pop()
        if i in seen:
            continue
        seen.add(i)
        if i.opcode in (Opcode.ADD, Opcode.SUBTRACT):
            a, b, whole = ranges.of(i.operands[0]), ranges.of(i.operands[1]), limits(i.shape)
            if a is None or b is None or whole is None:
                return False
            low, high = (b.low, b.high) if i.opcode is Opcode.ADD else (-b.high, -b.low)
            if not whole.contains(Range(a.low + low, a.high + high)):
                return False
        elif i.opcode is not Opcode.CONVERT and not has_trait(i.opcode, Trait.MOVEMENT):
            continue
        waiting += i.operands
    return True
