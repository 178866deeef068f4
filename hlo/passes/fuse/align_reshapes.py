"""align-reshapes: the computations before a reshape and after it get the same dimensions, where a reduction is near.

A group normalisation treats channels in groups, and scales each of them::

    y = reshape(x: f32[16,64,784])                      f32[16,8,6272]
    n = (y - broadcast(reduce(y) / 6272)) / ...
    reshape(n) * broadcast(scale: f32[64]) + ...        f32[16,64,784]

One nest cannot run over f32[16,8,6272] and over f32[16,64,784]. So the dimensions on both sides are cut to those that
they have in common, f32[16,8,8,784], in all instructions that have them (`regions.py`); the reshape is gone, and fusion
makes one nest of both sides. Element-wise instructions without a reduction need no help: their nests are merged loops
over few dimensions, and reading another nest's result costs as much as an operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ...builder import make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import is_elementwise
from ...ops.reduce import ReduceAttributes
from ..rewrite import map_computations
from .regions import Dimensions, Regions, renumbered, with_splits

_ROUNDS = 64
"""How many dimensions of a computation are cut."""


class AlignReshapes:
    """The pass."""

    name = "align-reshapes"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, _aligned)


def _aligned(computation: HloComputation) -> HloComputation:
    for _ in range(_ROUNDS):
        regions = Regions(computation)
        found = (regions.of(*cut) for cut in _cuts(computation))
        region = next((r for r in found if not r.is_alone), None)
        if region is None:
            break
        computation = with_splits(computation, [region], _finished)
    return computation


def _cuts(computation: HloComputation) -> Iterator[tuple[HloInstruction, int, int]]:
    """The values at reshapes to cut: the value, its dimension and the number of parts."""
    reduced = {i.operands[0].shape.num_elements for i in computation.instructions if i.opcode is Opcode.REDUCE}
    if not reduced:
        return
    for reshape in computation.instructions:
        if reshape.opcode is not Opcode.RESHAPE or reshape.shape.num_elements not in reduced:
            continue
        (source,) = reshape.operands
        if not _is_computed(source) or not any(map(_is_computed, computation.users[reshape])):
            continue
        before, after = source.shape.dimensions, reshape.shape.dimensions
        for value, own, others in ((source, before, after), (reshape, after, before)):
            cut = first_cut(own, others)
            if cut is not None:
                yield value, *cut
                break


def _is_computed(instruction: HloInstruction) -> bool:
    return instruction.opcode is Opcode.REDUCE or is_elementwise(instruction)


def first_cut(own: Dimensions, others: Dimensions) -> tuple[int, int] | None:
    """The first of our dimensions that must be cut to have those in common with others, and into how many parts; None
    if there is nothing to cut, or if some dimensions have none in common.

    >>> first_cut((16, 64, 784), (16, 8, 6272))
    (1, 8)
    >>> first_cut((16, 8, 6272), (16, 8, 8, 784))
    (2, 8)
    >>> first_cut((6, 4), (4, 6)) is None
    True
    """
    if min((*own, *others), default=0) < 2:
        return None
    mine, theirs = _ends(own), _ends(others)
    both = sorted({*mine, *theirs})
    if any(b % a for a, b in pairwise(both)):
        return None
    start = 1
    for d, end in enumerate(mine):
        inside = next((e for e in theirs if start < e < end), None)
        if inside is not None:
            return d, inside // start
        start = end
    return None


def _ends(sizes: Dimensions) -> list[int]:
    """For each dimension, the product of the sizes up to it."""
    found, product = [], 1
    for size in sizes:
        product *= size
        found.append(product)
    return found


def _finished(
    reduce: HloInstruction, operands: Sequence[HloInstruction], split: int | None
) -> HloInstruction | None:
    """A reduction of a dimension that has been cut reduces both."""
    if split is None:
        return None
    attributes = reduce.attributes
    dimensions = renumbered(attributes.dimensions, split)
    return make_instruction(Opcode.REDUCE, operands, ReduceAttributes(dimensions, attributes.to_apply))
