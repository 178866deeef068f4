"""Attention for TPUs: masks for them."""

from ......namespaces import publish as _publish
from ......namespaces.not_written import not_written as _not_written

_NAMES = """
CausalMask FullMask LocalMask Mask MultiHeadMask NumpyMask
"""
__all__ = [*_NAMES.split()]

globals().update(
    _not_written(__name__, _NAMES, "it is a kernel for TPUs; hloom.nn.dot_product_attention runs on the CPU")
)

_publish(__name__)
