"""The text of types: of quantized ones, which VHLO stores as numbers, and of others in messages.

Source: MLIR's quant dialect (`!quant.uniform<i8:f32, 0.5:3>`, and with scales along an axis
`!quant.uniform<i8:f32:1, {0.5:3, 0.25}>`).
"""

from __future__ import annotations

import re
from typing import Any

from ..element_type import ElementType, element_type_named
from ..errors import UnsupportedError
from ..mlir.tree import Function, IndexType, NoneType, OtherType, Quantized, Tensor, Token, Tuple

_SIGNED = 1
"""A flag: the stored integers have a sign."""


def spelled(type_: Any) -> str:
    """A type as MLIR writes it."""
    if isinstance(type_, ElementType):
        if type_ is ElementType.PRED:
            return "i1"
        if type_.is_complex:
            return f"complex<{type_.real.value}>"
        if type_.is_floating:
            return type_.value if type_.bit_width > 8 else type_.value.replace("e", "E", 1).replace("m", "M", 1)
        return type_.value.replace("s", "i").replace("u", "ui")
    if isinstance(type_, Tensor):
        return f"tensor<{joined(type_.dimensions, type_.element)}>"
    if isinstance(type_, (Quantized, OtherType)):
        return type_.text
    if isinstance(type_, Tuple):
        return f"tuple<{', '.join(map(spelled, type_.elements))}>"
    if isinstance(type_, Function):
        return f"({', '.join(map(spelled, type_.inputs))}) -> ({', '.join(map(spelled, type_.results))})"
    return {Token: "!stablehlo.token", IndexType: "index", NoneType: "none"}.get(type(type_), str(type_))


def joined(dimensions: tuple[int, ...], element: Any) -> str:
    """`2x?xf32`."""
    return "".join(f"{'?' if size < 0 else size}x" for size in dimensions) + spelled(element)


def _storage(flags: int, storage: Any, low: int, high: int) -> str:
    if not isinstance(storage, ElementType) or not storage.is_integral:
        raise ValueError("the stored type is no integer type")
    name = ("i" if flags & _SIGNED else "u") + str(storage.bit_width)
    return name if (low, high) == _limits(name) else f"{name}<{low}:{high}>"


def _limits(name: str) -> tuple[int, int]:
    return ElementType(name.replace("i", "s")).limits


def _point(scale: float, zero: int) -> str:
    return f"{scale!r}:{zero}" if zero else repr(scale)


def quantized(flags: int, storage: Any, expressed: Any, scale: float, zero: int, low: int, high: int) -> Quantized:
    """A type with one scale; ValueError if the parts make no type."""
    stored = _storage(flags, storage, low, high)
    return Quantized(f"!quant.uniform<{stored}:{spelled(expressed)}, {_point(scale, zero)}>")


def quantized_axis(
    flags: int, storage: Any, expressed: Any, axis: int, low: int, high: int, scales: tuple[float, ...],
    zeros: tuple[int, ...],
) -> Quantized:  # fmt: skip
    """A type with a scale for each index of an axis; ValueError if the parts make no type."""
    if len(scales) != len(zeros):
        raise ValueError(f"{len(scales)} scales and {len(zeros)} zero points")
    points = ", ".join(map(_point, scales, zeros))
    stored = _storage(flags, storage, low, high)
    return Quantized(f"!quant.uniform<{stored}:{spelled(expressed)}:{axis}, {{{points}}}>")


_NUMBER = r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?"
_TEXT = re.compile(
    r"!quant\.uniform<\s*(?P<storage>[iu][0-9]+)\s*(?:<\s*(?P<low>-?[0-9]+)\s*:\s*(?P<high>-?[0-9]+)\s*>)?\s*"
    r":\s*(?P<expressed>\w+)\s*(?::\s*(?P<axis>[0-9]+)\s*)?,\s*\{?(?P<points>[^{}<>]*)\}?\s*>"
)
_POINT = re.compile(rf"\s*({_NUMBER})\s*(?::\s*(-?[0-9]+)\s*)?")


def quantized_fields(type_: Quantized) -> tuple[Any, ...]:
    """The values from which `quantized` or `quantized_axis` makes a type; UnsupportedError for another text."""
    found = _TEXT.fullmatch(type_.text)
    points = [_POINT.fullmatch(each) for each in found["points"].split(",")] if found else []
    expressed = [each for each in ElementType if found and spelled(each) == found["expressed"]]
    storage = element_type_named("s" + found["storage"][1:]) if found else None
    if found is None or storage is None or not expressed or None in points:
        raise UnsupportedError(f"the type {type_.text} in StableHLO's portable form")
    name = found["storage"]
    low, high = (int(found["low"]), int(found["high"])) if found["low"] else _limits(name)
    scales = tuple(float(each[1]) for each in points if each)
    zeros = tuple(int(each[2] or 0) for each in points if each)
    start = (_SIGNED if name[0] == "i" else 0, storage, expressed[0])
    if found["axis"] is None:
        return *start, scales[0], zeros[0], low, high
    return *start, int(found["axis"]), low, high, scales, zeros
