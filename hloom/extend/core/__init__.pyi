from . import primitives as primitives
from ...api_util.flat_functions import DebugInfo as DebugInfo
from ...autodiff.tangents import Linear as Linear
from ...jaxpr.atoms import DropVar as DropVar, Literal as Literal, Var as Var
from ...jaxpr.evaluate import jaxpr_as_fun as jaxpr_as_fun
from ...jaxpr.nodes import (
    ClosedJaxpr as ClosedJaxpr, Effect as Effect, Jaxpr as Jaxpr, JaxprEqn as JaxprEqn, no_effects as no_effects,
)
from ...jaxpr.tools import (
    AbstractToken as AbstractToken, array_types as array_types, check_jaxpr as check_jaxpr,
    concrete_or_error as concrete_or_error, find_top_trace as find_top_trace, gensym as gensym,
    get_opaque_trace_state as get_opaque_trace_state, jaxprs_in_params as jaxprs_in_params,
    mapped_aval as mapped_aval, new_jaxpr_eqn as new_jaxpr_eqn,
    nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE,
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype, subjaxprs as subjaxprs,
    take_current_trace as take_current_trace, TraceTag as TraceTag, unmapped_aval as unmapped_aval,
    unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE, valid_jaxtype as valid_jaxtype,
)
from ...tracer.core import set_current_trace as set_current_trace
from ...tracer.errors import (
    InconclusiveDimensionOperation as InconclusiveDimensionOperation, JaxprTypeError as JaxprTypeError,
)
from ...tracer.token import Token as Token
from ..primitive import Primitive as Primitive
