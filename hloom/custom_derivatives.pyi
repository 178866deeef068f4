from .autodiff.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp
from .autodiff.functions import (
    closure_convert as closure_convert, custom_gradient as custom_gradient, linear_call as linear_call,
)
from .autodiff.symbolic_zeros import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values, CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero, zero_from_primal as zero_from_primal,
)
from .extend.core.primitives import custom_jvp_call_p as custom_jvp_call_p, custom_vjp_call_p as custom_vjp_call_p
