"""`hloom.extend.core`: primitives that a library adds, and the classes of jaxprs. The names of jax.extend.core."""

import typing as _typing

import numpy as _np

from ...api_util.flat_functions import DebugInfo
from ...namespaces import publish as _publish
from ...tracer.errors import InconclusiveDimensionOperation, JaxprTypeError
from ...tracer.token import Token
from ..primitive import Linear, Primitive

if _typing.TYPE_CHECKING:
    from ...jaxpr.atoms import DropVar, Literal, Var
    from ...jaxpr.evaluate import jaxpr_as_fun
    from ...jaxpr.nodes import ClosedJaxpr, Effect, Jaxpr, JaxprEqn, no_effects
    from ...jaxpr.tools import (
        AbstractToken,
        TraceTag,
        check_jaxpr,
        concrete_or_error,
        find_top_trace,
        gensym,
        get_opaque_trace_state,
        jaxprs_in_params,
        mapped_aval,
        new_jaxpr_eqn,
        nonempty_axis_env_DO_NOT_USE,
        primal_dtype_to_tangent_dtype,
        set_current_trace,
        subjaxprs,
        take_current_trace,
        unmapped_aval,
        unsafe_am_i_under_a_jit_DO_NOT_USE,
        unsafe_am_i_under_a_vmap_DO_NOT_USE,
        unsafe_get_axis_names_DO_NOT_USE,
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
            *("take_current_trace", "TraceTag", "unmapped_aval", "valid_jaxtype", "AbstractToken", "check_jaxpr"),
            *("nonempty_axis_env_DO_NOT_USE", "unsafe_am_i_under_a_jit_DO_NOT_USE"),
            *("unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE"),
        ),
        "jaxpr.tools",
    ),
}
"""The names that are loaded when they are first used, and their modules."""

array_types = frozenset({_np.ndarray, *(_np.dtype(c).type for c in "?bhilqBHILQefdFD")})
"""The types of arrays and numbers that NumPy makes and functions take."""

__all__ = [
    "AbstractToken",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Linear",
    "Literal",
    "Primitive",
    "Token",
    "TraceTag",
    "Var",
    "array_types",
    "check_jaxpr",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

_publish(__name__, "primitives", later=_HOMES)
