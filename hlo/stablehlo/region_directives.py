"""The directives of assembly formats that write regions: loops, reductions, scans, bodies.

Source: StableHLO's AssemblyFormat.cpp and ChloOps.cpp (print and parse functions), and Shardy's.
"""

from __future__ import annotations

from typing import ClassVar

from ..element_type import ElementType
from ..mlir.assembly_attributes import read_integers
from ..mlir.assembly_format import Directive, Values
from ..mlir.assembly_types import DIRECTIVES as TYPE_DIRECTIVES
from ..mlir.assembly_types import function_type_text, types_text
from ..mlir.functions import FunctionBody, ModuleBody
from ..mlir.operation_reader import Draft, OperationReader
from ..mlir.operation_writer import OperationWriter, Unfit
from ..mlir.tree import Block, DenseArray, Integer, Location, Operation, Region, Tensor, Type, Value
from .directives import ATTRIBUTE_DIRECTIVES, array_of, list_text


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
    attributes = ("dimensions",)

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
        dimensions = array_of(operation, "dimensions")
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
        writer.put(f" across dimensions = {list_text(dimensions)}")
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
    attributes = ("dimension", *_sizes)

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
        sizes, dimension = array_of(operation, self._sizes[0]), operation.attributes.get("dimension")
        if len(sizes) != 2 or len(operation.regions) != 1 or not isinstance(dimension, Integer):
            raise Unfit
        inputs, initial = operation.operands[: sizes[0]], operation.operands[sizes[0] :]
        writer.put(f"({writer.values(inputs)}) inits ({writer.values(initial)}) dimension={dimension.value} ")
        others = {name: value for name, value in operation.attributes.items() if name not in self.attributes}
        writer.optional_dictionary(others, "attributes")
        writer.put(" ")
        writer.region(operation.regions[0])
        writer.put(f" : {function_type_text(operation)}")


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
    **TYPE_DIRECTIVES, **ATTRIBUTE_DIRECTIVES, "module": ModuleBody(), "func": FunctionBody(), "while": _While(),
    "reduce": _Reduce(), "scan": _Scan(), "regions": _Regions(), "body": _Body(),
}  # fmt: skip
"""All directives of the table of assembly formats."""
