"""Which values share a buffer: so that updates happen in place, loop state does not move and copies disappear.

Every value starts with a separate buffer. Two buffers become one if that saves a copy or memory, and if they are never
needed at the same time and are in the same memory space. It saves a copy for the result of a loop body and the loop's
state, for a result and the caller's memory for it, and for a dynamic-update-slice and its operand. It saves only memory
for an element-wise operation over an operand that is not needed afterwards. Expensive copies are tried first: those in
loops, then the largest. This is the coalescing of SSA destruction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import field

from ..ir import HloInstruction
from ..opcode import Opcode
from ..support.records import dataclass
from .allocation import AllocationKind
from .values import Interval, Transfer, ValueAnalysis, merge_intervals

CanShare = Callable[[HloInstruction, int, int], bool]
"""can_share(instruction, operand_leaf, output_leaf): may the emitted code write this output leaf over this operand
leaf, if both have the same number of bytes and the operand has no later use?

True requires: when output element i is written, all elements of that operand except those at index i have been
read (an element-wise kernel), or the operand is only partly overwritten, in place (dynamic-update-slice).
Leaves are counted over all operands (for instructions without tuple operands: the operand's number) and over the
result's shape (0 for an array). Asked only about FUSION, ordinary instructions, and control flow that is `opaque`.
"""


@dataclass(slots=True, eq=False)
class Buffer:
    """Memory shared by values that are never needed at the same time."""

    size: int
    values: list[int]
    intervals: list[Interval]
    fixed: tuple[AllocationKind, int] | None = None
    """Its fixed memory, with the leaf number of the parameters or of the result; None: in the arena."""
    read_only: bool = False
    space: int = 0
    """The memory space that the layouts of its values name."""


@dataclass(frozen=True, slots=True)
class Move:
    """A copy between two buffers."""

    source: Buffer
    target: Buffer


@dataclass(slots=True)
class Coalescing:
    """The buffers of a module, by value number, and the copies that remain."""

    buffers: dict[int, Buffer]
    outputs: tuple[Buffer, ...]
    moves: list[tuple[Transfer, tuple[Move, ...]]] = field(default_factory=list)
    """For each transfer, in schedule order, its copies, ordered so that none overwrites an operand of a later one."""
    scratch: list[Buffer] = field(default_factory=list)
    """Additional buffers for cyclic transfers."""

    def all_buffers(self) -> list[Buffer]:
        """Every buffer once, in the order of their first values."""
        return list({id(b): b for b in (*self.buffers.values(), *self.outputs, *self.scratch)}.values())


def coalesce(analysis: ValueAnalysis, can_share: CanShare, donations: dict[int, int]) -> Coalescing:
    """Share buffers. `donations`: by output leaf, the parameter leaf that gives it its memory."""
    return _Coalescer(analysis, can_share, donations).run()


class _Coalescer:
    def __init__(self, analysis: ValueAnalysis, can_share: CanShare, donations: dict[int, int]) -> None:
        self.analysis = analysis
        self.can_share = can_share
        used = dict.fromkeys(v for values in analysis.leaves.values() for v in values)
        self.buffer: dict[int, Buffer] = {v: self._own_buffer(v, donations) for v in used}
        self.outputs = self._output_buffers(donations)
        self._output_leaves: dict[int, list[int]] = {}
        """By the id of a buffer: the leaves of the result that are returned in it."""
        for leaf, buffer in enumerate(self.outputs):
            self._output_leaves.setdefault(id(buffer), []).append(leaf)

    def _own_buffer(self, number: int, donations: dict[int, int]) -> Buffer:
        value = self.analysis.values[number]
        buffer = Buffer(value.size, [number], list(value.intervals), space=value.shape.array_layout.memory_space)
        if value.parameter is not None:
            buffer.fixed = (AllocationKind.PARAMETER, value.parameter)
            buffer.read_only = value.parameter not in donations.values()
        elif value.constant is not None:
            buffer.fixed = (AllocationKind.CONSTANT, number)
            buffer.read_only = True
        return buffer

    def _output_buffers(self, donations: dict[int, int]) -> list[Buffer]:
        """The buffers of results; donated parameters' buffers are used for this too."""
        end = self.analysis.end
        fixed = [(b, *b.fixed) for b in self.buffer.values() if b.fixed is not None]
        donated = {number: b for b, kind, number in fixed if kind is AllocationKind.PARAMETER}
        found = []
        for leaf, number in enumerate(self.analysis.outputs):
            handed_over = [(2 * end + 1, 2 * end + 2)]
            if leaf in donations:
                buffer = donated[donations[leaf]]
                assert buffer.size == self.analysis.values[number].size, "donated for a result of another size"
                buffer.intervals = merge_intervals([*buffer.intervals, *handed_over])
            else:
                value = self.analysis.values[number]
                buffer = Buffer(value.size, [], handed_over, (AllocationKind.OUTPUT, leaf))
                buffer.space = value.shape.array_layout.memory_space
            found.append(buffer)
        return found

    def run(self) -> Coalescing:
        analysis = self.analysis
        wishes: list[tuple[int, int, Callable[[], Buffer], Callable[[], Buffer]]] = []
        for transfer in analysis.transfers:
            for source, target in zip(transfer.sources, transfer.targets, strict=True):
                size = analysis.values[source].size
                wishes.append((-transfer.depth, -size, self._getter(source), self._getter(target)))
        for leaf, number in enumerate(analysis.outputs):
            wishes.append((0, -analysis.values[number].size, self._getter(number), self._output_getter(leaf)))
        in_place = []
        for time, instruction in analysis.computing.items():
            pairs = self._pairs(instruction)
            if pairs and _updates_a_slice(instruction):
                wishes.extend(
                    (-analysis.depths[time], -analysis.values[a].size, self._getter(a), self._getter(b))
                    for a, b in pairs
                )
            else:
                in_place.extend(pairs)
        wishes.sort(key=lambda w: w[:2])
        for _, _, first, second in wishes:
            self._share(first(), second())
        for a, b in in_place:
            self._share(self.buffer[a], self.buffer[b])
        result = Coalescing(self.buffer, tuple(self.outputs))
        self._sequence(result)
        return result

    def _getter(self, number: int) -> Callable[[], Buffer]:
        return lambda: self.buffer[number]

    def _output_getter(self, leaf: int) -> Callable[[], Buffer]:
        return lambda: self.outputs[leaf]

    def _pairs(self, instruction: HloInstruction) -> list[tuple[int, int]]:
        """(operand value, output value) pairs of `instruction` that may share as far as its code is concerned. For each
        output, the latest operand is the first. In an output fusion, which computes a product and the operations after
        it by rows, that is the product: both forms then have the same kernel."""
        values = self.analysis.values
        operands = sorted(enumerate(self.analysis.operand_values(instruction)), key=lambda o: -o[1])
        return [
            (a, b)
            for j, b in enumerate(self.analysis.leaves[instruction])
            for i, a in operands
            if values[a].size == values[b].size and values[a].size and self.can_share(instruction, i, j)
        ]

    def _share(self, a: Buffer, b: Buffer) -> bool:
        """Make `a` and `b` one buffer if that is sound."""
        if a is b:
            return True
        if a.size != b.size or not a.size or a.read_only or b.read_only or (a.fixed and b.fixed) or a.space != b.space:
            return False
        if len(a.intervals) + len(a.values) < len(b.intervals) + len(b.values):
            a, b = b, a
        if not self._compatible(a, b):
            return False
        for interval in b.intervals:
            _insert(a.intervals, interval)
        a.values += b.values
        a.fixed = a.fixed or b.fixed
        for number in b.values:
            self.buffer[number] = a
        moved = self._output_leaves.pop(id(b), None)
        if moved is not None:
            self._output_leaves.setdefault(id(a), []).extend(moved)
            for leaf in moved:
                self.outputs[leaf] = a
        return True

    def _compatible(self, large: Buffer, small: Buffer) -> bool:
        """True when the two are never needed at once, except where an instruction may write one over the other."""
        for start, end in small.intervals:
            position = max(bisect_left(large.intervals, (start, start)) - 1, 0)
            while position < len(large.intervals) and large.intervals[position][0] < end:
                other = large.intervals[position]
                low, high = max(start, other[0]), min(end, other[1])
                if low < high and not (high == low + 1 and low % 2 == 0 and self._overwrites(low // 2, large, small)):
                    return False
                position += 1
        return True

    def _overwrites(self, time: int, a: Buffer, b: Buffer) -> bool:
        """May the instruction at `time` write its results in one buffer over operands in the other?"""
        instruction = self.analysis.computing.get(time)
        if instruction is None:
            return False
        buffer = self.buffer
        operands = [buffer[v] for v in self.analysis.operand_values(instruction)]
        writes = False
        for j, number in enumerate(self.analysis.leaves[instruction]):
            target = buffer[number]
            if target is a or target is b:
                writes = True
                other = b if target is a else a
                if any(o is other and not self.can_share(instruction, i, j) for i, o in enumerate(operands)):
                    return False
        return writes

    def _sequence(self, result: Coalescing) -> None:
        """Turn each transfer into copies; a cycle goes through scratch memory."""
        last = Transfer(self.analysis.outputs, (), self.analysis.end, 0, block=self.analysis.entry)
        for transfer in (*self.analysis.transfers, last):
            targets = self.outputs if transfer is last else [self.buffer[v] for v in transfer.targets]
            pairs = zip((self.buffer[v] for v in transfer.sources), targets, strict=True)
            moves = [Move(source, target) for source, target in pairs if source is not target and source.size]
            if moves:
                result.moves.append((transfer, sequentialise(moves, transfer.time, result.scratch)))


def sequentialise(moves: Sequence[Move], time: int, scratch: list[Buffer]) -> tuple[Move, ...]:
    """Moves that happen at once, as moves one after the other; buffers that cycles need are added to `scratch`.

    Targets are distinct.
    """
    pending = list(moves)
    done: list[Move] = []
    while pending:
        read = {id(m.source) for m in pending}
        free = [m for m in pending if id(m.target) not in read]
        if free:
            done += free
            pending = [m for m in pending if id(m.target) in read]
            continue
        kept = pending[0].target
        spare = Buffer(kept.size, [], [(2 * time, 2 * time + 2)])
        scratch.append(spare)
        done.append(Move(kept, spare))
        pending = [Move(spare if m.source is kept else m.source, m.target) for m in pending]
    return tuple(done)


def _updates_a_slice(instruction: HloInstruction) -> bool:
    """True for an instruction that, unless in place, copies a whole array only to change a part of it."""
    if instruction.opcode is Opcode.FUSION:
        return any(i.opcode in _UPDATES for i in instruction.attributes.calls.instructions)
    return instruction.opcode in _UPDATES


_UPDATES = (Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER)


def _insert(intervals: list[Interval], new: Interval) -> None:
    """Add `new` to sorted, disjoint intervals, joining intervals that touch or overlap."""
    position = bisect_left(intervals, new)
    first = position - 1 if position and intervals[position - 1][1] >= new[0] else position
    last = first
    start, end = new
    while last < len(intervals) and intervals[last][0] <= end:
        start, end = min(start, intervals[last][0]), max(end, intervals[last][1])
        last += 1
    intervals[first:last] = [(start, end)]
