"""Reading operations of MLIR text: the generic form, values and their scopes, regions and blocks.

    %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, ...):
      ...
    }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)

Source: MLIR's language reference, "Operations", "Regions", "Blocks". The reader is given the table of the
operations' assembly formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..errors import UnsupportedError
from .attribute_reader import AttributeFormat
from .attribute_writer import type_text
from .location_reader import LocationReader
from .scanner import is_identifier
from .tree import Attribute, Block, Location, Operation, Region, Type, Value


class Draft:
    """An operation that is partly read."""

    __slots__ = ("attributes", "name", "operands", "position", "regions", "results", "start")

    def __init__(self, name: str, start: int, position: int) -> None:
        self.name, self.start, self.position = name, start, position
        self.operands: list[Value] = []
        self.attributes: dict[str, Attribute] = {}
        self.regions: list[Region] = []
        self.results: Sequence[Type] = ()


class OperationFormat(Protocol):
    """How an operation is written after its name."""

    def read(self, reader: OperationReader, draft: Draft) -> None: ...


class OperationReader(LocationReader):
    """Reads operations. `operations`: the assembly formats by full names, e.g. `stablehlo.add`."""

    def __init__(
        self, text: str, file: str, operations: Mapping[str, OperationFormat], attributes: Mapping[str, AttributeFormat]
    ) -> None:
        super().__init__(text, file, attributes)
        self._operations = operations
        self._names: dict[str, Value] = {}
        self._defined: list[str] = []
        self._dialect = "builtin"

    # ---- values

    def operand(self) -> Value:
        """A value that is defined before."""
        token = self.tokens[self.index]
        found = self._names.get(token)
        if found is None:
            if token[:1] != "%" or len(token) == 1:
                raise self.expected("a value such as %0")
            raise self.error(f"the value {token} is not defined before this use")
        self.index += 1
        return found

    def operands(self) -> list[Value]:
        """Values with commas between them; there may be none."""
        found: list[Value] = []
        if self.tokens[self.index][:1] != "%":
            return found
        found.append(self.operand())
        while self.accept(","):
            found.append(self.operand())
        return found

    def check_types(self, values: Sequence[Value], types: Sequence[Type], index: int) -> None:
        """Raise an error at a token if the written types differ from the types of the values."""
        if len(values) != len(types):
            raise self.error(f"expected {len(values)} types for the operands, found {len(types)}", index)
        for value, kind in zip(values, types):
            if value.type is not kind and value.type != kind:
                written, real = type_text(kind), type_text(value.type)
                raise self.error(f"the type {written} is not that of the operand, {real}", index)

    def define(self, token: str, value: Value, position: int) -> None:
        """Give a value its name, `%x`, which is at an offset in the text."""
        if token in self._names:
            raise self.error_at(f"the value {token} is defined twice", position)
        name = token[1:]
        value.name = "" if name.isdecimal() else name
        self._names[token] = value
        self._defined.append(token)

    def new_value(self, what: str) -> str:
        """The name of a value that is defined here, `%x`."""
        token = self.tokens[self.index]
        if token[:1] != "%" or len(token) == 1 or "#" in token:
            raise self.expected(what)
        self.index += 1
        return token

    # ---- regions

    def region(
        self, arguments: Sequence[tuple[str, Value, Location | None]] = (), isolated: bool = False, dialect: str = ""
    ) -> Region:
        """`{ ... }`. `arguments`: the arguments of the first block, where they are written before it. `isolated`:
        values outside are not visible. `dialect`: operations without one are of it."""
        self.enter()
        self.expect("{", "to begin a region")
        names, defined, outer_dialect = self._names, self._defined, self._dialect
        self._names = {} if isolated else names
        self._defined, self._dialect = [], dialect
        region = Region()
        block = Block()
        self._add_arguments(block, arguments)
        if arguments and self.next[:1] == "^":
            raise self.expected("an operation")
        if self.next[:1] != "^":
            region.blocks.append(block)
            self._block(block)
        while self.next[:1] == "^":
            region.blocks.append(self._labelled_block())
        self.expect("}", "or an operation")
        for token in self._defined:
            del self._names[token]
        self._names, self._defined, self._dialect = names, defined, outer_dialect
        self.leave()
        if len(region.blocks) == 1 and not arguments and not block.operations and region.blocks[0] is block:
            region.blocks.clear()  # `{}` has no block
        return region

    def _add_arguments(self, block: Block, arguments: Sequence[tuple[str, Value, Location | None]]) -> None:
        for token, value, location in arguments:
            self.define(token, value, self.starts[self.index - 1])
            block.arguments.append(value)
            block.argument_locations.append(location)
        if all(location is None for location in block.argument_locations):
            block.argument_locations.clear()

    def _labelled_block(self) -> Block:
        block = Block()
        self.index += 1
        if self.accept("("):
            self._add_arguments(block, self.comma_list(")", self.argument))
        self.expect(":", "after the label of a block")
        self._block(block)
        return block

    def argument(self) -> tuple[str, Value, Location | None]:
        """`%x: T loc(...)`, an argument of a block."""
        token = self.new_value("the name of an argument")
        self.expect(":", "and the type of the argument")
        return token, Value(self.type()), self.location()

    def _block(self, block: Block) -> None:
        while True:
            token = self.tokens[self.index]
            if token in ("}", "") or token[:1] == "^":
                return
            block.operations.append(self.operation())

    # ---- operations

    def operation(self) -> Operation:
        """One operation with the names of its results and its location."""
        tokens = self.tokens
        start = self.index
        targets: list[tuple[str, int]] = []
        if tokens[start][:1] == "%":
            while True:
                name = self.new_value("the name of a result")
                count = 1
                if self.accept(":"):
                    count = self.integer("the number of results")
                    if not 0 < count < 2**20:
                        raise self.error(f"an operation has no {count} results", self.index - 1)
                targets.append((name, count))
                if not self.accept(","):
                    break
            self.expect("=", "after the names of the results")
        position = self.starts[start]
        token = tokens[self.index]
        if token[:1] == '"':
            draft = Draft(self.string("the name of an operation"), self.index - 1, position)
            self.generic(draft)
        else:
            draft = Draft(self._full_name(), self.index, position)
            self.index += 1
            self._operations[draft.name].read(self, draft)
        location = self.location() if tokens[self.index] == "loc" else None
        results = [Value(kind) for kind in draft.results]
        if targets:
            self._define_results(targets, results, draft)
        return Operation(
            draft.name, draft.operands, results, draft.attributes, draft.regions, location, draft.position
        )

    def _full_name(self) -> str:
        token = self.tokens[self.index]
        if token in self._operations:
            return token
        found = f"{self._dialect}.{token}"
        if self._dialect and found in self._operations:
            return found
        for dialect in ("func", "builtin"):
            if "." not in token and f"{dialect}.{token}" in self._operations:
                return f"{dialect}.{token}"
        if "." in token and is_identifier(token):
            raise self.only_generic(token)
        raise self.expected("an operation such as stablehlo.add")

    def only_generic(self, name: str) -> UnsupportedError:
        """An error for an operation that is not in the generic form. The caller raises it."""
        what = f'the operation {name} in this form (its generic form, "{name}"(...), is)'
        return self.unsupported(what, self.starts[self.index])

    def _define_results(self, targets: list[tuple[str, int]], results: list[Value], draft: Draft) -> None:
        if sum(count for _, count in targets) != len(results):
            what = f"{draft.name} has {len(results)} results, but {sum(count for _, count in targets)} are named"
            raise self.error(what, draft.start)
        at = 0
        for token, count in targets:
            if count == 1:
                self.define(token, results[at], draft.position)
            else:
                self._define_group(token, results[at : at + count], draft.position)
            at += count

    def _define_group(self, token: str, group: list[Value], position: int) -> None:
        self.define(token, group[0], position)
        for number, value in enumerate(group):
            self._names[f"{token}#{number}"] = value
            self._defined.append(f"{token}#{number}")

    def generic(self, draft: Draft) -> None:
        self.expect("(", "and the operands")
        draft.operands = self.operands()
        self.expect(")", "after the operands")
        if self.next == "[":
            raise self.unsupported("a jump to another block", self.starts[self.index])
        if self.next == "<":
            self.index += 1
            draft.attributes = self.dictionary()
            self.expect(">", "after the properties")
        if self.next == "(":
            self.index += 1
            draft.regions = self.comma_list(")", self.region)
        self.attribute_dictionary(draft)
        self.function_signature(draft)

    def function_signature(self, draft: Draft) -> None:
        """`: (T, ...) -> T`, the types of operands and results."""
        self.expect(":", "and the types of operands and results")
        start = self.index
        kind = self.function_type()
        self.check_types(draft.operands, kind.inputs, start)
        draft.results = kind.results

    def attribute_dictionary(self, draft: Draft) -> None:
        """`{name = value, ...}` if it comes next, added to those that are there."""
        if self.next != "{":
            return
        start = self.index
        more = self.dictionary()
        twice = next((name for name in more if name in draft.attributes), None)
        if twice is not None:
            raise self.error(f"the attribute {twice} is given twice", start)
        draft.attributes |= more

    # ---- the whole text

    def module(self) -> Operation:
        """The operation that the text is, if that is a module; else a module around all of its operations."""
        found: list[Operation] = []
        while self.next:
            token = self.next
            if token == "{-#":
                self._skip_resources()
            elif token[0] in "#!" and self.tokens[self.index + 1] == "=":
                self._skip_alias()
            else:
                found.append(self.operation())
        if len(found) == 1 and found[0].name == "builtin.module":
            return found[0]
        return Operation("builtin.module", regions=[Region([Block(operations=found)])])

    def _skip_alias(self) -> None:
        token = self.take()
        self.expect("=", "after the name of an alias")
        if token[0] == "!":
            self.type()
        elif self.next == "loc":
            self.location()
        else:
            self.attribute()

    def _skip_resources(self) -> None:
        start = self.index
        while self.next and self.next != "#-}":
            self.index += 1
        if not self.next:
            raise self.error("expected '#-}' at the end of this section", start)
        self.index += 1
