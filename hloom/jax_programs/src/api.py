"""jax._src.api: the transformations."""

from ... import eval_shape, grad, hessian, jacfwd, jacrev, jit, jvp, linearize, make_jaxpr, value_and_grad, vjp, vmap

__all__ = [
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "make_jaxpr",
    "value_and_grad",
    "vjp",
    "vmap",
]
