"""Attributes of StableHLO's operations that are written in ways of their own: windows, ranges, dimensions, literals.

Source: StableHLO's AssemblyFormat.cpp and StablehloOps.cpp (print and parse functions of custom directives).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..mlir.assembly_attributes import read_integers
from ..mlir.assembly_format import Directive, Values
from ..mlir.operation_reader import Draft, OperationReader
from ..mlir.operation_writer import OperationWriter, Unfit
from ..mlir.tree import Dense, DenseArray, Enumerated, Integer, Operation, Record, Tensor
from .records import ALGORITHM, convolution_dimensions_text, read_convolution_dimensions


def array_of(operation: Operation, name: str) -> tuple[Any, ...]:
    """The numbers of an attribute `array<...>`. Unfit if it is none."""
    value = operation.attributes.get(name)
    if not isinstance(value, DenseArray):
        raise Unfit
    return value.values


def list_text(values: Sequence[Any]) -> str:
    """`[0, 1]`."""
    return f"[{', '.join(map(str, values))}]"


class _SliceRanges(Directive):
    """`[0:3, 1:8:2]`: start, limit, and a stride that is not 1."""

    attributes = ("start_indices", "limit_indices", "strides")

    def read(self, reader: OperationReader, draft: Draft) -> None:
        reader.expect("[", "to begin the ranges of a slice")
        ranges = reader.comma_list("]", lambda: _range(reader))
        for name, values in zip(self.attributes, zip(*ranges) if ranges else ((), (), ())):
            draft.attributes[name] = DenseArray(ElementType.S64, tuple(values))

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        columns = [array_of(operation, name) for name in self.attributes]
        if len(set(map(len, columns))) != 1:
            raise Unfit
        texts = [f"{start}:{limit}" + (f":{stride}" if stride != 1 else "") for start, limit, stride in zip(*columns)]
        writer.item(f"[{', '.join(texts)}]")


def _range(reader: OperationReader) -> tuple[int, int, int]:
    start = reader.integer("the start of a range")
    reader.expect(":")
    limit = reader.integer("the limit of a range")
    return start, limit, reader.integer("the stride of a range") if reader.accept(":") else 1


class _ConvolutionDimensions(Directive):
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""

    attributes = ("dimension_numbers",)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.attributes["dimension_numbers"] = read_convolution_dimensions(reader)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        numbers = operation.attributes.get("dimension_numbers")
        text = convolution_dimensions_text(numbers) if isinstance(numbers, Record) else None
        if text is None:
            raise Unfit
        writer.item(text)


class _Window(Directive):
    """`stride = [1, 1], pad = [[0, 0], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, true]`."""

    attributes = (
        "window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal",
    )  # fmt: skip
    _words = ("stride", "pad", "lhs_dilate", "rhs_dilate", "reverse")

    def read(self, reader: OperationReader, draft: Draft) -> None:
        while reader.next != "}":
            start = reader.index
            word = reader.word("a word for the window")
            if word not in self._words:
                raise reader.expected(f"one of {', '.join(self._words)}", start)
            name = self.attributes[self._words.index(word)]
            if name in draft.attributes:
                raise reader.error(f"{word} is given twice", start)
            reader.expect("=")
            if word == "pad":
                draft.attributes[name] = _padding(reader)
            elif word == "reverse":
                reader.expect("[")
                flags = reader.comma_list("]", lambda: _flag(reader))
                draft.attributes[name] = DenseArray(ElementType.PRED, tuple(flags))
            else:
                draft.attributes[name] = read_integers(reader)
            if not reader.accept(","):
                return

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        texts = []
        for word, name in zip(self._words, self.attributes):
            value = operation.attributes.get(name)
            if value is None:
                continue
            if word == "pad":
                if not isinstance(value, Dense) or value.array.ndim != 2 or value.array.shape[1] != 2:
                    raise Unfit
                texts.append(f"pad = [{', '.join(map(list_text, value.array.tolist()))}]")
            elif word == "reverse":
                flags = ["true" if flag else "false" for flag in array_of(operation, name)]
                texts.append(f"reverse = {list_text(flags)}")
            else:
                texts.append(f"{word} = {list_text(array_of(operation, name))}")
        writer.item(", ".join(texts))


def _padding(reader: OperationReader) -> Dense:
    reader.expect("[")
    start = reader.index
    rows = reader.comma_list("]", lambda: read_integers(reader).values)
    if any(len(row) != 2 for row in rows):
        raise reader.error("expected two numbers for each dimension of the padding", start)
    array = np.array(rows, np.int64).reshape(len(rows), 2)
    return Dense(Tensor((len(rows), 2), ElementType.S64), array)


def _flag(reader: OperationReader) -> bool:
    token = reader.next
    if token not in ("true", "false", "0", "1"):
        raise reader.expected("true or false")
    reader.index += 1
    return token in ("true", "1")


class _DotDimensions(Directive):
    """`batching_dims = [0] x [0], contracting_dims = [2] x [1]`."""

    attributes = ("dot_dimension_numbers",)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        fields: dict[str, Any] = {}
        if reader.accept("batching_dims"):
            self._pair(reader, fields, "batching")
            reader.expect(",")
        reader.expect("contracting_dims")
        self._pair(reader, fields, "contracting")
        draft.attributes["dot_dimension_numbers"] = Record("stablehlo", "dot", fields)

    @staticmethod
    def _pair(reader: OperationReader, fields: dict[str, Any], kind: str) -> None:
        reader.expect("=")
        left = read_integers(reader).values
        reader.expect("x")
        for side, values in (("lhs", left), ("rhs", read_integers(reader).values)):
            if values:
                fields[f"{side}_{kind}_dimensions"] = values

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        numbers = operation.attributes.get("dot_dimension_numbers")
        if not isinstance(numbers, Record):
            raise Unfit
        texts = []
        for kind in ("batching", "contracting"):
            left, right = (numbers.fields.get(f"{side}_{kind}_dimensions", ()) for side in ("lhs", "rhs"))
            if left or right or kind == "contracting":
                texts.append(f"{kind}_dims = {list_text(left)} x {list_text(right)}")
        writer.item(", ".join(texts))


class _Precision(Directive):
    """`, precision = [DEFAULT, HIGH], algorithm = <...>`, both optional."""

    attributes = ("precision_config", "algorithm")

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if not reader.accept(","):
            return
        if reader.accept("precision"):
            reader.expect("=")
            reader.expect("[")
            words = reader.comma_list("]", lambda: reader.word("a precision"))
            draft.attributes["precision_config"] = tuple(Enumerated("stablehlo", "precision", word) for word in words)
            if not reader.accept(","):
                return
        reader.expect("algorithm")
        reader.expect("=")
        draft.attributes["algorithm"] = ALGORITHM.read(reader)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        precisions, algorithm = (operation.attributes.get(name) for name in self.attributes)
        text = ""
        if precisions is not None:
            if not isinstance(precisions, tuple) or not all(isinstance(each, Enumerated) for each in precisions):
                raise Unfit
            text = f", precision = {list_text([each.value for each in precisions if isinstance(each, Enumerated)])}"
        if algorithm is not None:
            if not isinstance(algorithm, Record):
                raise Unfit
            text += f", algorithm = {ALGORITHM.bare(algorithm, writer.text)}"
        writer.item(text)


class _Format(Directive):
    """`e8m10`: bits of the exponent and of the mantissa."""

    attributes = ("exponent_bits", "mantissa_bits")

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        match = re.fullmatch(r"e([0-9]{1,9})m([0-9]{1,9})", reader.word("a format such as e8m10"))
        if match is None:
            raise reader.expected("a format such as e8m10", start)
        for name, digits in zip(self.attributes, match.groups()):
            draft.attributes[name] = Integer(int(digits), ElementType.S32)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        exponent, mantissa = (operation.attributes.get(name) for name in self.attributes)
        if not isinstance(exponent, Integer) or not isinstance(mantissa, Integer):
            raise Unfit
        writer.item(f"e{exponent.value}m{mantissa.value}")


class _Constant(Directive):
    """`dense<1> : tensor<i32>`, or the generic form, after the name without quotes, where the types differ."""

    attributes = ("value",)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if reader.next == "(":
            reader.generic(draft)
            return
        reader.attribute_dictionary(draft)
        start = reader.index
        value = reader.attribute()
        if not isinstance(value, Dense):
            raise reader.expected("a literal such as dense<0> : tensor<i32>", start)
        draft.attributes["value"] = value
        draft.results = (value.type,)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        value = operation.attributes.get("value")
        if not isinstance(value, Dense) or len(operation.results) != 1:
            raise Unfit
        if value.type != operation.results[0].type:
            writer.generic(operation)
            return
        writer.optional_dictionary({name: v for name, v in operation.attributes.items() if name != "value"})
        writer.put(f" {writer.text(value)}")


class _CheckedLiteral(Directive):
    """`dense<1> : tensor<i32>`, of the type of the operand."""

    attributes = ("value",)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        value = reader.attribute()
        if not isinstance(value, Dense):
            raise reader.expected("a literal such as dense<0> : tensor<i32>", start)
        reader.check_types(draft.operands, [value.type], start)
        draft.attributes["value"] = value

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        value = operation.attributes.get("value")
        if not isinstance(value, Dense):
            raise Unfit
        writer.item(writer.text(value))


ATTRIBUTE_DIRECTIVES: dict[str, Directive] = {
    "slice_ranges": _SliceRanges(), "convolution_dimensions": _ConvolutionDimensions(), "window": _Window(),
    "dot_dimensions": _DotDimensions(), "precision": _Precision(), "format": _Format(), "constant": _Constant(),
    "checked_literal": _CheckedLiteral(),
}  # fmt: skip
"""The directives that write attributes."""
