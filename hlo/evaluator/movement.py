"""The semantics of the ops that move elements. Results are C-contiguous."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..element_type import ElementType
from ..opcode import Opcode
from ..ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ..physical_array import from_physical, is_packed
from ..shape import Shape
from .table import EVALUATE, NDArray


def _contiguous(view: NDArray) -> NDArray:
    return view if view.flags.c_contiguous else view.copy()


@EVALUATE.register(Opcode.COPY)
def _copy(shape: Shape, attributes: Any, operand: NDArray) -> NDArray:
    return operand


@EVALUATE.register(Opcode.BITCAST)
def _bitcast(shape: Shape, attributes: Any, operand: NDArray) -> NDArray:
    """The operand's row-major bytes, read as `shape` in its layout."""
    if not shape.array_layout.is_dense:
        stored = np.dtype(np.uint8) if is_packed(shape) else shape.element.dtype
        return from_physical(_contiguous(operand).reshape(-1).view(stored), shape)
    major_to_minor = shape.array_layout.minor_to_major[::-1]
    physical = operand.reshape(-1).view(shape.element.dtype).reshape([shape.dimensions[d] for d in major_to_minor])
    return _contiguous(physical.transpose(np.argsort(major_to_minor))) if shape.rank else physical


@EVALUATE.register(Opcode.BROADCAST)
def _broadcast(shape: Shape, attributes: BroadcastAttributes, operand: NDArray) -> NDArray:
    """Result element i is operand element i[dimensions]."""
    order = sorted(range(operand.ndim), key=attributes.dimensions.__getitem__)
    sizes = [1] * shape.rank
    for d, size in zip(attributes.dimensions, operand.shape):
        sizes[d] = size
    result = np.empty(shape.dimensions, operand.dtype)
    result[...] = operand.transpose(order).reshape(sizes)
    return result


@EVALUATE.register(Opcode.CONCATENATE)
def _concatenate(shape: Shape, attributes: ConcatenateAttributes, *operands: NDArray) -> NDArray:
    return np.concatenate(operands, axis=attributes.dimension)


def _clamped_window(operand: NDArray, starts: tuple[NDArray, ...], sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """The window of `sizes` at `starts`, moved as little as needed to lie within the operand."""
    window: list[Any] = []
    for start, size, extent in zip(starts, sizes, operand.shape):
        first = min(max(int(start), 0), extent - size)
        window.append(slice(first, first + size))
    return (*window, ...)


@EVALUATE.register(Opcode.DYNAMIC_SLICE)
def _dynamic_slice(shape: Shape, attributes: DynamicSliceAttributes, operand: NDArray, *starts: NDArray) -> NDArray:
    return _contiguous(operand[_clamped_window(operand, starts, attributes.dynamic_slice_sizes)])


@EVALUATE.register(Opcode.DYNAMIC_UPDATE_SLICE)
def _dynamic_update_slice(
    shape: Shape, attributes: Any, operand: NDArray, update: NDArray, *starts: NDArray
) -> NDArray:
    result = operand.copy()
    result[_clamped_window(operand, starts, update.shape)] = update
    return result


@EVALUATE.register(Opcode.IOTA)
def _iota(shape: Shape, attributes: IotaAttributes) -> NDArray:
    """Element i is i[iota_dimension], wrapped or rounded to the element type."""
    sizes = [1] * shape.rank
    sizes[attributes.iota_dimension] = -1
    result = np.empty(shape.dimensions, shape.element.dtype)
    positions = np.arange(shape.dimensions[attributes.iota_dimension])
    if shape.element is ElementType.F8E8M0FNU:
        positions = positions.astype(np.float32)  # NumPy has no direct cast
    result[...] = positions.astype(result.dtype).reshape(sizes)
    return result


@EVALUATE.register(Opcode.PAD)
def _pad(shape: Shape, attributes: PadAttributes, operand: NDArray, value: NDArray) -> NDArray:
    """Operand element i goes to index low + i * (interior + 1); it is dropped if that index is outside of the
    result."""
    result = np.empty(shape.dimensions, operand.dtype)
    result[...] = value
    kept: list[Any] = []
    placed: list[Any] = []
    for extent, size, low, interior in zip(operand.shape, shape.dimensions, attributes.low, attributes.interior):
        step = interior + 1
        first = max(-(low // step), 0)
        end = max(min(-((low - size) // step), extent), first)
        kept.append(slice(first, end))
        placed.append(slice(low + first * step, low + end * step, step) if end > first else slice(0, 0))
    result[(*placed, ...)] = operand[(*kept, ...)]
    return result


@EVALUATE.register(Opcode.RESHAPE)
def _reshape(shape: Shape, attributes: Any, operand: NDArray) -> NDArray:
    return operand.reshape(shape.dimensions)


@EVALUATE.register(Opcode.REVERSE)
def _reverse(shape: Shape, attributes: ReverseAttributes, operand: NDArray) -> NDArray:
    steps: Any = (slice(None, None, -1 if d in attributes.dimensions else 1) for d in range(operand.ndim))
    return _contiguous(operand[(*steps, ...)])


@EVALUATE.register(Opcode.SLICE)
def _slice(shape: Shape, attributes: SliceAttributes, operand: NDArray) -> NDArray:
    window: Any = map(slice, attributes.start_indices, attributes.limit_indices, attributes.strides)
    return _contiguous(operand[(*window, ...)])


@EVALUATE.register(Opcode.TRANSPOSE)
def _transpose(shape: Shape, attributes: TransposeAttributes, operand: NDArray) -> NDArray:
    return _contiguous(operand.transpose(attributes.dimensions))
