"""Forward mode: JVPTrace carries a tangent with each value, and pushes both through each op by its JVP rule.

Also here: the derivative of a whole computation (a nested jit, a branch, a loop body), made once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.core import (
    Array,
    Call,
    Trace,
    Tracer,
    Value,
    bind_call,
    current_trace,
    eval_computation,
    run_meaning,
    scope,
    set_current_trace,
)
from ..tracer.recording import trace_to_computation
from ..tracer.settings.context import current_context
from ..tracer.traced import DerivedCache, jit_call
from ..tracer.tracer import check_for_leaks
from .rules.tables import JVP, ZERO_DERIVATIVE, load_rules
from .tangents import Tangent, Zero, instantiate

FlatFunction = Callable[[list[Value]], Sequence[Value]]


class JVPTracer(Tracer):
    """A value and its tangent, which is not zero.

    >>> hloom.jvp(lambda x: print(isinstance(x, JVPTracer), x.primal, x.tangent) or 2 * x, (1.5,), (1.0,))
    True 1.5 1.0
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Value, tangent: Value) -> None:
        self._trace = trace
        self.aval = primal.aval
        self.primal: Value = primal
        self.tangent: Value = tangent

    def to_concrete_value(self) -> Array | None:
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal  # type: ignore[return-value]

    def below(self) -> tuple[Value, int]:
        return self.primal, 0

    def __repr__(self) -> str:
        if getattr(self.tangent, "is_linear", False):  # a linear program is recorded: the tangent has no value
            return f"GradTracer(primal={self.primal}, typeof(tangent)={self.tangent.aval.str_short(short_dtypes=True)})"
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class JVPTrace(Trace):
    """Runs each op on primals and tangents under the parent trace.

    Values of other traces are constants here, which keeps nested derivatives apart.

    >>> y, t = hloom.jvp(lambda x: print(type(hloom.extend.core.find_top_trace()).__name__) or 2 * x, (1.5,), (1.0,))
    JVPTrace
    """

    parent: Trace
    activity = " while it is differentiated"
    differentiates = True

    def __init__(self, parent: Trace) -> None:
        load_rules()
        self.parent = parent
        self.rule_trace = parent
        """The trace under which rules run."""

    def split(self, operands: Sequence[Value]) -> tuple[list[Value], list[Tangent]]:
        """Each operand's primal and tangent."""
        primals: list[Value] = []
        tangents: list[Tangent] = []
        for x in operands:
            if isinstance(x, JVPTracer) and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x)
                tangents.append(Zero(x.aval))
        return primals, tangents

    def join(self, primal: Value, tangent: Tangent) -> Value:
        """A tracer; the primal itself where the tangent is zero."""
        return primal if isinstance(tangent, Zero) else JVPTracer(self, primal, tangent)

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        primals, tangents = self.split(operands)
        if opcode in ZERO_DERIVATIVE or _all_zero(tangents) or not _can_move(shape):
            with set_current_trace(self.parent):
                return self.parent.process(opcode, tuple(primals), attributes, shape)
        result, tangent = self.op_rule(opcode, primals, tangents, attributes, shape)
        if isinstance(result, list):
            return [self.join(p, t) for p, t in zip(result, tangent, strict=True)]
        return self.join(result, tangent)

    def op_rule(
        self, opcode: Opcode, primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Any, shape: Shape
    ) -> tuple[Any, Any]:
        """The result of an op and its tangent; two lists for an op with several results."""
        with set_current_trace(self.rule_trace):
            return JVP[opcode](primals, tangents, attributes, shape)

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        primals, tangents = self.split(operands)
        if _all_zero(tangents):
            with set_current_trace(self.parent):
                return self.parent.process_call(call, tuple(primals))
        if call.primitive.is_transparent or _is_python(call):
            return run_meaning(call, operands)
        results, tangents_out = self.call_rule(call, primals, tangents)
        return [self.join(p, t) for p, t in zip(results, tangents_out, strict=True)]

    def call_rule(
        self, call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
    ) -> tuple[list[Value], list[Tangent]]:
        """The results of a primitive and their tangents."""
        with set_current_trace(self.rule_trace):
            return (call.primitive.jvp or jvp_of_meaning)(call, primals, tangents)

    def outward(self, value: Value, reference: Any) -> Value:
        if isinstance(value, JVPTracer) and value._trace is self:
            raise ValueError(
                f"a value that is differentiated was written to {reference.aval}, a mutable array from outside of the "
                f"function.\n  {reference.origin()}\n  Move the array reference to be an argument of the "
                "differentiated function, or write hloom.lax.stop_gradient(value)."
            )
        return value


def _is_python(call: Call) -> bool:
    """True if the call has the derivative of its meaning, which is a Python function: it runs under the trace."""
    primitive = call.primitive
    has_rule = primitive.jvp is not None or primitive.linearize is not None
    return not has_rule and not isinstance(call.meaning, HloComputation)


def moving_mask(tangents: Sequence[Tangent]) -> tuple[bool, ...]:
    """Which values move: True for each value with a tangent other than Zero."""
    return tuple([not isinstance(t, Zero) for t in tangents])


def _all_zero(tangents: Sequence[Tangent]) -> bool:
    return all(isinstance(t, Zero) for t in tangents)


def _can_move(shape: Shape) -> bool:
    """True when a part of a result of `shape` has derivatives."""
    if shape.tuple_shapes is None:
        return shape.element.is_inexact
    return any(s.element.is_inexact for s in shape.tuple_shapes)


def jvp_flat(
    fun: FlatFunction, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """The results of `fun` at `primals` and their tangents, for `tangents` (Zero where an input does not move)."""
    trace = JVPTrace(current_trace())
    inputs = [trace.join(p, t) for p, t in zip(primals, tangents, strict=True)]
    with set_current_trace(trace), scope("jvp()"):
        results = list(fun(inputs))
    if current_context().check_tracer_leaks:
        check_for_leaks(trace)
    return trace.split(results)


# --- derivatives of computations


def parameter_avals(computation: HloComputation) -> list[ShapedArray]:
    """The types of the values that `eval_computation` takes: parameters, or the elements of a single tuple."""
    shapes = [p.shape for p in computation.parameters]
    if len(shapes) == 1 and shapes[0].is_tuple:
        return [aval_of_shape(s) for s in shapes[0].elements]
    return [aval_of_shape(s) for s in shapes]


@dataclass(frozen=True, slots=True)
class JVPComputation:
    """The derivative of a computation. It takes the primals, the tangents that are not zero, and `captured`; it returns
    the results, and the tangents of the results that `moves` names."""

    computation: HloComputation
    moves: tuple[bool, ...]
    captured: tuple[Value, ...]

    def unpack(self, results: Sequence[Value]) -> tuple[list[Value], list[Tangent]]:
        """Results and tangents from the results of the computation."""
        primals, moving = list(results[: len(self.moves)]), iter(results[len(self.moves) :])
        return primals, [next(moving) if m else Zero(p.aval) for p, m in zip(primals, self.moves, strict=True)]


_jvps = DerivedCache()


def jvp_computation(
    computation: HloComputation, moving: tuple[bool, ...], instantiated: tuple[bool, ...] | None = None
) -> JVPComputation:
    """The derivative of `computation` when the inputs that `moving` names have tangents.

    Results that `instantiated` names have one even if it is zero. Made once for each computation, so that a jitted
    function's derivative is compiled once. The new computation takes separate parameters, even if the old one takes a
    tuple.
    """

    def make() -> tuple[JVPComputation, bool]:
        avals = parameter_avals(computation)
        moves: tuple[bool, ...] = ()

        def with_tangents(values: list[Value]) -> list[Value]:
            nonlocal moves
            primals, given = values[: len(avals)], iter(values[len(avals) :])
            tangents = [next(given) if m else Zero(a) for a, m in zip(avals, moving, strict=True)]
            results, tangents_out = jvp_flat(lambda xs: eval_computation(computation, xs), primals, tangents)
            forced = instantiated or (False,) * len(results)
            moves = tuple(f or not isinstance(t, Zero) for f, t in zip(forced, tangents_out, strict=True))
            return [*results, *(instantiate(t) for t, m in zip(tangents_out, moves, strict=True) if m)]

        inputs = [*avals, *(a for a, m in zip(avals, moving, strict=True) if m)]
        traced = trace_to_computation(with_tangents, inputs, f"jvp_{computation.name}")
        return JVPComputation(traced.computation, moves, tuple(traced.captured)), traced.is_closed

    return _jvps.get((computation,), (moving, instantiated), make)


def jvp_of_meaning(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """The jvp rule of a primitive that has none: its meaning's derivative, which remains a call."""
    derived = jvp_computation(call.computation, moving_mask(tangents))
    given = [t for t in tangents if not isinstance(t, Zero)]
    results = bind_call(jit_call(derived.computation, call.label), [*primals, *given, *derived.captured])
    return derived.unpack(results)
