"""Deferring operations: the layer of the bottom trace in a thread that has a Recorder.

`DeferralLayer` is on from the first deferred operation. From then on an operation that arrives there in a thread with a
recorder is recorded, and the elements of its result are deferred (`pending.py`). Transformations
know nothing of it: the trace of a derivative computes primal values in the trace below, which is this one. While HLO is
recorded for jit no operation arrives here, so a traced value is never deferred.

The operations that run at once, with the reason, for the report: `_at_once`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.builder import make_constant
from ...hlo.effects import effects_of
from ...hlo.errors import UnsupportedError
from ...hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation
from ...hlo.literal import Literal
from ...hlo.opcode import Opcode
from ...hlo.ops import SPECS, Trait
from ...hlo.ops.control_flow import CallAttributes
from ...hlo.ops.movement import DynamicSliceAttributes
from ...hlo.ops.structure import GetTupleElementAttributes
from ...hlo.shape import Shape
from ...hlo.structural_key import structural_key
from .. import execution
from ..arrays.array import Array, read_slot, slot_is_set
from ..aval import ShapedArray, aval_of_shape
from ..checks.nan_checks import is_checking
from ..core import (
    EVAL,
    EVALUATION,
    Value,
    array_of,
    current_metadata,
    eval_computation,
    set_current_trace,
    thread_state,
)
from ..layers import LAYERS, Layer
from ..settings.context import Context, current_context
from .clusters import constant_bytes, live_handles, settle
from .pending import Batch, Handle, pending
from .steps import MANY_CONSTANTS, next_step, root_of, site_of_user

_state = thread_state()
MANY_PROGRAMS = 16
"""If so many more programs were compiled than found, no structure is compiled when it comes for the first time."""
_HALF: tuple[int, ...] = (-1,)
_BY_VALUE: dict[Opcode, tuple[int, ...]] = {
    Opcode.PAD: (1,),
    Opcode.POWER: (1,),
    Opcode.SELECT_AND_SCATTER: (2,),
    Opcode.REDUCE: _HALF,
    Opcode.REDUCE_WINDOW: _HALF,
}
"""Operands that are constants of the program if they are known scalars: the operation depends on their value. All other
scalars are values from outside. Of reductions, the second half of the operands is."""
_BY_THEMSELVES: dict[Opcode, str] = {
    Opcode.WHILE: "a loop is a program of its own",
    Opcode.CONDITIONAL: "the branch is chosen by the value",
    Opcode.CUSTOM_CALL: "it runs code that is not the library's",
}
_NOT_ALWAYS = frozenset(_BY_THEMSELVES) | frozenset(
    o for o, spec in SPECS.items() if Trait.SIDE_EFFECT in spec.traits or Trait.APPLIES in spec.traits
)
_ACTING = frozenset(o for o, spec in SPECS.items() if Trait.SIDE_EFFECT in spec.traits)


class RecordedBatch(Batch):
    """The batch of a Recorder."""

    __slots__ = ("recorder",)

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(root_of(recorder.place))
        self.recorder: Recorder = recorder

    def settle_for(self, handle: Handle) -> None:
        recorder = self.recorder
        if recorder.batch is not self:  # an exception has left the scope, or settling the batch has failed
            entries = self.entries
            recorder.settle(entries, live_handles(entries), "a value")
        elif _state.recorder is recorder:
            recorder.flush("a value")
        else:  # it may grow meanwhile
            recorder.settle(self.entries[: handle.number + 1], [handle], "a value, in another thread")
        if handle.batch is not None:  # it was found among those without references: settle it alone
            recorder.settle(self.entries[: handle.number + 1], [handle], "a value")


class Recorder:
    """Defers operations in one thread."""

    def __init__(self, watchers: list[Any], often: int) -> None:
        self.watchers = watchers
        """The scopes that receive the events, outermost first."""
        self.often = often
        self.made = self.runs = 0
        """Programs that were compiled here, and calls of programs that were there."""
        self.context: Context | None = current_context()
        """The settings at the last operation; None once it is closed."""
        self.place = _place(current_context())
        self.at_once = _setting(current_context())
        """The reason why these settings defer nothing; None if it is."""
        self.batch: RecordedBatch = RecordedBatch(self)

    # ---- recording

    def record(
        self, opcode: Opcode, operands: Sequence[Any], attributes: Attributes, shape: Shape, aval: ShapedArray
    ) -> Array:
        """The result of an op with one result, of type `aval`."""
        while True:
            batch = self.batch
            handle = Handle(batch, 0)
            if self._add(batch, opcode, operands, attributes, shape, aval, handle):
                return pending(aval, handle)

    def record_many(
        self, opcode: Opcode, operands: Sequence[Any], attributes: Attributes, shape: Shape
    ) -> list[Array]:
        """The results of an op that returns a tuple."""
        number = 0
        while not number:
            batch = self.batch
            number = self._add(batch, opcode, operands, attributes, shape, None, None)
        return [self._element(batch, number, k, s) for k, s in enumerate(shape.elements)]

    def _element(self, batch: RecordedBatch, of: int, index: int, shape: Shape) -> Array:
        entries = batch.entries
        aval = aval_of_shape(shape)
        parent = entries[-1][0]
        key = (Opcode.GET_TUPLE_ELEMENT, index, aval, of)
        step = parent.children.get(key)
        if step is None:
            attributes = GetTupleElementAttributes(index)
            step = next_step(parent, key, Opcode.GET_TUPLE_ELEMENT, (of,), attributes, shape, aval)
        handle = Handle(batch, step.number)
        entries.append((step, weakref.ref(handle)))
        return pending(aval, handle)

    def _add(
        self,
        batch: RecordedBatch,
        opcode: Opcode,
        operands: Sequence[Any],
        attributes: Attributes,
        shape: Shape,
        aval: ShapedArray | None,
        handle: Handle | None,
    ) -> int:
        """Append an operation, with `handle` for its result; its number, or 0 if the batch has ended before it."""
        entries, known = batch.entries, batch.known
        by_value = _BY_VALUE.get(opcode)
        if by_value is _HALF:
            by_value = tuple(range(len(operands) // 2, len(operands)))
        what = attributes if opcode is not Opcode.CALL else attributes.to_apply  # type: ignore[attr-defined]
        while True:
            numbers = []
            for operand in operands:
                if by_value is None and (found := known.get(id(operand))) is not None:
                    numbers.append(found[0])
                    continue
                try:
                    absence = read_slot(operand, "_absence")
                except AttributeError:  # it has its elements
                    absence = None
                if absence is not None:
                    if absence.__class__ is Handle and absence.batch is batch:
                        numbers.append(absence.number)
                        continue
                    operand._settle()
                elif by_value is not None and len(numbers) in by_value and operand.aval.size == 1:
                    number = self._constant(batch, operand)
                    if number:
                        numbers.append(number)
                        continue
                found = known.get(id(operand))
                numbers.append(found[0] if found is not None else _leaf(batch, operand))
            parent = entries[-1][0]
            key = (opcode, what, aval or shape, *numbers)
            step = parent.children.get(key)
            if step is None:
                if opcode is Opcode.SLICE and parent.slices >= MANY_CONSTANTS and set(attributes.strides) <= {1}:  # type: ignore[attr-defined]
                    opcode, operands, attributes = _with_dynamic_bounds(operands[0], attributes)
                    what = attributes
                    continue
                metadata = current_metadata("jit_scope", opcode.value)
                site = site_of_user()
                step = next_step(parent, key, opcode, tuple(numbers), attributes, shape, aval, metadata, site)
            if self.batch is not batch:  # the end of some object has settled it
                return 0
            if step.ends_before:
                self.flush("the program repeats itself, or is long")
                return 0
            if entries[-1][0] is parent:  # else the end of some object has recorded something
                if handle is not None:
                    handle.number = step.number
                entries.append((step, None if handle is None else weakref.ref(handle)))
                return step.number

    def _constant(self, batch: RecordedBatch, array: Array) -> int:
        """The number of a scalar as a constant of the program; 0 if it had too many values here."""
        found = batch.known.get(-id(array))
        if found is not None:
            return found[0]
        key = (Opcode.CONSTANT, array.aval.hlo, constant_bytes(array))
        number = batch.constants.get(key)
        if number is None:
            parent = batch.entries[-1][0]
            step = parent.children.get(key)
            if step is None:
                if parent.constants >= MANY_CONSTANTS:
                    return 0
                constant = make_constant(Literal(np.array(array._view)))
                step = next_step(
                    parent, key, Opcode.CONSTANT, (), constant.attributes, constant.shape, array.aval
                )
            batch.entries.append((step, None))
            batch.constants[key] = number = step.number
        batch.known[-id(array)] = number, array
        return number

    # ---- settling

    def flush(self, reason: str) -> None:
        """Settle the recorded operations, and start a new batch."""
        batch = self.batch
        if len(batch.entries) > 1:
            self.batch = RecordedBatch(self)
            self.settle(batch.entries, live_handles(batch.entries), reason)

    def drop(self) -> None:
        """Begin anew; recorded operations are settled when their results are read."""
        self.batch = RecordedBatch(self)

    def settle(self, entries: Sequence[Any], handles: Sequence[Handle], reason: str) -> None:
        """Fill the handles. Nothing is deferred meanwhile."""
        own = vars(_state)
        before = own.get("recorder", UNSET)
        own["recorder"] = None
        try:
            is_wasteful = self.made > MANY_PROGRAMS + self.runs
            done = settle(entries, handles, _run_op, max(2, self.often) if is_wasteful else self.often)
        finally:
            restore(before)
        if done is not None:
            self.made += done.is_new
            self.runs += done.cluster is not None and not done.is_new
            for watcher in self.watchers:
                watcher.saw(done, reason)

    def ran(self, what: str, reason: str) -> None:
        """Report an operation that ran alone."""
        for watcher in self.watchers:
            watcher.saw_alone(what, reason)

    def follow(self, context: Context) -> Recorder | None:
        """The recorder for other settings: itself, or its successor."""
        if self.context is None:
            del _state.recorder
            recorder = _state.recorder
            return recorder if recorder is None else recorder.begin()
        place = _place(context)
        if place != self.place:
            self.flush("other settings")
            self.place = place
            self.batch = RecordedBatch(self)
        self.context = context
        self.at_once = _setting(context)
        return self

    def close(self) -> None:
        """Put nothing off any more; called in any thread."""
        self.context = None

    def begin(self) -> Recorder:
        """Itself: the session, which threads have at first, makes one instead."""
        return self


UNSET: Any = object()


def restore(before: Any) -> None:
    """Make `before` this thread's recorder again. UNSET: it had none of its own."""
    if before is UNSET:
        vars(_state).pop("recorder", None)
    else:
        _state.recorder = before


def recorder() -> Recorder | None:
    """This thread's recorder, for the settings of now."""
    found = _state.recorder
    if found is None:
        return None
    if found.__class__ is not Recorder:
        found = found.begin()
    context = current_context()
    return found if found.context is context else found.follow(context)  # type: ignore[no-any-return]


def _place(context: Context) -> tuple[Any, ...]:
    """The settings on which programs depend that are made of HLO."""
    return context.backend, context.target


def _leaf(batch: RecordedBatch, array: Any) -> int:
    """The number of a value from outside. The batch has its elements, even if the array is deleted meanwhile."""
    if not isinstance(array, Array):
        array_of(array)  # raises: a tracer that outlived its trace
    aval = array.aval
    own = Array.__new__(Array)
    own.aval = aval
    own._placed = None
    if aval.shape or not slot_is_set(array, "_view"):
        own._buffer = array._buffer
    else:
        own._view = array._view
    parent = batch.entries[-1][0]
    step = parent.children.get(aval)
    if step is None:
        step = next_step(parent, aval, Opcode.PARAMETER, (), NO_ATTRIBUTES, aval.hlo, aval)
    batch.entries.append((step, own))
    batch.known[id(array)] = step.number, array
    return step.number


def _with_dynamic_bounds(x: Any, attributes: Any) -> tuple[Opcode, Sequence[Any], Attributes]:
    """A slice with starts that are values from outside: one program for all of them."""
    bounds = list(zip(attributes.start_indices, attributes.limit_indices, strict=True))
    starts = [Array(ShapedArray((), np.int32), np.array(start, np.int32)) for start, _ in bounds]
    sizes = tuple([limit - start for start, limit in bounds])
    return Opcode.DYNAMIC_SLICE, (x, *starts), DynamicSliceAttributes(sizes)


def _run_op(opcode: Opcode, arrays: list[Any], attributes: Any, shape: Shape) -> Any:
    """Run one operation alone."""
    if opcode is Opcode.CALL:
        try:
            return execution.run_call(attributes.to_apply, arrays)
        except (UnsupportedError, NotImplementedError):
            with set_current_trace(EVAL):
                return eval_computation(attributes.to_apply, arrays)
    return EVALUATION.process(opcode, tuple(arrays), attributes, shape)


class DeferralLayer(Layer):
    """Records operations in threads that defer them."""

    def process(self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape) -> Any:
        found = recorder()
        if found is None:
            return self.below.process(opcode, operands, attributes, shape)
        reason = found.at_once or (_why_alone(opcode, attributes) if opcode in _NOT_ALWAYS else None)
        if reason is not None:
            found.ran(opcode.value, reason)
            return self.below.process(opcode, operands, attributes, shape)
        if shape.tuple_shapes is None:
            aval = ShapedArray(shape.dimensions, shape.element.dtype)
            return found.record(opcode, operands, attributes, shape, aval)
        return list(found.record_many(opcode, operands, attributes, shape))

    def process_with_scalar(
        self, opcode: Opcode, x: Array, y: Array, attributes: Attributes, shape: Shape, aval: ShapedArray
    ) -> Any:
        found = recorder()
        if found is None or found.at_once is not None:
            return self.below.process_with_scalar(opcode, x, y, attributes, shape, aval)
        return found.record(opcode, (x, y), attributes, shape, aval)

    def run_program(self, computation: HloComputation, arrays: Sequence[Array]) -> Any:
        recorded = recorded_call(computation, arrays)
        return self.below.run_program(computation, arrays) if recorded is None else recorded


def _setting(context: Context) -> str | None:
    """The setting that prevents deferring."""
    if context.disable_jit:
        return "disable_jit is on"
    if context.backend == "evaluator":
        return "the evaluator compiles nothing"
    if context.looks_for_errors:
        return "operations are looked at (jax_error_checking_behavior_nan, _divide, _oob)"
    return "results are checked (debug_nans, debug_infs)" if is_checking(context) else None


def _why_alone(opcode: Opcode, attributes: Any) -> str | None:
    """Why an operation is not deferred; None if it is."""
    reason = _BY_THEMSELVES.get(opcode)
    if reason is not None:
        return reason
    if opcode in _ACTING or any(effects_of(c) for c in attributes.called_computations()):
        return "it acts on the world"
    return None


def recorded_call(computation: HloComputation, arrays: Sequence[Array]) -> list[Array] | None:
    """The results of a program that would run now; None if it must."""
    found = recorder()
    if found is None:
        return None
    reason = found.at_once
    if reason is None and not _can_be_put_off(computation):
        reason = "it acts on the world, or runs code that is not the library's"
    if reason is not None:
        found.ran(computation.name, reason)
        return None
    return found.record_many(Opcode.CALL, arrays, _call_of(computation), computation.root.shape)


def _call_of(computation: HloComputation) -> CallAttributes:
    known: CallAttributes | None = vars(computation).get("_plain_call")
    return vars(computation).setdefault("_plain_call", CallAttributes(computation)) if known is None else known


def _can_be_put_off(computation: HloComputation) -> bool:
    known: bool | None = vars(computation).get("_can_be_put_off")
    if known is None:
        known = not effects_of(computation) and structural_key(computation) is not None
        vars(computation)["_can_be_put_off"] = known
    return known


def start() -> None:
    """From now on operations look up each thread's recorder."""
    LAYERS.turn_on("deferral")
