"""Small functions for those who build jaxprs or look into them. Source for names and arguments: jax.extend.core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..tracer import dtypes
from ..tracer.arguments import abstract
from ..tracer.aval import ShapedArray
from ..tracer.core import EVAL, current_trace
from ..tracer.core import set_current_trace as set_current_trace
from ..tracer.errors import ConcretizationTypeError, NonArrayArgumentError
from ..tracer.float0 import float0
from ..tracer.tracer import Trace, Tracer
from . import printing
from .atoms import Atom, Var
from .nodes import Effect, Jaxpr, JaxprEqn, SourceInfo, no_effects


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Any,
    params: dict[str, Any],
    effects: frozenset[Effect] = no_effects,
    source_info: SourceInfo | None = None,
    ctx: None = None,
) -> JaxprEqn:
    """An equation."""
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info)


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type."""
    return Var


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    return printing.jaxprs_in_params(params)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs in the parameters of its equations."""
    for equation in jaxpr.eqns:
        yield from jaxprs_in_params(equation.params)


def valid_jaxtype(x: Any) -> bool:
    """Whether x is an array, a tracer or a number."""
    try:
        abstract(x, lambda: "it")
    except NonArrayArgumentError:
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """`force(val)`, or `val` itself, where the value is known; ConcretizationTypeError, with the context, else."""
    if isinstance(val, Tracer):
        known = val.to_concrete_value()
        if known is None:
            origin = f"\n  the value was made at {val.origin()}" if val.origin() else ""
            raise ConcretizationTypeError(
                f"a concrete value is needed, but {val.aval.str_short()} is traced{val._trace.described()}: it has no "
                f"value yet. {context}{origin}"
            )
        val = known
    return val if force is None else force(val)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of a slice along `axis`."""
    if axis is None:
        return aval
    assert aval.shape[axis] == size, f"{aval} has not size {size} along {axis}"
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of an array with slices of type `aval` along `axis`."""
    return aval if axis is None else aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def find_top_trace(xs: Sequence[Any] = ()) -> Trace:
    """The current trace."""
    return current_trace()


class _TraceState:
    """Equal as long as the same trace is current."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return id(self._trace)


def get_opaque_trace_state(convention: str | None = None) -> _TraceState:
    """An object that compares equal while the same function is being traced."""
    return _TraceState(current_trace())


def primal_dtype_to_tangent_dtype(primal_dtype: DTypeLike) -> Any:
    """The dtype of tangents: float0 for integers, booleans and keys."""
    return primal_dtype if dtypes.is_inexact(np.dtype(primal_dtype)) else float0


class TraceTag:
    """An object that tells one trace from another."""

    __slots__ = ()


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """The current trace, which within the block is not current: operations on arrays are computed at once."""
    trace = current_trace()
    with set_current_trace(EVAL):
        yield trace
