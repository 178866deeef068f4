"""Batching: a function of one element runs on a batch of elements at once. The core of `vmap`.

A BatchTracer stands for one element; it holds the array of all elements. In that array the batch is always dimension 0:
`vmap` moves the axes of arguments and results at its border. Values of other traces are the same for all elements.

An op is replaced by an op on whole batches by its rule in `BATCH`; most rules follow from the op's declaration of its
dimensions (`rules/declared.py`). A primitive has its own rule, or its other rules are batched: `batched_primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer.control_flow.scan import map as map_rows
from ..tracer.core import (
    Call,
    Primitive,
    Trace,
    Tracer,
    Value,
    bind_call,
    call_of,
    current_trace,
    eval_computation,
    run_meaning,
    set_current_trace,
)
from ..tracer.recording import trace_to_computation, with_computation
from ..tracer.settings.context import Override, current_context
from ..tracer.traced import JIT, DerivedCache, jit_call
from .batches import Axis, batched_avals, to_operand, with_batch
from .jvp import FlatFunction, parameter_avals
from .rules.tables import BATCH, load_batch_rules
from .tangents import Linear, Operand, Tangent, Zero

Mask = tuple[bool, ...]


class BatchTracer(Tracer):
    """One element of a batch. `value` has all elements, along dimension 0."""

    __slots__ = ("value",)

    def __init__(self, trace: BatchTrace, value: Value) -> None:
        self._trace = trace
        self.aval = value.aval.row()
        self.value: Value = value

    @property
    def val(self) -> Value:
        """`value`, by JAX's name."""
        return self.value

    def below(self) -> tuple[Value, int]:
        return self.value, 1

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval.str_short()}, batched={self.value.aval.str_short()})"


class BatchTrace(Trace):
    """Runs each op on whole batches under the parent trace."""

    parent: Trace
    activity = " while it is batched by vmap"

    def __init__(self, parent: Trace, axis: Axis, earlier: BatchTrace | None = None) -> None:
        load_batch_rules()
        self.parent = parent
        self.axis = axis
        self.earlier = earlier
        """A trace of the same batch; this one continues its tracers."""

    def split(self, operands: Sequence[Value]) -> tuple[list[Value], list[bool]]:
        """The values under the parent trace, and which of them are batched."""
        own = self, self.earlier
        batched = [isinstance(x, BatchTracer) and x._trace in own for x in operands]
        return [x.value if b else x for x, b in zip(operands, batched, strict=True)], batched  # type: ignore[attr-defined]

    def join(self, value: Value, is_batched: bool) -> Value:
        """A tracer; the value itself if all elements share it."""
        return BatchTracer(self, value) if is_batched else value

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        values, batched = self.split(operands)
        if not any(batched) and not self._is_asked(attributes.called_computations()):
            with set_current_trace(self.parent):
                return self.parent.process(opcode, tuple(values), attributes, shape)
        with set_current_trace(self.parent):
            result, is_batched = BATCH[opcode](self.axis, values, batched, attributes, shape)
        if isinstance(result, list):
            return [self.join(r, b) for r, b in zip(result, is_batched, strict=True)]
        return self.join(result, is_batched)

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        primitive = call.primitive
        if primitive.is_transparent:
            return run_meaning(call, operands)
        if not isinstance(call.meaning, HloComputation):  # it may use batched values from outside
            with set_current_trace(self):
                call, captured = with_computation(call, operands)
                operands = (*operands, *captured)
                if captured:
                    call = replace(call, batch_trace=self)
        values, batched = self.split(operands)
        if not any(batched) and not self._is_asked((call.computation,)) and not self._names(call):
            with set_current_trace(self.parent):
                return self.parent.process_call(call, tuple(values))
        with set_current_trace(self.parent):
            results, mask = (primitive.batch or batch_call)(call, values, batched, self.axis)
        return [self.join(r, b) for r, b in zip(results, mask, strict=True)]

    def _is_asked(self, computations: Sequence[HloComputation]) -> bool:
        """Whether one of the computations refers to this axis by its name."""
        return any(along_axis(self.axis, c) for c in computations)

    def _names(self, call: Call) -> bool:
        axes = call.primitive.axes
        return axes is not None and self.axis.name in axes(call)

    def outward(self, value: Value, reference: Any) -> Value:
        if isinstance(value, BatchTracer) and value._trace in (self, self.earlier):
            raise ValueError(
                "performing a set/swap operation with vmapped value on an unbatched array reference of type "
                f"{reference.aval}.\n  {reference.origin()}\n  Move the array reference to be an argument of the "
                "vmapped function."
            )
        return value


_axes: WeakKeyDictionary[HloComputation, frozenset[Any]] = WeakKeyDictionary()


def named_axes(computation: HloComputation) -> frozenset[Any]:
    """The named axes that collectives in a computation refer to; calls are followed to any depth."""
    found = _axes.get(computation)
    if found is None:
        names: set[Any] = set()
        for i in computation.instructions:
            if i.opcode is Opcode.CALL:
                call = call_of(i.attributes)
                if call.primitive.axes is not None:
                    names.update(call.primitive.axes(call))
            for called in i.called_computations():
                names.update(named_axes(called))
        found = _axes[computation] = frozenset(names)
    return found


def along_axis(axis: Axis, computation: HloComputation) -> bool:
    """Whether a collective in `computation` works along the axis."""
    return axis.name is not None and axis.name in named_axes(computation)


# --- values


def one_by_one(
    axis: Axis, values: Sequence[Value], batched: Sequence[bool], run: Callable[[list[Value]], Sequence[Value]]
) -> list[Value]:
    """The results of `run` for each element, one after the other in a loop: for operations without an op on batches."""
    moving = [v for v, b in zip(values, batched, strict=True) if b]

    def element(rows: list[Value]) -> list[Value]:
        given = iter(rows)
        return list(run([next(given) if b else v for v, b in zip(values, batched, strict=True)]))

    found: list[Value] = map_rows(element, moving)
    return found


# --- functions and computations


def named(axis: Axis) -> AbstractContextManager[object]:
    """Within the block, collectives find the axis by its name: also in rules that run after the function itself."""
    if axis.name is None:
        return nullcontext()
    return Override(axis_names=(*current_context().axis_names, (axis.name, axis.size)))


def batch_flat(
    fun: FlatFunction,
    axis: Axis,
    values: Sequence[Value],
    batched: Sequence[bool],
    forced: Sequence[bool] | bool = (),
    earlier: BatchTrace | None = None,
) -> tuple[list[Value], list[bool]]:
    """The results of `fun` for a batch, and which of them are batched; those that `forced` names are (True: all).

    `earlier`: the trace with tracers that `fun` may use from outside.
    """
    trace = BatchTrace(current_trace(), axis, earlier)
    inputs = [trace.join(v, b) for v, b in zip(values, batched, strict=True)]
    with set_current_trace(trace), named(axis):
        results = list(fun(inputs))
    found, mask = trace.split(results)
    wanted = [forced] * len(found) if isinstance(forced, bool) else list(forced) or [False] * len(found)
    found = [with_batch(axis, r, b) if w else r for r, b, w in zip(found, mask, wanted, strict=True)]
    return found, [b or w for b, w in zip(mask, wanted, strict=True)]


@dataclass(frozen=True, slots=True)
class BatchedComputation:
    """A computation of batches: it takes those values that are batched as batches, and `captured`."""

    computation: HloComputation
    batched: Mask
    """Which of its results are batched."""
    captured: tuple[Value, ...]


_batched = DerivedCache()


def batch_computation(
    computation: HloComputation, axis: Axis, batched: Sequence[bool], forced: Sequence[bool] | bool = ()
) -> BatchedComputation:
    """`computation` on batches of those parameters that `batched` names. Results that `forced` names are batched (True:
    all).

    Made once for each computation, so that it is compiled once. The new computation takes separate parameters, even if
    the old one takes a tuple.
    """
    mask = tuple(batched)

    def make() -> tuple[BatchedComputation, bool]:
        out: list[bool] = []

        def run(values: list[Value]) -> list[Value]:
            results, found = batch_flat(lambda xs: eval_computation(computation, xs), axis, values, mask, forced)
            out[:] = found
            return results

        avals = batched_avals(axis, parameter_avals(computation), mask)
        traced = trace_to_computation(run, avals, f"vmap_{computation.name}")
        return BatchedComputation(traced.computation, tuple(out), tuple(traced.captured)), traced.is_closed

    key = (axis, mask, forced if isinstance(forced, bool) else tuple(forced))
    return _batched.get((computation,), key, make)


# --- primitives


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """The parameters of a call of a batched primitive."""

    call: Call
    """Of one element."""
    axis: Axis
    batched: Mask
    """Of the operands of `call`."""
    results: Mask


def batch_call(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    """The rule of a primitive that has none: one call of its meaning, on batches, with the primitive's rules, batched.
    So it has the derivative that it declares, not the derivative of its meaning.

    A tangent that the rule gives may differ between elements where the result does not, so all results that can have
    tangents are batches. Not so where collectives work along the axis: their results are the same for all on purpose.
    """
    forced: Sequence[bool] = ()
    has_rule = call.primitive is not JIT and call.primitive.jvp is not None
    if has_rule and not along_axis(axis, call.computation):
        forced = [s.element.is_inexact for s in call.computation.root.shape.elements]
    found = batch_computation(call.computation, axis, batched, forced)
    if call.primitive is JIT:
        return bind_call(jit_call(found.computation, call.label), [*operands, *found.captured]), list(found.batched)
    params = _Batch(call, axis, tuple(batched), found.batched)
    return bind_batched(call, found, operands, primitive=batched_primitive(call.primitive), params=params)


def bind_batched(
    call: Call, found: BatchedComputation, operands: Sequence[Value], **changes: Any
) -> tuple[list[Value], list[bool]]:
    """The call with the batched meaning `found`, and which of its results are batched."""
    captured = call.captured + len(found.captured)
    new = replace(call, meaning=found.computation, captured=captured, batch_trace=None, **changes)
    return bind_call(new, [*operands, *found.captured]), list(found.batched)


_primitives: WeakKeyDictionary[Primitive, Primitive] = WeakKeyDictionary()


def batched_primitive(primitive: Primitive) -> Primitive:
    """The primitive that calls `primitive` on batches."""
    found = _primitives.get(primitive)
    if found is None:
        assert primitive.linearize is None, f"{primitive} needs a rule of its own for vmap"
        found = Primitive(f"vmap.{primitive.name}", evaluate=run_meaning, is_linear=primitive.is_linear)
        if primitive.jvp is not None:
            found.jvp = _jvp
        if primitive.transpose is not None:
            found.transpose = _transpose
        _primitives[primitive] = found
    return found


def call_of_element(call: Call) -> Call:
    """The call of one element that a call of a batched primitive is made of; any other call itself."""
    while isinstance(call.params, _Batch):
        call = call.params.call
    return call


def _jvp(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
    """The jvp rule of one element, batched. All results that depend on the batch are batched as in the meaning."""
    b: _Batch = call.params
    own = len(b.batched)
    moving = [not isinstance(t, Zero) for t in tangents[:own]]
    given: list[Any] = [t for t, m in zip(tangents[:own], moving, strict=True) if m]
    zero: list[bool] = []
    rule = b.call.primitive.jvp
    assert rule is not None

    def run(values: list[Value]) -> list[Value]:
        first, rest = values[:own], iter(values[own:])
        directions = [next(rest) if m else Zero(v.aval) for v, m in zip(first, moving, strict=True)]
        results, found = rule(b.call, first, directions)
        zero[:] = [isinstance(t, Zero) for t in found]
        return [*results, *(t for t in found if not isinstance(t, Zero))]

    masks = [*b.batched, *(x for x, m in zip(b.batched, moving, strict=True) if m)]
    found, mask = batch_flat(run, b.axis, [*primals[:own], *given], masks, earlier=b.call.batch_trace)
    count = len(b.results)
    moved = iter(zip(found[count:], mask[count:], strict=True))
    results = [with_batch(b.axis, r, m) if w else r for r, m, w in zip(found, mask, b.results, strict=False)]
    tangents_out: list[Tangent] = []
    for result, wanted, is_zero in zip(results, b.results, zero, strict=True):
        if is_zero:
            tangents_out.append(Zero(result.aval))
        else:
            tangent, is_batched = next(moved)
            if is_batched and not wanted:
                raise ValueError(
                    f"the derivative rule of {b.call.label} gives a tangent that differs between the elements of axis "
                    f"{b.axis.name!r}, for a result that does not: reduce it as the result."
                )
            tangents_out.append(with_batch(b.axis, tangent, is_batched) if wanted else tangent)
    return results, tangents_out


def _transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> Sequence[Value | None]:
    """The transpose rule of one element, batched. The cotangent of a value that all elements share is the sum over
    them."""
    b: _Batch = call.params
    own = len(b.batched)
    rule = b.call.primitive.transpose
    assert rule is not None
    linear = [isinstance(o, Linear) for o in operands[:own]]
    avals = parameter_avals(b.call.computation)
    known: list[Any] = [o for o, m in zip(operands[:own], linear, strict=True) if not m]
    given = [ct for ct in cts if ct is not None]
    present: list[bool] = []

    def run(values: list[Value]) -> list[Value]:
        rest = iter(values)
        full: list[Any] = [Linear(a) if m else next(rest) for a, m in zip(avals, linear, strict=True)]
        found = rule(b.call, [None if ct is None else next(rest) for ct in cts], full)
        present[:] = [ct is not None for ct in found]
        return [ct for ct in found if ct is not None]

    masks = [x for x, m in zip(b.batched, linear, strict=True) if not m]
    masks += [x for x, ct in zip(b.results, cts, strict=True) if ct is not None]
    found, mask = batch_flat(run, b.axis, [*known, *given], masks)
    rest = iter(zip(found, mask, strict=True))
    out = [
        to_operand(b.axis, *next(rest), was_batched) if p else None
        for p, was_batched in zip(present, b.batched, strict=True)
    ]
    return [*out, *(None for _ in operands[own:])]
