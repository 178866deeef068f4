"""Jaxprs that run, equation by equation, in the current trace, and the HLO computations that primitives bind.

Names and arguments follow jax.core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from ..hlo.ir import HloComputation, Metadata
from ..hlo.opcode import Opcode
from ..tracer import ops
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import storages
from ..tracer.core import Value, source_metadata
from ..tracer.recording import TracedComputation, returns_element, trace_to_computation
from ..tracer.sharding.lenience import not_refused
from ..tracer.trees import tree
from .atoms import Literal, Var
from .nodes import ClosedJaxpr, Jaxpr, JaxprEqn


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """The results of a jaxpr on arrays: each equation's primitive is bound to its operands.

    `consts` are the values of its `constvars`. With `propagate_source_info`, recorded instructions keep the lines of
    the equations. TypeError for a wrong number of values.

    >>> closed = hloom.make_jaxpr(lambda x: jnp.sin(2 * x))(jnp.ones(2))
    >>> hloom.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.zeros(2))
    [Array([0., 0.], dtype=float32)]
    """
    if len(consts) != len(jaxpr.constvars) or len(args) != len(jaxpr.invars):
        raise TypeError(
            f"eval_jaxpr: the jaxpr takes {len(jaxpr.constvars)} constants and {len(jaxpr.invars)} arguments, and got "
            f"{len(consts)} and {len(args)}"
        )
    env: dict[Var, Any] = {}
    env.update(zip((*jaxpr.constvars, *jaxpr.invars), storages(tuple([as_value(x) for x in (*consts, *args)]))))

    def read(atom: Any) -> Any:
        return literal_value(atom) if isinstance(atom, Literal) else env[atom]

    for equation in jaxpr.eqns:
        with _lines_of(equation) if propagate_source_info else nullcontext(), not_refused():
            result = equation.primitive.bind(*[read(a) for a in equation.invars], **equation.params)
        env.update(zip(equation.outvars, tree.leaves(result), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _lines_of(equation: JaxprEqn) -> AbstractContextManager[None]:
    """Within it, recorded instructions have the equation's line."""
    info = equation.source_info
    if not info.file:
        return nullcontext()
    name = "/".join(filter(None, ("jaxpr", info.name_stack, equation.primitive.name)))
    return source_metadata(Metadata(name, info.file, info.line))


def literal_value(literal: Literal) -> Any:
    """A literal as an array of its type."""
    value = as_value(literal.val)
    return value if value.aval is literal.aval else ops.convert(value, literal.aval.dtype, literal.aval.weak_type)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The jaxpr as a function of arrays.

    >>> f = jaxpr_as_fun(hloom.make_jaxpr(lambda x: 2 * x)(jnp.ones(2)))
    >>> f(jnp.array([1.0, 2.0]))
    [Array([2., 4.], dtype=float32)]
    """

    def fun(*args: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)

    return fun


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
