"""The primitives that equations of jaxprs name. The names of jax.extend.core.primitives."""

import typing as _typing

from ...jaxpr.primitives import primitive_named as _named
from ...lax import primitives as _of_lax
from ...lax.linalg import primitives as _of_linalg
from ...namespaces import publish as _publish

if _typing.TYPE_CHECKING:
    from ...lax.linalg.primitives import *  # noqa: F403
    from ...lax.primitives import *  # noqa: F403
    from ...random import random_gamma_p
else:
    globals().update({name: getattr(_of_lax, name) for name in _of_lax.__all__})
    globals().update({name: getattr(_of_linalg, name) for name in _of_linalg.__all__})

add_jaxvals_p = _named("add_any")
call_p = _named("call")
closed_call_p = _named("closed_call")
custom_jvp_call_p = _named("custom_jvp_call")
custom_vjp_call_p = _named("custom_vjp_call")
jit_p = _named("jit")
name_p = _named("name")
random_bits_p = _named("random_bits")
random_fold_in_p = _named("random_fold_in")
random_seed_p = _named("random_seed")
random_split_p = _named("random_split")
remat_p = _named("remat2")
threefry2x32_p = _named("threefry2x32")

__all__ = [
    "add_jaxvals_p",
    "call_p",
    "closed_call_p",
    "custom_jvp_call_p",
    "custom_vjp_call_p",
    "jit_p",
    "name_p",
    "random_bits_p",
    "random_fold_in_p",
    "random_gamma_p",
    "random_seed_p",
    "random_split_p",
    "remat_p",
    "threefry2x32_p",
    *_of_lax.__all__,
    *_of_linalg.__all__,
]

_publish(__name__, later={"random_gamma_p": "random"})
