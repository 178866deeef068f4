"""From a jaxpr back to HLO: the function that a primitive binds may need a computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..tracer.arrays.overlay import storages
from ..tracer.core import Value
from ..tracer.recording import TracedComputation, returns_element, trace_to_computation
from .evaluate import eval_jaxpr
from .nodes import ClosedJaxpr, Jaxpr

_seen: WeakKeyDictionary[Jaxpr, HloComputation] = WeakKeyDictionary()
"""Of jaxprs that are the view of a computation, that computation."""


def remember(jaxpr: Jaxpr, computation: HloComputation) -> None:
    """Say that `jaxpr` is the view of `computation`: parameters are `invars`, results are `outvars`."""
    _seen[jaxpr] = computation


def traced(closed: Any, name: str = "jaxpr", consts: Sequence[Any] = ()) -> TracedComputation:
    """A jaxpr, closed or with `consts`, as a computation of its arguments, and of the constants that it captures."""
    jaxpr, held = (closed.jaxpr, closed.consts) if isinstance(closed, ClosedJaxpr) else (closed, consts)
    known = _seen.get(jaxpr)
    if known is not None and known.root.shape.is_tuple:
        return TracedComputation(known, tuple(jaxpr.out_avals), [])

    def run(values: list[Value]) -> Sequence[Value]:
        return storages(tuple(eval_jaxpr(jaxpr, held, *values)))

    return trace_to_computation(run, [v.aval.storage for v in jaxpr.invars], name)


def computation_of(closed: Any, consts: Sequence[Any] = ()) -> HloComputation:
    """A jaxpr of scalars as the computation that an op applies: a reducer, a comparator."""
    known = _seen.get(closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed)
    if known is not None:
        return known
    found = traced(closed, "applied", consts)
    if found.captured:
        raise TypeError("a computation that is applied to scalars cannot use arrays from outside")
    computation = found.computation
    is_tuple = computation.root.opcode is Opcode.TUPLE
    return returns_element(computation) if is_tuple and len(computation.root.operands) == 1 else computation
