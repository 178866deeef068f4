"""Regions: instructions that have one dimension in common, and how it is cut into parts in all of them.

A region starts at a dimension of one instruction. It extends to instructions with the same dimension: through
element-wise instructions, transposes, broadcasts and reductions of other dimensions, to operands and to users. When its
dimension of size n is split into (parts, n / parts), every instruction of the region has one dimension more; at its
borders there are reshapes, which need no code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ...builder import make_instruction
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops import is_elementwise
from ...ops.movement import BroadcastAttributes, TransposeAttributes
from ...ops.reduce import ReduceAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..rewrite import rebuild
from .fusible import reads_at_its_own_index

Dimensions = tuple[int, ...]

_MOST_CUTS = 8
"""How many broadcasts may be left out on the way from operands to users."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Instructions that have one dimension in common, which will be split."""

    at: dict[HloInstruction, int]
    """By instruction: which of its dimensions it is."""
    parts: int
    is_alone: bool = False
    """True for a region of one instruction, which keeps its dimensions; its reductions read it in parts."""

    def split(self, instruction: HloInstruction) -> Dimensions:
        """The sizes of an instruction of the region after the split."""
        d, sizes = self.at[instruction], instruction.shape.dimensions
        return (*sizes[:d], self.parts, sizes[d] // self.parts, *sizes[d + 1 :])

    def moves(self, instruction: HloInstruction) -> bool:
        """True for an instruction of the region that gets one dimension more."""
        return _moves(instruction) and not self.is_alone

    def ends_in(self, reduce: HloInstruction) -> bool:
        """True for a reduction of the region's dimension."""
        if reduce.opcode is not Opcode.REDUCE:
            return False
        return self.at.get(reduce.operands[0], -1) in reduce.attributes.dimensions


Finish = Callable[[HloInstruction, Sequence[HloInstruction], int | None], HloInstruction | None]
"""finish(reduce, operands, d): the replacement of a reduction; None to keep it. Dimension d, over which it reduces, is
now d and d + 1 of the operands; if d is None, there is no such dimension."""


def _is_elementwise(instruction: HloInstruction) -> bool:
    opcode = instruction.opcode
    if not is_elementwise(instruction) or opcode in (Opcode.COPY, Opcode.MAP):
        return False
    return bool(instruction.operands) and instruction.shape.is_array and bool(instruction.shape.rank)


class Regions:
    """The regions of one computation; each is found once."""

    def __init__(self, computation: HloComputation) -> None:
        self._computation = computation
        self._known: dict[tuple[HloInstruction, int], Region] = {}
        self._twice: set[tuple[HloInstruction, int]] = set()
        """Where the search came by that met some instruction twice."""
        self._rows: dict[Region, frozenset[int]] = {}

    def of(self, start: HloInstruction, dimension: int, parts: int) -> Region:
        """The region of a dimension of `start`; `start` alone if some instruction has it twice.

        A broadcast may make one dimension of a value into two, as in `v[:, None] * x` and `v[None, :] * x`: then one of
        the two broadcasts reads `v` as it is.
        """
        found = self._known.get((start, dimension))
        if found is None:
            found = self._find(start, dimension, parts)
            for instruction, d in found.at.items():
                self._known[instruction, d] = found
        return found

    def _find(self, start: HloInstruction, dimension: int, parts: int) -> Region:
        cut: set[HloInstruction] = set()
        while (start, dimension) not in self._twice:
            at = {start: dimension}
            stack = [start]
            conflict = None
            while stack and conflict is None:
                node = stack.pop()
                for neighbour, d in _neighbours(self._computation, node, at[node], cut):
                    if neighbour not in at:
                        at[neighbour] = d
                        stack.append(neighbour)
                    elif at[neighbour] != d:
                        conflict = neighbour
            if conflict is None:
                if any(self._is_index_of_gather(i) for i in at):
                    break
                return Region(at, parts)
            if conflict.opcode is not Opcode.BROADCAST or conflict in cut or len(cut) == _MOST_CUTS:
                self._twice.update(at.items())
            cut.add(conflict)
        return Region({start: dimension}, parts, is_alone=True)

    def _is_index_of_gather(self, value: HloInstruction) -> bool:
        """True if a gather takes each element of the value as the index of one element: it stays one nest with what
        computes its indices, and with what is computed of its elements, as the steps of a binary search."""
        users = self._computation.users
        columns = [
            user for user in users[value]
            if user.opcode is Opcode.RESHAPE and user.shape.dimensions[:-1] == value.shape.dimensions
        ]  # fmt: skip
        return any(
            gather.opcode is Opcode.GATHER and gather.operands[1] is column and reads_at_its_own_index(gather, 1)
            for column in columns
            for gather in users[column]
        )

    def rows(self, region: Region) -> frozenset[int]:
        """The number of elements of the region's arrays with reduced rows."""
        found = self._rows.get(region)
        if found is None:
            found = self._rows[region] = frozenset(
                reduce.operands[0].shape.num_elements
                for reduce in region.at
                if reduce.opcode is Opcode.REDUCE
                and reduce.operands[0] in region.at
                and reduce.operands[0].shape.rank - 1 in reduce.attributes.dimensions
            )
        return found


def _neighbours(
    computation: HloComputation, node: HloInstruction, d: int, cut: Collection[HloInstruction]
) -> Iterator[tuple[HloInstruction, int]]:
    """The operands and users that have dimension d of `node`, and which dimension it is there. The broadcasts `cut` are
    not reached from their operands."""
    if _moves(node):
        for operand in dict.fromkeys(node.operands):
            if (e := _source(node, operand, d)) is not None:
                yield operand, e
    if node.opcode is Opcode.COPY:  # perhaps of tiles, which each user reads as they are
        return
    for user in computation.users[node]:
        if _moves(user) and user not in cut:
            e = next((k for k in range(user.shape.rank) if _source(user, node, k) == d), None)
            if e is not None:
                yield user, e


def _moves(instruction: HloInstruction) -> bool:
    """True for an instruction that gets one dimension more when its operands do."""
    if instruction.opcode is Opcode.REDUCE:
        return len(instruction.operands) == 2
    return _is_elementwise(instruction) or instruction.opcode in (Opcode.BROADCAST, Opcode.TRANSPOSE)


def _source(node: HloInstruction, operand: HloInstruction, d: int) -> int | None:
    """Which dimension of `operand` is dimension d of `node`."""
    if not operand.shape.is_array or not operand.shape.rank:
        return None
    attributes = node.attributes
    if node.opcode is Opcode.BROADCAST:
        return attributes.dimensions.index(d) if d in attributes.dimensions else None
    if node.opcode is Opcode.TRANSPOSE:
        found: int = attributes.dimensions[d]
        return found
    if node.opcode is Opcode.REDUCE:
        kept = [e for e in range(operand.shape.rank) if e not in attributes.dimensions]
        return kept[d]
    return d


def with_splits(computation: HloComputation, regions: Sequence[Region], finish: Finish) -> HloComputation:
    """The computation with the dimension of each region split. No instruction is in two of them."""
    return _Splitter(regions, finish).run(computation)


class _Splitter:
    def __init__(self, regions: Sequence[Region], finish: Finish) -> None:
        self._region = {instruction: region for region in regions for instruction in region.at}
        self._finish = finish
        self._plain: dict[HloInstruction, HloInstruction] = {}
        self._split: dict[HloInstruction, HloInstruction] = {}

    def run(self, computation: HloComputation) -> HloComputation:
        for old in computation.instructions:
            region = self._region.get(old)
            if region is not None and region.moves(old):
                self._split[old] = self._moved(old, region)
                continue
            new = self._finished(old)
            if old.opcode is Opcode.RESHAPE and (source := self._whole(old.operands[0])) is not old.operands[0]:
                new = _reshaped(source, old.shape)
            self._plain[old] = new or old.with_operands(tuple([self._whole(o) for o in old.operands]))
        needed = {old: new for old, new in self._plain.items() if new is not old}
        root = computation.root
        return rebuild(computation, {**needed, root: self._whole(root)})

    def _whole(self, old: HloInstruction) -> HloInstruction:
        """The value with its old dimensions."""
        found = self._plain.get(old)
        if found is None:
            found = self._plain[old] = _reshaped(self._split[old], old.shape)
        return found

    def _in_parts(self, old: HloInstruction, region: Region) -> HloInstruction:
        """The value with the region's dimension split."""
        found = self._split.get(old)
        if found is None:
            shape = Shape.array(old.shape.element, region.split(old))
            found = self._split[old] = _reshaped(self._plain[old], shape)
        return found

    def _moved(self, old: HloInstruction, region: Region) -> HloInstruction:
        d, attributes = region.at[old], old.attributes
        operands = [
            self._in_parts(o, region) if _source(old, o, d) is not None else self._whole(o)
            for o in old.operands
        ]
        if old.opcode is Opcode.BROADCAST:
            attributes = BroadcastAttributes(renumbered(attributes.dimensions, d))
        elif old.opcode is Opcode.TRANSPOSE:
            attributes = TransposeAttributes(renumbered(attributes.dimensions, attributes.dimensions[d]))
        elif old.opcode is Opcode.REDUCE:
            e = region.at[old.operands[0]]
            attributes = ReduceAttributes(renumbered(attributes.dimensions, e), attributes.to_apply)
        shape = Shape.array(old.shape.element, region.split(old))
        return old.with_form(shape, tuple(operands), attributes)

    def _finished(self, old: HloInstruction) -> HloInstruction | None:
        if old.opcode is not Opcode.REDUCE:
            return None
        region = self._region.get(old.operands[0])
        half = len(old.operands) // 2
        if region is None or not region.ends_in(old) or any(o not in region.at for o in old.operands[:half]):
            return self._finish(old, [self._whole(o) for o in old.operands], None)
        arrays = [self._in_parts(o, region) for o in old.operands[:half]]
        return self._finish(old, [*arrays, *map(self._whole, old.operands[half:])], region.at[old.operands[0]])


def _reshaped(value: HloInstruction, shape: Shape) -> HloInstruction:
    """A value with other dimensions; its source, if the value is a reshape that has them."""
    source = value.operands[0] if value.opcode is Opcode.RESHAPE else value
    return source if source.shape == shape else make_instruction(Opcode.RESHAPE, (source,), shape=shape)


def renumbered(dimensions: Sequence[int], split: int) -> Dimensions:
    """The numbers of dimensions after dimension `split` has become two."""
    found: list[int] = []
    for d in dimensions:
        found += [d, d + 1] if d == split else [d + (d > split)]
    return tuple(found)
