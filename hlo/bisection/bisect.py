"""Bisection: the first pass, rule application or kernel after which a program's result differs from the evaluator's.

Three questions, one after the other. After which pass does the evaluator give another result for the program? If that
pass is a table of rules: after how many applications of rules? If every pass keeps the meaning: which instruction of
the optimised program does the backend compute differently, on the values that the evaluator gives its operands?
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, cast

import numpy as np

from ..comparing import compare
from ..custom_calls import is_unwritten
from ..cutout import EVERYTHING, cut_out, frontier
from ..effects import effects_of
from ..errors import HloError, UnsupportedError
from ..evaluator import Value, evaluate, evaluate_all
from ..ir import HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from ..ops.structure import FusionKind
from ..passes.manager import PassOptions, Pipeline
from ..passes.rewrite import HloPass
from ..passes.rewriter import Application, RewriteLog, has_rules
from ..support.progress import current, working
from ..support.records import dataclass
from ..support.value_tree import leaves_of
from .shrink import Shows, Specimen, calls_of, shrunk, specimen_of

NDArray = np.ndarray[Any, Any]
Run = Callable[[HloModule, list[NDArray]], list[NDArray]]
"""The results of a backend for a module and its arguments."""

@dataclass(frozen=True, slots=True)
class Finding:
    """The first thing that changes the result, and the smallest program that was found to show it."""

    what: str
    """"pass", "kernel" or "program"."""
    name: str
    """The pass; the opcode and name of the instruction that is a kernel; for "program" the module."""
    difference: str
    specimen: Specimen
    application: Application | None = None
    """Of a pass that is a table of rules: the application that is wrong."""
    number: int = 0
    """Which application of the pass's it is, from 1 on."""
    count: int = 0
    """How many the pass made."""


@dataclass(frozen=True, slots=True)
class Backend:
    """How a program is compiled and run."""

    compile_and_run: Run
    optimized: Callable[[HloModule], HloModule]
    """The module after all passes, as `run_as_it_is` takes it."""
    run_as_it_is: Run
    """For a module after all passes: no pass runs."""


@dataclass(frozen=True, slots=True)
class Bisection:
    """A search in one pipeline and one backend."""

    pipeline: Pipeline
    backend: Backend
    tolerance: float | None = None
    options: PassOptions = field(default_factory=PassOptions)

    def run(self, module: HloModule, arguments: list[NDArray]) -> Finding | None:
        """The fault that `module` shows on `arguments`; None if the backend's result is the evaluator's.

        UnsupportedError for a module that may give different results in each run.
        """
        with working(f"bisect {module.name}"):
            return self.found(module, arguments)

    def found(self, module: HloModule, arguments: list[NDArray]) -> Finding | None:
        """The same, while the terminal shows which pass, rewrite or kernel is tried."""
        _require_repeatable(module)
        expected = evaluate(module, *arguments)
        stage = self.wrong_pass(module, arguments, expected)
        if stage is not None:
            return self.in_pass(*stage, arguments, expected)
        difference = self.difference(module, self.backend.compile_and_run(module, arguments), expected)
        return None if difference is None else self.in_backend(module, arguments, difference)

    def difference(self, module: HloModule, actual: Sequence[NDArray], expected: Sequence[NDArray]) -> str | None:
        """The difference between two results of `module`, as text, or None."""
        leaves = list(module.entry.root.shape.leaves())
        if len(actual) != len(expected):
            return f"{len(actual)} results, not {len(expected)}"
        for number, (a, e, leaf) in enumerate(zip(actual, expected, leaves, strict=True)):
            if a.shape != e.shape or a.dtype != e.dtype:
                return f"result {number}: {a.dtype}{list(a.shape)}, not {e.dtype}{list(e.shape)}"
            found = compare(a, e, leaf.element, self.tolerance)
            if not found.is_fine:
                return f"result {number}: {leaf}: {found}"
        return None

    def differs(self, module: HloModule, arguments: Sequence[NDArray], expected: Sequence[NDArray]) -> str | None:
        """The difference in the evaluator's result of a rewritten module; an error is a difference too."""
        try:
            return self.difference(module, evaluate(module, *arguments), expected)
        except HloError as error:
            return f"{type(error).__name__}: {error}"

    # passes

    def wrong_pass(
        self, module: HloModule, arguments: list[NDArray], expected: list[NDArray]
    ) -> tuple[HloPass, HloModule, str] | None:
        """The first pass that changes the result, the module before it, and the difference."""

        def look(each: HloPass, before: HloModule, after: HloModule) -> None:
            difference = self.differs(after, arguments, expected)
            if difference is not None:
                raise _Found(each, before, difference)

        try:
            self.pipeline.run(module, self.options, look)
        except _Found as found:
            return found.each, found.before, found.difference
        return None

    def in_pass(
        self, each: HloPass, before: HloModule, difference: str, arguments: list[NDArray], expected: list[NDArray]
    ) -> Finding:
        whole = Specimen(before, arguments)
        if not has_rules(each):
            return Finding("pass", each.name, difference, shrunk(whole, self.broken_by(each)))
        counted = RewriteLog()
        each.rewrite(before, counted)
        good, bad = 0, sum(counted.counts.values())
        total = bad
        while bad - good > 1:
            middle = (good + bad) // 2
            current().stage(f"{each.name}, rewrites {good} to {bad} of {total}")
            if self.differs(each.rewrite(before, RewriteLog(limit=middle)), arguments, expected) is None:
                good = middle
            else:
                bad = middle
        log = RewriteLog(keep=True, limit=bad)
        each.rewrite(before, log)
        application = log.applications[-1]
        rules = each.rules.only({application.rule})
        alone = cast(HloPass, replace(cast(Any, each), rules=rules))
        specimen = shrunk(self.around(application, whole, self.broken_by(alone)), self.broken_by(alone))
        return Finding("pass", each.name, difference, specimen, application, bad, total)

    def broken_by(self, each: HloPass) -> Shows:
        """Does the pass change the result of a program?"""

        def shows(module: HloModule, arguments: list[NDArray]) -> bool:
            expected = evaluate(module, *arguments)
            return self.differs(each(module), arguments, expected) is not None

        return shows

    def around(self, application: Application, whole: Specimen, shows: Shows) -> Specimen:
        """The replaced instruction with everything that it is computed from, if that shows the fault by itself: the
        module before the pass may not contain it. Else the whole module."""
        root = application.before
        try:
            inputs = frontier((root,), EVERYTHING)
            entry = whole.module.entry
            values = dict(zip(entry.parameters, whole.parameters(), strict=True))
            part = specimen_of(root, inputs, values)
            return part if shows(part.module, part.arguments) else whole
        except (HloError, AssertionError, KeyError):
            return whole

    # the backend

    def in_backend(self, module: HloModule, arguments: list[NDArray], difference: str) -> Finding:
        optimized = self.backend.optimized(module)
        found = self.wrong_kernel(optimized.entry, Specimen(optimized, arguments).parameters())
        if found is None:
            specimen = shrunk(Specimen(module, arguments), self.broken_by_compiling)
            return Finding("program", module.name, difference, specimen)
        instruction, specimen, difference = found
        plain = _inlined(specimen)
        if self.broken_by_compiling(plain.module, plain.arguments):
            specimen = shrunk(plain, self.broken_by_compiling)
        return Finding("kernel", f"{instruction.opcode.value} {instruction.name}", difference, specimen)

    def broken_by_compiling(self, module: HloModule, arguments: list[NDArray]) -> bool:
        actual = self.backend.compile_and_run(module, arguments)
        return self.difference(module, actual, evaluate(module, *arguments)) is not None

    def wrong_kernel(
        self, computation: HloComputation, arguments: Sequence[Value]
    ) -> tuple[HloInstruction, Specimen, str] | None:
        """The first instruction that the backend computes differently when it runs alone; of loops and branches, one
        inside."""
        values = evaluate_all(computation, arguments)
        for instruction in computation.instructions:
            if instruction.opcode in _NO_CODE or instruction not in values:
                continue
            found = self.wrong_inside(instruction, values)
            if found is not None:
                return found
            current().stage(f"{instruction.opcode.value} {instruction.name}")
            specimen = specimen_of(instruction, tuple(dict.fromkeys(instruction.operands)), values)
            expected = list(leaves_of(values[instruction]))
            actual = self.backend.run_as_it_is(specimen.module, specimen.arguments)
            for number in unwritten_results(instruction):
                actual[number] = expected[number]
            difference = self.difference(specimen.module, actual, expected)
            if difference is not None:
                return instruction, specimen, difference
        return None

    def wrong_inside(
        self, instruction: HloInstruction, values: dict[HloInstruction, Value]
    ) -> tuple[HloInstruction, Specimen, str] | None:
        operands = [values[o] for o in instruction.operands]
        # An outlined loop, or a product with what follows it, has kernels of its own inside.
        has_kernels = instruction.opcode is Opcode.FUSION and instruction.attributes.kind in _WITH_KERNELS
        inside = ((instruction.attributes.calls, operands),) if has_kernels else calls_of(instruction, operands)
        for computation, arguments in inside:
            found = self.wrong_kernel(computation, arguments)
            if found is not None:
                return found
        return None


_WITH_KERNELS = (FusionKind.CUSTOM, FusionKind.OUTPUT)
_NO_CODE = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST})


def unwritten_results(instruction: HloInstruction) -> list[int]:
    """The results that nothing writes: memory that a fusion has for itself."""
    parts = instruction.attributes.calls.roots if instruction.opcode is Opcode.FUSION else (instruction,)
    return [
        number for number, part in enumerate(parts)
        if part.opcode is Opcode.CUSTOM_CALL and is_unwritten(part.attributes.custom_call_target)
    ]  # fmt: skip


class _Found(Exception):
    """Ends the run of a pipeline at the first wrong pass."""

    def __init__(self, each: HloPass, before: HloModule, difference: str) -> None:
        super().__init__(difference)
        self.each, self.before, self.difference = each, before, difference


def _require_repeatable(module: HloModule) -> None:
    if any(effects_of(c) for c in module.computations) or any(i.opcode is Opcode.RNG for i in module.instructions()):
        raise UnsupportedError(f"module {module.name} acts, or draws random numbers: two runs of it may differ")


def _inlined(specimen: Specimen) -> Specimen:
    """A module of one fusion as the operations in the fusion."""
    root = specimen.module.entry.root
    if root.opcode is not Opcode.FUSION or tuple(root.operands) != specimen.module.entry.parameters:
        return specimen
    body: HloComputation = root.attributes.calls
    return Specimen(cut_out(body.root, body.parameters), specimen.arguments)
