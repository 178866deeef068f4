"""`hloom.custom_derivatives`: derivatives that users write, and the arguments of their rules."""

from .autodiff.custom import custom_jvp, custom_vjp
from .autodiff.functions import closure_convert, custom_gradient, linear_call
from .autodiff.symbolic_zeros import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal
from .jaxpr.primitives import primitive_named as _named
from .namespaces import publish as _publish

custom_jvp_call_p = _named("custom_jvp_call")
"""The primitive for a call of a `custom_jvp` function in jaxprs."""
custom_vjp_call_p = _named("custom_vjp_call")
"""The primitive for a call of a `custom_vjp` function in jaxprs."""

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]

_publish(__name__)
