"""The effect of a bitcast between two layouts on the elements of an array, written with operations on logical arrays.

A buffer is made of its logical array in steps (pad, reshape, transpose: `physical_steps`), and each step can be undone.
A bitcast does the steps of its operand's layout, then undoes the steps of its result's layout. That is exact unless an
element of the result comes from the operand's padding, which has unknown content.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...builder import make_instruction
from ...errors import UnsupportedError
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.movement import PadAttributes, SliceAttributes
from ...physical_form import tile_groups
from ...shape import Shape
from ...support.permutations import inverse
from ...support.records import dataclass
from ..patterns import make_splat, reshape, transpose

MAX_CHECKED = 1 << 28
"""The most positions of a padded buffer that padding is traced for: that takes a byte for each, temporarily."""


@dataclass(frozen=True, slots=True)
class _Pad:
    """Adds this many elements at the end of each dimension."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Reshape:
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Transpose:
    permutation: tuple[int, ...]


_Step = _Pad | _Reshape | _Transpose


def physical_steps(shape: Shape) -> list[_Step]:
    """The steps from the elements of an array to its buffer, which has one dimension.

    They are the steps of `physical_form`: pad to `padded_dimensions`, put the dimensions in order, then for each tile
    combine dimensions, pad to whole tiles, split into tile and index in it, and move the indices behind the tiles.
    """
    steps: list[_Step] = []
    layout, sizes = shape.array_layout, shape.dimensions
    if layout.padded_dimensions:
        steps.append(_Pad(sizes, layout.padded_dimensions))
        sizes = layout.padded_dimensions
    order = layout.minor_to_major[::-1]
    steps.append(_Transpose(order))
    sizes = tuple(sizes[d] for d in order)
    for tile in layout.tiles:
        groups = tile_groups(len(sizes), tile)
        outer = sizes[: max(len(sizes) - len(tile.dimensions), 0)]
        combined = [math.prod(sizes[max(first, 0) : max(last, 0)]) for first, last, _ in groups]
        extents = [size for _, _, size in groups]
        whole = [-(-size // extent) * extent for size, extent in zip(combined, extents, strict=True)]
        pairs = [n for size, extent in zip(whole, extents, strict=True) for n in (size // extent, extent)]
        first, end = len(outer), len(outer) + 2 * len(extents)
        places = [*range(first), *range(first, end, 2), *range(first + 1, end, 2)]
        split = (*outer, *pairs)
        steps += [
            _Reshape(sizes, (*outer, *combined)),
            _Pad((*outer, *combined), (*outer, *whole)),
            _Reshape((*outer, *whole), split),
            _Transpose(tuple(places)),
        ]
        sizes = tuple(split[d] for d in places)
    count = math.prod(sizes)
    steps.append(_Reshape(sizes, (count,)))
    steps.append(_Pad((count,), (shape.physical_form.num_elements,)))
    return [step for step in steps if not _is_nothing(step)]


def _is_nothing(step: _Step) -> bool:
    if isinstance(step, _Transpose):
        return step.permutation == tuple(range(len(step.permutation)))
    return step.before == step.after


def bitcast_as_moves(value: HloInstruction, source: Shape, target: Shape) -> HloInstruction:
    """The bitcast of `value`, an array with a buffer as `source` says, to `target`.

    `value` and the result are used by their logical elements. UnsupportedError if the buffer does not determine all
    elements of the result, or elements are packed differently.
    """
    if source.bits_per_element != target.bits_per_element or source.element.bit_width != target.element.bit_width:
        return _with_other_width(value, source, target)
    forward, backward = physical_steps(source), physical_steps(target)
    if not _is_exact(source, target, forward, backward):
        raise _unsupported(source, target, "some of its elements are padding of the operand, which has no known value")
    while forward and backward and forward[-1] == backward[-1]:
        forward.pop()
        backward.pop()
    for step in forward[:-1]:
        value = _done(value, step)
    if forward and not (backward and isinstance(forward[-1], _Reshape) and isinstance(backward[-1], _Reshape)):
        value = _done(value, forward[-1])  # otherwise two reshapes, which are one
    if source.element_type is not target.element_type:
        same_width = value.shape.with_element_type(target.element)
        value = make_instruction(Opcode.BITCAST_CONVERT, (value,), shape=same_width)
    for step in reversed(backward):
        value = _undone(value, step)
    return value


def _with_other_width(value: HloInstruction, source: Shape, target: Shape) -> HloInstruction:
    """Between dense buffers: a row-major bitcast, which has separate expansions."""
    if not (source.array_layout.is_dense and target.array_layout.is_dense):
        raise _unsupported(source, target, "elements of different widths lie in the two")
    order = target.array_layout.minor_to_major[::-1]
    value = transpose(value, source.array_layout.minor_to_major[::-1])
    physical = Shape.array(target.element, [target.dimensions[d] for d in order])
    return transpose(make_instruction(Opcode.BITCAST, (value,), shape=physical), inverse(order))


def _unsupported(source: Shape, target: Shape, why: str) -> UnsupportedError:
    return UnsupportedError(f"bitcast of {source.to_text()} to {target.to_text()}: {why}; copy the array instead")


def _is_exact(source: Shape, target: Shape, forward: Sequence[_Step], backward: Sequence[_Step]) -> bool:
    """True when each element of `target` is one of `source`."""
    places = source.physical_form.num_elements
    if target.num_elements > source.num_elements or target.physical_form.num_elements != places:
        return False
    if places == source.num_elements or target.num_elements == 0:
        return True
    if places > MAX_CHECKED:
        return False
    holds: Any = np.ones(source.dimensions, bool)
    for step in forward:
        holds = _done_to_array(holds, step)
    for step in reversed(backward):
        holds = _undone_to_array(holds, step)
    return bool(holds.all())


def _done(value: HloInstruction, step: _Step) -> HloInstruction:
    if isinstance(step, _Transpose):
        return transpose(value, step.permutation)
    if isinstance(step, _Reshape):
        return reshape(value, step.after)
    nothing = (0,) * len(step.before)
    high = tuple(b - a for a, b in zip(step.before, step.after, strict=True))
    zero = make_splat(0, Shape.array(value.shape.element))
    return make_instruction(Opcode.PAD, (value, zero), PadAttributes(nothing, high, nothing))


def _undone(value: HloInstruction, step: _Step) -> HloInstruction:
    if isinstance(step, _Transpose):
        return transpose(value, inverse(step.permutation))
    if isinstance(step, _Reshape):
        return reshape(value, step.before)
    rank = len(step.before)
    return make_instruction(Opcode.SLICE, (value,), SliceAttributes((0,) * rank, step.before, (1,) * rank))


def _done_to_array(array: Any, step: _Step) -> Any:
    if isinstance(step, _Transpose):
        return array.transpose(step.permutation)
    if isinstance(step, _Reshape):
        return array.reshape(step.after)
    return np.pad(array, [(0, b - a) for a, b in zip(step.before, step.after, strict=True)])


def _undone_to_array(array: Any, step: _Step) -> Any:
    if isinstance(step, _Transpose):
        return array.transpose(inverse(step.permutation))
    if isinstance(step, _Reshape):
        return array.reshape(step.before)
    return array[tuple(slice(0, size) for size in step.before)]
