"""Rules: the class of a rewrite rule, and tables of rules. `rewriter.py` applies them; this file has no rules.

A rule is a function of a few lines from an instruction to its replacement, or to None if it does not apply. Its
docstring says when it is valid. It depends only on the instruction and on the instructions that this is computed from:
so an instruction without an applicable rule stays one, even if other instructions change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ..analyses.intervals import Range
from ..analyses.ranges import Ranges
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..support.lazy import lazy_property
from ..support.records import dataclass


@dataclass(frozen=True, slots=True)
class Replacement:
    """The result of a rule that replaces an instruction by a whole computation."""

    instruction: HloInstruction
    effects: Sequence[HloInstruction] = ()
    """New instructions with side effects that `instruction` does not need, in program order."""


NO_RANGES = Ranges({})


@dataclass(frozen=True, slots=True)
class Site:
    """The computation around an instruction, for rules that need its users or the ranges of its operands."""

    computation: HloComputation
    """The computation before this walk."""
    instruction: HloInstruction
    """The instruction before this walk: one of `computation`."""
    ranges: Ranges = NO_RANGES
    """The ranges of `instruction` and its operands, for passes that ask for them."""

    def range(self, operand: int) -> Range:
        """The range of an operand that is an array of integers or booleans."""
        found = self.ranges.of(self.instruction.operands[operand])
        assert found is not None
        return found


Result = HloInstruction | Replacement | None
RuleFunction = Callable[..., Any]
"""function(instruction) -> Result, or function(instruction, site) -> Result."""


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """A rewrite with a name."""

    name: str
    opcodes: tuple[Opcode, ...]
    function: RuleFunction
    sees_users: bool = False
    """True: the function also gets the `Site`, and is called again in each walk. The replacement must be right only
    where the instruction is, and in the parts that the users read."""

    operands: frozenset[Opcode] = frozenset()
    """At least one operand must have one of these opcodes; empty: no condition. This saves calls of the function."""
    one_device: bool = False
    """True: it is valid only in a program for one device."""

    @property
    def documentation(self) -> str:
        """When the rule is valid: the function's docstring in one line."""
        return " ".join((self.function.__doc__ or "").split())

    def __repr__(self) -> str:
        return f"<rule {self.name}>"


def rule(
    function: RuleFunction, *opcodes: Opcode, sees_users: bool = False, operands: Collection[Opcode] = (),
    one_device: bool = False,
) -> Rule:  # fmt: skip
    """The rule with the name of its function."""
    return Rule(function.__name__, opcodes, function, sees_users, frozenset(operands), one_device)


_MOST_OPERANDS = 3


class RuleSet:
    """The rules of one pass, in the order in which they are tried. Compared by identity."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        names = [each.name for each in self.rules]
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, f"two rules of one name: {', '.join(sorted(twice))}"
        self._of: dict[Opcode, tuple[Rule, ...]] = {}
        for each in self.rules:
            for opcode in each.opcodes:
                self._of[opcode] = (*self._of.get(opcode, ()), each)
        self._for: dict[tuple[Opcode, ...], tuple[Rule, ...]] = {}
        self._asking = frozenset(opcode for each in self.rules if each.sees_users for opcode in each.opcodes)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __contains__(self, opcode: Opcode) -> bool:
        return opcode in self._of

    def is_for(self, computation: HloComputation) -> bool:
        """False if no instruction of the computation has an opcode with a rule."""
        return not self._of.keys().isdisjoint(computation.opcodes)

    def of(self, opcode: Opcode) -> tuple[Rule, ...]:
        """The rules that are tried on instructions of an opcode, in order."""
        return self._of.get(opcode, ())

    def for_instruction(self, instruction: HloInstruction) -> tuple[Rule, ...]:
        """The rules that may apply to an instruction, judging by the opcodes of its operands."""
        operands = instruction.operands
        if len(operands) > _MOST_OPERANDS:
            return self._of.get(instruction.opcode, ())
        key = (instruction.opcode, *[o.opcode for o in operands])
        found = self._for.get(key)
        if found is None:
            of = self._of.get(instruction.opcode, ())
            found = self._for[key] = tuple([r for r in of if not r.operands or not r.operands.isdisjoint(key[1:])])
        return found

    def sees_users(self, opcode: Opcode) -> bool:
        """True if one of the rules of an opcode needs the users of the instruction."""
        return opcode in self._asking

    @lazy_property
    def of_several_devices(self) -> RuleSet:
        """The rules that are valid in programs that several devices run."""
        return RuleSet(each for each in self.rules if not each.one_device)

    def only(self, names: Collection[str]) -> RuleSet:
        """The rules with these names."""
        return RuleSet(each for each in self.rules if each.name in names)

    def without(self, *names: str) -> RuleSet:
        """The rules without those with these names."""
        return RuleSet(each for each in self.rules if each.name not in names)
