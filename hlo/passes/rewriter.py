"""The rewriter: applies a table of rules to a module, and records the applications.

Simplification, expansion and control flow are three tables with this one driver. It always records how often each rule
fired and, on request, the old and new instructions. It can call a check after each application, and stop after a given
number of applications: `hloom bisect` finds a wrong one in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol, TypeGuard

from ..analyses.ranges import Ranges
from ..ir import HloComputation, HloInstruction, HloModule
from ..support.records import dataclass
from .rewrite import Effects, HloPass, calling, map_each_computation, rewrite_computation
from .rewrite_text import application_text
from .rules import NO_RANGES, Replacement, Rule, RuleSet, Site


@dataclass(frozen=True, slots=True)
class Application:
    """One rule applied once: `str` shows the instructions before and after."""

    rule: str
    computation: str
    before: HloInstruction
    replacement: Replacement
    is_local: bool = True
    """False: the replacement is equal in the parts that users read, not necessarily in the whole value."""

    @property
    def after(self) -> HloInstruction:
        return self.replacement.instruction

    def __str__(self) -> str:
        return application_text(self.rule, self.computation, self.before, self.after)


@dataclass(slots=True)
class RewriteLog:
    """The applications in one run of a pass with rules, and the limit for them."""

    keep: bool = False
    """Keep each application, not only how many there were."""
    check: Callable[[Application], None] | None = None
    """Called after each application; it may raise."""
    limit: int | None = None
    """Stop after this number of applications; None: no limit."""
    settled: set[HloInstruction] = field(default_factory=set)
    """Instructions on which no rule of this pass fires. One set may serve many runs of the same pass."""
    counts: dict[str, int] = field(default_factory=dict)
    """By rule: how often it fired."""
    applications: list[Application] = field(default_factory=list)
    unfinished: dict[str, None] = field(default_factory=dict)
    """Rules that would still change an instruction when its limit was reached."""

    @property
    def is_full(self) -> bool:
        return self.limit is not None and sum(self.counts.values()) >= self.limit

    def add(self, application: Application) -> None:
        if self.check is not None:
            self.check(application)
        if self.keep:
            self.applications.append(application)


class RulePass(HloPass, Protocol):
    """A pass that is a table of rules. Calling it is `rewrite` with an unused log."""

    @property
    def rules(self) -> RuleSet: ...

    def rewrite(self, module: HloModule, log: RewriteLog) -> HloModule:
        """The same as a call of the pass, with a record in `log` and within its limits."""


def has_rules(each: HloPass) -> TypeGuard[RulePass]:
    """True for a pass that is a table of rules."""
    return hasattr(each, "rewrite")


def apply_rules(
    module: HloModule,
    rules: RuleSet,
    log: RewriteLog,
    *,
    in_a_row: int = 1,
    fused: bool = False,
    ranges: Ranges | None = None,
) -> HloModule:
    """The module after one walk over all computations, callees first; itself if no rule fired.

    `in_a_row`: the most rules that are applied to one instruction and its replacements before the walk goes on.
    Bodies of fusions are skipped unless `fused`. `ranges`: of the module, for rules that need them.
    """
    renamed: dict[HloInstruction, HloInstruction] = {}
    # The known facts belong to the instructions of the module: they call the new computations as they are visited.
    called: dict[HloComputation, HloComputation] | None = None if ranges is None else {}

    def rewrite(_: HloComputation, current: HloComputation) -> HloComputation:
        return _Walk(current, rules, log, in_a_row, ranges, called).result()

    shown = log.keep or log.check is not None
    new = map_each_computation(module, rewrite, inside_fusions=fused, renamed=renamed, shown=shown, new=called)
    settled = log.settled
    settled.update([named for old, named in renamed.items() if old in settled])
    return new


class _Walk:
    """One walk over one computation."""

    def __init__(
        self,
        computation: HloComputation,
        rules: RuleSet,
        log: RewriteLog,
        in_a_row: int,
        ranges: Ranges | None = None,
        called: Mapping[HloComputation, HloComputation] | None = None,
    ) -> None:
        self.computation = computation
        self.rules = rules
        self.log = log
        self.in_a_row = in_a_row
        self.ranges = NO_RANGES if ranges is None else ranges
        self.called = called
        """The new computations that instructions are to call; None: they already do."""
        self.effects: Effects = {}

    def result(self) -> HloComputation:
        settled, apply, table, called = self.log.settled, self.apply, self.rules, self.called
        if not called and not table.is_for(self.computation):
            return self.computation

        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            if called:
                moved = calling(moved, called)
            return moved if moved in settled or moved.opcode not in table else apply(old, moved)

        return rewrite_computation(self.computation, visit, self.effects)

    def apply(self, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        """The replacement of `moved`: `Visit` of rewrite.py."""
        log, instruction = self.log, moved
        for _ in range(self.in_a_row):
            found = self.first(old, instruction)
            if found is None:
                if log.limit is None and not self.rules.sees_users(instruction.opcode):
                    log.settled.add(instruction)
                return instruction
            if log.is_full:
                return instruction
            self.record(instruction, *found)
            effects = found[1].effects
            if effects:
                self.effects[old] = (*self.effects.get(old, ()), *effects)
            instruction = found[1].instruction
            if instruction.name or instruction in log.settled:  # it existed before, and was already visited
                return instruction
        left = self.first(old, instruction) if self.in_a_row > 1 else None
        if left is not None:
            log.unfinished[left[0].name] = None
        return instruction

    def first(self, old: HloInstruction, instruction: HloInstruction) -> tuple[Rule, Replacement] | None:
        """The first rule that applies, and its replacement."""
        for each in self.rules.for_instruction(instruction):
            if each.sees_users:
                new = each.function(instruction, Site(self.computation, old, self.ranges))
            else:
                new = each.function(instruction)
            if new is not None:
                return each, new if isinstance(new, Replacement) else Replacement(new)
        return None

    def record(self, before: HloInstruction, rule: Rule, replacement: Replacement) -> None:
        log = self.log
        log.counts[rule.name] = log.counts.get(rule.name, 0) + 1
        if log.keep or log.check is not None:
            log.add(Application(rule.name, self.computation.name, before, replacement, not rule.sees_users))
