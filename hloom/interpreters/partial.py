"""Functions with some known arguments. `hloom.interpreters.partial_eval` offers these names.

An operation on values that are all known is computed at once; the others are recorded, and become a jaxpr.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ..api_util.wrapped_functions import WrappedFun
from ..hlo.builder import make_computation, make_tuple
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..jaxpr.nodes import Jaxpr
from ..jaxpr.view import view_of
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import overlaid_all, storage_of
from ..tracer.aval import ShapedArray
from ..tracer.core import Call, Value, current_trace, run_meaning, set_current_trace
from ..tracer.recording import HloTrace, HloTracer, with_computation


class PartialVal(tuple[ShapedArray | None, Any]):
    """A pair: (None, value) for a known value, (type, None) for an unknown one."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> Self:
        """A value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> Self:
        """Some value of a type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether there is a value."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> ShapedArray:
        """The type."""
        return self[0] if self[0] is not None else as_value(self[1]).aval


class PartialTrace(HloTrace):
    """Records operations on unknown values; operations on known values go to the trace around."""

    def owns(self, value: Value) -> bool:
        """Whether a value is unknown."""
        return isinstance(value, HloTracer) and value._trace is self

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        if any(self.owns(o) for o in operands):
            return super().process(opcode, operands, attributes, shape)
        assert self.parent is not None, "the trace that evaluates is below all"
        with set_current_trace(self.parent):
            return self.parent.process(opcode, operands, attributes, shape)

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        """The results of a call on known values are known: its meaning runs operation by operation. A call with rules
        of its own stays one."""
        own = any(self.owns(o) for o in operands)
        if own and call.primitive.jvp is None and call.primitive.linearize is None:
            return run_meaning(call, operands)
        if own:
            closed, captured = with_computation(call, operands)
            return self.record_call(closed, [*operands, *captured])
        assert self.parent is not None, "the trace that evaluates is below all"
        with set_current_trace(self.parent):
            return self.parent.process_call(call, operands)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Run `fun`, a function of lists, on values, some of them unknown.

    Returns a jaxpr of the recorded operations, from the unknown arguments to the unknown results; for each result
    whether and which value is known; and the values of the jaxpr's `constvars`. Results that `instantiate` names become
    unknown.
    """
    avals = [p.get_aval() for p in pvals if not p.is_known()]
    trace = PartialTrace(current_trace(), getattr(fun, "__name__", "partial"))
    with set_current_trace(trace):
        inputs: list[Value] = [trace.parameter(a.storage) for a in avals]
        unknown = iter(overlaid_all(inputs, avals))
        results = fun.call_wrapped(*[p.get_known() if p.is_known() else next(unknown) for p in pvals])
        values = [storage_of(as_value(r)) for r in results]
    wanted = [instantiate] * len(values) if isinstance(instantiate, bool) else list(instantiate)
    recorded = [trace.owns(v) or w for v, w in zip(values, wanted, strict=True)]
    root = make_tuple([trace.lift(v) for v, r in zip(values, recorded, strict=True) if r])
    computation = make_computation(trace.name, root, trace.parameters, trace.effects)
    out_avals = [as_value(r).aval for r in results]
    closed = view_of(
        computation, trace.captured, avals, [a for a, r in zip(out_avals, recorded, strict=True) if r]
    )
    pairs = zip(results, out_avals, recorded, strict=True)
    found = [PartialVal.unknown(a) if r else PartialVal.known(v) for v, a, r in pairs]
    return closed.jaxpr, found, closed.consts
