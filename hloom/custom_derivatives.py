"""`hloom.custom_derivatives`: derivatives that users write, and what their rules get."""

from .autodiff.custom import custom_jvp, custom_vjp
from .autodiff.functions import closure_convert, custom_gradient, linear_call
from .autodiff.symbolic_zeros import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal
from .namespaces import publish as _publish

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]

_publish(__name__)
