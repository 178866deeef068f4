"""Which results of a scheduled module are the same bytes, and when each of them is needed.

A *value* is the content of one leaf of an instruction's result. Instructions that move nothing (tuple,
get-tuple-element, bitcast, reshape) pass values on; so does a loop for leaves that its body returns unchanged.

Time: every instruction has a position on one line, callees between the start and the end of their caller, branches
one after the other. At position t operands are read in [2t, 2t+1) and results written in [2t, 2t+2); values are live
in half-open intervals of these half steps. Blocks (loop bodies, branches, the entry) end at a separate position: their
results are read in [2t, 2t+1) and transferred in [2t+1, 2t+2), all at once.

Only liveness belongs here; coalescing.py decides which values share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import accumulate

from ..ir import HloComputation, HloInstruction, HloModule
from ..layout import Layout
from ..literal import Literal
from ..opcode import Opcode
from ..shape import Shape
from ..support.disjoint_sets import DisjointSets
from ..support.records import dataclass

Interval = tuple[int, int]


def is_alias(instruction: HloInstruction) -> bool:
    """True when the result is the operands' bytes unchanged, so that no code runs for it.

    tuple, get-tuple-element, bitcast and opt-barrier always, and after-all, which has none; reshape when both layouts
    are row-major.
    """
    match instruction.opcode:
        case Opcode.TUPLE | Opcode.GET_TUPLE_ELEMENT | Opcode.BITCAST | Opcode.OPT_BARRIER | Opcode.AFTER_ALL:
            return True
        case Opcode.RESHAPE:
            layouts = (instruction.shape.array_layout, instruction.operands[0].shape.array_layout)
            return all(layout.is_dense and layout.is_monotonic_with_dim0_major for layout in layouts)
        case _:
            return False


def leaf_count(shape: Shape) -> int:
    """How many arrays a shape holds."""
    return 1 if shape.tuple_shapes is None else sum(map(leaf_count, shape.tuple_shapes))


class FirstLeaves:
    """The number of the first leaf in each element of a tuple, by the identity of its shape: tuples may have thousands
    of elements, and as many instructions take one out."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Shape, list[int]]] = {}

    def of(self, shape: Shape) -> list[int]:
        """One number for each element, and how many leaves there are."""
        known = self._known.get(id(shape))
        if known is None:
            known = self._known[id(shape)] = shape, [0, *accumulate(map(leaf_count, shape.elements))]
        return known[1]

    def number(self, shape: Shape, index: Sequence[int]) -> int:
        """`leaf_number`, for many leaves of a tuple."""
        number = 0
        for i in index:
            number += self.of(shape)[i]
            shape = shape.elements[i]
        return number


def leaf_number(shape: Shape, index: Sequence[int]) -> int:
    """The position of leaf `index` among the leaves of `shape`, depth first; the first one below it for a tuple."""
    return FirstLeaves().number(shape, index)


@dataclass(slots=True)
class Value:
    """One array in memory, first written by leaf `leaf` of `instruction`."""

    instruction: HloInstruction
    leaf: int
    shape: Shape
    size: int
    """Bytes, in the layout of `shape`."""
    intervals: list[Interval] = field(default_factory=list)
    """When it is needed: sorted intervals with gaps between them."""
    constant: Literal | None = None
    parameter: int | None = None
    """For a value that comes in from outside: the leaf number among all leaves of the entry's parameters."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Values that leave a block: source i becomes target i, all at once, at position `time`."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    time: int
    depth: int
    """Number of loops around it."""
    before: HloInstruction | None = None
    """The WHILE that it initialises; None: it is at the end of `block`."""
    block: HloComputation | None = None


@dataclass(slots=True)
class ValueAnalysis:
    """The values of a module, by number, and how they flow."""

    entry: HloComputation
    values: list[Value] = field(default_factory=list)
    leaves: dict[HloInstruction, tuple[int, ...]] = field(default_factory=dict)
    """The value numbers of each instruction's leaves."""
    transfers: list[Transfer] = field(default_factory=list)
    """In schedule order."""
    computing: dict[int, HloInstruction] = field(default_factory=dict)
    """By position: the instructions that run as code (not aliases, parameters, constants or control flow)."""
    depths: dict[int, int] = field(default_factory=dict)
    """By position in `computing`: the number of loops around it."""
    outputs: tuple[int, ...] = ()
    """The values of the entry's result."""
    end: int = 0
    """The entry's last position."""

    def operand_values(self, instruction: HloInstruction) -> list[int]:
        """The value numbers of all leaves of all operands."""
        return [v for operand in instruction.operands for v in self.leaves[operand]]


def analyse_values(module: HloModule, is_opaque: Callable[[HloInstruction], bool]) -> ValueAnalysis:
    """The values of a scheduled module in which each computation has one caller (opaque control flow is one kernel)."""
    numbering = _Numbering(is_opaque)
    parameters = []
    count = 0
    for parameter in module.entry.parameters:
        shapes = list(parameter.shape.leaves())
        parameters.append(tuple(numbering.fresh(parameter, i, s, count + i) for i, s in enumerate(shapes)))
        count += len(shapes)
    root = numbering.number(module.entry, parameters, 0)
    return _Liveness(numbering, module.entry).run(root)


@dataclass(slots=True)
class _Block:
    """A computation on the time line."""

    computation: HloComputation
    start: int
    depth: int
    end: int = 0
    root: tuple[int, ...] = ()
    starts: dict[HloInstruction, int] = field(default_factory=dict)
    """For control flow: the position before its computations."""
    ends: dict[HloInstruction, int] = field(default_factory=dict)
    """The position of each instruction; for control flow, after its computations."""


class _Numbering:
    """First walk: value numbers, equal values united, positions in time."""

    def __init__(self, is_opaque: Callable[[HloInstruction], bool]) -> None:
        self.is_opaque = is_opaque
        self.values: list[Value] = []
        self.sets: DisjointSets[int] = DisjointSets()
        """The numbers of equal values."""
        self.leaves: dict[HloInstruction, tuple[int, ...]] = {}
        self.blocks: dict[HloComputation, _Block] = {}
        self.constants: dict[tuple[Literal, Layout], int] = {}
        self.clock = 0
        self.first_leaves = FirstLeaves()

    def fresh(self, instruction: HloInstruction, leaf: int, shape: Shape, parameter: int | None = None) -> int:
        self.values.append(Value(instruction, leaf, shape, shape.byte_size, parameter=parameter))
        return len(self.values) - 1

    def fresh_leaves(self, instruction: HloInstruction) -> tuple[int, ...]:
        if instruction.shape.tuple_shapes is None:
            return (self.fresh(instruction, 0, instruction.shape),)
        return tuple(self.fresh(instruction, i, s) for i, s in enumerate(instruction.shape.leaves()))

    def tick(self) -> int:
        self.clock += 1
        return self.clock - 1

    def number(self, computation: HloComputation, parameters: Sequence[tuple[int, ...]], depth: int) -> tuple[int, ...]:
        """Number the values of a computation with the given parameter values; returns its root's."""
        assert computation not in self.blocks, f"{computation.name} has two callers: run flatten-call-graph first"
        block = self.blocks[computation] = _Block(computation, self.tick(), depth)
        leaves = self.leaves
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode is Opcode.PARAMETER:
                leaves[instruction] = parameters[instruction.attributes.number]
            elif opcode is Opcode.CONSTANT:
                leaves[instruction] = (self._constant(instruction),)
            elif is_alias(instruction):
                leaves[instruction] = self._alias(instruction)
            elif opcode in _CONTROL_FLOW and not self.is_opaque(instruction):
                block.starts[instruction] = self.tick()
                leaves[instruction] = _CONTROL_FLOW[opcode](self, instruction, depth)
            else:
                leaves[instruction] = self.fresh_leaves(instruction)
            block.ends[instruction] = self.tick()
        block.end = self.tick()
        block.root = leaves[computation.root]
        return block.root

    def _constant(self, instruction: HloInstruction) -> int:
        literal = instruction.attributes.literal
        key = literal, instruction.shape.array_layout
        value = self.constants.get(key)
        if value is None:
            value = self.constants[key] = self.fresh(instruction, 0, instruction.shape)
            self.values[value].constant = literal
        return value

    def _alias(self, instruction: HloInstruction) -> tuple[int, ...]:
        leaves = self.leaves
        if instruction.opcode in (Opcode.TUPLE, Opcode.AFTER_ALL):
            return tuple(v for o in instruction.operands for v in leaves[o])
        operand = instruction.operands[0]
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            first = self.first_leaves.of(operand.shape)[instruction.attributes.index]
            return leaves[operand][first : first + leaf_count(instruction.shape)]
        return leaves[operand]

    def _while(self, instruction: HloInstruction, depth: int) -> tuple[int, ...]:
        """The state has new values, except leaves that the body returns unchanged: these keep their initial values."""
        state = self.fresh_leaves(instruction)
        self.number(instruction.attributes.condition, (state,), depth + 1)
        results = self.number(instruction.attributes.body, (state,), depth + 1)
        for initial, own, result in zip(self.leaves[instruction.operands[0]], state, results, strict=True):
            if self.sets.find(own) == self.sets.find(result):
                self.sets.unite(initial, own)
        return state

    def _conditional(self, instruction: HloInstruction, depth: int) -> tuple[int, ...]:
        """A leaf that all branches return as the same value is that value."""
        branches = instruction.attributes.branch_computations
        roots = [self.number(b, (self.leaves[o],), depth) for b, o in zip(branches, instruction.operands[1:])]
        results = []
        for leaf, (shape, *returned) in enumerate(zip(instruction.shape.leaves(), *roots, strict=True)):
            same = len({self.sets.find(v) for v in returned}) == 1
            results.append(returned[0] if same else self.fresh(instruction, leaf, shape))
        return tuple(results)

    def _call(self, instruction: HloInstruction, depth: int) -> tuple[int, ...]:
        return self.number(instruction.attributes.to_apply, [self.leaves[o] for o in instruction.operands], depth)


_CONTROL_FLOW: dict[Opcode, Callable[[_Numbering, HloInstruction, int], tuple[int, ...]]] = {
    Opcode.WHILE: _Numbering._while,
    Opcode.CONDITIONAL: _Numbering._conditional,
    Opcode.CALL: _Numbering._call,
}


class _Needs:
    """The times at which one computation itself needs values; a value without a begin is a parameter."""

    def __init__(self) -> None:
        self.begins: dict[int, int] = {}
        self.ends: dict[int, int] = {}

    def read(self, values: Iterable[int], time: int) -> None:
        ends = self.ends
        for v in values:
            if ends.get(v, -1) < 2 * time + 1:
                ends[v] = 2 * time + 1

    def write(self, values: Iterable[int], time: int) -> None:
        for v in values:
            self.begins.setdefault(v, 2 * time)
            self.ends[v] = max(self.ends.get(v, -1), 2 * time + 2)


class _Liveness:
    """Second walk: when each value is needed, and the transfers of blocks."""

    def __init__(self, numbering: _Numbering, entry: HloComputation) -> None:
        self.numbering = numbering
        find = numbering.sets.find
        self.result = ValueAnalysis(
            entry, numbering.values, {i: tuple([find(v) for v in values]) for i, values in numbering.leaves.items()}
        )

    def run(self, root: tuple[int, ...]) -> ValueAnalysis:
        result = self.result
        for block in self.numbering.blocks.values():
            self._block(block)
        result.outputs = tuple(self.numbering.sets.find(v) for v in root)
        result.end = self.numbering.blocks[result.entry].end
        result.transfers.sort(key=lambda t: t.time)
        for value in result.values:
            value.intervals = merge_intervals(value.intervals)
        return result

    def _block(self, block: _Block) -> None:
        """Live intervals inside one computation, except inside the computations that it calls."""
        needs = _Needs()
        leaves, computing = self.result.leaves, self.result.computing
        for instruction, time in block.ends.items():
            if instruction in block.starts:
                self._control_flow(instruction, block, needs)
            elif instruction.opcode in _NO_CODE or is_alias(instruction):
                continue
            else:
                computing[time] = instruction
                self.result.depths[time] = block.depth
                needs.read(self.result.operand_values(instruction), time)
                needs.write(leaves[instruction], time)
        needs.read((self.numbering.sets.find(v) for v in block.root), block.end)
        for v, end in needs.ends.items():
            self.result.values[v].intervals.append((needs.begins.get(v, 2 * block.start), end))

    def _control_flow(self, instruction: HloInstruction, block: _Block, needs: _Needs) -> None:
        blocks, values, leaves = self.numbering.blocks, self.result.values, self.result.leaves
        start, end = block.starts[instruction], block.ends[instruction]
        results = leaves[instruction]
        needs.read(self.result.operand_values(instruction), start)
        if instruction.opcode is Opcode.WHILE:
            condition, body = (blocks[c] for c in instruction.called_computations())
            initial = leaves[instruction.operands[0]]
            own = [i for i, (a, b) in enumerate(zip(initial, results, strict=True)) if a != b]
            needs.read((v for i, v in enumerate(results) if initial[i] == v), end)
            targets = tuple(results[i] for i in own)
            needs.write(targets, end)
            for v in targets:
                values[v].intervals += [(2 * start + 1, 2 * condition.end + 2), (2 * body.end + 1, 2 * body.end + 2)]
            self._transfer([initial[i] for i in own], targets, start, block.depth, before=instruction)
            self._transfer([body.root[i] for i in own], targets, body.end, block.depth + 1, inside=body.computation)
        elif instruction.opcode is Opcode.CONDITIONAL:
            branches = [blocks[c] for c in instruction.attributes.branch_computations]
            own = [i for i, v in enumerate(results) if values[v].instruction is instruction]
            needs.read((v for i, v in enumerate(results) if i not in own), end)
            targets = tuple(results[i] for i in own)
            needs.write(targets, end)
            for branch in branches:
                for v in targets:
                    values[v].intervals.append((2 * branch.end + 1, 2 * branch.end + 2))
                sources = [branch.root[i] for i in own]
                self._transfer(sources, targets, branch.end, block.depth, inside=branch.computation)
        else:
            for v in results:
                if v not in needs.ends:  # made by the callee, not passed through
                    needs.begins[v] = 2 * end
            needs.read(results, end)

    def _transfer(
        self,
        sources: Sequence[int],
        targets: tuple[int, ...],
        time: int,
        depth: int,
        before: HloInstruction | None = None,
        inside: HloComputation | None = None,
    ) -> None:
        found = tuple(self.numbering.sets.find(v) for v in sources)
        self.result.transfers.append(Transfer(found, targets, time, depth, before, inside))


_NO_CODE = frozenset({Opcode.PARAMETER, Opcode.CONSTANT})


def merge_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals: sorted, those that touch joined."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged
