"""The primitives that equations of jaxprs name. The names of jax.extend.core.primitives."""

import typing as _typing

from ...jaxpr.primitives import primitive_named as _named
from ...lax import primitives as _of_lax
from ...namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from ...lax.primitives import *  # noqa: F403
else:
    globals().update({name: getattr(_of_lax, name) for name in _of_lax.__all__})

call_p = _named("call")
cholesky_p = _named("cholesky")
closed_call_p = _named("closed_call")
custom_jvp_call_p = _named("custom_jvp_call")
custom_vjp_call_p = _named("custom_vjp_call")
jit_p = _named("jit")
remat_p = _named("remat2")
triangular_solve_p = _named("triangular_solve")

__all__ = [
    "call_p",
    "cholesky_p",
    "closed_call_p",
    "custom_jvp_call_p",
    "custom_vjp_call_p",
    "jit_p",
    "remat_p",
    "triangular_solve_p",
    *_of_lax.__all__,
]

_publish(__name__)
