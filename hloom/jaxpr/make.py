"""make_jaxpr. Names and arguments follow jax.make_jaxpr."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.tracebacks import boundary
from ..tracer.arguments import (
    ShapeDtypeStruct,
    abstract_example,
    argument_spec,
    check_function,
    leaf_describer,
    split_static,
)
from ..tracer.arrays.float0 import hide_float0
from ..tracer.references.refs import Ref
from ..tracer.settings.context import Override, current_context
from ..tracer.traced import trace_function
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .view import view_of


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that takes fun's arguments, or ShapeDtypeStruct, and returns the program it is traced to as a
    ClosedJaxpr: a view of its HLO, before any pass.

    static_argnums: arguments that are Python values.
    return_shape: also return the results' types, as ShapeDtypeStruct in the structure of the result.
    axis_env: names and sizes of axes that the function's collectives may use.

    For a reference to a mutable array the program takes the array, and the written value is a further result.

    >>> import hloom, hloom.numpy as jnp
    >>> hloom.make_jaxpr(lambda x: jnp.sin(2 * x))(jnp.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = mul 2.0:f32[] a; c:f32[3] = sin b in (c,) }
    """
    check_function(fun, "make_jaxpr")
    axes = tuple([(name, operator.index(size)) for name, size in axis_env or ()])
    static = argument_spec(fun, "static", static_argnums, None)

    @wraps(fun)
    @boundary
    def make(*args: Any, **kwargs: Any) -> Any:
        dynamic, keywords, statics = split_static(fun, static, args, kwargs)
        dynamic, keywords = hide_float0((dynamic, keywords))
        leaves, treedef = tree.flatten((dynamic, keywords))
        describe = leaf_describer(fun, dynamic, keywords, statics)
        avals = [
            x.aval if isinstance(x, Ref) else abstract_example(x, functools.partial(describe, k))
            for k, x in enumerate(leaves)
        ]
        with Override(axis_names=(*current_context().axis_names, *axes)):
            traced = trace_function(fun, treedef, avals, statics, float0_results=True)
        closed = view_of(traced.computation, traced.captured, traced.in_avals, traced.out_avals)
        if not return_shape:
            return closed
        structs = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in traced.out_avals]
        return closed, tree.unflatten(traced.out_tree, structs)

    name = getattr(fun, "__name__", type(fun).__name__)
    make.__name__, make.__qualname__ = f"make_jaxpr({name})", f"make_jaxpr({getattr(fun, '__qualname__', name)})"
    make.__module__ = "hloom"
    return make
