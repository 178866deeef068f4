"""Writing operations as MLIR text, as MLIR's printer lays them out. `operation_reader.py` reads all of it back.

An operation is written in its assembly format, if the table has one, and the operation has all that the format needs.
Otherwise it is written in the generic form. Source: MLIR's AsmPrinter, and the spaces that OpFormatGen puts between the
elements of a format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .attribute_writer import AttributeWriter, function_text, location_text, type_text
from .naming import Names
from .tree import Attribute, Block, Operation, Region, Value


class Unfit(Exception):
    """The operation cannot be written in its custom assembly format."""


class OperationFormat(Protocol):
    """How an operation is written after its name."""

    properties: frozenset[str]
    """The attributes that belong to the operation's declaration: the generic form has them in `<{...}>`."""

    def write(self, writer: OperationWriter, operation: Operation) -> None:
        """Unfit, after any output, for an operation that does not fit the format."""

    def result_names(self, operation: Operation) -> Sequence[str]: ...

    def argument_name(self, operation: Operation, number: int) -> str: ...


_NO_PROPERTIES: frozenset[str] = frozenset()


class OperationWriter(AttributeWriter):
    """Writes an operation and all that is in it. `generic`: only in generic forms; `locations`: with `loc(...)`."""

    def __init__(
        self, operations: Mapping[str, OperationFormat], attributes: Mapping[str, Any], generic: bool, locations: bool
    ) -> None:
        super().__init__(attributes)
        self._operations = operations
        self._generic, self.locations = generic, locations
        self._parts: list[str] = []
        self._depth = 0
        self._space = self._punctuated = False

    def written(self, operation: Operation) -> str:
        """The text of an operation, with a line end."""
        self._names = Names(operation, self._result_names, self._argument_name)
        self._operation(operation, "builtin")
        return "".join([*self._parts, "\n"])

    def _result_names(self, operation: Operation) -> Sequence[str]:
        format = None if self._generic else self._operations.get(operation.name)
        return () if format is None else format.result_names(operation)

    def _argument_name(self, operation: Operation, number: int) -> str:
        format = None if self._generic else self._operations.get(operation.name)
        return "" if format is None else format.argument_name(operation, number)

    # ---- pieces of a line

    def put(self, text: str) -> None:
        """Text as it is."""
        self._parts.append(text)

    def literal(self, text: str) -> None:
        """A word or a punctuation mark of an assembly format, with a space before it where MLIR has one."""
        if self._space and not _joins(text, self._punctuated):
            text = f" {text}"
        self._parts.append(text)
        last = text[-1]
        self._space = last not in "<({[" or len(text.lstrip()) != 1
        self._punctuated = not (last.isalpha() or last == "_")

    def item(self, text: str) -> None:
        """A value, an attribute or types of an assembly format."""
        self._parts.append(f" {text}" if self._space or not self._punctuated else text)
        self._space, self._punctuated = True, False

    def glue(self) -> None:
        """No space before what comes next."""
        self._space, self._punctuated = False, True

    def line(self) -> None:
        """A new line."""
        self._parts.append("\n" + "  " * self._depth)

    def name(self, value: Value) -> str:
        """`%0`. KeyError for a value that the operation does not contain: the tree is broken."""
        return self._names.texts[value]

    def values(self, values: Sequence[Value]) -> str:
        return ", ".join([self._names.texts[value] for value in values])

    def optional_dictionary(self, attributes: Mapping[str, Attribute], keyword: str = "") -> None:
        """` {...}`, or nothing without attributes; after a keyword if there is one."""
        if attributes:
            self._parts.append(f" {keyword} " if keyword else " ")
            self._parts.append(self.dictionary(attributes))
        self._punctuated = False

    def argument(self, block: Block, number: int) -> str:
        """`%x: T`, an argument of a block, with its location."""
        value = block.arguments[number]
        text = f"{self.name(value)}: {type_text(value.type)}"
        return text + self.argument_location(block, number)

    def argument_location(self, block: Block, number: int) -> str:
        if not self.locations:
            return ""
        return location_text(block.argument_locations[number] if block.argument_locations else None)

    # ---- operations

    def _operation(self, operation: Operation, dialect: str) -> None:
        """`dialect`: its operations are written without it."""
        if operation.results:
            count = self._names.counts.get(operation.results[0])
            if count is None:
                self.put(f"{self.values(operation.results)} = ")
            else:
                self.put(f"{self.name(operation.results[0]).partition('#')[0]}:{count} = ")
        format = None if self._generic else self._operations.get(operation.name)
        length = len(self._parts)
        if format is not None:
            name = operation.name
            self.put(name[len(dialect) + 1 :] if dialect and name.startswith(f"{dialect}.") else name)
            self._space, self._punctuated = True, False
            depth = self._depth
            try:
                format.write(self, operation)
            except Unfit:
                del self._parts[length:]
                self._depth = depth
                format = None
        if format is None:
            self.put(f'"{operation.name}"')
            self.generic(operation)
        if self.locations:
            self.put(location_text(operation.location))

    def generic(self, operation: Operation) -> None:
        """The generic form, after the operation's name."""
        self.put(f"({self.values(operation.operands)})")
        format = self._operations.get(operation.name)
        known = _NO_PROPERTIES if format is None else format.properties
        properties = {name: value for name, value in operation.attributes.items() if name in known}
        if properties:
            self.put(f" <{self.dictionary(properties)}>")
        for number, region in enumerate(operation.regions):
            self.put(", " if number else " (")
            self.region(region)
        if operation.regions:
            self.put(")")
        self.optional_dictionary({name: v for name, v in operation.attributes.items() if name not in known})
        operands = [value.type for value in operation.operands]
        self.put(f" : {function_text(operands, [value.type for value in operation.results])}")

    def region(self, region: Region, *, labelled: bool = True, dialect: str = "") -> None:
        """`{ ... }`. `labelled`: the arguments of the first block are written at its label."""
        self.put("{")
        for number, block in enumerate(region.blocks):
            if number or (block.arguments and labelled):
                self.line()
                inside = ", ".join([self.argument(block, at) for at in range(len(block.arguments))])
                self.put(f"^bb{number}({inside}):" if inside else f"^bb{number}:")
            self._depth += 1
            for operation in block.operations:
                self.line()
                self._operation(operation, dialect)
            self._depth -= 1
        self.line()
        self.put("}")


def _joins(text: str, after_punctuation: bool) -> bool:
    """A literal without a space before it."""
    if len(text) != 1:
        return False
    return text in ">)}]," if after_punctuation else text in "<>(){}[],"
