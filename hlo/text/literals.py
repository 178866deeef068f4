"""The values of constants as HLO text: `1.5`, `{{1, 2}, {3, 4}}`, `(0, -inf)`, `true`, `nan(0x1)`.

Source: XLA's LiteralBase::ToString and HloParserImpl::ParseLiteral. Printed values read back bit for bit: floats have
the fewest digits for that, NaN its sign and payload. XLA's parser accepts missing elements and `{...}`; this one does
not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_of
from ..errors import HloParseError
from ..literal import Literal
from ..shape import Shape
from .scanner import Scanner, pattern

NDArray = np.ndarray[Any, Any]

_MANTISSA_BITS = {
    ElementType.F16: 10, ElementType.BF16: 7, ElementType.F32: 23, ElementType.F64: 52,
    ElementType.F8E3M4: 4, ElementType.F8E4M3: 3, ElementType.F8E5M2: 2,
}  # fmt: skip
"""For types with NaNs as in IEEE: all exponent bits set, and a payload that is not 0."""
_ONLY_NAN = {
    ElementType.F8E4M3FN: 0x7F, ElementType.F8E8M0FNU: 0xFF,
    ElementType.F8E4M3B11FNUZ: 0x80, ElementType.F8E4M3FNUZ: 0x80, ElementType.F8E5M2FNUZ: 0x80,
}  # fmt: skip
"""The bits of NaN where there is one (F8E4M3FN: one of either sign); F4E2M1FN has none."""
_DIGITS = {
    ElementType.BF16: 4, ElementType.F4E2M1FN: 2, ElementType.F8E8M0FNU: 2, ElementType.F8E5M2: 2,
    ElementType.F8E5M2FNUZ: 2, ElementType.F8E3M4: 3, ElementType.F8E4M3: 3, ElementType.F8E4M3FN: 3,
    ElementType.F8E4M3FNUZ: 3, ElementType.F8E4M3B11FNUZ: 3,
}  # fmt: skip
"""The digits that XLA prints; other types get as many digits as they need."""
_LARGEST_PLAIN = 1e9
"""Below it, whole numbers are printed as such; from there on with an exponent where that is shorter."""
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


# Printing


def literal_text(literal: Literal, elide_over: int | None = None) -> str:
    """The text of `literal`; `{...}` where it has more than `elide_over` elements (which no parser here takes)."""
    array = literal.array
    if elide_over is not None and array.size > elide_over:
        return "{...}"
    if array.ndim == 0:
        return _pred_text(bool(array)) if array.dtype == np.bool_ else _element_texts(array.reshape(1))[0]
    texts: Sequence[str] = _element_texts(array.reshape(-1))
    for axis in range(array.ndim - 1, -1, -1):
        size, count = array.shape[axis], math.prod(array.shape[:axis])
        texts = ["{" + ", ".join(texts[i * size : (i + 1) * size]) + "}" for i in range(count)]
    return texts[0]


def _pred_text(value: bool) -> str:
    return "true" if value else "false"


def _element_texts(flat: NDArray) -> list[str]:
    element_type = element_type_of(flat.dtype)
    if element_type is ElementType.PRED:
        return ["1" if value else "0" for value in flat.tolist()]
    if element_type.is_complex:
        return [f"({re}, {im})" for re, im in zip(_element_texts(flat.real), _element_texts(flat.imag))]
    if element_type.is_integral:
        return list(map(str, flat.tolist()))
    return _float_texts(np.ascontiguousarray(flat), element_type)


def _float_texts(flat: NDArray, element_type: ElementType) -> list[str]:
    if element_type in _DIGITS:
        digits = _DIGITS[element_type]
        texts = [f"{value:.{digits}g}" for value in flat.astype(np.float32).tolist()]
    elif element_type is ElementType.F64:
        texts = [repr(value).removesuffix(".0") for value in flat.tolist()]
    else:
        texts = [str(value).removesuffix(".0") for value in flat]
    bits = _bits(flat)
    # Readers go through a double. Where rounding twice would miss the value, print all digits of its double.
    with np.errstate(over="ignore", invalid="ignore"):
        read = np.array(list(map(float, texts)), np.float64).astype(flat.dtype)
    for i in np.flatnonzero(_bits(read) != bits).tolist():
        texts[i] = repr(float(flat[i]))
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = flat.astype(np.float64)
        zeros, nans = np.flatnonzero(wide == 0).tolist(), np.flatnonzero(np.isnan(wide)).tolist()
        integers = np.flatnonzero((wide == np.trunc(wide)) & (np.abs(wide) < _LARGEST_PLAIN)).tolist()
    for i in integers:
        texts[i] = str(int(flat[i]))
    for i in zeros:
        texts[i] = "-0.0" if int(bits[i]) else "0"  # XLA's lexer takes -0 for the integer 0
    for i in nans:
        texts[i] = _nan_text(int(bits[i]), element_type)
    return texts


def _nan_text(bits: int, element_type: ElementType) -> str:
    text = "nan"
    mantissa = _MANTISSA_BITS.get(element_type)
    if mantissa is not None:
        payload, quiet = bits & ((1 << mantissa) - 1), 1 << (mantissa - 1)
        text = "nan" if payload == quiet else f"nan({payload:#x})"
    is_negative = bits >> (element_type.byte_width * 8 - 1) and element_type is not ElementType.F8E8M0FNU
    return "-" + text if is_negative else text


def _bits(flat: NDArray) -> NDArray:
    return flat.view(_UNSIGNED[flat.dtype.itemsize])


# Reading


def read_literal(scanner: Scanner, shape: Shape, *, in_tuple: bool = False) -> Literal:
    """Read a value of `shape`, an array of any layout (text is in logical order). HloParseError if it has too few or
    too many elements, or one that the element type cannot hold. `in_tuple`: other values may follow before the `)`."""
    start = scanner.skip()
    assert shape.is_array, "the parser takes tuples apart"
    refuse_elided(scanner)
    flat = None if in_tuple else _read_plain(scanner, shape)
    if flat is None:
        elements = _Elements(scanner, shape.element)
        if shape.rank and not scanner.peek("{") and not shape.element.is_complex:
            return Literal(_read_zero(scanner, shape, elements, start))
        if shape.rank:
            _read_nested(scanner, shape.dimensions, elements)
        else:
            elements.read_scalar()
        flat = elements.array(start)
    try:
        array = flat.reshape(shape.dimensions)
    except ValueError as error:  # sizes that NumPy refuses together with a size of 0
        raise scanner.error(f"the constant cannot be held in memory: {error}", start) from None
    return Literal(array)


_LARGEST_OF_ONE_NUMBER = 1 << 20
"""A limit, so that a short text does not need all memory."""


def _read_zero(scanner: Scanner, shape: Shape, elements: _Elements, start: int) -> NDArray:
    """`0` for an array of zeros. XLA takes any number for the first element, and zeros for the others."""
    elements.read_scalar()
    (value,) = elements.array(start)
    if value != 0 or shape.num_elements > _LARGEST_OF_ONE_NUMBER:
        what = f"only if it is 0, and for at most {_LARGEST_OF_ONE_NUMBER:,} elements"
        message = f"expected '{{' to open dimension 0 of the constant: one number stands for an array {what}"
        raise scanner.error(message, start)
    return np.zeros(shape.dimensions, shape.element.dtype)


def refuse_elided(scanner: Scanner) -> None:
    """HloParseError if `{...}` comes next."""
    if pattern(_ELIDED).match(scanner.text, scanner.skip()):
        raise scanner.error(
            "the constant's value was left out when this text was printed: expected its elements (JAX prints them with "
            "as_hlo_text(print_large_constants=True))"
        )


_ELIDED = r"\{\s*\.\.\."
_PLAIN = re.compile(r"[-0-9.eE,\s{}]*")
_PLAIN_TOKEN = re.compile(r"[-0-9.eE\s]+")
_BRACES_TO_SPACES = str.maketrans("{}", "  ")


def _read_plain(scanner: Scanner, shape: Shape) -> NDArray | None:
    """The elements of a finite real array, without a Python loop over them. None for anything else, malformed text
    included: the caller then reads token by token, and reports the error and its position."""
    start = scanner.skip()
    end = scanner.text.find(")", start)
    end = end if end >= 0 else len(scanner.text)
    if not shape.rank or shape.element.is_complex or shape.num_elements > end - start:
        return None
    text = scanner.text[start:end]
    if not _PLAIN.fullmatch(text) or _PLAIN_TOKEN.sub("", text) != _braces(shape.dimensions, end - start):
        return None
    convert: Callable[[str], Any] = float if shape.element.is_floating else int
    low, high = (-math.inf, math.inf) if shape.element.is_floating else _range(shape.element)
    try:
        values = list(map(convert, text.translate(_BRACES_TO_SPACES).split(","))) if shape.num_elements else []
    except ValueError:
        return None
    if values and not (low <= min(values) and max(values) <= high):
        return None
    if shape.element.is_floating:
        with np.errstate(over="ignore", invalid="ignore"):
            flat = np.array(values, np.float64).astype(shape.element.dtype)
        if not np.isfinite(flat).all() or (values and _is_beyond_f4(shape.element, max(values), min(values))):
            return None
    else:
        flat = np.array(values, shape.element.dtype)
    scanner.position = end
    return flat


def _braces(dimensions: tuple[int, ...], longest: int) -> str:
    """The braces and commas of an array's text; "" if they would be longer than `longest`."""
    text = ""
    for size in reversed(dimensions):
        if (len(text) + 1) * size > longest + 1:
            return ""
        text = "{" + ",".join([text] * size) + "}"
    return text


def _read_nested(scanner: Scanner, dimensions: tuple[int, ...], elements: _Elements) -> None:
    """Read `{{1, 2}, {3, 4}}` row by row, without recursion."""
    innermost = len(dimensions) - 1
    counts = [0] * len(dimensions)
    depth = 0
    while True:
        scanner.expect("{", f"to open dimension {depth} of the constant")
        if depth == innermost:
            elements.read_row(dimensions[depth])
        elif dimensions[depth] > 0:
            counts[depth] = 0
            depth += 1
            continue
        scanner.expect("}", f"after {dimensions[depth]} elements of dimension {depth}")
        while depth:
            depth -= 1
            counts[depth] += 1
            if counts[depth] < dimensions[depth]:
                scanner.expect(",", f"after element {counts[depth]} of {dimensions[depth]} in dimension {depth}")
                depth += 1
                break
            scanner.expect("}", f"after {dimensions[depth]} elements of dimension {depth}")
        else:
            return


_COMMENT = r"/\*.*?\*/"
_INTEGER = re.compile(r"-?[0-9]{1,30}")
_FLOAT = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|-?inf"
_NAN = r"(-?)nan(?:\((0[xX][0-9a-fA-F]{1,16})\))?"
_PART = r"\s*([^(),\s]+(?:\([^(),\s]*\))?)\s*"
_COMPLEX = r"\s*\(" + _PART + "," + _PART + r"\)"
_SCALAR = re.compile(r"[^(){},\s]+(?:\([^(){},\s]*\))?")
_SEPARATOR = r"\s*(?:,|$)"
_PREDS = {"true": 1, "false": 0, "1": 1, "0": 0}


class _Elements:
    """The elements read so far, as Python numbers (two for a complex one), and NaN's bits, which a number lacks."""

    def __init__(self, scanner: Scanner, element_type: ElementType) -> None:
        self._scanner = scanner
        self._type = element_type
        self._values: list[Any] = []
        self._nans: list[tuple[int, int]] = []
        """(position in `_values`, bits)"""
        self._infinities = 0
        if element_type.is_complex:
            self._read_text: Callable[[str, int], None] = self._read_complex
        elif element_type.is_floating:
            self._read_text = self._read_floats
        else:
            self._read_text = self._read_integers

    def read_row(self, size: int) -> None:
        """Read `size` elements up to the `}` that closes their row."""
        start = self._scanner.position
        end = self._scanner.text.find("}", start)
        if end < 0:
            raise self._scanner.error("expected '}' at the end of this row of the constant", start)
        text = self._scanner.text[start:end]
        if "/*" in text:
            text = pattern(_COMMENT, re.DOTALL).sub(lambda comment: " " * len(comment.group()), text)
        before = len(self._values)
        if text and not text.isspace():
            self._read_text(text, start)
        found = (len(self._values) - before) // (2 if self._type.is_complex else 1)
        if found != size:
            raise self._scanner.error(f"expected {size} elements in this row of the constant, found {found}")
        self._scanner.position = end

    def read_scalar(self) -> None:
        """Read one element."""
        start = self._scanner.skip()
        match = (pattern(_COMPLEX) if self._type.is_complex else _SCALAR).match(self._scanner.text, start)
        if match is None:
            raise self._scanner.expected(f"a value of type {self._type.value}")
        self._read_text(match.group(), start)
        self._scanner.position = match.end()

    def array(self, start: int) -> NDArray:
        """All elements, flat. `start`: where to report a value that is out of range."""
        if not (self._type.is_floating or self._type.is_complex):
            return np.array(self._values, self._type.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            flat = np.array(self._values, np.float64).astype(self._type.real.dtype)
        numbers = [v for v in self._values if math.isfinite(v)] or [0.0]
        infinities, nans = self._infinities, len(self._nans)
        if self._type.is_small and self._type not in _MANTISSA_BITS:
            # A type without infinity has NaN instead, or the largest number.
            infinities, nans = 0, nans + infinities if self._type in _ONLY_NAN else 0
        if (
            np.count_nonzero(np.isinf(flat)) != infinities
            or np.count_nonzero(np.isnan(flat)) != nans
            or _is_beyond_f4(self._type, max(numbers), min(numbers))
        ):
            raise self._scanner.error(f"the constant has a value that is out of range for {self._type.value}", start)
        for position, bits in self._nans:
            _bits(flat)[position] = bits
        return flat.view(self._type.dtype)

    def _read_integers(self, text: str, start: int) -> None:
        low, high = _range(self._type)
        for token, position in _split(text, start):
            if self._type is ElementType.PRED and token in _PREDS:
                self._values.append(_PREDS[token])
            elif _INTEGER.fullmatch(token) and low <= int(token) <= high:
                self._values.append(int(token))
            elif self._type is ElementType.U64 and _INTEGER.fullmatch(token) and -(2**63) <= int(token) < 0:
                self._values.append(int(token) + 2**64)  # as in two's complement, which XLA's parser takes too
            else:
                raise self._bad(token, position)

    def _read_floats(self, text: str, start: int) -> None:
        for token, position in _split(text, start):
            self._read_float(token, position)

    def _read_complex(self, text: str, start: int) -> None:
        position = 0
        while position < len(text):
            match = pattern(_COMPLEX).match(text, position)
            separator = match and pattern(_SEPARATOR).match(text, match.end())
            if not match or not separator:
                raise self._bad(text[position:].strip(), start + position)
            for group in (1, 2):
                self._read_float(match.group(group), start + match.start(group))
            position = separator.end()

    def _read_float(self, token: str, position: int) -> None:
        nan = pattern(_NAN).fullmatch(token)
        if nan:
            self._nans.append((len(self._values), self._nan_bits(nan, position)))
            self._values.append(math.nan)
        elif pattern(_FLOAT).fullmatch(token):
            self._infinities += token.endswith("inf")
            self._values.append(float(token))
        else:
            raise self._bad(token, position)

    def _nan_bits(self, nan: re.Match[str], position: int) -> int:
        mantissa = _MANTISSA_BITS.get(self._type.real)
        if mantissa is None:
            if nan.group(2):
                raise self._scanner.error(f"{self._type.value} has no NaN with a payload", position)
            if self._type is ElementType.F4E2M1FN:
                return 0x8  # -0, as for every conversion of NaN
            return _ONLY_NAN[self._type] | (0x80 if nan.group(1) else 0)
        payload = int(nan.group(2), 16) if nan.group(2) else 1 << (mantissa - 1)
        if not 0 < payload < 1 << mantissa:
            raise self._scanner.error(f"{nan.group(2)} is no NaN payload of {self._type.real.value}", position)
        width = 8 * self._type.real.byte_width
        exponent = ((1 << (width - 1 - mantissa)) - 1) << mantissa
        return (bool(nan.group(1)) << (width - 1)) | exponent | payload

    def _bad(self, token: str, position: int) -> HloParseError:
        wanted = f"expected a value of type {self._type.value}"
        if self._type.is_complex:
            wanted += " (two numbers in parentheses)"
        elif self._type.is_integral:
            low, high = _range(self._type)
            wanted += f" (an integer from {low} to {high})"
        return self._scanner.error(f"{wanted}, found {token[:40]!r}", position)


def _range(element_type: ElementType) -> tuple[int, int]:
    if element_type is ElementType.PRED:
        return 0, 1
    return element_type.limits


def _is_beyond_f4(element_type: ElementType, highest: float, lowest: float) -> bool:
    """True for numbers that F4E2M1FN, which has neither infinity nor NaN, would turn into its largest one."""
    return element_type is ElementType.F4E2M1FN and (highest > 6 or lowest < -6)


def _split(text: str, start: int) -> Iterator[tuple[str, int]]:
    """The comma-separated tokens in `text`, which begins at `start`, each with its position."""
    for token in text.split(","):
        stripped = token.lstrip()
        yield stripped.rstrip(), start + len(token) - len(stripped)
        start += len(token) + 1
