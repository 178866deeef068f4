"""NaN and infinity as errors: the checks of `hloom.debug_nans` and `hloom.debug_infs`.

Outside of jit each operation's result is checked. A jitted function's results are checked after it has run; if one is
bad, its program is evaluated once more, operation by operation, and the error names the first operation with a bad
result and its line. Programs are compiled under these settings (they are part of the context), so others pay nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ...hlo.collectives import run_on_devices
from ...hlo.effects import effects_of
from ...hlo.ir import HloComputation, HloInstruction, HloModule, Metadata
from ...hlo.metadata import line_of
from ...hlo.opcode import Opcode
from ...hlo.support.loading import load
from ...hlo.support.records import dataclass
from ...hlo.support.value_tree import leaves_of, value_of
from ..arrays.array import Array
from ..settings.context import Context, current_context
from ..source import user_line
from ..trees import tree

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
            line = line_of(metadata) or user_line() or "<unknown>"
            raise FloatingPointError(f"invalid value ({found}) encountered in {name}\n  at {line}\n{_SETTINGS}")


def checked(
    run: Run, module: HloModule, captured: Sequence[Array], donates: bool, what: str, *, is_library: bool = False
) -> Run:
    """`run` of a compiled program, with a check of its results. `what` names the function. `is_library`: its
    instructions carry the lines of the first caller."""
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


@dataclass(frozen=True, slots=True)
class _Found:
    """The first instruction with a bad result."""

    instruction: HloInstruction
    kind: str
    was_given: bool
    """An operand is bad already. No operation made it, so it is an argument or a constant."""
    time: int
    """How many instructions came before it."""


class _Search:
    """An observer of an evaluation that remembers the first instruction with a bad result."""

    def __init__(self, computation: HloComputation, arguments: Iterable[Any], context: Context) -> None:
        source = iter(arguments)
        self.values = [value_of(p.shape, source) for p in computation.parameters]
        self._computation, self._context, self._time = computation, context, 0
        parameters = zip(computation.parameters, self.values, strict=True)
        self._given = {p for p, v in parameters if fault(leaves_of(v), context)}
        self.origin = "in an input" if self._given else "a literal"
        self.found: _Found | None = None

    @property
    def has_given(self) -> bool:
        """Whether an argument or a constant is bad."""
        return bool(self._given)

    def run(self) -> None:
        """Evaluate the computation, up to its end: other devices may wait for later instructions."""
        load("...hlo.evaluator", __package__).evaluate_computation(self._computation, self.values, self)

    def __call__(self, instruction: HloInstruction, value: Any) -> None:
        if self.found is not None:
            return
        self._time += 1
        kind = fault(leaves_of(value), self._context)
        if kind is not None and instruction.opcode not in _GIVEN:
            self.found = _Found(instruction, kind, not self._given.isdisjoint(instruction.operands), self._time)
        elif kind is not None:
            self._given.add(instruction)


class _FirstOnly(_Search):
    """A search that stops at its first finding."""

    def run(self) -> None:
        with contextlib.suppress(_Stop):
            super().run()

    def __call__(self, instruction: HloInstruction, value: Any) -> None:
        super().__call__(instruction, value)
        if self.found is not None:
            raise _Stop


class _Stop(Exception):
    """The search is over."""


def blame(
    computation: HloComputation, arguments: Sequence[Any], found: str, context: Context, what: str,
    is_library: bool = False,
) -> NoReturn:  # fmt: skip
    """Raise FloatingPointError for a computation with bad results: for the first instruction that was."""
    where = _where(what)
    _refuse_effects(computation, found, what, where)
    search = _FirstOnly(computation, arguments, context)
    search.run()
    raise _error([search], found, what, where, is_library)


def blame_on_devices(
    module: HloModule, arguments: Sequence[Sequence[Any]], devices: Sequence[int], found: str, context: Context,
    what: str, is_library: bool = False,
) -> NoReturn:  # fmt: skip
    """As `blame`, for a program over several devices: all of them evaluate it again, and the instruction that is first
    on any of them is named. `arguments`: of each device. Other processes do not know that results are bad here, so they
    would not come to the collectives: with some of the devices there, the operation is not looked for."""
    where = _where(what)
    _refuse_effects(module.entry, found, what, where)
    if len(arguments) < module.replica_count * module.num_partitions:
        raise FloatingPointError(
            f"invalid value ({found}) encountered in a result of {what}: it runs on several processes, so it is not "
            f"run again to find the operation\n{where}"
        )
    searches = [_Search(module.entry, each, context) for each in arguments]

    run_on_devices(lambda d: searches[d.device].run(), module.replica_count, module.num_partitions, devices, module)
    raise _error(searches, found, what, where, is_library)


def _where(what: str) -> str:
    return f"  in {what}\n  called at {user_line() or '<unknown>'}\n{_SETTINGS}"


def _refuse_effects(computation: HloComputation, found: str, what: str, where: str) -> None:
    if not all(map(load("...hlo.evaluator", __package__).is_silent, _acting(computation))):
        raise FloatingPointError(
            f"invalid value ({found}) encountered in a result of {what}: it acts on the world (io_callback), so it is "
            f"not run again to find the operation\n{where}"
        )


def _error(searches: Sequence[_Search], found: str, what: str, where: str, is_library: bool) -> FloatingPointError:
    """The error from the searches on all devices."""
    given = [s for s in searches if s.has_given]
    origin = given[0].origin if given else "a literal"
    first = min([s.found for s in searches if s.found], key=lambda f: (f.time, not f.was_given), default=None)
    if first is None and given:
        return FloatingPointError(
            f"invalid value ({found}) encountered in a result of {what}: the de-optimized function did not produce "
            f"it, it is {origin}\n{where}"
        )
    if first is None:
        return FloatingPointError(
            f"invalid value ({found}) encountered in a result of {what}, but operation by operation there is none: the "
            f"compiled program computes in another order\n{where}"
        )
    bad = first.instruction
    line = (user_line() if is_library else line_of(bad.metadata)) or "<unknown>"
    operands = ", ".join([str(o.shape) for o in bad.operands])
    return FloatingPointError(
        f"invalid value ({first.kind}) encountered in {bad.opcode.value} of ({operands}) giving {bad.shape}\n"
        + ("  an operand was bad before: the de-optimized function did not produce it, it is " + origin + "\n")
        * first.was_given
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
