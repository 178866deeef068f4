"""Quantized types: numbers in VHLO, text in a tree.

Source: MLIR's quant dialect (`!quant.uniform<i8:f32, 0.5:3>`, and with scales along an axis
`!quant.uniform<i8:f32:1, {0.5:3,0.25}>`).
"""

from __future__ import annotations

import re
from typing import Any

from ..element_type import ElementType, element_type_named
from ..errors import UnsupportedError
from ..mlir.elements import ELEMENT_TYPES, type_name
from ..mlir.tree import Quantized

_SIGNED = 1
"""A flag: the stored integers have a sign."""


def _elements(flags: int, storage: Any, expressed: Any, low: int, high: int) -> str:
    """`i8<-127:127>:f32`."""
    if not isinstance(storage, ElementType) or not storage.is_integral or not isinstance(expressed, ElementType):
        raise ValueError("a quantized type stores integers, for numbers of another type")
    name = ("i" if flags & _SIGNED else "u") + str(storage.bit_width)
    limits = "" if (low, high) == _limits(name) else f"<{low}:{high}>"
    return f"{name}{limits}:{type_name(expressed)}"


def _limits(name: str) -> tuple[int, int]:
    return ElementType(name.replace("i", "s")).limits


def _point(scale: float, zero: int) -> str:
    text = f"{scale:e}" if float(f"{scale:e}") == scale else repr(scale)
    return f"{text}:{zero}" if zero else text


def quantized(flags: int, storage: Any, expressed: Any, scale: float, zero: int, low: int, high: int) -> Quantized:
    """A type with one scale; ValueError if the parts make no type."""
    return Quantized(f"!quant.uniform<{_elements(flags, storage, expressed, low, high)}, {_point(scale, zero)}>")


def quantized_axis(
    flags: int, storage: Any, expressed: Any, axis: int, low: int, high: int, scales: tuple[float, ...],
    zeros: tuple[int, ...],
) -> Quantized:  # fmt: skip
    """A type with a scale for each index of an axis; ValueError if the parts make no type."""
    if len(scales) != len(zeros):
        raise ValueError(f"{len(scales)} scales and {len(zeros)} zero points")
    points = ",".join(map(_point, scales, zeros))
    return Quantized(f"!quant.uniform<{_elements(flags, storage, expressed, low, high)}:{axis}, {{{points}}}>")


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
    expressed = ELEMENT_TYPES.get(found["expressed"]) if found else None
    storage = element_type_named("s" + found["storage"][1:]) if found else None
    if found is None or storage is None or expressed is None or None in points:
        raise UnsupportedError(f"the type {type_.text} in StableHLO's portable form")
    name = found["storage"]
    low, high = (int(found["low"]), int(found["high"])) if found["low"] else _limits(name)
    scales = tuple(float(each[1]) for each in points if each)
    zeros = tuple(int(each[2] or 0) for each in points if each)
    start = (_SIGNED if name[0] == "i" else 0, storage, expressed)
    if found["axis"] is None:
        return *start, scales[0], zeros[0], low, high
    return *start, int(found["axis"]), low, high, scales, zeros
