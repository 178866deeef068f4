from .interpreters.handlers import pytype_aval_mappings as pytype_aval_mappings
from .jaxpr.atoms import Atom as Atom, DropVar as DropVar, ParamDict as ParamDict, Value as Value
from .jaxpr.evaluate import eval_jaxpr as eval_jaxpr
from .jaxpr.tools import (
    concrete_or_error as concrete_or_error, eval_context as eval_context, find_top_trace as find_top_trace,
    get_opaque_trace_state as get_opaque_trace_state, max_dim as max_dim, min_dim as min_dim,
    valid_jaxtype as valid_jaxtype,
)
from .tracer.aval import ShapedArray as _ShapedArray, ShapedArray as ShapedArray
from .tracer.scopes import ensure_compile_time_eval as ensure_compile_time_eval
from .tracer.tracer import Trace as Trace, Tracer as Tracer

AbstractValue = _ShapedArray
