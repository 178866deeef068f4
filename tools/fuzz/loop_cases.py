"""Cases of loops: HLO modules of `tests/support/random_loops.py`, in each way in which the backend can run a loop.

Exact programs must give the evaluator's bits (any NaN is as good as another); in others rounding errors must explain
what differs. When compiled code differs, the evaluator on the optimised module tells whether the passes or the code
generator did it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from unittest import mock

import numpy as np
from hloom.hlo.errors import HloError
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.manager import PassOptions
from hloom.numba_backend import pipeline
from hloom.numba_backend.native_loops.cost import can_be_native, is_native

from support.guarded import GuardedProgram, small_pieces
from support.random_loops import loop_arguments, loop_module
from support.random_steps import ROUNDING

from . import data, module_runs
from .agreement import How
from .case import OK, Case, NDArray, Outcome, Stage, Verdict, found
from .minimise import Shows
from .module_cases import minimised as minimised_module
from .noise import Budget, TooLong, evaluate_within, is_inexact
from .text_cases import read
from .worker import signature_of

use_oracle = False
"""Whether to compare with XLA; the child sets it."""
OUTLINE = "outline-loops"
"""The pass that makes kernels of loops; without it they are rows of the program."""
UNSIGNED_ZEROS = frozenset({Opcode.DOT, Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE})
"""HLO does not say with what their sums begin: +0, or the first product, which may be -0."""


WAYS = ("native", "rows", "as the cost model decides")
"""Native: each loop that can be one kernel is one."""


@contextmanager
def _going(way: str) -> Iterator[frozenset[str]]:
    """While this is open, loops are compiled in one way; gives the passes to leave out for it."""
    decides = can_be_native if way == "native" else is_native
    with mock.patch.object(pipeline, "is_native", decides):
        yield frozenset({OUTLINE} if way == "rows" else ())


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    while True:
        try:
            module = loop_module(rng)
            break
        except HloError:
            continue  # sizes that do not fit
    options: dict[str, object] = {"at_end": rng.random() < 0.7, "pattern": rng.choice([0xA5, 0xFF, 0x7F, 0x00])}
    for name, probability in (("small_pieces", 0.1), ("verify", 0.15), ("xla", 0.1)):
        if rng.random() < probability:
            options[name] = True
    options["ways"] = [way for way, often in zip(WAYS, (1.0, 0.5, 0.1), strict=True) if rng.random() < often]
    return Case("loop", seed, module.to_text(), tuple(loop_arguments(module, seed)), options)


def check(case: Case, stage: Stage) -> Outcome:
    """Text, verifier, and all ways to run it."""
    stage("text")
    module = read(case.program)
    stage("evaluator")
    with np.errstate(all="ignore"):
        try:
            expected = evaluate_within(module, case.inputs, Budget())
        except TooLong:
            return Outcome(Verdict.SKIPPED, "runs too long")
    worst = OK
    for way in case.options.get("ways", WAYS):
        outcome = _one_way(way, module, expected, case, stage)
        if outcome.verdict is Verdict.FOUND:
            return outcome
        worst = outcome if outcome is not OK else worst
    if worst is OK and use_oracle and case.options.get("xla"):
        return module_runs.beside_xla(module, case.inputs, expected, stage, case.seed)
    return worst


@lru_cache(maxsize=len(WAYS))
def compiled(module: HloModule, way: str, check: bool, at_end: bool, pieces: bool) -> GuardedProgram:
    """The module compiled in one way, with the verifier after each pass if `check`: once for all sets of data."""
    with _going(way) as disabled, small_pieces() if pieces else nullcontext():
        return GuardedProgram(module, options=PassOptions(verify=check, disabled=disabled), at_end=at_end)


def _one_way(way: str, module: HloModule, expected: Sequence[NDArray], case: Case, stage: Stage) -> Outcome:
    stage(f"{way}: compiler")
    options = case.options
    try:
        at_end, verify, pieces = options.get("at_end", True), options.get("verify"), options.get("small_pieces")
        program = compiled(module, way, bool(verify), bool(at_end), bool(pieces))
        program.pattern = int(options.get("pattern", 0xA5))
        stage(f"{way}: compiled code")
        for turn in ("", ", run again") if case.data == 0 else ("",):
            actual = program.run(case.inputs)
            outcome = _judged(f"{way}{turn}", module, expected, actual, case)
            if outcome is not OK:
                break
    except AssertionError as error:
        return found(f"{way}: guarded memory", str(error))
    except HloError as error:
        return found(signature_of(error, way), f"the evaluator runs it; {way}: {error}")
    if outcome.verdict is Verdict.FOUND:
        stage(f"{way}: optimized evaluator")
        with np.errstate(all="ignore"):
            after = evaluate(program.module, *case.inputs)
        earlier = _judged(f"{way}: passes", module, expected, after, case)
        return earlier if earlier.verdict is Verdict.FOUND else outcome
    return outcome


def with_data(case: Case, number: int) -> Case:
    """The case with another set of data, in memory that held something else."""
    inputs = data.another_exact(case.inputs, case.seed, number)
    return case.but(data=number, inputs=inputs, options=module_runs.other_run(case.options, data.ORDINARY, number))


def is_exact(module: HloModule) -> bool:
    """Does nothing round in a program of `random_loops`?"""
    return not any(i.opcode in ROUNDING for i in module.instructions())


def _judged(
    what: str, module: HloModule, expected: Sequence[NDArray], actual: Sequence[NDArray], case: Case
) -> Outcome:
    signed = not any(i.opcode in UNSIGNED_ZEROS for i in module.instructions())
    if all(same(e, a, signed) for e, a in zip(expected, actual, strict=True)):
        return OK
    if not is_exact(module):
        return module_runs.judged(what, module, case.inputs, expected, actual, How(seed=case.seed))
    texts = []
    for number, (e, a) in enumerate(zip(expected, actual, strict=True)):
        if not same(e, a, signed):
            texts.append(f"result {number}: {e.dtype}{list(e.shape)}\n{a}\nnot\n{e}")
    return found(f"{what} differ", f"{what}, and the evaluator: " + "\n".join(texts))


def same(expected: NDArray, actual: NDArray, signed: bool = True) -> bool:
    """Equal, and if `signed` with zeros of the same sign; all NaN are equal."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    if expected.tobytes() == actual.tobytes():
        return True
    if not is_inexact(expected.dtype):
        return False
    if expected.dtype.kind == "c":
        return same(expected.real, actual.real, signed) and same(expected.imag, actual.imag, signed)
    x, y = expected.astype(np.float64), actual.astype(np.float64)
    equal = (x == y) & ((np.signbit(x) == np.signbit(y)) | (not signed))
    return bool((equal | (np.isnan(x) & np.isnan(y))).all())


def minimised(case: Case, shows: Shows) -> Case:
    """As modules of all operations."""
    return minimised_module(case, shows)
