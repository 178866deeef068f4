"""Jaxprs that run, equation by equation, in the current trace. Names and arguments follow jax.core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..hlo.ir import Metadata
from ..tracer import ops
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import storages
from ..tracer.core import source_metadata
from ..tracer.trees import tree
from .atoms import Literal, Var
from .nodes import ClosedJaxpr, Jaxpr, JaxprEqn


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """The results of a jaxpr on arrays: each equation's primitive is bound to its operands.

    `consts` are the values of its `constvars`. With `propagate_source_info`, recorded instructions keep the lines of
    the equations. TypeError for a wrong number of values.

    >>> import hloom, hloom.numpy as jnp
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
        before, params = equation.primitive.get_bind_params(equation.params)
        with _lines_of(equation) if propagate_source_info else nullcontext():
            result = equation.primitive.bind(*before, *[read(a) for a in equation.invars], **params)
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

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.extend.core import jaxpr_as_fun
    >>> f = jaxpr_as_fun(hloom.make_jaxpr(lambda x: 2 * x)(jnp.ones(2)))
    >>> f(jnp.array([1.0, 2.0]))
    [Array([2., 4.], dtype=float32)]
    """

    def fun(*args: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)

    return fun
