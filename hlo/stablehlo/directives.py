"""The parts of StableHLO's operations that are written in ways of their own: windows, ranges, loops, reductions.

Source: StableHLO's AssemblyFormat.cpp and StablehloOps.cpp (print and parse functions of custom directives).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..element_type import ElementType
from ..mlir.form import DIRECTIVES as TYPE_DIRECTIVES
from ..mlir.form import Directive, Values, function_type_text, read_integers, types_text
from ..mlir.functions import FunctionBody, ModuleBody
from ..mlir.operation_reader import Draft, OperationReader
from ..mlir.operation_writer import OperationWriter, Unfit
from ..mlir.tree import (
    Block,
    Dense,
    DenseArray,
    Enumerated,
    Integer,
    Location,
    Operation,
    Record,
    Region,
    Tensor,
    Type,
    Value,
)
from .records import ALGORITHM, convolution_dimensions_text, read_convolution_dimensions


def _array(operation: Operation, name: str) -> tuple[Any, ...]:
    value = operation.attributes.get(name)
    if not isinstance(value, DenseArray):
        raise Unfit
    return value.values


def _list_text(values: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, values))}]"


class _SliceRanges(Directive):
    """`[0:3, 1:8:2]`: start, limit, and a stride that is not 1."""

    attributes: ClassVar[Sequence[str]] = ("start_indices", "limit_indices", "strides")

    def read(self, reader: OperationReader, draft: Draft) -> None:
        reader.expect("[", "to begin the ranges of a slice")
        ranges = reader.comma_list("]", lambda: _range(reader))
        for name, values in zip(self.attributes, zip(*ranges) if ranges else ((), (), ())):
            draft.attributes[name] = DenseArray(ElementType.S64, tuple(values))

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        columns = [_array(operation, name) for name in self.attributes]
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

    attributes: ClassVar[Sequence[str]] = ("dimension_numbers",)

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

    attributes: ClassVar[Sequence[str]] = (
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
                texts.append(f"pad = [{', '.join(map(_list_text, value.array.tolist()))}]")
            elif word == "reverse":
                flags = ["true" if flag else "false" for flag in _array(operation, name)]
                texts.append(f"reverse = {_list_text(flags)}")
            else:
                texts.append(f"{word} = {_list_text(_array(operation, name))}")
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

    attributes: ClassVar[Sequence[str]] = ("dot_dimension_numbers",)

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
                texts.append(f"{kind}_dims = {_list_text(left)} x {_list_text(right)}")
        writer.item(", ".join(texts))


class _Precision(Directive):
    """`, precision = [DEFAULT, HIGH], algorithm = <...>`, both optional."""

    attributes: ClassVar[Sequence[str]] = ("precision_config", "algorithm")

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
            text = f", precision = {_list_text([each.value for each in precisions if isinstance(each, Enumerated)])}"
        if algorithm is not None:
            if not isinstance(algorithm, Record):
                raise Unfit
            text += f", algorithm = {ALGORITHM.bare(algorithm, writer.text)}"
        writer.item(text)


class _Format(Directive):
    """`e8m10`: bits of the exponent and of the mantissa."""

    attributes: ClassVar[Sequence[str]] = ("exponent_bits", "mantissa_bits")

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


class _While(Directive):
    """The loop:

    (%iterArg = %x, ...) : T, ...
    cond { ... } do { ... }
    """

    has_regions: ClassVar[bool] = True

    def read(self, reader: OperationReader, draft: Draft) -> None:
        reader.expect("(", "to begin the values of a loop")
        names: list[str] = []
        for name, value in reader.comma_list(")", lambda: self._value(reader)):
            names.append(name)
            draft.operands.append(value)
        if names:
            reader.expect(":", "and the types of the values")
            TYPE_DIRECTIVES["pairwise"].read(reader, draft)
        if reader.accept("attributes"):
            reader.attribute_dictionary(draft)
        for word in ("cond", "do"):
            reader.expect(word)
            arguments = [(name, Value(value.type), None) for name, value in zip(names, draft.operands)]
            draft.regions.append(reader.region(arguments))

    @staticmethod
    def _value(reader: OperationReader) -> tuple[str, Value]:
        name = reader.new_value("the name of an argument of the loop")
        reader.expect("=")
        return name, reader.operand()

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        types = [value.type for value in operation.operands]
        if len(operation.regions) != 2 or types != [value.type for value in operation.results]:
            raise Unfit
        for region in operation.regions:
            if len(region.blocks) != 1 or [value.type for value in region.block.arguments] != types:
                raise Unfit
        condition, body = operation.regions
        for inner, outer in zip(condition.block.arguments, body.block.arguments):
            if writer.name(inner) != writer.name(outer):
                raise Unfit
        pairs = zip(body.block.arguments, operation.operands)
        writer.put(f"({', '.join([f'{writer.name(inner)} = {writer.name(outer)}' for inner, outer in pairs])})")
        if types:
            writer.put(f" : {types_text(operation.operands)}")
        writer.optional_dictionary(operation.attributes, "attributes")
        writer.line()
        writer.put("cond ")
        writer.region(condition, labelled=False)
        writer.put(" do ")
        writer.region(body, labelled=False)


_COMMUTATIVE = ("add", "maximum", "minimum", "multiply", "and", "or", "xor")
"""The operations that `applies` may name."""


class _Reduce(Directive):
    """The reduction, with one operation or with a region:

    (%x init: %y) applies stablehlo.add across dimensions = [0] : (T, T) -> T
    (%x init: %y), ... across dimensions = [0] : (T, T, ...) -> (T, ...)
     reducer(%a: T, %b: T) (...)  { ... }
    """

    has_regions: ClassVar[bool] = True
    attributes: ClassVar[Sequence[str]] = ("dimensions",)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.starts[draft.start]
        inputs, initial = [], []
        while True:
            reader.expect("(", "to begin an operand of a reduction")
            inputs.append(reader.operand())
            reader.expect("init")
            reader.expect(":")
            initial.append(reader.operand())
            reader.expect(")")
            if not reader.accept(","):
                break
        draft.operands = inputs + initial
        applied = None
        if reader.accept("applies"):
            at = reader.index
            dialect, _, applied = reader.word("the name of an operation").rpartition(".")
            if dialect != "stablehlo" or applied not in _COMMUTATIVE or len(inputs) != 1:
                raise reader.error("expected a commutative operation of stablehlo, and one operand", at)
        for word in ("across", "dimensions", "="):
            reader.expect(word)
        draft.attributes["dimensions"] = read_integers(reader)
        reader.attribute_dictionary(draft)
        reader.function_signature(draft)
        if applied is None:
            draft.regions = [self._reducer(reader)]
        else:
            draft.regions = [_applied(applied, inputs[0].type, start, reader)]

    @staticmethod
    def _reducer(reader: OperationReader) -> Region:
        reader.expect("reducer")
        elements: list[tuple[str, Value, Location | None]] = []
        totals: list[tuple[str, Value, Location | None]] = []
        while reader.accept("("):
            elements.append(reader.argument())
            reader.expect(",")
            totals.append(reader.argument())
            reader.expect(")")
        return reader.region(elements + totals)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        half = len(operation.operands) // 2
        dimensions = _array(operation, "dimensions")
        if len(operation.operands) != 2 * half or not half or len(operation.regions) != 1:
            raise Unfit
        region = operation.regions[0]
        if len(region.blocks) != 1 or len(region.block.arguments) != 2 * half:
            raise Unfit
        operands = [writer.name(value) for value in operation.operands]
        pairs = zip(operands[:half], operands[half:])
        writer.put(f"({'), ('.join(f'{value} init: {first}' for value, first in pairs)})")
        applied = _only_operation(operation)
        if applied:
            writer.put(f" applies {applied}")
        writer.put(f" across dimensions = {_list_text(dimensions)}")
        others = {name: value for name, value in operation.attributes.items() if name != "dimensions"}
        writer.optional_dictionary(others)
        writer.put(f" : {function_type_text(operation)}")
        if applied:
            return
        writer.line()
        writer.put(" reducer")
        for number in range(half):
            first, second = writer.argument(region.block, number), writer.argument(region.block, number + half)
            writer.put(f"({first}, {second}) ")
        writer.put(" ")
        writer.region(region, labelled=False)


def _applied(name: str, operand: Type, position: int, reader: OperationReader) -> Region:
    """The region that `applies stablehlo.add` stands for."""
    if not isinstance(operand, Tensor):
        raise reader.error_at("expected a tensor to reduce", position)
    kind = Tensor((), operand.element)
    block = Block([Value(kind), Value(kind)])
    result = Value(kind)
    block.operations = [
        Operation(f"stablehlo.{name}", list(block.arguments), [result], position=position),
        Operation("stablehlo.return", [result], position=position),
    ]
    return Region([block])


def _only_operation(reduce: Operation) -> str:
    """The operation that the region of a reduction consists of, or ""."""
    block = reduce.regions[0].block
    if len(block.operations) != 2 or len(reduce.operands) != 2:
        return ""
    inner, last = block.operations
    dialect, _, name = inner.name.rpartition(".")
    operand = reduce.operands[0].type
    types = [value.type for value in (*inner.operands, *inner.results)]
    is_plain = dialect == "stablehlo" and name in _COMMUTATIVE and not inner.attributes
    is_forwarded = inner.operands == block.arguments and last.operands == inner.results
    of_elements = isinstance(operand, Tensor) and types == [Tensor((), operand.element)] * 3
    return inner.name if is_plain and is_forwarded and of_elements and last.name == "stablehlo.return" else ""


class _Scan(Directive):
    """`(%x, ...) inits (%y, ...) dimension=0 attributes {...} { ^bb0(...): ... } : (T, ...) -> (T, ...)`."""

    has_regions: ClassVar[bool] = True
    _sizes = ("operandSegmentSizes", "resultSegmentSizes")
    attributes: ClassVar[Sequence[str]] = ("dimension", *_sizes)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        reader.expect("(", "to begin the inputs of a scan")
        inputs = reader.operands()
        reader.expect(")")
        reader.expect("inits")
        reader.expect("(")
        initial = reader.operands()
        reader.expect(")")
        reader.expect("dimension")
        reader.expect("=")
        draft.attributes["dimension"] = Integer(reader.integer("a dimension"), ElementType.S64)
        if reader.accept("attributes"):
            reader.attribute_dictionary(draft)
        draft.regions = [reader.region(isolated=True)]
        draft.operands = inputs + initial
        start = reader.index
        reader.function_signature(draft)
        outputs = len(draft.results) - len(initial)
        if outputs < 0:
            raise reader.error("a scan has a result for each of its inits", start)
        for name, first in zip(self._sizes, (len(inputs), outputs)):
            draft.attributes[name] = DenseArray(ElementType.S32, (first, len(initial)))

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        sizes, dimension = _array(operation, self._sizes[0]), operation.attributes.get("dimension")
        if len(sizes) != 2 or len(operation.regions) != 1 or not isinstance(dimension, Integer):
            raise Unfit
        inputs, initial = operation.operands[: sizes[0]], operation.operands[sizes[0] :]
        writer.put(f"({writer.values(inputs)}) inits ({writer.values(initial)}) dimension={dimension.value} ")
        others = {name: value for name, value in operation.attributes.items() if name not in self.attributes}
        writer.optional_dictionary(others, "attributes")
        writer.put(" ")
        writer.region(operation.regions[0])
        writer.put(f" : {function_type_text(operation)}")


class _Constant(Directive):
    """`dense<1> : tensor<i32>`, or the generic form, after the name without quotes, where the types differ."""

    attributes: ClassVar[Sequence[str]] = ("value",)

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

    attributes: ClassVar[Sequence[str]] = ("value",)

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


class _Regions(Directive):
    """`({ ... }, { ... })` of a composite, if there are regions."""

    has_regions: ClassVar[bool] = True

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if reader.accept("("):
            draft.regions = reader.comma_list(")", reader.region)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        for number, region in enumerate(operation.regions):
            writer.put(", " if number else " (")
            writer.region(region)
        if operation.regions:
            writer.put(")")


class _Body(Directive):
    """`(%x: T, ...) { ... }`: a region that sees no values outside of it."""

    has_regions: ClassVar[bool] = True

    def read(self, reader: OperationReader, draft: Draft) -> None:
        reader.expect("(", "to begin the arguments of the region")
        draft.regions = [reader.region(reader.comma_list(")", reader.argument), isolated=True)]

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.regions) != 1 or len(operation.regions[0].blocks) != 1:
            raise Unfit
        block = operation.regions[0].block
        writer.item(f"({', '.join([writer.argument(block, number) for number in range(len(block.arguments))])}) ")
        writer.region(operation.regions[0], labelled=False)


DIRECTIVES: dict[str, Directive] = {
    "body": _Body(), **TYPE_DIRECTIVES, "module": ModuleBody(), "func": FunctionBody(), "slice_ranges": _SliceRanges(),
    "convolution_dimensions": _ConvolutionDimensions(), "window": _Window(), "dot_dimensions": _DotDimensions(),
    "precision": _Precision(), "format": _Format(), "while": _While(), "reduce": _Reduce(), "scan": _Scan(),
    "constant": _Constant(), "checked_literal": _CheckedLiteral(), "regions": _Regions(),
}  # fmt: skip
"""All directives of the table of forms."""
