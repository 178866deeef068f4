"""Op cases of batch normalisation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..hlo import ElementType, Shape
from ..hlo.ops.normalization import BatchNormAttributes
from .op_case import FLOATS, Array, E, O, OpCase, make_case, shape_of
from .op_values import NDArray, positive, small_floats

_ULPS = {E.F16: 64, E.BF16: 24, E.F32: 2**6, E.F64: 2**6}
"""XLA rounds f16 and bf16 after each op."""
_GRAD_ULPS = {E.F16: 2**11, E.BF16: 2**8, E.F32: 2**16, E.F64: 2**16}
"""Gradients of the array cancel, some to almost nothing."""


def _large(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """So that no result of a normalisation is near zero."""
    return (rng.uniform(8, 12, dims)).astype(t.dtype)


def _sizes(t: ElementType) -> Iterator[tuple[tuple[int, ...], int]]:
    yield (4, 5, 6), 2
    yield (4, 5, 6), 0
    if t is E.F32:
        yield from (((7, 3, 2, 5), 1), ((12,), 0), ((1, 4), 1), ((3, 0), 0), ((64, 33), 1))


def cases() -> Iterator[OpCase]:
    """The cases of batch normalisation."""
    for t in FLOATS:
        for dims, feature in _sizes(t):
            size = (dims[feature],)
            array, gradient = Array(t, dims, small_floats), Array(t, dims, positive)
            vector, offset, variance = Array(t, size, positive), Array(t, size, _large), Array(t, size, positive)
            attributes = BatchNormAttributes(0.125, feature)
            triple = Shape.tuple([shape_of(t, dims), shape_of(t, size), shape_of(t, size)])
            note = f"{feature}"
            ulps = _ULPS[t]
            yield make_case(O.BATCH_NORM_TRAINING, [array, vector, offset], triple, attributes, ulps=ulps, note=note)
            operands = [array, vector, offset, vector, variance]
            yield make_case(O.BATCH_NORM_INFERENCE, operands, shape_of(t, dims), attributes, ulps=ulps, note=note)
            operands = [array, vector, vector, variance, gradient]
            yield make_case(O.BATCH_NORM_GRAD, operands, triple, attributes, ulps=_GRAD_ULPS[t], note=note)
