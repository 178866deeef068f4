"""One HLO module in all the ways that there are to run it: what the cases of text and of modules share.

The evaluator, the evaluator after all passes, compiled code on guarded memory, and XLA where it is installed and asked
for. The options of a case say how: the target, the layouts of parameters and results, where buffers are stored between
their guards, what they hold before, how small the pieces of kernels are, which pass is left out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from hloom.hlo.effects import effects_of
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import HloError
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.target import Target
from hloom.hlo.targets import target_named

from support.guarded import GuardedProgram, small_pieces
from support.random_targets import RandomTarget, with_random_entry

from .agreement import How, differences
from .case import OK, NDArray, Outcome, Stage, Verdict, found
from .data import ORDINARY
from .definite import is_definite
from .noise import Budget, TooLong, evaluate_within
from .worker import signature_of

LARGEST = 2_000_000
"""Elements of all arrays of a module that is run."""
PATTERNS = [0xA5, 0xFF, 0x7F, 0x00]
"""Bytes that memory holds before a program runs."""
OF_A_RUN = ("pattern", "xla")
"""Options that do not cause a new compilation."""
MAY_BE_LEFT_OUT = (
    "algebraic-simplifier", "cse", "constant-folding", "dce", "control-flow-simplifier", "layout-assignment",
    "loop-invariant-code-motion", "align-reshapes", "split-reductions",
)  # fmt: skip


def random_options(rng: random.Random) -> dict[str, Any]:
    """How a module is run."""
    options: dict[str, Any] = {"at_end": rng.random() < 0.7, "pattern": rng.choice(PATTERNS)}
    kind = rng.random()
    if kind < 0.15:
        options["target"] = "tpu"
    elif kind < 0.3:
        options["random_target"] = rng.randrange(1000)
    if rng.random() < 0.3:
        options["entry_layouts"] = rng.randrange(1000)
    if rng.random() < 0.15:
        options["small_pieces"] = True
    if rng.random() < 0.15:
        options["disabled"] = rng.choice(MAY_BE_LEFT_OUT)
    return options


def other_run(options: Mapping[str, Any], flavours: frozenset[str], number: int) -> dict[str, Any]:
    """The options of a case for another set of data."""
    changed = {**options, "pattern": PATTERNS[number % len(PATTERNS)]}
    if not flavours <= ORDINARY:
        changed.pop("xla", None)
    return changed


def run(
    module: HloModule,
    inputs: Sequence[NDArray],
    options: Mapping[str, Any],
    stage: Stage,
    *,
    seed: int = 0,
    with_xla: bool = False,
) -> Outcome:
    """All ways, compared."""
    why = not_to_run(module)
    if why:
        return Outcome(Verdict.SKIPPED, why)
    stage("evaluator")
    refusal: HloError | None = None
    expected: list[NDArray] = []
    try:
        with np.errstate(all="ignore"):
            expected = evaluate_within(module, inputs, Budget())
    except TooLong:
        return Outcome(Verdict.SKIPPED, "runs too long")
    except HloError as error:
        refusal = error
    stage("compiler")
    try:
        program = _program(module, tuple(sorted((k, v) for k, v in options.items() if k not in OF_A_RUN)))
    except HloError as error:
        if refusal is not None:
            return Outcome(Verdict.REFUSED, f"{type(refusal).__name__}, {type(error).__name__}")
        return found(signature_of(error, "compiler"), f"the evaluator runs it; the compiler: {error}")
    if refusal is None:
        stage("optimized evaluator")
        with np.errstate(all="ignore"):
            after = evaluate(program.module, *inputs)
        outcome = judged("passes", module, inputs, expected, after, How(seed=seed))
        if outcome is not OK:
            return outcome
    stage("compiled code")
    program.pattern = options.get("pattern", 0xA5)
    try:
        actual = program.run(inputs)
    except AssertionError as error:
        return found("guarded memory", str(error))
    except HloError as error:
        if refusal is not None:
            return Outcome(Verdict.REFUSED, f"{type(refusal).__name__}, {type(error).__name__}")
        return found(signature_of(error, "compiled code"), f"the evaluator runs it; compiled code: {error}")
    if refusal is not None:
        return found(signature_of(refusal, "evaluator"), f"compiled code runs it; the evaluator: {refusal}")
    outcome = judged("compiled code", module, inputs, expected, actual, How(seed=seed))
    return beside_xla(module, inputs, expected, stage, seed) if outcome is OK and with_xla else outcome


@lru_cache(maxsize=1)
def _program(module: HloModule, how: tuple[tuple[str, Any], ...]) -> GuardedProgram:
    """The module compiled: once for all sets of data. HloError if it is refused."""
    options = dict(how)
    given = with_random_entry(module, options["entry_layouts"]) if "entry_layouts" in options else module
    with small_pieces() if options.get("small_pieces") else nullcontext():
        return GuardedProgram(
            given,
            options=PassOptions(verify=True, disabled=frozenset(filter(None, [options.get("disabled")]))),
            at_end=options.get("at_end", True),
            target=_target(options),
        )


def judged(
    what: str,
    module: HloModule,
    inputs: Sequence[NDArray],
    expected: Sequence[NDArray],
    actual: Sequence[NDArray],
    how: How,
) -> Outcome:
    """The comparison as an outcome."""
    verdict, text = differences(module, inputs, expected, actual, how)
    if verdict is Verdict.FOUND and not is_definite(module, inputs):
        return Outcome(Verdict.UNSTABLE, "the order of a reduction or a sort decides")
    if verdict is Verdict.FOUND:
        return found(f"{what} differ", f"{what} and the evaluator: {text}")
    return OK if verdict is Verdict.OK else Outcome(verdict)


def _target(options: Mapping[str, Any]) -> Target:
    if "random_target" in options:
        return RandomTarget(options["random_target"])
    return target_named(options.get("target", "cpu"))


_WAITS = frozenset({Opcode.INFEED, Opcode.OUTFEED, Opcode.SEND, Opcode.RECV, Opcode.SEND_DONE, Opcode.RECV_DONE})


@lru_cache(maxsize=1)
def not_to_run(module: HloModule) -> str:
    """Why a module is not run, or ""."""
    elements = 0
    for instruction in module.instructions():
        if instruction.opcode in _WAITS:
            return "waits for its host"
        if instruction.opcode in (Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE):
            return "draws random numbers"
        for leaf in instruction.shape.leaves():
            if not leaf.is_token:
                elements += leaf.num_elements
        if instruction.opcode is Opcode.CUSTOM_CALL and instruction.attributes.has_side_effect:
            return "acts"
    if elements > LARGEST:
        return "large arrays"
    if any(effects_of(c) for c in module.computations):
        return "acts"
    return ""


def _xla_may_differ(module: HloModule) -> bool:
    """XLA may use the init value of a reduction never, once or several times: it must change nothing. Its rounding of
    the small types has defects (round-nearest-afz of f8e3m4 1/64 is NaN), and so has its folding of constants (the
    leading zeros of -1 are -32)."""
    if any(i.opcode is Opcode.COUNT_LEADING_ZEROS for i in module.instructions()):
        return True
    if any(leaf.element.is_small for i in module.instructions() for leaf in i.shape.leaves() if not leaf.is_token):
        return True
    return any(
        i.opcode in (Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.SELECT_AND_SCATTER) and not _starts_neutral(i)
        for i in module.instructions()
    )


def _is_extremum(instruction: HloInstruction) -> bool:
    """A reduction by maximum or minimum?"""
    reducer = getattr(instruction.attributes, "to_apply", None)
    return reducer is not None and any(i.opcode in (Opcode.MAXIMUM, Opcode.MINIMUM) for i in reducer.instructions)


def _starts_neutral(instruction: HloInstruction) -> bool:
    """Is a reduction's one init value a constant that its reducer leaves alone?"""
    attributes = instruction.attributes
    reducer = getattr(attributes, "to_apply", None) or attributes.scatter
    init = instruction.operands[-1]
    both = (reducer.parameters, reducer.parameters[::-1])
    if init.opcode is not Opcode.CONSTANT or reducer.root.operands not in both:
        return False
    value, element = init.attributes.literal.array[()], init.shape.element
    lowest, highest = (-np.inf, np.inf) if element.is_floating else element.limits if element.is_integral else (0, 1)
    wanted = {
        Opcode.ADD: 0, Opcode.OR: 0, Opcode.XOR: 0, Opcode.MULTIPLY: 1, Opcode.MAXIMUM: lowest, Opcode.MINIMUM: highest,
        Opcode.AND: True if element is ElementType.PRED else -1 if element.is_signed else highest,
    }.get(reducer.root.opcode)  # fmt: skip
    return wanted is not None and bool(value == wanted)


def beside_xla(
    module: HloModule, inputs: Sequence[NDArray], expected: Sequence[NDArray], stage: Stage, seed: int
) -> Outcome:
    """The evaluator's results compared with XLA's, where XLA must give the same."""
    if _xla_may_differ(module):
        return OK
    if any(_is_extremum(i) for i in module.instructions()):
        budget = Budget()
        evaluate_within(module, inputs, budget, look_for_nan=True)
        if budget.has_nan:
            return OK  # XLA's reductions lose some NaN
    stage("xla")
    from support.xla_oracle import run_hlo_text  # imports JAX

    try:
        actual = run_hlo_text(module.to_text(), *inputs)
    except Exception:
        return Outcome(Verdict.OK, "XLA has no result")
    stage("compared with XLA")
    return judged("XLA", module, inputs, expected, actual, How(flush=True, signed_zeros=False, seed=seed))
