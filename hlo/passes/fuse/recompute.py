"""Which values of a scheduled computation are computed again, and the computation that does so.

The subject is one position of the schedule, where too many bytes are alive. A value that was computed before it and has
its next use after it can be dropped there, and computed again just before that use. Its operands are alive anyway, or
are computed again too. All values that one such use needs are its *closure*; they are alive at the same time, so
`Limits` bounds their bytes, and also the time for each saved byte. With a chain of layers this gives checkpoints: as
many values in a row are dropped as a closure may hold, then one is kept.

A fusion computes only the needed results again, and from its other results where these are kept: an activation from the
sum before it, without the product that made the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from ...analyses.cost import cost_of
from ...buffers.values import FirstLeaves, is_alias, leaf_count
from ...builder import make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ...effects import has_side_effect
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops.structure import FusionAttributes, FusionKind
from ...provenance import note_made, note_replacements
from ...support.records import dataclass

BYTES_A_SECOND, FLOPS_A_SECOND = 1e10, 5e10
"""Of one kernel, roughly: they weigh a product against an operation on elements."""

_GIVEN = frozenset({Opcode.PARAMETER, Opcode.CONSTANT})
_NEVER_AGAIN = frozenset({Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.CUSTOM_CALL, *_GIVEN})
"""Opcodes that are not computed again: control flow, which has buffers of its own, and code of others."""


class Leaf(NamedTuple):
    """An array in memory: result `number` of an instruction that runs as code, or of a parameter or constant."""

    instruction: HloInstruction
    number: int


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds_a_byte`: the most time to compute a value again, for each byte that it takes. `closure`: the most bytes
    that are computed again for one use."""

    seconds_a_byte: float
    closure: float


class Liveness:
    """The leaves of a scheduled computation by position: where each is made and read, and how many bytes are alive."""

    def __init__(self, computation: HloComputation, inner: Mapping[HloComputation, int]) -> None:
        """`inner`: the most bytes alive inside of each computation that control flow calls."""
        self.computation = computation
        self.made: dict[Leaf, int] = {}
        self.reads: dict[Leaf, list[int]] = {}
        self.leaves: dict[HloInstruction, tuple[Leaf, ...]] = {}
        self.size: dict[Leaf, int] = {}
        """Bytes; parameters and constants are there in any case, and have none."""
        self._first_leaves = FirstLeaves()
        self.costs: dict[HloComputation, Counter[str]] = {}
        """See `cost_of`."""
        extra: dict[int, int] = {}
        for position, instruction in enumerate(computation.instructions):
            read = [leaf for operand in instruction.operands for leaf in self.leaves[operand]]
            if is_alias(instruction):
                self.leaves[instruction] = self._of_alias(instruction)
                continue
            shapes = list(instruction.shape.leaves())
            own = self.leaves[instruction] = tuple([Leaf(instruction, k) for k, _ in enumerate(shapes)])
            for leaf, shape in zip(own, shapes, strict=True):
                self.size[leaf] = 0 if instruction.opcode in _GIVEN else shape.byte_size
            for leaf in read:
                self.reads[leaf].append(position)
            for leaf in own:
                self.made[leaf], self.reads[leaf] = position, []
            if instruction.opcode in _NEVER_AGAIN:
                extra[position] = max((inner.get(c, 0) for c in instruction.called_computations()), default=0)
        self.end = len(computation.instructions)
        for leaf in self.leaves[computation.root]:
            self.reads[leaf].append(self.end)
        self.bytes = self._bytes(extra)
        self.peak = max(self.bytes, default=0)

    def _of_alias(self, instruction: HloInstruction) -> tuple[Leaf, ...]:
        if instruction.opcode is not Opcode.GET_TUPLE_ELEMENT:
            return tuple([leaf for operand in instruction.operands for leaf in self.leaves[operand]])
        operand = instruction.operands[0]
        first = self._first_leaves.of(operand.shape)[instruction.attributes.index]
        return self.leaves[operand][first : first + leaf_count(instruction.shape)]

    def _bytes(self, extra: Mapping[int, int]) -> list[int]:
        changes = [0] * (self.end + 1)
        for leaf, position in self.made.items():
            size = self.size[leaf]
            changes[position] += size
            changes[min(self.last(leaf) + 1, self.end)] -= size
        total, found = 0, []
        for position in range(self.end):
            total += changes[position]
            found.append(total + extra.get(position, 0))
        return found

    def last(self, leaf: Leaf) -> int:
        """The position of the last use."""
        reads = self.reads[leaf]
        return reads[-1] if reads else self.made[leaf]

    def is_alive(self, leaf: Leaf, position: int) -> bool:
        """Whether a leaf has its memory while the instruction at a position runs."""
        return leaf.instruction.opcode in _GIVEN or self.made[leaf] <= position <= self.last(leaf)

    def may_go(self, leaf: Leaf, position: int) -> bool:
        """Whether a leaf is alive at a position, is not used there, and is no result of the computation."""
        uses = self.reads[leaf]
        if not self.made[leaf] < position or not uses or uses[-1] <= position or uses[-1] == self.end:
            return False
        after = bisect_left(uses, position)
        return uses[after] != position


class Sources(NamedTuple):
    """`leaves`: those that are read. `cut`: the other results of the fusion that are read as they are; None: the
    instruction is computed again with all its results."""

    leaves: set[Leaf]
    cut: frozenset[int] | None


@dataclass(slots=True)
class Plan:
    """The leaves that are dropped at a position, in program order, and those of each instruction to compute again."""

    liveness: Liveness
    position: int
    dropped: dict[Leaf, None] = field(default_factory=dict)
    again: dict[HloInstruction, set[int]] = field(default_factory=dict)
    seconds: float = 0.0
    """About how long it takes to compute them again."""

    def sources(self, leaf: Leaf) -> Sources:
        """The values from which a leaf is computed again. A nest that reduces keeps partial results in its outputs, and
        the code for it relies on all of them: it is computed whole, as is everything that is no fusion."""
        instruction, leaves = leaf.instruction, self.liveness.leaves
        operands: Iterable[HloInstruction] = instruction.operands
        cut: frozenset[int] | None = None
        if instruction.opcode is Opcode.FUSION:
            nodes, found = self._nodes(leaf)
            if not any(node.opcode is Opcode.REDUCE for node in nodes):
                cut = frozenset(found)
                operands = [instruction.operands[n.attributes.number] for n in nodes if n.opcode is Opcode.PARAMETER]
        return Sources({found for operand in operands for found in leaves[operand]}, cut)

    def _nodes(self, leaf: Leaf) -> tuple[set[HloInstruction], set[int]]:
        """The instructions in a fusion that compute a leaf from its parameters and its kept results, and the latter."""
        outputs = leaf.instruction.attributes.calls.roots
        kept = {
            node: k
            for k, node in enumerate(outputs)
            if node is not outputs[leaf.number] and self._is_kept(Leaf(leaf.instruction, k))
        }
        cut, stack, seen = set[int](), [outputs[leaf.number]], set[HloInstruction]()
        while stack:
            node = stack.pop()
            if node in kept:
                cut.add(kept[node])
            elif node not in seen:
                seen.add(node)
                stack.extend(node.operands)
        return seen, cut

    def _is_kept(self, leaf: Leaf) -> bool:
        return leaf not in self.dropped and self.liveness.is_alive(leaf, self.position)

    def closure(self, leaf: Leaf, limits: Limits) -> dict[HloInstruction, set[int]] | None:
        """The leaves to compute again, by instruction, if `leaf` is dropped; None if one of them cannot be, or if they
        are too many bytes."""
        found: dict[HloInstruction, set[int]] = {}
        stack, size = [leaf], 0
        while stack:
            leaf = stack.pop()
            numbers = found.setdefault(leaf.instruction, set())
            if leaf.number in numbers:
                continue
            if not can_run_again(leaf.instruction):
                return None
            sources = self.sources(leaf)
            again = self.liveness.leaves[leaf.instruction] if sources.cut is None else (leaf,)
            size += sum(self.liveness.size[leaf] for leaf in again if leaf.number not in numbers)
            numbers.update([leaf.number for leaf in again])
            if size > limits.closure:
                return None
            stack.extend(s for s in sources.leaves if not self._is_kept(s))
        return found

    def drop(self, leaf: Leaf, limits: Limits) -> None:
        """Drop a leaf, if that is possible within the limits."""
        size = self.liveness.size[leaf]
        self.dropped[leaf] = None
        closure = self.closure(leaf, limits)
        if closure is not None:
            seconds = sum(self._seconds(i) for i in closure if i not in self.again)
            if seconds <= limits.seconds_a_byte * size:
                self.seconds += seconds
                for instruction, numbers in closure.items():
                    self.again.setdefault(instruction, set()).update(numbers)
                return
        del self.dropped[leaf]

    def _seconds(self, instruction: HloInstruction) -> float:
        cost = cost_of(instruction, self.liveness.costs)
        operations = cost["flops"] + cost["transcendentals"]
        return operations / FLOPS_A_SECOND + cost["bytes accessed"] / BYTES_A_SECOND


def can_run_again(instruction: HloInstruction) -> bool:
    """Whether an instruction may run twice, and computes the same both times."""
    nested = any(shape.is_tuple for shape in instruction.shape.tuple_shapes or ())
    return instruction.opcode not in _NEVER_AGAIN and not nested and not has_side_effect(instruction)


def candidates(liveness: Liveness, position: int) -> list[Leaf]:
    """The leaves that may be dropped at a position, operands before what is computed from them."""
    found = []
    for instruction in liveness.computation.instructions[:position]:
        leaves = liveness.leaves[instruction]
        if is_alias(instruction) or not can_run_again(instruction):
            continue
        going = [leaf for leaf in leaves if liveness.size[leaf] and liveness.may_go(leaf, position)]
        if len(going) > 1 and instruction.opcode is Opcode.FUSION:
            order = {node: k for k, node in enumerate(instruction.attributes.calls.instructions)}
            outputs = instruction.attributes.calls.roots
            going.sort(key=lambda leaf: order[outputs[leaf.number]])
        found += going
    return found


def plan(liveness: Liveness, position: int, limits: Limits, most: int | None = None) -> Plan:
    """Drop as many leaves at a position as the limits allow, in program order; at most so many."""
    made = Plan(liveness, position)
    for leaf in candidates(liveness, position):
        if most is not None and len(made.dropped) >= most:
            break
        made.drop(leaf, limits)
    return made


def with_plan(made: Plan) -> HloComputation:
    """The computation in which the dropped leaves are computed again before their first use after the position."""
    return _Writer(made).write()


class _Writer:
    def __init__(self, made: Plan) -> None:
        self.plan, self.liveness = made, made.liveness
        self.positions = {i: n for n, i in enumerate(made.liveness.computation.instructions)}
        self.order: dict[HloInstruction, None] = {}
        self.seen: dict[HloInstruction, HloInstruction] = {}
        """Instructions as those behind the position see them: moved to new operands, or copies of aliases."""
        self.copies: dict[Leaf, HloInstruction] = {}
        """The leaves that are computed again."""

    def write(self) -> HloComputation:
        computation = self.liveness.computation
        for position, old in enumerate(computation.instructions):
            if position <= self.plan.position or old.opcode in _GIVEN:
                self.order[old] = None
            elif not is_alias(old):
                new = self.seen[old] = old.with_operands(self.operands(old.operands))
                self.order[new] = None
        (root,) = self.operands((computation.root,))
        return HloComputation(computation.name, tuple(self.order), root)

    def operands(self, olds: Sequence[HloInstruction]) -> tuple[HloInstruction, ...]:
        """Operands of an instruction behind the position; what must be computed again for them is made first."""
        self._compute_again([leaf for old in olds for leaf in self.liveness.leaves[old]])
        return tuple([self._as_seen(old) for old in olds])

    def _is_again(self, leaf: Leaf) -> bool:
        return leaf.number in self.plan.again.get(leaf.instruction, ())

    def _compute_again(self, leaves: Iterable[Leaf]) -> None:
        needed: dict[HloInstruction, None] = {}
        stack = [leaf for leaf in leaves if self._is_again(leaf)]
        while stack:
            leaf = stack.pop()
            instruction = leaf.instruction
            if leaf in self.copies or instruction in needed:
                continue
            needed[instruction] = None
            for number in self.plan.again[instruction]:
                stack.extend(s for s in self.plan.sources(Leaf(instruction, number)).leaves if self._is_again(s))
        for instruction in sorted(needed, key=self.positions.__getitem__):
            self._copy(instruction)

    def _as_seen(self, old: HloInstruction) -> HloInstruction:
        """`old`, as instructions behind the position see it; its leaves are there already."""
        found = self.seen.get(old)
        if found is not None:
            return found
        leaves = self.liveness.leaves[old]
        if not is_alias(old):
            new = self._whole(old, leaves)
        elif old.opcode is Opcode.GET_TUPLE_ELEMENT and old.shape.tuple_shapes is None and leaves[0] in self.copies:
            new = self.copies[leaves[0]]
        else:
            new = old.with_operands(tuple([self._as_seen(operand) for operand in old.operands]))
            self.order[new] = None
        self.seen[old] = new
        return new

    def _whole(self, old: HloInstruction, leaves: Sequence[Leaf]) -> HloInstruction:
        """An instruction before the position. Some of its results are computed again."""
        if not any(leaf in self.copies for leaf in leaves):
            return old
        if old.shape.tuple_shapes is None:
            return self.copies[leaves[0]]
        new = make_tuple([self.copies.get(leaf) or self._element(leaf) for leaf in leaves])
        note_made(new, (old,))
        self.order[new] = None
        return new

    def _element(self, leaf: Leaf) -> HloInstruction:
        """The original of a leaf."""
        if leaf.instruction.shape.tuple_shapes is None:
            return leaf.instruction
        element = make_get_tuple_element(leaf.instruction, leaf.number)
        note_made(element, (leaf.instruction,))
        self.order[element] = None
        return element

    def _copy(self, old: HloInstruction) -> None:
        """Compute results of an instruction again. Its operands are there."""
        numbers = sorted(self.plan.again[old])
        if old.opcode is Opcode.FUSION:
            new = self._fusion(old, numbers)
        else:
            new = replace(old, operands=tuple([self._as_seen(o) for o in old.operands]), name=f"{old.name}.remat")
            numbers = list(range(leaf_count(old.shape)))
        note_made(new, (old,))
        self.order[new] = None
        if new.shape.tuple_shapes is None:
            self.copies[Leaf(old, numbers[0])] = new
            return
        for k, number in enumerate(numbers):
            element = self.copies[Leaf(old, number)] = make_get_tuple_element(new, k)
            note_made(element, (old,))
            self.order[element] = None

    def _fusion(self, old: HloInstruction, numbers: Sequence[int]) -> HloInstruction:
        """The fusion that computes some results of another one; it reads those that are kept."""
        body = old.attributes.calls
        outputs = body.roots
        cuts = [self.plan.sources(Leaf(old, number)).cut for number in numbers]
        cut = set[int]() if None in cuts else set[int]().union(*[each for each in cuts if each is not None])
        given = {outputs[number]: number for number in sorted(cut, reverse=True)}
        needed, stack = set[HloInstruction](), [outputs[number] for number in numbers]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                if node not in given:
                    stack.extend(node.operands)
        inner: dict[HloInstruction, HloInstruction] = {}
        operands: list[HloInstruction] = []
        for node in body.instructions:
            if node not in needed:
                continue
            if node in given or node.opcode is Opcode.PARAMETER:
                inner[node] = make_parameter(len(operands), node.shape, f"param_{len(operands)}")
                source = self._element(Leaf(old, given[node])) if node in given else None
                operands.append(source or self._as_seen(old.operands[node.attributes.number]))
            else:
                inner[node] = replace(node, operands=tuple([inner[o] for o in node.operands]))
        note_replacements(inner)
        results = [inner[outputs[number]] for number in numbers]
        root = results[0] if len(results) == 1 else make_tuple(results)
        order = [*inner.values(), *([root] if len(results) > 1 else [])]
        reduces = any(node.opcode is Opcode.REDUCE for node in order)
        kind = old.attributes.kind if reduces else FusionKind.LOOP
        attributes = FusionAttributes(kind, HloComputation(body.name, tuple(order), root))
        return make_instruction(
            Opcode.FUSION, operands, attributes, root.shape, name=f"{old.name}.remat", metadata=old.metadata,
            frontend_attributes=old.frontend_attributes,
        )  # fmt: skip
