"""Readers of attribute values: numbers, names, lists, windows. `attribute_reader.py` says which key has which.

Source: XLA's HloParserImpl (ParseAttributeHelper and the functions that it calls).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from ..ops.collective import ReplicaGroups
from ..ops.convolution import ConvolutionDimensionNumbers
from ..ops.custom_call import OutputOperandAlias
from ..shape import Shape, read_shape
from ..window import WindowDimension
from .scanner import Scanner
from .syntax import ComputationName

E = TypeVar("E", bound=Enum)


def read_integers(scanner: Scanner) -> tuple[int, ...]:
    """`{0,2,1}`"""
    scanner.expect("{", "to open a list of numbers")
    values = []
    if not scanner.peek("}"):
        values.append(scanner.integer("a number"))
        while scanner.accept(","):
            values.append(scanner.integer("a number"))
    scanner.expect("}", "or ',' after a number")
    return tuple(values)


def read_bool(scanner: Scanner) -> bool:
    if scanner.accept_word("true"):
        return True
    if scanner.accept_word("false"):
        return False
    raise scanner.expected("true or false")


def read_integer(scanner: Scanner) -> int:
    return scanner.integer("a number")


def read_computation(scanner: Scanner) -> ComputationName:
    position = scanner.skip()
    return ComputationName(scanner.name("the name of a computation"), position)


def read_computations(scanner: Scanner) -> tuple[ComputationName, ...]:
    scanner.expect("{", "to open a list of computations")
    names = [read_computation(scanner)]
    while scanner.accept(","):
        names.append(read_computation(scanner))
    scanner.expect("}", "or ',' after a computation")
    return tuple(names)


def read_enum(kind: type[E]) -> Callable[[Scanner], E]:
    members = {member.value: member for member in kind}

    def read(scanner: Scanner) -> E:
        word = scanner.peek_word()
        if word not in members:
            raise scanner.expected(f"one of {', '.join(members)}")
        scanner.word("a value")
        return members[word]

    return read


def read_slice(scanner: Scanner) -> tuple[tuple[int, int, int], ...]:
    """`{[0:4:2], [1:3]}`"""
    scanner.expect("{", "to open the slice")
    ranges: list[tuple[int, int, int]] = []
    while not scanner.peek("}"):
        if ranges:
            scanner.expect(",", "or '}' after a range")
        scanner.expect("[", "to open a range start:limit:stride")
        start = scanner.integer("a start index")
        scanner.expect(":")
        limit = scanner.integer("a limit index")
        stride = scanner.integer("a stride") if scanner.accept(":") else 1
        scanner.expect("]", "to close the range")
        ranges.append((start, limit, stride))
    scanner.expect("}")
    return tuple(ranges)


_NO_PADDING = re.compile(r"[ \t\r]*(?:[,}\n]|$)")
_PADDING = re.compile(r"(-?[0-9]{1,18})_(-?[0-9]{1,18})(?:_([0-9]{1,18}))?(x?)")


def read_padding(scanner: Scanner) -> tuple[tuple[int, int, int], ...]:
    """`0_1x2_3_1`: low_high or low_high_interior for each dimension. Nothing at all for a scalar."""
    if _NO_PADDING.match(scanner.text, scanner.position):
        return ()
    position = scanner.skip()
    sizes = []
    while match := _PADDING.match(scanner.text, position):
        sizes.append((int(match.group(1)), int(match.group(2)), int(match.group(3) or 0)))
        position = scanner.position = match.end()
        if not match.group(4):
            return tuple(sizes)
    raise scanner.expected("padding as low_high or low_high_interior")


def read_precision(scanner: Scanner) -> tuple[str, str]:
    scanner.expect("{", "to open the precisions")
    lhs = read_one_precision(scanner)
    scanner.expect(",", "between the two operands' precisions")
    rhs = read_one_precision(scanner)
    scanner.expect("}", "after the two operands' precisions")
    return lhs, rhs


_PRECISIONS = ("default", "high", "highest")


def read_one_precision(scanner: Scanner) -> str:
    """In letters of any case, as XLA reads them."""
    if scanner.peek_word().lower() not in _PRECISIONS:
        raise scanner.expected(f"one of {', '.join(_PRECISIONS)}")
    return scanner.word("a precision").lower()


_NUMBER = re.compile(r"\s*(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|-?inf|-?nan)(?![A-Za-z0-9_])")


def read_float(scanner: Scanner) -> float:
    """A decimal number, perhaps with an exponent."""
    match = _NUMBER.match(scanner.text, scanner.position)
    if match is None:
        raise scanner.expected("a decimal number")
    scanner.position = match.end()
    return float(match.group(1))


def read_word(scanner: Scanner) -> str:
    return scanner.word("a value")


def read_string(scanner: Scanner) -> str:
    return scanner.string("a string in double quotes")


def read_braced(scanner: Scanner) -> str:
    """A value in braces, kept as text."""
    return scanner.braced("a value in braces")


def read_any_text(scanner: Scanner) -> str:
    """A value in braces or a bare word as it stands; in quotes, what the quotes hold."""
    if scanner.peek('"'):
        return scanner.string("a value")
    start = scanner.skip()
    scanner.skip_value()
    return scanner.text[start : scanner.position]


def read_one_dimension(scanner: Scanner) -> int:
    """`{1}`"""
    position = scanner.skip()
    dimensions = read_integers(scanner)
    if len(dimensions) != 1:
        raise scanner.error(f"expected one dimension, found {len(dimensions)}", position)
    return dimensions[0]


def read_integer_lists(scanner: Scanner) -> tuple[tuple[int, ...], ...]:
    """`{{0,1},{2,3}}`"""
    scanner.expect("{", "to open a list of lists of numbers")
    lists: list[tuple[int, ...]] = []
    while not scanner.peek("}"):
        if lists:
            scanner.expect(",", "or '}' after a list")
        lists.append(read_integers(scanner))
    scanner.expect("}")
    return tuple(lists)


def read_pairs(scanner: Scanner) -> tuple[tuple[int, int], ...]:
    """`{{0,1},{1,0}}`"""
    position = scanner.skip()
    pairs = []
    for pair in read_integer_lists(scanner):
        if len(pair) != 2:
            raise scanner.error("expected pairs {source,target}", position)
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


MAX_DEVICES = 1 << 20
"""Devices that replica groups may have: a bound on what a short text can make us hold."""


def read_replica_groups(scanner: Scanner) -> ReplicaGroups:
    """`{{0,1},{2,3}}`, or `[2,2]<=[2,2]T(1,0)`: iota over the last dimensions, transposed, cut into the first ones."""
    start = scanner.skip()
    if scanner.peek("{"):
        groups = read_integer_lists(scanner)
        return ReplicaGroups(groups, scanner.text[start : scanner.position])
    target = _read_bracketed(scanner)
    scanner.expect("<", "in [groups,size]<=[dimensions]")
    scanner.expect("=", "in [groups,size]<=[dimensions]")
    source = _read_bracketed(scanner)
    order = tuple(range(len(source)))
    if scanner.accept_word("T"):
        scanner.expect("(")
        order = (scanner.integer("a dimension"),)
        while scanner.accept(","):
            order += (scanner.integer("a dimension"),)
        scanner.expect(")")
    count = math.prod(source)
    fits = len(target) == 2 and math.prod(target) == count and 0 <= count <= MAX_DEVICES
    if not fits or sorted(order) != list(range(len(source))) or min((*target, *source)) < 0:
        raise scanner.error("these replica groups do not fit together", start)
    devices = [0]
    strides = [math.prod(source[d + 1 :]) for d in range(len(source))]
    for d in order:
        devices = [base + k * strides[d] for base in devices for k in range(source[d])]
    size = target[1]
    groups = tuple(tuple(devices[g * size : (g + 1) * size]) for g in range(target[0]))
    return ReplicaGroups(groups, scanner.text[start : scanner.position])


def _read_bracketed(scanner: Scanner) -> tuple[int, ...]:
    """`[2,4]`"""
    scanner.expect("[", "to open a list of sizes")
    values = [scanner.integer("a size")]
    while scanner.accept(","):
        values.append(scanner.integer("a size"))
    scanner.expect("]", "or ',' after a size")
    return tuple(values)


def read_shapes(scanner: Scanner) -> tuple[Shape, ...]:
    """`{f32[2]{0}, s32[]}`"""
    scanner.expect("{", "to open a list of shapes")
    shapes: list[Shape] = []
    while not scanner.peek("}"):
        if shapes:
            scanner.expect(",", "or '}' after a shape")
        shapes.append(read_shape(scanner))
    scanner.expect("}")
    return tuple(shapes)


def read_output_operand_aliases(scanner: Scanner) -> tuple[OutputOperandAlias, ...]:
    """`{{0}: (1, {})}`: leaf 0 of the result lies in the buffer of operand 1."""
    scanner.expect("{", "to open the aliases")
    aliases: list[OutputOperandAlias] = []
    while not scanner.peek("}"):
        if aliases:
            scanner.expect(",", "or '}' after an alias")
        output_index = read_integers(scanner)
        scanner.expect(":")
        scanner.expect("(")
        operand = scanner.integer("the number of an operand")
        scanner.expect(",")
        operand_index = read_integers(scanner)
        scanner.expect(")", "to close the alias")
        aliases.append(OutputOperandAlias(output_index, operand, operand_index))
    scanner.expect("}")
    return tuple(aliases)


_WINDOW_PARTS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
_ITEM = r"-?[0-9]{1,18}(?:_-?[0-9]{1,18})?"
_BY_X = re.compile(rf"\s*({_ITEM}(?:x{_ITEM})*)")


def read_window(scanner: Scanner) -> tuple[WindowDimension, ...]:
    """`{size=2x3 stride=2x1 pad=0_1x1_1 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=0x1}`, parts in any order."""
    start = scanner.skip()
    scanner.expect("{", "to open the window")
    parts: dict[str, list[str]] = {}
    while not scanner.accept("}"):
        key = scanner.peek_word()
        if key not in _WINDOW_PARTS or key in parts:
            raise scanner.expected(f"one of {', '.join(p for p in _WINDOW_PARTS if p not in parts)}, or '}}'")
        scanner.word("a part of the window")
        scanner.expect("=", f"after {key}")
        match = _BY_X.match(scanner.text, scanner.position)
        if match is None:
            raise scanner.expected("numbers with 'x' between them")
        scanner.position = match.end()
        parts[key] = match.group(1).split("x")
    rank = max((len(values) for values in parts.values()), default=0)
    if any(len(values) != rank for values in parts.values()):
        raise scanner.error("the parts of a window must be of one length", start)

    def numbers(key: str, default: int) -> list[int]:
        texts = parts.get(key, [str(default)] * rank)
        if any("_" in text for text in texts):
            raise scanner.error(f"{key} of a window must be plain numbers", start)
        return list(map(int, texts))

    padding = []
    for text in parts.get("pad", ["0_0"] * rank):
        low, underscore, high = text.partition("_")
        if not underscore:
            raise scanner.error("pad of a window must be low_high for each dimension", start)
        padding.append((int(low), int(high)))
    return tuple(
        WindowDimension(size, stride, low, high, base, dilation, bool(is_reversed))
        for size, stride, (low, high), base, dilation, is_reversed in zip(
            numbers("size", 1), numbers("stride", 1), padding, numbers("lhs_dilate", 1), numbers("rhs_dilate", 1),
            numbers("rhs_reversal", 0), strict=True,
        )
    )  # fmt: skip


_DIM_LABELS = re.compile(r"\s*([bf0-9?]+)_([io0-9?]+)->([bf0-9?]+)(?![A-Za-z0-9_])")


def read_dim_labels(scanner: Scanner) -> ConvolutionDimensionNumbers:
    """`b01f_01io->b01f`: batch, feature and the spatial dimensions of input, kernel and result."""
    start = scanner.skip()
    match = _DIM_LABELS.match(scanner.text, start)
    if match is None:
        raise scanner.expected("dimension labels such as b01f_01io->b01f")
    places = [{label: d for d, label in enumerate(text)} for text in match.groups()]
    spatial = [sorted(label for label in place if label.isdecimal()) for place in places]
    digits = [str(k) for k in range(len(match.group(1)) - 2)]
    for text, place, names in zip(match.groups(), places, ("bf", "io", "bf")):
        if len(place) != len(text) or any(name not in place for name in names):
            raise scanner.error(f"{text!r} must have each of {names[0]}, {names[1]} and the numbers once", start)
    if any(found != digits for found in spatial):
        raise scanner.error("input, kernel and result must have the same spatial dimensions, numbered from 0", start)
    source, kernel, result = places
    scanner.position = match.end()
    return ConvolutionDimensionNumbers(
        source["b"], source["f"], tuple(source[k] for k in digits),
        kernel["i"], kernel["o"], tuple(kernel[k] for k in digits),
        result["b"], result["f"], tuple(result[k] for k in digits),
    )  # fmt: skip
