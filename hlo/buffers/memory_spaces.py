"""Which buffers are put into a small, fast memory: those that gain most.

A *group* is a set of buffers that must be in one memory, because values pass between them and types must agree: the
initial, the current and the next state of a loop; the results of branches and of their conditional. Groups with fixed
memory (arguments, results, constants) stay there.

A group's merit is the number of bytes that kernels read and write in it, divided by the product of its size in bytes
and the number of steps during which it is live. Groups are placed in the order of merit, all or nothing, if the heap
has room for the whole lifetime. So the answer consists of real offsets, and no fragmentation can break the limit. The
same list in the same order gives the same offsets again: the pass `memory-space-assignment` decides, and buffer
assignment, which sees the decision in the layouts, computes the same offsets.

Source of the idea: XLA's MemorySpaceAssignment without its prefetches and evictions: a buffer stays in one memory for
its whole lifetime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import islice

from ..analyses.trip_count import known_trip_count
from ..errors import VerificationError
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..support.disjoint_sets import DisjointSets
from ..support.records import dataclass
from ..target import MemorySpace
from .allocation import AllocationKind
from .coalescing import Buffer, Coalescing
from .heap import Heap, Request
from .values import ValueAnalysis, leaf_count

ASSUMED_TRIPS = 5
"""The assumed trip count of a loop if it is not known (XLA: memory_space_assignment/cost_analysis.h)."""

MOST_TIMES = 2**62
"""The largest count: the product of the trip counts of nested loops may exceed every float."""


@dataclass(slots=True, eq=False)
class Group:
    """Buffers that must be in one memory space. Compared by identity."""

    buffers: list[Buffer]
    traffic: int
    """Bytes read and written in it by one run of the program."""
    obstacle: str = ""
    """Why it cannot leave the main memory; empty if it can."""

    @property
    def merit(self) -> float:
        """Bytes moved for each byte that it uses for one step."""
        requests = map(request_of, self.buffers)
        return self.traffic / sum(r.size * (r.end - r.start) for r in requests)


def request_of(buffer: Buffer) -> Request:
    """The heap's request for a buffer without fixed memory.

    Whole schedule positions: a transfer reads and writes at one position, and its copies run one after the other.
    """
    return Request(buffer.size, buffer.intervals[0][0] // 2, (buffer.intervals[-1][1] + 1) // 2)


def room_in(space: MemorySpace, coalescing: Coalescing) -> int:
    """The bytes of `space` that remain beside arguments and results; their layouts may name it."""
    taken = sum(b.size for b in coalescing.all_buffers() if b.fixed is not None and b.space == space.number)
    return max(space.size - taken, 0)


def choose(groups: Sequence[Group], limit: int, alignment: int) -> set[Buffer]:
    """The buffers of the groups that fit into `limit` bytes."""
    heap = Heap(alignment, limit)
    chosen: set[Buffer] = set()
    for group in groups:
        if not group.obstacle and heap.add_all(list(map(request_of, group.buffers))) is not None:
            chosen.update(group.buffers)
    return chosen


@dataclass(slots=True)
class Arrangement:
    """The offsets of buffers in the fast memory, and why other buffers are not there."""

    offsets: dict[Buffer, int] = field(default_factory=dict)
    size: int = 0
    reasons: dict[Buffer, str] = field(default_factory=dict)
    """For each buffer that is not there: why."""


def arrange(groups: Sequence[Group], space: int, limit: int | None, alignment: int) -> Arrangement:
    """The offsets of the buffers with layouts that name `space`; for buffers that `choose` chose, the offsets it found.

    VerificationError if they do not end below `limit`.
    """
    heap = Heap(alignment)
    result = Arrangement()
    for group in groups:
        there = [b for b in group.buffers if b.fixed is None and b.space == space]
        if there:
            offsets = heap.add_all(list(map(request_of, there)))
            assert offsets is not None
            result.offsets.update(zip(there, offsets, strict=True))
        elif limit is not None:
            result.reasons.update(dict.fromkeys(group.buffers, _reason(group, heap, limit)))
    result.size = heap.size
    if limit is not None and heap.size > limit:
        raise VerificationError(
            f"buffers in memory space {space} take {heap.size:,} bytes, but it has {limit:,}: they must have been put "
            "there by memory-space-assignment, with the same limit and the same rule of sharing [buffer_c7]"
        )
    return result


def _reason(group: Group, heap: Heap, limit: int) -> str:
    if group.obstacle:
        return group.obstacle
    largest = max(b.size for b in group.buffers)
    if largest > limit:
        return "too large"
    return "not put there" if heap.has_room_for(list(map(request_of, group.buffers)), limit) else "no room"


def groups_by_merit(analysis: ValueAnalysis, coalescing: Coalescing) -> list[Group]:
    """All buffers in groups: first those that may move, the best first, then the others."""
    traffic = _traffic(analysis, coalescing)
    groups = [
        Group(buffers, sum(traffic.get(b, 0) for b in buffers), _obstacle(buffers, analysis))
        for buffers in _united(analysis, coalescing)
    ]
    returned = {coalescing.buffers[v] for v in analysis.outputs}
    scratch = set(coalescing.scratch)
    for group in groups:
        if not group.obstacle and any(b in returned for b in group.buffers):
            group.obstacle = "copied to a result"
        elif not group.obstacle and any(b in scratch for b in group.buffers):
            group.obstacle = "scratch memory"
        elif not group.obstacle and not group.traffic:
            group.obstacle = "never accessed"
    movable = [(-g.merit, -sum(b.size for b in g.buffers), k) for k, g in enumerate(groups) if not g.obstacle]
    return [*(groups[k] for _, _, k in sorted(movable)), *(g for g in groups if g.obstacle)]


def _obstacle(buffers: list[Buffer], analysis: ValueAnalysis) -> str:
    for buffer in buffers:
        if buffer.fixed is None:
            continue
        kind, index = buffer.fixed
        is_constant = kind is AllocationKind.CONSTANT
        what = f"{_FIXED[kind]} {analysis.values[index].instruction.name if is_constant else index}"
        return what if len(buffers) == 1 else f"handed on with {what}"
    return "" if any(b.size for b in buffers) else "empty"


_FIXED = {
    AllocationKind.PARAMETER: "argument", AllocationKind.OUTPUT: "result", AllocationKind.CONSTANT: "constant",
}  # fmt: skip


def _united(analysis: ValueAnalysis, coalescing: Coalescing) -> list[list[Buffer]]:
    """The buffers in lists; buffers between which values are transferred are in one list."""
    buffers = coalescing.all_buffers()
    sets: DisjointSets[Buffer] = DisjointSets()
    for transfer in analysis.transfers:
        for source, target in zip(transfer.sources, transfer.targets, strict=True):
            sets.unite(coalescing.buffers[target], coalescing.buffers[source])
    found: dict[Buffer, list[Buffer]] = {}
    for buffer in buffers:
        found.setdefault(sets.find(buffer), []).append(buffer)
    return list(found.values())


def _traffic(analysis: ValueAnalysis, coalescing: Coalescing) -> dict[Buffer, int]:
    """Bytes read and written in each buffer, multiplied by the trip counts of loops."""
    found: dict[Buffer, int] = {}

    def add(buffer: Buffer, nbytes: int) -> None:
        found[buffer] = found.get(buffer, 0) + nbytes

    times, values = _times(analysis.entry), analysis.values
    for instruction in analysis.computing.values():
        often = times[instruction]
        read: dict[int, int] = {}
        numbers = analysis.operand_values(instruction)
        for number, nbytes in zip(numbers, _bytes_read(instruction, [values[v].size for v in numbers]), strict=True):
            read[number] = max(read.get(number, 0), nbytes)
        for number, nbytes in read.items():
            add(coalescing.buffers[number], often * nbytes)
        numbers = list(analysis.leaves[instruction])
        for number, nbytes in zip(numbers, _bytes_written(instruction, [values[v].size for v in numbers]), strict=True):
            add(coalescing.buffers[number], often * nbytes)
    for transfer, moves in coalescing.moves:
        beside = transfer.before or (transfer.block.root if transfer.block is not None else None)
        assert beside is not None
        for move in moves:
            add(move.source, times[beside] * move.source.size)
            add(move.target, times[beside] * move.target.size)
    return found


def _times(entry: HloComputation) -> dict[HloInstruction, int]:
    """How often each instruction runs: once in the entry; in a loop's body its known or assumed trip count; in branches
    as if each were taken."""
    found: dict[HloInstruction, int] = {}
    todo = [(entry, 1)]
    while todo:
        computation, times = todo.pop()
        for instruction in computation.instructions:
            found[instruction] = times
            if instruction.opcode is Opcode.WHILE:
                trips = known_trip_count(instruction)
                inside = min(times * (ASSUMED_TRIPS if trips is None else trips), MOST_TIMES)
                todo += [(instruction.attributes.condition, inside + times), (instruction.attributes.body, inside)]
            elif instruction.opcode in (Opcode.CONDITIONAL, Opcode.CALL):
                todo += [(called, times) for called in instruction.called_computations()]
    return found


def _bytes_read(instruction: HloInstruction, sizes: Sequence[int]) -> Iterator[int]:
    """Bytes read of each leaf of the operands, which have these sizes: all, unless only a slice is read."""
    rest = iter(sizes)
    for number, operand in enumerate(instruction.operands):
        if operand.shape.is_array:
            yield _share(next(rest), _elements_read(instruction, number), operand.shape)
        else:
            yield from islice(rest, leaf_count(operand.shape))


def _elements_read(instruction: HloInstruction, number: int) -> int:
    """Elements of an operand, an array, that `instruction` reads."""
    if instruction.opcode is not Opcode.FUSION:
        return _part_read(instruction, instruction.operands[number])
    body: HloComputation = instruction.attributes.calls
    parameter = body.parameters[number]
    if parameter is body.root:
        return parameter.shape.num_elements
    return sum(_part_read(user, parameter) for user in body.users[parameter])


def _part_read(user: HloInstruction, operand: HloInstruction) -> int:
    if user.operands[0] is operand and user.operands.count(operand) == 1:
        if user.opcode in _SLICES:
            return user.shape.num_elements
        if user.opcode in _UPDATES and user.shape.is_array:  # works in place
            return 0
    return operand.shape.num_elements


_SLICES = frozenset({Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.GATHER})
_UPDATES = frozenset({Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER})


def _bytes_written(instruction: HloInstruction, sizes: Sequence[int]) -> Iterator[int]:
    """Bytes written to each leaf of the result, which have these sizes: all, unless a slice is updated in place."""
    parts = instruction.attributes.calls.roots if instruction.opcode is Opcode.FUSION else (instruction,)
    rest = iter(sizes)
    for part in parts:
        if part.opcode in _UPDATES and part.shape.is_array:
            update = part.operands[1 if part.opcode is Opcode.DYNAMIC_UPDATE_SLICE else -1]
            yield _share(next(rest), update.shape.num_elements, part.shape)
        else:
            yield from islice(rest, leaf_count(part.shape))


def _share(size: int, elements: int, array: Shape) -> int:
    """The bytes of some of the elements of an array; each has an equal share of the padding."""
    whole = array.num_elements
    return size if elements >= whole else size * elements // whole
