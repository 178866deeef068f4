"""jax._src.callback: the primitives of calls of Python, as equations of jaxprs name them."""

from ...jaxpr.primitives import primitive_named

__all__ = ["io_callback_p", "pure_callback_p"]

io_callback_p = primitive_named("io_callback")
pure_callback_p = primitive_named("pure_callback")
