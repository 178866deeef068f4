"""Batch normalisation: training, inference, gradient, over all dimensions except the feature's.

Narrow floats are computed in f32 and rounded at the end. The variance is the population variance.
"""

from __future__ import annotations

import math

import numpy as np

from ..opcode import Opcode
from ..ops.normalization import BatchNormAttributes
from ..shape import Shape
from .table import EVALUATE, NDArray


class _Batch:
    """Arrays seen as (others, feature, others)."""

    def __init__(self, attributes: BatchNormAttributes, array: NDArray) -> None:
        self.dtype = array.dtype
        self.wide = np.dtype(np.float64 if array.dtype == np.float64 else np.float32)
        self.axes = tuple(d for d in range(array.ndim) if d != attributes.feature_index)
        self.count = math.prod(array.shape[d] for d in self.axes)
        self.sizes = [-1 if d == attributes.feature_index else 1 for d in range(array.ndim)]
        self.epsilon = self.wide.type(attributes.epsilon)

    def vector(self, values: NDArray) -> NDArray:
        """One value for each feature, in a form that broadcasts with the array."""
        return values.astype(self.wide).reshape(self.sizes)

    def sum(self, array: NDArray) -> NDArray:
        """The sum over all dimensions except the feature, with these kept."""
        total: NDArray = np.sum(array, axis=self.axes, keepdims=True, dtype=self.wide)
        return total

    def feature(self, values: NDArray) -> NDArray:
        """One value for each feature, as a result."""
        return values.reshape(-1).astype(self.dtype)


@EVALUATE.register(Opcode.BATCH_NORM_TRAINING)
def _training(
    shape: Shape, attributes: BatchNormAttributes, array: NDArray, scale: NDArray, offset: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; the variance is the mean of squares minus the squared
    mean."""
    batch = _Batch(attributes, array)
    x, count = array.astype(batch.wide), batch.wide.type(batch.count)
    mean = batch.sum(x) / count
    variance = batch.sum(x * x) / count - mean * mean
    normal = (x - mean) / np.sqrt(variance + batch.epsilon) * batch.vector(scale) + batch.vector(offset)
    return normal.astype(batch.dtype), batch.feature(mean), batch.feature(variance)


@EVALUATE.register(Opcode.BATCH_NORM_INFERENCE)
def _inference(shape: Shape, attributes: BatchNormAttributes, array: NDArray, *vectors: NDArray) -> NDArray:
    batch = _Batch(attributes, array)
    scale, offset, mean, variance = map(batch.vector, vectors)
    normal = (array.astype(batch.wide) - mean) / np.sqrt(variance + batch.epsilon) * scale + offset
    return normal.astype(batch.dtype)


@EVALUATE.register(Opcode.BATCH_NORM_GRAD)
def _grad(
    shape: Shape,
    attributes: BatchNormAttributes,
    array: NDArray,
    scale: NDArray,
    mean: NDArray,
    variance: NDArray,
    gradient: NDArray,
) -> tuple[NDArray, NDArray, NDArray]:
    """The gradient of training: the parts that reach x directly, through the mean, and through the variance."""
    batch = _Batch(attributes, array)
    count, g = batch.wide.type(batch.count), gradient.astype(batch.wide)
    centred = array.astype(batch.wide) - batch.vector(mean)
    spread = batch.vector(variance) + batch.epsilon
    total, projected = batch.sum(g), batch.sum(g * centred)
    of_x = batch.vector(scale) / np.sqrt(spread) / count * (count * g - total - centred * projected / spread)
    return of_x.astype(batch.dtype), batch.feature(projected / np.sqrt(spread)), batch.feature(total)
