"""Element types and their numbers in MLIR text: `f8E4M3FN`, `1.500000e+00`, `0x7FC00000`.

Source: MLIR's AsmPrinter (printFloatValue) and LLVM's APFloat::toString. A float is printed with six digits and an
exponent if these are exactly that number, else with as many digits as its type needs, else as its bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..element_type import ElementType

NDArray = np.ndarray[Any, Any]


def type_name(element: ElementType) -> str:
    """The type as MLIR writes it: `i32` for S32, `ui32` for U32, `i1` for PRED."""
    return _NAMES[element]


def _name(element: ElementType) -> str:
    name: str = element.value
    if element is ElementType.PRED:
        return "i1"
    if element.is_complex:
        return f"complex<{element.real.value}>"
    if element.is_integral:
        return "i" + name[1:] if element.is_signed else "ui" + name[1:]
    return "f" + name[1:].upper() if "e" in name else name


_NAMES: dict[ElementType, str] = {
    element: _name(element) for element in ElementType if element not in (ElementType.S1, ElementType.U1)
}
ELEMENT_TYPES = {name: element for element, name in _NAMES.items()}
"""The element types by their names in MLIR text. `i1` is PRED: MLIR has no integers of one bit beside it."""

_PRECISION = {
    ElementType.F64: 53, ElementType.F32: 24, ElementType.F16: 11, ElementType.BF16: 8, ElementType.F8E3M4: 5,
    ElementType.F8E4M3: 4, ElementType.F8E4M3FN: 4, ElementType.F8E4M3FNUZ: 4, ElementType.F8E4M3B11FNUZ: 4,
    ElementType.F8E5M2: 3, ElementType.F8E5M2FNUZ: 3, ElementType.F4E2M1FN: 2, ElementType.F8E8M0FNU: 1,
}  # fmt: skip
"""Bits of the significand, including the implicit one."""
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SHORT = 6
"""Digits of the form that is tried first."""
_PADDING = 3
"""Zeros that the second form writes instead of an exponent."""


def bits_of(array: NDArray) -> NDArray:
    """The bit patterns of floats, as unsigned integers."""
    return np.ascontiguousarray(array).view(_UNSIGNED[array.dtype.itemsize])


def from_bits(bits: int, element: ElementType) -> NDArray:
    """An array of no dimensions with that float."""
    return np.array(bits, _UNSIGNED[element.byte_width]).view(element.dtype)


def float_text(bits: int, element: ElementType) -> str:
    """A float of the type with that bit pattern, as MLIR prints it."""
    with np.errstate(invalid="ignore"):
        value = float(from_bits(bits, element).astype(np.float64))
    if math.isfinite(value):
        if value == 0:
            return "-0.000000e+00" if bits else "0.000000e+00"
        sign, digits, exponent = _rounded(value, _SHORT)
        text = f"{sign}{digits[0]}.{digits[1:]:0<{_SHORT}}e{exponent:+03d}"
        if float_bits(float(text), element) == bits:
            return text
        text = _with_all_digits(value, 2 + _PRECISION[element] * 59 // 196)
        if "." in text:
            return text
    return f"0x{bits:X}"


def number_text(value: Any, element: ElementType) -> str:
    """A number of the type, as MLIR prints it."""
    if element.is_complex:
        return f"({number_text(value.real, element.real)},{number_text(value.imag, element.real)})"
    if element is ElementType.PRED:
        return "true" if value else "false"
    if element.is_integral:
        return str(int(value))
    return float_text(int(bits_of(np.asarray(value, element.dtype).reshape(1))[0]), element)


def float_bits(value: float, element: ElementType) -> int:
    """The bit pattern of the nearest number of a type. OverflowError if a finite number would not be one there."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.array(value, np.float64).astype(element.dtype)
        if math.isfinite(value) and not math.isfinite(float(rounded.astype(np.float64))):
            raise OverflowError(value)
    return int(bits_of(rounded.reshape(1))[0])


def _rounded(value: float, count: int) -> tuple[str, str, int]:
    """The sign, at most `count` digits without zeros at the end, and the exponent of the first digit.

    As in APFloat, most digits too many are cut off, and only the rest is rounded: six digits of 0.0999755859375 are
    0.0999755.
    """
    number, denominator = abs(value).as_integer_ratio()
    last = 1 - denominator.bit_length()
    number *= 5**-last
    surplus = (number.bit_length() - (count * 196 + 58) // 59) * 59 // 196
    if surplus > 0:
        number //= 10**surplus
        last += surplus
    text = str(number)
    first = last + len(text) - 1
    if len(text) > count:
        number = int(text[:count]) + (text[count] >= "5")
        text = str(number)
        first += len(text) > count
    return "-" if value < 0 else "", text.rstrip("0"), first


def _with_all_digits(value: float, count: int) -> str:
    """APFloat's default form: `3.14159274`, `1.0E-5`, `1234567` (which no reader takes for a float)."""
    sign, digits, first = _rounded(value, count)
    last = first - len(digits) + 1
    if last >= 0:
        scientific = last > _PADDING or first + 1 > count
    else:
        scientific = first < 0 and -first > _PADDING
    if scientific:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{'+' if first >= 0 else '-'}{abs(first)}"
    if last >= 0:
        return sign + digits + "0" * last
    if first >= 0:
        return f"{sign}{digits[: first + 1]}.{digits[first + 1 :]}"
    return f"{sign}0.{'0' * (-first - 1)}{digits}"
