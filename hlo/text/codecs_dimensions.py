"""Codecs of values with an entry for each dimension: slices, padding, windows, labels of a convolution.

Source: XLA's HloParserImpl (ParseWindow, ParseConvolutionDimensionNumbers, ...) and window_util::ToString.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..window import ConvolutionDimensionNumbers, Window, WindowDimension
from .codec import plain
from .scanner import Scanner, pattern

Triples = tuple[tuple[int, int, int], ...]


def _read_slice(scanner: Scanner) -> tuple[tuple[int, int, int], ...]:
    """`{[0:4:2], [1:3]}`"""
    scanner.expect("{", "to open the slice")
    ranges: list[tuple[int, int, int]] = []
    for _ in scanner.each("}", "a range"):
        scanner.expect("[", "to open a range start:limit:stride")
        start = scanner.integer("a start index")
        scanner.expect(":")
        limit = scanner.integer("a limit index")
        stride = scanner.integer("a stride") if scanner.accept(":") else 1
        scanner.expect("]", "to close the range")
        ranges.append((start, limit, stride))
    return tuple(ranges)


def _slice_text(ranges: Triples) -> str:
    parts = [f"[{start}:{limit}{f':{stride}' if stride != 1 else ''}]" for start, limit, stride in ranges]
    return f"{{{', '.join(parts)}}}"


_NO_PADDING = r"[ \t\r]*(?:[,}\n]|$)"
_PADDING = r"(-?[0-9]{1,18})_(-?[0-9]{1,18})(?:_([0-9]{1,18}))?(x?)"


def _read_padding(scanner: Scanner) -> tuple[tuple[int, int, int], ...]:
    """`0_1x2_3_1`: low_high or low_high_interior for each dimension. Nothing at all for a scalar."""
    if pattern(_NO_PADDING).match(scanner.text, scanner.position):
        return ()
    position = scanner.skip()
    sizes = []
    while match := pattern(_PADDING).match(scanner.text, position):
        sizes.append((int(match.group(1)), int(match.group(2)), int(match.group(3) or 0)))
        position = scanner.position = match.end()
        if not match.group(4):
            return tuple(sizes)
    raise scanner.expected("padding as low_high or low_high_interior")


def _padding_text(sizes: Triples) -> str:
    return "x".join(f"{low}_{high}{f'_{inner}' if inner else ''}" for low, high, inner in sizes)


_WINDOW_PARTS = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
_ITEM = r"-?[0-9]{1,18}(?:_-?[0-9]{1,18})?"
_BY_X = rf"\s*({_ITEM}(?:x{_ITEM})*)"


def _read_window(scanner: Scanner) -> tuple[WindowDimension, ...]:
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
        match = pattern(_BY_X).match(scanner.text, scanner.position)
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


def _window_text(window: Window) -> str:
    """A part with only default values is omitted."""
    parts = ["size=" + "x".join(str(d.size) for d in window)]
    if any(d.stride != 1 for d in window):
        parts.append("stride=" + "x".join(str(d.stride) for d in window))
    if any(d.padding_low or d.padding_high for d in window):
        parts.append("pad=" + "x".join(f"{d.padding_low}_{d.padding_high}" for d in window))
    if any(d.base_dilation != 1 for d in window):
        parts.append("lhs_dilate=" + "x".join(str(d.base_dilation) for d in window))
    if any(d.window_dilation != 1 for d in window):
        parts.append("rhs_dilate=" + "x".join(str(d.window_dilation) for d in window))
    if any(d.reversed for d in window):
        parts.append("rhs_reversal=" + "x".join(str(int(d.reversed)) for d in window))
    return f"{{{' '.join(parts)}}}"


_DIM_LABELS = r"\s*([bf0-9?]+)_([io0-9?]+)->([bf0-9?]+)(?![A-Za-z0-9_])"


def _read_dim_labels(scanner: Scanner) -> ConvolutionDimensionNumbers:
    """`b01f_01io->b01f`: batch, feature and the spatial dimensions of input, kernel and result."""
    start = scanner.skip()
    match = pattern(_DIM_LABELS).match(scanner.text, start)
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


def _dim_labels_text(numbers: ConvolutionDimensionNumbers) -> str:
    def labels(names: str, places: tuple[int, int], spatial: Sequence[int]) -> str:
        label = {place: name for name, place in zip(names, places, strict=True)}
        label |= {place: str(k) for k, place in enumerate(spatial)}
        return "".join(label[d] for d in sorted(label))

    source = labels("bf", (numbers.input_batch, numbers.input_feature), numbers.input_spatial)
    kernel = labels("io", (numbers.kernel_input_feature, numbers.kernel_output_feature), numbers.kernel_spatial)
    result = labels("bf", (numbers.output_batch, numbers.output_feature), numbers.output_spatial)
    return f"{source}_{kernel}->{result}"


SLICE = plain(_read_slice, _slice_text)
PADDING = plain(_read_padding, _padding_text)
WINDOW = plain(_read_window, _window_text)
DIM_LABELS = plain(_read_dim_labels, _dim_labels_text)
