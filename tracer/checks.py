"""NaN and infinity as errors: what `hloom.debug_nans` and `hloom.debug_infs` ask for.

Outside of jit each operation's result is looked at. A jitted function's results are looked at when it has run; if one
is bad, its program is evaluated once more, operation by operation, and the first one whose result is bad is named, with
its line. Programs are compiled under these settings (they are part of the context), so others pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ..hlo.effects import effects_of
from ..hlo.ir import HloComputation, HloInstruction, HloModule, Metadata
from ..hlo.loading import load
from ..hlo.opcode import Opcode
from ..hlo.value_tree import leaves_of, value_of
from . import tree
from .array import Array
from .context import Context, current_context
from .source import user_line

Run = Callable[[Sequence[Array]], Any]
_GIVEN = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT})
"""Instructions that compute nothing."""
_SETTINGS = "  It is an error because hloom.debug_nans or hloom.debug_infs is on."


def is_checking(context: Context) -> bool:
    """Whether results are checked."""
    return context.debug_nans or context.debug_infs


def fault(arrays: Iterable[Any], context: Context) -> str | None:
    """``nan`` or ``inf`` if there is one where it is an error."""
    for x in arrays:
        if x.dtype.kind not in "fcV" or not x.size:
            continue
        if context.debug_nans and np.isnan(x).any():
            return "nan"
        if context.debug_infs and np.isinf(x).any():
            return "inf"
    return None


def check_results(name: str, results: Iterable[Any], metadata: Metadata | None) -> None:
    """FloatingPointError if a result of an operation outside of jit is bad. `metadata`: the line that it comes from,
    if that is not the user's current line."""
    context = current_context()
    if is_checking(context):
        found = fault(results, context)
        if found is not None:
            line = _line(metadata) or user_line() or "<unknown>"
            raise FloatingPointError(f"invalid value ({found}) encountered in {name}\n  at {line}\n{_SETTINGS}")


def _line(metadata: Metadata | None) -> str:
    return f"{metadata.source_file}:{metadata.source_line}" if metadata and metadata.source_file else ""


def checked(
    run: Run, module: HloModule, captured: Sequence[Array], donates: bool, what: str, *, is_library: bool = False
) -> Run:
    """`run` of a compiled program, whose results are checked. `what` names the function. `is_library`: its instructions
    carry the lines of whoever called it first."""
    context = current_context()

    def run_and_check(arrays: Sequence[Array]) -> Any:
        given = [np.array(a._storage._view if a.aval.is_extended else a._view) for a in arrays] if donates else None
        result = run(arrays)
        found = fault(_numbers(tree.leaves(result)), context)
        if found is not None:
            views = given or [a._storage._view if a.aval.is_extended else a._view for a in arrays]
            blame(module.entry, [*views, *(a._view for a in captured)], found, context, what, is_library)
        return result

    return run_and_check


def _numbers(leaves: Iterable[Any]) -> Iterator[Any]:
    return (x._view for x in leaves if isinstance(x, Array) and not x.aval.is_extended)


class _Found(Exception):
    """The first instruction whose result is bad."""

    def __init__(self, instruction: HloInstruction, kind: str, was_given: bool) -> None:
        self.instruction, self.kind, self.was_given = instruction, kind, was_given
        """`was_given`: an operand is bad already. No operation made it, so it is an argument or a constant."""


def blame(
    computation: HloComputation, arguments: Sequence[Any], found: str, context: Context, what: str,
    is_library: bool = False,
) -> NoReturn:  # fmt: skip
    """Raise FloatingPointError for a computation whose results were bad: for the first instruction that was."""
    where = f"  in {what}\n  called at {user_line() or '<unknown>'}\n{_SETTINGS}"
    evaluator = load("..hlo.evaluator", __package__)
    if not all(map(evaluator.is_silent, _acting(computation))):
        raise FloatingPointError(
            f"invalid value ({found}) encountered in a result of {what}: it acts on the world (io_callback), so it is "
            f"not run again to find the operation\n{where}"
        )

    source = iter(arguments)
    values = [value_of(p.shape, source) for p in computation.parameters]
    given = {p for p, v in zip(computation.parameters, values, strict=True) if fault(leaves_of(v), context)}
    origin = "in an input" if given else "a literal"

    def observe(instruction: HloInstruction, value: Any) -> None:
        kind = fault(leaves_of(value), context)
        if kind is not None and instruction.opcode not in _GIVEN:
            raise _Found(instruction, kind, not given.isdisjoint(instruction.operands))
        if kind is not None:
            given.add(instruction)

    try:
        evaluator.evaluate_computation(computation, values, observe)
    except _Found as error:
        bad, kind, was_given = error.instruction, error.kind, error.was_given
    else:
        if given:
            raise FloatingPointError(
                f"invalid value ({found}) encountered in a result of {what}: the de-optimized function did not produce "
                f"it, it is {origin}\n{where}"
            )
        raise FloatingPointError(
            f"invalid value ({found}) encountered in a result of {what}, but operation by operation there is none: the "
            f"compiled program computes in another order\n{where}"
        )
    line = (user_line() if is_library else _line(bad.metadata)) or "<unknown>"
    operands = ", ".join([str(o.shape) for o in bad.operands])
    raise FloatingPointError(
        f"invalid value ({kind}) encountered in {bad.opcode.value} of ({operands}) giving {bad.shape}\n"
        + (f"  an operand was bad before: the de-optimized function did not produce it, it is {origin}\n" * was_given)
        + f"  at {line}\n{where}"
    )


def _acting(computation: HloComputation) -> Iterator[HloInstruction]:
    """The instructions that act themselves, to any depth of calls."""
    for instruction in effects_of(computation):
        called = instruction.called_computations()
        if called and instruction.opcode is not Opcode.CUSTOM_CALL:
            for each in called:
                yield from _acting(each)
        else:
            yield instruction
