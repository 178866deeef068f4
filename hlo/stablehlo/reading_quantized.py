"""Reading operations on quantized numbers: an array of them is the array of the integers that are stored.

An operation that only moves elements does so with the integers. All others compute with the numbers that these stand
for, and their result is quantized again, as the specification has it (`dequantize_op_quantize`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..builder import make_constant
from ..element_type import ElementType
from ..errors import UnsupportedError
from ..instruction import HloInstruction
from ..mlir.tree import Operation, Quantized, Tensor, Type, Value
from ..opcode import Opcode
from ..ops.movement import BroadcastAttributes
from ..shape import Shape
from ..support.records import dataclass
from .instruction_builders import convert, splat
from .scope import Rule, Scope
from .types import element_of
from .vhlo_quantized import quantized_fields

Results = Sequence[HloInstruction]


@dataclass(frozen=True, slots=True)
class Quantization:
    """A stored integer q stands for the number (q - zero) * scale."""

    expressed: ElementType
    low: int
    high: int
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int | None
    """The dimension that has a scale for each index; None: there is one scale."""


def quantization_of(type_: Type) -> Quantization | None:
    """How a tensor type is quantized; None if it is not."""
    if not isinstance(type_, Tensor) or not isinstance(type_.element, Quantized):
        return None
    _, _, expressed, *rest = quantized_fields(type_.element)
    if not isinstance(expressed, ElementType) or not expressed.is_floating:
        raise UnsupportedError(f"the quantized type {type_.element.text} is not of floats")
    if len(rest) == 4:
        scale, zero, low, high = rest
        return Quantization(expressed, low, high, (scale,), (zero,), None)
    axis, low, high, scales, zeros = rest
    return Quantization(expressed, low, high, scales, zeros, axis)


def _spread(scope: Scope, values: Sequence[float], how: Quantization, sizes: Sequence[int]) -> HloInstruction:
    """A value for each element."""
    shape = Shape.array(how.expressed, sizes)
    if how.axis is None:
        return splat(scope, values[0], shape)
    vector = scope.add(make_constant(np.array(values, how.expressed.dtype)))
    return scope.op(Opcode.BROADCAST, (vector,), BroadcastAttributes((how.axis,)), shape)


def _numbers(scope: Scope, stored: HloInstruction, how: Quantization) -> HloInstruction:
    """The numbers that stored integers stand for."""
    sizes = stored.shape.dimensions
    offset = scope.op(
        Opcode.SUBTRACT, (convert(scope, stored, how.expressed), _spread(scope, how.zeros, how, sizes))
    )  # fmt: skip
    return scope.op(Opcode.MULTIPLY, (offset, _spread(scope, how.scales, how, sizes)))


def _stored(scope: Scope, numbers: HloInstruction, how: Quantization, element: ElementType) -> HloInstruction:
    """The integers that stand for the nearest numbers that there are."""
    sizes = numbers.shape.dimensions
    scaled = scope.op(
        Opcode.DIVIDE, (convert(scope, numbers, how.expressed), _spread(scope, how.scales, how, sizes))
    )  # fmt: skip
    moved = scope.op(Opcode.ADD, (scaled, _spread(scope, how.zeros, how, sizes)))
    low, high = (splat(scope, limit, Shape.array(how.expressed)) for limit in (how.low, how.high))
    rounded = scope.op(Opcode.ROUND_NEAREST_EVEN, (scope.op(Opcode.CLAMP, (low, moved, high)),))
    return convert(scope, rounded, element)


MOVING = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("broadcast_in_dim", "concatenate", "constant", "dynamic_slice", "dynamic_update_slice", "gather", "pad"),
        *("reshape", "reverse", "select", "slice", "transpose", "optimization_barrier", "bitcast_convert", "tuple"),
        *("get_tuple_element", "get_dimension_size", "while", "if", "case", "custom_call", "composite"),
    )
) | {"func.call"}
"""Operations that move elements, and do not compute with their values."""


def is_quantized(operation: Operation) -> bool:
    """Whether an operation computes with quantized numbers."""
    if operation.name in MOVING:
        return False
    return any(
        isinstance(value.type, Tensor) and isinstance(value.type.element, Quantized)
        for value in (*operation.operands, *operation.results)
    )


def on_numbers(rule: Rule) -> Rule:
    """The rule of an operation on quantized numbers, made from the rule on ordinary numbers."""

    def quantized(scope: Scope, operation: Operation) -> Results:
        if operation.regions:
            raise UnsupportedError("a region that is applied to quantized numbers is not supported")
        operands = []
        for value in operation.operands:
            how = quantization_of(value.type)
            if how is not None:
                number = _numbers(scope, scope.values[value], how)
                value = Value(_expressed(value.type, how))
                scope.values[value] = number
            operands.append(value)
        found = [quantization_of(value.type) for value in operation.results]
        results = [
            value if how is None else Value(_expressed(value.type, how))
            for value, how in zip(operation.results, found, strict=True)
        ]
        plain = Operation(operation.name, operands, results, operation.attributes)
        return [
            number if how is None else _stored(scope, number, how, _element(value.type))
            for number, how, value in zip(rule(scope, plain), found, operation.results, strict=True)
        ]

    return quantized


def _expressed(type_: Type, how: Quantization) -> Tensor:
    assert isinstance(type_, Tensor)
    return Tensor(type_.dimensions, how.expressed, type_.encoding)


def _element(type_: Type) -> ElementType:
    assert isinstance(type_, Tensor)
    return element_of(type_)


def _same(scope: Scope, operation: Operation) -> Results:
    """Quantizing and its reverse are what happens to operands and results; between them nothing is computed."""
    (operand,) = scope.operands(operation)
    type_ = operation.results[0].type
    return [convert(scope, operand, _element(type_))]


RULES: dict[str, Rule] = {"stablehlo.uniform_quantize": _same, "stablehlo.uniform_dequantize": _same}
