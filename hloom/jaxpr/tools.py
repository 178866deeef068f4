"""Small functions for building and inspecting jaxprs. Names and arguments follow jax.extend.core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..autodiff.batching import BatchTrace
from ..hlo.sizes import as_size, larger, smaller
from ..tracer import dtypes
from ..tracer.arguments import LeafName, ShapeDtypeStruct, abstract
from ..tracer.arrays.float0 import float0
from ..tracer.aval import ShapedArray
from ..tracer.core import EVAL, current_trace
from ..tracer.core import set_current_trace as set_current_trace
from ..tracer.errors import JaxprTypeError, NonArrayArgumentError
from ..tracer.jit import eval_shape
from ..tracer.recording import HloTrace
from ..tracer.settings.context import current_context
from ..tracer.tracer import Trace, Tracer
from . import printing
from .atoms import Atom, DropVar, Var
from .nodes import Effect, Jaxpr, JaxprEqn, SourceInfo, no_effects

array_types = frozenset({np.ndarray, *(np.dtype(c).type for c in "?bhilqBHILQefdFD")})
"""The types of arrays and numbers that NumPy makes and functions take."""


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Any,
    params: dict[str, Any],
    effects: frozenset[Effect] = no_effects,
    source_info: SourceInfo | None = None,
    ctx: None = None,
) -> JaxprEqn:
    """An equation.

    >>> old = hloom.make_jaxpr(lambda x: jnp.sin(x))(1.5).eqns[0]
    >>> new = new_jaxpr_eqn(old.invars, old.outvars, hloom.lax.cos_p, {**old.params})
    >>> new.primitive.name
    'cos'
    """
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info)


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type.

    >>> gensym()(hloom.typeof(1.5)).aval
    ShapedArray(float32[], weak_type=True)
    """
    return Var


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation.

    >>> branch = lambda x: hloom.lax.cond(x > 0, jnp.sin, jnp.cos, x)
    >>> cond = hloom.make_jaxpr(branch)(1.5).eqns[-1]
    >>> len(list(jaxprs_in_params(cond.params)))
    2
    """
    return printing.jaxprs_in_params(params)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs in the parameters of its equations.

    >>> f = lambda x: hloom.lax.cond(x > 0, jnp.sin, jnp.cos, x)
    >>> [jaxpr.eqns[0].primitive.name for jaxpr in subjaxprs(hloom.make_jaxpr(f)(1.5).jaxpr)]
    ['cos', 'sin']
    """
    for equation in jaxpr.eqns:
        yield from jaxprs_in_params(equation.params)


def valid_jaxtype(x: Any) -> bool:
    """Whether x is an array, a tracer or a number.

    >>> valid_jaxtype(1.5), valid_jaxtype("text")
    (True, False)
    """
    try:
        abstract(x, lambda: LeafName("x", "valid_jaxtype"))
    except NonArrayArgumentError:
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """`force(val)`, or `val` itself, where the value is known; ConcretizationTypeError, with the context, else.

    >>> concrete_or_error(int, jnp.array(3), "the size")
    3
    """
    if isinstance(val, Tracer):
        known = val.to_concrete_value()
        if known is None:
            raise val.unknown("a concrete value is needed", context)
        val = known
    return val if force is None else force(val)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of a slice along `axis`.

    >>> mapped_aval(2, 0, hloom.typeof(jnp.ones((2, 3))))
    ShapedArray(float32[3])
    """
    if axis is None:
        return aval
    assert aval.shape[axis] == size, f"{aval} has not size {size} along {axis}"
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of an array with slices of type `aval` along `axis`.

    >>> unmapped_aval(2, 0, hloom.typeof(jnp.ones(3)))
    ShapedArray(float32[2,3])
    """
    return aval if axis is None else aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def find_top_trace(xs: Sequence[Any] = ()) -> Trace:
    """The current trace.

    >>> outside = find_top_trace()
    >>> hloom.jit(lambda: print(find_top_trace() is outside))()
    False
    """
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
    """An object that compares equal while the same function is being traced.

    >>> here = get_opaque_trace_state()
    >>> hloom.jit(lambda: print(get_opaque_trace_state() == here))(), get_opaque_trace_state() == here
    False
    (None, True)
    """
    return _TraceState(current_trace())


def primal_dtype_to_tangent_dtype(primal_dtype: DTypeLike) -> Any:
    """The dtype of tangents: float0 for integers, booleans and keys.

    >>> primal_dtype_to_tangent_dtype(jnp.ones(1).dtype), primal_dtype_to_tangent_dtype(int) == hloom.float0
    (dtype('float32'), True)
    """
    return primal_dtype if dtypes.is_inexact(np.dtype(primal_dtype)) else float0


class TraceTag:
    """An object that tells one trace from another.

    >>> TraceTag() == TraceTag()
    False
    """

    __slots__ = ()


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """The current trace, which within the block is not current: operations on arrays are computed at once.

    >>> @hloom.jit
    ... def f(x):
    ...     with take_current_trace():
    ...         n = int(jnp.sum(jnp.ones(3)))  # computed at once
    ...     return x * n
    >>> f(2.0)
    Array(6., dtype=float32, weak_type=True)
    """
    trace = current_trace()
    with set_current_trace(EVAL):
        yield trace


@contextmanager
def eval_context() -> Iterator[None]:
    """Within the block no function is traced: operations on arrays are computed at once.

    >>> @hloom.jit
    ... def f(x):
    ...     with eval_context():
    ...         n = int(jnp.sum(jnp.ones(3)))  # computed at once
    ...     return x * n
    >>> f(2.0)
    Array(6., dtype=float32, weak_type=True)
    """
    with set_current_trace(EVAL):
        yield


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger one of two sizes.

    >>> hloom.core.max_dim(2, 3)
    3
    """
    return larger(_known(d1), _known(d2))


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller one of two sizes.

    >>> hloom.core.min_dim(2, 3)
    2
    """
    return smaller(_known(d1), _known(d2))


def _known(size: Any) -> Any:
    return size if isinstance(size, int) else as_size(size)


# ---- the current traces


def _traces() -> Iterator[Trace]:
    """The current trace and those below it."""
    trace: Trace | None = current_trace()
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is being recorded.

    >>> hloom.jit(lambda: print(hloom.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE()))()
    True
    """
    return any(isinstance(trace, HloTrace) for trace in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether operations are on batches.

    >>> hloom.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE()
    False
    """
    return any(isinstance(trace, BatchTrace) for trace in _traces())


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is mapped over.

    >>> hloom.extend.core.nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(current_context().axis_names)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The named axes that are mapped over, the outermost one first.

    >>> y = hloom.vmap(lambda x: print(unsafe_get_axis_names_DO_NOT_USE()) or x, axis_name="i")(jnp.ones(2))
    ['i']
    """
    return [name for name, _ in current_context().axis_names]


# ---- tokens


class AbstractToken:
    """The type of tokens (`hloom.lax.create_token`).

    >>> isinstance(hloom.extend.core.AbstractToken(), hloom.extend.core.AbstractToken)
    True
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractToken)

    def __hash__(self) -> int:
        return hash(AbstractToken)

    def str_short(self, short_dtypes: bool = False) -> str:
        """As jaxprs show it."""
        return "Tok"

    def __repr__(self) -> str:
        return "AbstractToken()"


# ---- checks


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """JaxprTypeError unless each variable is bound once and before it is read, and each equation's results have the
    types that its primitive gives for its operands.

    >>> hloom.extend.core.check_jaxpr(hloom.make_jaxpr(lambda x: 2 * x)(1.5).jaxpr)
    """
    bound: set[Var] = set()

    def bind(var: Var, where: str) -> None:
        if var in bound:
            raise JaxprTypeError(f"Variable {var} is bound twice, the second time by {where}")
        bound.add(var)

    def read(atom: Atom, where: str) -> None:
        if isinstance(atom, Var) and atom not in bound:
            raise JaxprTypeError(f"Variable {atom}:{atom.aval.str_short()} of {where} is not defined")

    for var in (*jaxpr.constvars, *jaxpr.invars):
        bind(var, "the jaxpr's inputs")
    for equation in jaxpr.eqns:
        where = f"the equation of {equation.primitive}"
        for atom in equation.invars:
            read(atom, where)
        for inner in jaxprs_in_params(equation.params):
            check_jaxpr(inner)
        _check_types(equation)
        for result in equation.outvars:
            if not isinstance(result, DropVar):
                bind(result, where)
    for atom in jaxpr.outvars:
        read(atom, "the results")


def _check_types(equation: JaxprEqn) -> None:
    primitive, params = equation.primitive, equation.params
    if hasattr(params.get("call"), "primitive"):
        return  # a use that the jaxpr's inner jaxpr describes, which is checked
    operands = [ShapeDtypeStruct(a.aval.shape, a.aval.dtype) for a in equation.invars]
    try:
        found = eval_shape(lambda *values: primitive.bind(*values, **params), *operands)
    except Exception as error:
        raise JaxprTypeError(f"The equation of {primitive} does not fit its operands: {error}") from error
    results = found if primitive.multiple_results else [found]
    given = [(tuple(r.shape), r.dtype) for r in results]
    said = [(v.aval.shape, v.aval.dtype) for v in equation.outvars]
    if given != said:
        raise JaxprTypeError(f"The equation of {primitive} binds {said}, but its results are {given}")
