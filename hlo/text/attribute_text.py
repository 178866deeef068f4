"""Texts of attribute values: lists, windows, labels, frontend attributes. `attribute_values.py` reads them back.

Writers look at fields by name only, so that they do not need the attribute classes: `ir.py` imports the printer, and
the classes import `ir.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import HloParseError
from .escape import escape
from .mlir_dictionary import write_dictionary
from .scanner import Scanner

if TYPE_CHECKING:
    from ..ir import HloComputation, HloInstruction
    from ..ops.control_flow import Composite
    from ..ops.convolution import ConvolutionDimensionNumbers
    from ..window import Window

ComputationName = Callable[["HloComputation"], str]
Writer = Callable[["HloInstruction", ComputationName], Iterable[str]]
"""writer(instruction, name of a called computation) -> `key=value` texts."""


def dictionary_or_quoted(text: str) -> str:
    """`text` as it stands if it is in braces that close at its end, else in quotes. Source: XLA's LexesAsJsonDict."""
    scanner = Scanner(text)
    try:
        is_dictionary = text.startswith("{") and text.isprintable() and scanner.braced("") == text
    except HloParseError:
        is_dictionary = False
    return text if is_dictionary else f'"{escape(text)}"'


def integers(values: Sequence[int]) -> str:
    """`{0,2,1}`"""
    return "{" + ",".join(map(str, values)) + "}"


def boolean(value: bool) -> str:
    return "true" if value else "false"


def window_text(window: Window) -> Iterator[str]:
    """`window={size=2x3 stride=2x1 pad=0_1x1_1 rhs_reversal=0x1}`; a part that says nothing is left out, the size too
    where there are no dimensions. Source: XLA's window_util::ToString."""
    if not window:
        return
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
    yield f"window={{{' '.join(parts)}}}"


def dim_labels(numbers: ConvolutionDimensionNumbers) -> str:
    """`b01f_01io->b01f`: what each dimension of input, kernel and result is."""

    def labels(names: str, places: tuple[int, int], spatial: Sequence[int]) -> str:
        label = {place: name for name, place in zip(names, places)}
        label |= {place: str(k) for k, place in enumerate(spatial)}
        return "".join(label[d] for d in sorted(label))

    source = labels("bf", (numbers.input_batch, numbers.input_feature), numbers.input_spatial)
    kernel = labels("io", (numbers.kernel_input_feature, numbers.kernel_output_feature), numbers.kernel_spatial)
    result = labels("bf", (numbers.output_batch, numbers.output_feature), numbers.output_spatial)
    return f"{source}_{kernel}->{result}"


def precision_text(precisions: tuple[str, str]) -> Iterator[str]:
    if precisions != ("default", "default"):
        yield f"operand_precision={{{','.join(precisions)}}}"


_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_DICTIONARY = re.compile(r'\{(?:[^{}"\\]|"(?:[^"\\]|\\.)*+")*+\}')


def composite_frontend_attributes(composite: Composite) -> list[tuple[str, str]]:
    """What XLA keeps of a composite call beside `is_composite=true`."""
    return [
        ("composite.attributes", write_dictionary(composite.parameters)),
        ("composite.name", composite.name),
        ("composite.version", str(composite.version)),
    ]


def frontend_attributes_text(attributes: Iterable[tuple[str, str]]) -> str:
    """`frontend_attributes={a="b",c={d = 1}}`: as XLA does, a value that is a dictionary goes without quotes."""
    return "frontend_attributes={" + ",".join(f"{_key(key)}={_value(value)}" for key, value in attributes) + "}"


def _key(key: str) -> str:
    """XLA has no form for a key that is no identifier; in quotes, our parser takes it."""
    return key if _KEY.fullmatch(key) else f'"{escape(key)}"'


def _value(value: str) -> str:
    return value if value.isprintable() and _DICTIONARY.fullmatch(value) else f'"{escape(value)}"'
