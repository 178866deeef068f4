"""Attention for TPUs: the kernels."""

from ......namespaces import publish as _publish
from ......namespaces.not_written import not_written as _not_written

_NAMES = """
BlockSizes SegmentIds make_splash_mha make_splash_mha_single_device make_splash_mqa make_splash_mqa_single_device
"""
__all__ = [*_NAMES.split()]

globals().update(
    _not_written(__name__, _NAMES, "it is a kernel for TPUs; hloom.nn.dot_product_attention runs on the CPU")
)

_publish(__name__)
