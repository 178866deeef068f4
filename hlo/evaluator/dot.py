"""What dot means."""

from __future__ import annotations

import math

import numpy as np

from ..attributes import DotAttributes
from ..element_type import ElementType
from ..opcode import Opcode
from ..shape import Shape
from .table import EVALUATE, NDArray

_NARROW = (ElementType.F16, ElementType.BF16)


@EVALUATE.register(Opcode.DOT)
def _dot(shape: Shape, attributes: DotAttributes, lhs: NDArray, rhs: NDArray) -> NDArray:
    """Sums of products over the contracting dimensions, for each batch, in the result's element type.

    Integers wrap around; f16 and bf16 are multiplied and summed in f32 and rounded once.
    """
    element_type = shape.element
    compute = np.dtype(np.float32) if element_type in _NARROW else element_type.dtype
    lhs, rhs = lhs.astype(compute, copy=False), rhs.astype(compute, copy=False)
    lhs_contracting, rhs_contracting = attributes.lhs_contracting_dims, attributes.rhs_contracting_dims
    if lhs.ndim == rhs.ndim == 2 and len(lhs_contracting) == 1 and not attributes.lhs_batch_dims:
        # What follows, for matrices: much of eager execution is this.
        product: NDArray = np.matmul(
            lhs if lhs_contracting == (1,) else lhs.T, rhs if rhs_contracting == (0,) else rhs.T
        )
    else:
        left = _matrices(lhs, attributes.lhs_batch_dims, lhs_contracting)
        right = _matrices(rhs, attributes.rhs_batch_dims, rhs_contracting)
        product = np.matmul(left, right.swapaxes(-1, -2)).reshape(shape.dimensions)
    return product.astype(element_type.dtype, copy=False)


def _matrices(array: NDArray, batch: tuple[int, ...], contracting: tuple[int, ...]) -> NDArray:
    """The array as one (free, contracting) matrix a batch, in three dimensions."""
    free = [d for d in range(array.ndim) if d not in batch and d not in contracting]
    batches, rows, columns = (math.prod(array.shape[d] for d in group) for group in (batch, free, contracting))
    return array.transpose((*batch, *free, *contracting)).reshape(batches, rows, columns)


EVALUATE.unsupported([Opcode.RAGGED_DOT, Opcode.SCALED_DOT], "not written yet")
