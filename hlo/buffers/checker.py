"""An independent check of a buffer assignment: runs the module symbolically and tracks the contents of memory.

It shares no liveness or coalescing with buffer assignment. Memory holds *contents*: one number for each array that is
written. Loops run twice, conditionals once for each branch. Every read must find the contents that the dataflow
requires.

A loop that is reached again with the same contents at the same addresses, except for their numbers, is not run again:
otherwise the work would double with each nested loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..errors import VerificationError
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from .assignment import ALIGNMENT, AllocationKind, BufferAssignment, BufferCopy, BufferSlice, CanShare, is_alias

Contents = tuple[int, ...]
"""The contents of the leaves of a value."""


def verify_buffers(
    assignment: BufferAssignment,
    can_share: CanShare,
    *,
    is_opaque: Callable[[HloInstruction], bool] = lambda instruction: False,
) -> None:
    """VerificationError if a run of the module by `assignment` would read wrong contents.

    Labels: buffer_c1 a read finds other contents; buffer_c2 a write goes to memory that it must not change; buffer_c3 a
    result overlaps an operand that the code cannot overwrite, or another result; buffer_c4 a slice is outside of the
    arena or not aligned; buffer_c5 a copy overlaps itself or reads memory that was not written; buffer_c6 a slice is in
    another memory space than the layout says, or has another size than the shape; buffer_c7 a memory space holds more
    than its limit.
    """
    _Checker(assignment, can_share, is_opaque).run()


def _fail(label: str, why: str) -> None:
    raise VerificationError(f"{why} [{label}]")


class _Memory:
    """The contents of each slice; a write removes everything that overlaps."""

    def __init__(self, cells: dict[tuple[str, int], dict[BufferSlice, int]] | None = None) -> None:
        self.cells = cells or {}

    def copy(self) -> _Memory:
        return _Memory({key: dict(cells) for key, cells in self.cells.items()})

    def read(self, place: BufferSlice) -> int | None:
        return self.cells.get(_key(place), {}).get(place)

    def write(self, place: BufferSlice, contents: int) -> None:
        cells = self.cells.setdefault(_key(place), {})
        for other in [other for other in cells if other.overlaps(place)]:
            del cells[other]
        cells[place] = contents

    def intersect(self, others: Sequence[_Memory]) -> None:
        """Remove contents that not all of the others hold."""
        for key, cells in self.cells.items():
            for place, contents in list(cells.items()):
                if any(o.cells.get(key, {}).get(place) != contents for o in others):
                    del cells[place]


_Situation = tuple[tuple[tuple[BufferSlice, int], ...], Contents]
"""The contents of memory, and the contents of a value."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The situation after a loop."""

    situation: _Situation
    new: int
    """The number of contents that did not exist before the loop."""


def _key(place: BufferSlice) -> tuple[str, int]:
    return place.allocation.kind.value, place.allocation.index


def _content(number: int, contents: Sequence[int]) -> int:
    return number if number < 0 else contents[number]


class _Checker:
    def __init__(
        self, assignment: BufferAssignment, can_share: CanShare, is_opaque: Callable[[HloInstruction], bool]
    ) -> None:
        self.assignment = assignment
        self.can_share = can_share
        self.is_opaque = is_opaque
        self.memory = _Memory()
        self.count = 0
        self.outcomes: dict[tuple[HloInstruction, _Situation], _Outcome] = {}
        donated = {s.allocation.index for s in assignment.outputs if s.allocation.kind is AllocationKind.PARAMETER}
        self.writable_parameters = donated

    def fresh(self, number: int) -> Contents:
        self.count += number
        return tuple(range(self.count - number, self.count))

    def run(self) -> None:
        assignment = self.assignment
        entry = assignment.module.entry
        for instruction, places in assignment.slices.items():
            for place, shape in zip(places, instruction.shape.leaves(), strict=True):
                self.check_bounds(place)
                self.check_space(place, shape, instruction)
        self.check_limit()
        parameters = []
        for parameter in entry.parameters:
            contents = self.fresh(len(assignment.leaves(parameter)))
            for place, content in zip(assignment.leaves(parameter), contents, strict=True):
                self.memory.write(place, content)
            parameters.append(contents)
        for number, _ in enumerate(assignment.constants):
            self.constant(number)
        root = self.block(entry, parameters)
        self.copy(assignment.copies_at_end(entry))
        self.expect(assignment.outputs, root, f"the result of {entry.name}")
        for i, place in enumerate(assignment.outputs):
            if any(place.overlaps(other) for other in assignment.outputs[:i]):
                _fail("buffer_c3", f"output {i} overlaps another output")

    def constant(self, number: int) -> None:
        places = {
            p
            for places in self.assignment.slices.values()
            for p in places
            if p.allocation.kind is AllocationKind.CONSTANT and p.allocation.index == number
        }
        for place in places:
            self.memory.write(place, -1 - number)

    def check_bounds(self, place: BufferSlice) -> None:
        if place.offset % ALIGNMENT or place.offset + place.size > place.allocation.size:
            _fail("buffer_c4", f"{place} is not aligned or lies outside of its allocation")

    def check_space(self, place: BufferSlice, shape: Shape, instruction: HloInstruction) -> None:
        allocation, space = place.allocation, shape.array_layout.memory_space
        if allocation.kind is AllocationKind.ARENA and allocation.index != space:
            _fail("buffer_c6", f"{instruction.name}, {shape.to_text()}, lies in {place}")
        if place.size != shape.byte_size:
            _fail("buffer_c6", f"{instruction.name}, {shape.to_text()} of {shape.byte_size} bytes, has {place.size}")

    def check_limit(self) -> None:
        fast = self.assignment.fast_memory
        if fast is None:
            return
        ends = {
            place.offset + place.size
            for places in self.assignment.slices.values()
            for place in places
            if place.allocation.kind is AllocationKind.ARENA and place.allocation.index == fast.number
        }
        entry = self.assignment.module.entry
        outside = {
            place.allocation: place.size
            for place, leaf in (
                *zip(self.assignment.parameters, (s for p in entry.parameters for s in p.shape.leaves()), strict=True),
                *zip(self.assignment.outputs, entry.root.shape.leaves(), strict=True),
            )
            if leaf.array_layout.memory_space == fast.number
        }
        room = max(fast.size - sum(outside.values()), 0)
        if max(ends, default=0) > room:
            _fail("buffer_c7", f"{fast} has {room} bytes of {fast.size} left, and a buffer ends at {max(ends)}")

    def expect(self, places: Iterable[BufferSlice], contents: Contents, what: str) -> None:
        for leaf, (place, content) in enumerate(zip(places, contents, strict=True)):
            if place.size and self.memory.read(place) != content:
                _fail("buffer_c1", f"leaf {leaf} of {what} should lie in {place}, which holds something else")

    def write(self, place: BufferSlice, content: int, what: str) -> None:
        kind, index = place.allocation.kind, place.allocation.index
        if kind is AllocationKind.CONSTANT or (
            kind is AllocationKind.PARAMETER and index not in self.writable_parameters
        ):
            _fail("buffer_c2", f"{what} writes to {place}")
        if place.size:
            self.memory.write(place, content)

    def copy(self, copies: Iterable[BufferCopy]) -> None:
        for copy in copies:
            content = self.memory.read(copy.source)
            if content is None or copy.source.size != copy.target.size or copy.source.overlaps(copy.target):
                _fail("buffer_c5", f"bad copy {copy.target} <- {copy.source}")
                return
            self.write(copy.target, content, "a copy")

    def block(self, computation: HloComputation, arguments: Sequence[Contents]) -> Contents:
        """Run a computation; check that its root is in the slices of the assignment."""
        known: dict[HloInstruction, Contents] = {}
        for instruction in computation.instructions:
            known[instruction] = self.step(instruction, known, arguments)
        root = computation.root
        self.expect(self.assignment.leaves(root), known[root], f"root {root.name}")
        return known[root]

    def step(
        self, instruction: HloInstruction, known: dict[HloInstruction, Contents], arguments: Sequence[Contents]
    ) -> Contents:
        opcode = instruction.opcode
        if opcode is Opcode.PARAMETER:
            number: int = instruction.attributes.number
            return arguments[number]
        if opcode is Opcode.CONSTANT:
            return (-1 - self.assignment.slice(instruction).allocation.index,)
        operands = [known[o] for o in instruction.operands]
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            shapes = instruction.operands[0].shape.elements
            first = sum(len(list(s.leaves())) for s in shapes[: instruction.attributes.index])
            return operands[0][first : first + len(list(instruction.shape.leaves()))]
        flat = tuple(c for contents in operands for c in contents)
        if is_alias(instruction):
            return flat
        self.expect(self.assignment.operand_leaves(instruction), flat, f"the operands of {instruction.name}")
        if not self.is_opaque(instruction):
            if opcode is Opcode.WHILE:
                return self.loop(instruction, flat)
            if opcode is Opcode.CONDITIONAL:
                return self.conditional(instruction, operands)
            if opcode is Opcode.CALL:
                callee: HloComputation = instruction.attributes.to_apply
                return self.block(callee, operands)
        return self.compute(instruction)

    def compute(self, instruction: HloInstruction) -> Contents:
        places, operands = self.assignment.leaves(instruction), self.assignment.operand_leaves(instruction)
        for j, place in enumerate(places):
            for i, operand in enumerate(operands):
                if place.overlaps(operand) and not (place == operand and self.can_share(instruction, i, j)):
                    _fail("buffer_c3", f"leaf {j} of {instruction.name} overwrites its operand leaf {i} at {operand}")
            if any(place.overlaps(other) for other in places[:j]):
                _fail("buffer_c3", f"leaf {j} of {instruction.name} overlaps another leaf")
        contents = self.fresh(len(places))
        for place, content in zip(places, contents, strict=True):
            self.write(place, content, instruction.name)
        return contents

    def loop(self, instruction: HloInstruction, state: Contents) -> Contents:
        numbers: dict[int, int] = {}
        key = instruction, self.situation(state, numbers)
        found = self.outcomes.get(key)
        if found is None:
            result = self.iterations(instruction, state)
            known = len(numbers)
            after = self.situation(result, numbers)
            self.outcomes[key] = _Outcome(after, len(numbers) - known)
            return result
        contents = [*numbers, *self.fresh(found.new)]
        cells, result = found.situation
        self.memory = _Memory()
        for place, content in cells:
            self.memory.cells.setdefault(_key(place), {})[place] = _content(content, contents)
        return tuple([_content(c, contents) for c in result])

    def situation(self, state: Contents, numbers: dict[int, int]) -> _Situation:
        """The contents of memory and of `state`, numbered in the order of first occurrence; `numbers` is extended by
        new ones. Constants keep their own numbers."""

        def number(content: int) -> int:
            return content if content < 0 else numbers.setdefault(content, len(numbers))

        cells = [cell for held in self.memory.cells.values() for cell in held.items()]
        cells.sort(key=lambda cell: (*_key(cell[0]), cell[0].offset, cell[0].size))
        return tuple([(place, number(content)) for place, content in cells]), tuple([number(c) for c in state])

    def iterations(self, instruction: HloInstruction, state: Contents) -> Contents:
        assignment = self.assignment
        condition, body = instruction.attributes.condition, instruction.attributes.body
        places = assignment.leaves(instruction)
        self.copy(assignment.copies_before(instruction))
        self.expect(places, state, f"the initial state of {instruction.name}")
        for _ in range(2):
            self.block(condition, [state])
            state = self.block(body, [state])
            self.copy(assignment.copies_at_end(body))
            self.expect(places, state, f"the next state of {instruction.name}")
        self.block(condition, [state])
        return state

    def conditional(self, instruction: HloInstruction, operands: Sequence[Contents]) -> Contents:
        places = self.assignment.leaves(instruction)
        start, ends, results = self.memory, [], []
        for branch, operand in zip(instruction.attributes.branch_computations, operands[1:], strict=True):
            self.memory = start.copy()
            results.append(self.block(branch, [operand]))
            self.copy(self.assignment.copies_at_end(branch))
            self.expect(places, results[-1], f"the result of {branch.name}")
            ends.append(self.memory)
        self.memory = ends[0]
        self.memory.intersect(ends[1:])
        merged = []
        for place, *contents in zip(places, *results, strict=True):
            if len(set(contents)) == 1:
                merged.append(contents[0])
            else:
                merged += self.fresh(1)
                self.write(place, merged[-1], instruction.name)
        return tuple(merged)
