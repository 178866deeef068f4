"""`hloom.extend.core`: primitives that a library adds, and what jaxprs consist of. The names of jax.extend.core."""

import typing as _typing

from ...namespaces import publish as _publish
from ..primitive import Linear, Primitive

if _typing.TYPE_CHECKING:
    from ...jaxpr.atoms import DropVar, Literal, Var
    from ...jaxpr.evaluate import jaxpr_as_fun
    from ...jaxpr.nodes import ClosedJaxpr, Effect, Jaxpr, JaxprEqn, no_effects
    from ...jaxpr.tools import (
        TraceTag,
        concrete_or_error,
        find_top_trace,
        gensym,
        get_opaque_trace_state,
        jaxprs_in_params,
        mapped_aval,
        new_jaxpr_eqn,
        primal_dtype_to_tangent_dtype,
        set_current_trace,
        subjaxprs,
        take_current_trace,
        unmapped_aval,
        valid_jaxtype,
    )
    from . import primitives

_HOMES = {
    **dict.fromkeys(("DropVar", "Literal", "Var"), "jaxpr.atoms"),
    "jaxpr_as_fun": "jaxpr.evaluate",
    **dict.fromkeys(("ClosedJaxpr", "Effect", "Jaxpr", "JaxprEqn", "no_effects"), "jaxpr.nodes"),
    **dict.fromkeys(
        (
            *("concrete_or_error", "find_top_trace", "gensym", "get_opaque_trace_state", "jaxprs_in_params"),
            *("mapped_aval", "new_jaxpr_eqn", "primal_dtype_to_tangent_dtype", "set_current_trace", "subjaxprs"),
            *("take_current_trace", "TraceTag", "unmapped_aval", "valid_jaxtype"),
        ),
        "jaxpr.tools",
    ),
}
"""The names that are loaded when they are first used, and their modules."""

__all__ = [
    "ClosedJaxpr",
    "DropVar",
    "Effect",
    "Jaxpr",
    "JaxprEqn",
    "Linear",
    "Literal",
    "Primitive",
    "TraceTag",
    "Var",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "valid_jaxtype",
]

_publish(__name__, "primitives", later=_HOMES)
