"""Where the linear loop of a scan finds the values of the body that it needs.

It has the constants, the arrays and the results of the scan, and the index. Everything that does not change is computed
outside. The value of the carry before an iteration is the one after the iteration before it, and an integer that grows
by a constant is a multiple of the index. `residuals.py` chooses which of the other values the forward loop stacks, and
which ones the linear loop computes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import field

from ...hlo.builder import make_computation, make_tuple
from ...hlo.effects import effects_of
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from ...tracer.control_flow.scan import Scan
from ..linearize import LinearizedComputation
from ..residuals import (
    INFINITE,
    computed_again,
    cost_again,
    cost_to_stack,
    plain,
    repeatable,
    size_in_bytes,
    values_to_keep,
)
from .device_parts import depending, values_of_one_device


@dataclass(frozen=True, slots=True)
class Outside:
    """A value that is the same in all iterations."""

    kind: str
    """"constant": of (constants, captured values). "initial": of the carry. "hoisted": of those computed outside."""
    index: int


@dataclass(frozen=True, slots=True)
class Row:
    """The slice, at the index, of a stacked array."""

    array: int
    """Of (arrays, results, arrays that the forward loop stacks in addition)."""


@dataclass(frozen=True, slots=True)
class Shifted:
    """A part of the carry before an iteration, where its value after each is stacked; or the other way round."""

    array: int
    carry: int
    before: bool


@dataclass(frozen=True, slots=True)
class Counter:
    """An integer of the carry that each iteration changes by the same step."""

    carry: int
    step: HloInstruction | Outside
    """A constant, or where it is found."""
    down: bool


@dataclass(frozen=True, slots=True)
class Index:
    """The index of the slices."""


Source = Outside | Row | Shifted | Counter | Index


@dataclass(slots=True)
class Plan:
    """The values that the forward loop keeps, and how the linear loop reads the residuals."""

    forward: HloComputation
    """The body that the forward loop runs: results, then values to stack. Takes the body's arguments, then captured
    values."""
    hoisted: HloComputation
    """Computes values that are the same in all iterations, from the same parameters; it uses no others."""
    sources: list[Source]
    """Of the parameters of `again`."""
    again: HloComputation
    """Computes the residuals."""


def make_plan(rule: Scan, parts: LinearizedComputation) -> Plan:
    """The plan for the two parts of a body."""
    body = plain(parts.primal)
    needed = [(body.parameters if r.place == "input" else body.root.operands)[r.index] for r in parts.residuals]
    return _Planner(rule, body, len(parts.moves)).plan(needed)


@dataclass(slots=True)
class _Planner:
    rule: Scan
    body: HloComputation
    count: int
    """The number of the body's results; residuals follow them in its root."""
    found: dict[HloInstruction, Source] = field(default_factory=dict)
    """The values that the linear loop has."""
    varying: set[HloInstruction] = field(default_factory=set)
    added: list[HloInstruction] = field(default_factory=list)
    """Values that the forward loop stacks in addition."""
    lifted: list[HloInstruction] = field(default_factory=list)
    """Values that are computed outside."""
    parts: Set[HloInstruction] = frozenset()
    """Values within a `shard_map`, which are computed again: no array outside of it can hold them."""

    def plan(self, needed: Sequence[HloInstruction]) -> Plan:
        self._find_what_is_there()
        self.parts = values_of_one_device(self.body)
        again = repeatable(self.body, exact=lambda v: v in self.found) | self.parts
        self._stack(v for v in needed if v in self.varying and v not in again)
        kept = self._choose(needed, again)
        self._stack(v for v in kept if v in self.varying)
        computation, leaves = computed_again(needed, kept | self.found.keys())
        sources = [self._source(leaf) for leaf in leaves]
        results = self.body.root.operands[: self.count]
        parameters = self.body.parameters
        return Plan(
            make_computation(self.body.name, make_tuple([*results, *self.added]), parameters, effects_of(self.body)),
            make_computation("hoisted", make_tuple(self.lifted), parameters),
            sources,
            computation,
        )

    @property
    def _carry(self) -> list[tuple[HloInstruction, HloInstruction]]:
        """Each part of the carry, before and after an iteration."""
        first = self.rule.num_consts
        before = self.body.parameters[first : first + self.rule.num_carry]
        return list(zip(before, self.body.root.operands, strict=False))

    def _find_what_is_there(self) -> None:
        parameters, rule = self.body.parameters, self.rule
        carry = self._carry
        slices = parameters[rule.num_consts + rule.num_carry : len(rule.body.parameters)]
        changed = [before for before, after in carry if before is not after]
        self.varying = depending([*changed, *slices, *effects_of(self.body)], self.body)
        *arrays, index = slices
        self.found[index] = Index()
        for k, value in enumerate([*arrays, *self.body.root.operands[rule.num_carry : self.count]]):
            if value in self.varying:
                self.found.setdefault(value, Row(k))
        for k, (before, after) in enumerate(carry):
            step = _step(before, after)
            if step is not None and step not in self.varying:
                self.found.setdefault(before, Counter(k, step, after.opcode is Opcode.SUBTRACT))
        self._shift()

    def _shift(self) -> None:
        """A carry that is stacked before each iteration is there after each, too."""
        if self.rule.length == 0:  # there is no row to read
            return
        for k, (before, after) in enumerate(self._carry):
            known, following = self.found.get(before), self.found.get(after)
            if isinstance(following, Row):
                self.found.setdefault(before, Shifted(following.array, k, True))
            elif isinstance(known, Row) and after in self.varying:
                self.found.setdefault(after, Shifted(known.array, k, False))

    def _stack(self, values: Iterable[HloInstruction]) -> None:
        """Stack values that are not there, parts of the carry first."""
        first = self.rule.num_carry + self.rule.num_consts
        for value in sorted(dict.fromkeys(values), key=lambda v: v not in self.body.parameters[:first]):
            if value not in self.found:
                arrays = len(self.rule.body.parameters) - 1 - first
                self.found[value] = Row(arrays + self.count - self.rule.num_carry + len(self.added))
                self.added.append(value)
                self._shift()

    def _choose(self, needed: Sequence[HloInstruction], again: set[HloInstruction]) -> Set[HloInstruction]:
        """The values to keep, beside those that exist already: stacked where it varies, else computed outside."""

        parts = {value for pair in self._carry for value in pair}

        def keep(value: HloInstruction) -> float:
            if value in self.found:
                return 0.0
            if value in self.parts:
                return INFINITE
            if value not in self.varying:
                return 0.01 * size_in_bytes(value.shape)
            return cost_to_stack(value) * (0.99 if value in parts else 1.0)  # of two equal ones, prefer the carry's

        def repeat(value: HloInstruction) -> float:
            if value in self.parts and value.shape.is_tuple:
                return 0.0
            return cost_again(value) if value in again else INFINITE

        while True:
            kept = values_to_keep(needed, keep, repeat)
            chosen = [v for v in self.body.instructions if v in kept and v in parts and v in self.varying]
            chosen = [v for v in chosen if v not in self.found]
            if not chosen:
                return kept
            self._stack(chosen[:1])  # this may make another choice cheaper

    def _source(self, leaf: HloInstruction) -> Source:
        if leaf in self.found:
            source = self.found[leaf]
            if isinstance(source, Counter):
                step = source.step
                if isinstance(step, HloInstruction) and step.opcode is not Opcode.CONSTANT:
                    return Counter(source.carry, self._outside(step), source.down)
            return source
        return self._outside(leaf)

    def _outside(self, leaf: HloInstruction) -> Outside:
        if leaf.opcode is Opcode.PARAMETER:
            number, rule = leaf.attributes.number, self.rule
            inputs = len(rule.body.parameters)
            if number < rule.num_consts:
                return Outside("constant", number)
            if number < inputs:
                return Outside("initial", number - rule.num_consts)
            return Outside("constant", rule.num_consts + number - inputs)
        if leaf not in self.lifted:
            self.lifted.append(leaf)
        return Outside("hoisted", self.lifted.index(leaf))


def _step(before: HloInstruction, after: HloInstruction) -> HloInstruction | None:
    """The amount that an iteration adds to an integer of the carry, or subtracts from it."""
    element = before.shape.element
    if before is after or element.is_inexact or element.is_complex or element.dtype.kind not in "iu":
        return None
    if after.opcode is Opcode.ADD and before in after.operands:
        x, y = after.operands
        return y if x is before else x
    if after.opcode is Opcode.SUBTRACT and after.operands[0] is before:
        return after.operands[1]
    return None
