"""`hloom.experimental.pallas.triton`: parts of kernels for GPUs, with names of jax.experimental.pallas.triton."""

from ...namespaces import publish as _publish
from ...namespaces.not_written import not_written as _not_written

_NAMES = """
CompilerParams approx_tanh atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor
debug_barrier dot elementwise_inline_asm load max_contiguous store
"""
__all__ = [*_NAMES.split()]

globals().update(_not_written(__name__, _NAMES, "it is about kernels for GPUs, and programs run on the CPU"))

_publish(__name__)
