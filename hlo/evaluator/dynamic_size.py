"""The semantics of sizes as values: arrays here have exactly the size of their type."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ExecutionError
from ..opcode import Opcode
from ..ops.dynamic_size import DimensionAttributes
from ..shape import Shape
from .table import EVALUATE, NDArray


@EVALUATE.register(Opcode.GET_DIMENSION_SIZE)
def _get_dimension_size(shape: Shape, attributes: DimensionAttributes, operand: NDArray) -> NDArray:
    return np.asarray(operand.shape[attributes.dimension], np.int32)


@EVALUATE.register(Opcode.SET_DIMENSION_SIZE)
def _set_dimension_size(shape: Shape, attributes: DimensionAttributes, operand: NDArray, size: NDArray) -> NDArray:
    static = operand.shape[attributes.dimension]
    if size != static:
        raise ExecutionError(
            f"set-dimension-size of {shape} to {int(size)} in dimension {attributes.dimension}: only the full size, "
            f"{static}, is supported"
        )
    return operand


@EVALUATE.register(Opcode.DYNAMIC_RESHAPE)
def _dynamic_reshape(shape: Shape, attributes: Any, operand: NDArray, *sizes: NDArray) -> NDArray:
    if any(size != static for size, static in zip(sizes, shape.dimensions, strict=True)):
        given = [int(size) for size in sizes]
        raise ExecutionError(f"dynamic-reshape to sizes {given}: only those of the result {shape} are supported")
    return operand.reshape(shape.dimensions)
