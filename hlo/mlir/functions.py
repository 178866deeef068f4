"""How modules and functions are written: `module @m attributes {...} { ... }`, `func.func @main(...) -> T { ... }`.

Source: MLIR's builtin and func dialects. In the tree a function has its name, type, visibility and the attributes of
arguments and results as attributes, as in its generic form.
"""

from __future__ import annotations

from typing import Any

from .assembly_format import Directive, Values
from .attribute_writer import symbol_text, type_text
from .operation_reader import Draft, OperationReader
from .operation_writer import OperationWriter, Unfit
from .tree import Attribute, Block, Function, Operation, Region, Type, TypeAttribute, Value

_VISIBILITIES = ("public", "private", "nested")


class ModuleBody(Directive):
    """`@name attributes {...} { ... }`, all parts but the last optional."""

    has_regions = True

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if reader.next[:1] == "@":
            draft.attributes["sym_name"] = reader.symbol("the name of a module")
        if reader.accept("attributes"):
            reader.attribute_dictionary(draft)
        region = reader.region(isolated=True, dialect="builtin")
        draft.regions = [region if region.blocks else Region([Block()])]

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if operation.operands or operation.results or len(operation.regions) != 1:
            raise Unfit
        others = dict(operation.attributes)
        name = others.pop("sym_name", None)
        if isinstance(name, str):
            writer.put(f" {symbol_text(name)}")
        writer.optional_dictionary(others, "attributes")
        writer.put(" ")
        writer.region(operation.regions[0], dialect="builtin")


class FunctionBody(Directive):
    """`public @f(%x: T {...}, ...) -> (T {...}) attributes {...} { ... }`; without a body it is a declaration."""

    has_regions = True

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if reader.next in _VISIBILITIES:
            draft.attributes["sym_visibility"] = reader.take()
        draft.attributes["sym_name"] = reader.symbol("the name of a function")
        reader.expect("(", "to begin the arguments")
        arguments = reader.comma_list(")", lambda: _argument(reader))
        results: list[tuple[Type, dict[str, Attribute]]] = []
        if reader.accept("->"):
            if reader.accept("("):
                results = reader.comma_list(")", lambda: (reader.type(), _attributes(reader)))
            else:
                results = [(reader.type(), {})]
        types = tuple(value.type for _, value, _, _ in arguments)
        draft.attributes["function_type"] = TypeAttribute(Function(types, tuple(kind for kind, _ in results)))
        if any(attributes for *_, attributes in arguments):
            draft.attributes["arg_attrs"] = tuple(attributes for *_, attributes in arguments)
        if any(attributes for _, attributes in results):
            draft.attributes["res_attrs"] = tuple(attributes for _, attributes in results)
        if reader.accept("attributes"):
            reader.attribute_dictionary(draft)
        named = [name for name, *_ in arguments if name]
        if reader.next != "{":
            draft.regions = [Region()]
            return
        if len(named) != len(arguments):
            raise reader.error("a function with a body needs a name for each argument")
        values = [(name, value, location) for name, value, location, _ in arguments]
        region = reader.region(values, isolated=True, dialect="func")
        if not region.blocks:
            raise reader.error("a function's body needs an operation that returns", reader.index - 1)
        draft.regions = [region]

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        others = dict(operation.attributes)
        kind, name = others.pop("function_type", None), others.pop("sym_name", None)
        if not isinstance(kind, TypeAttribute) or not isinstance(kind.type, Function) or not isinstance(name, str):
            raise Unfit
        if operation.operands or operation.results or len(operation.regions) != 1:
            raise Unfit
        visibility = others.pop("sym_visibility", None)
        if visibility is not None:
            writer.put(f" {visibility}")
        inputs, results = kind.type.inputs, kind.type.results
        arguments = _dictionaries(others.pop("arg_attrs", ()), len(inputs))
        blocks = operation.regions[0].blocks
        if blocks and len(blocks[0].arguments) != len(inputs):
            raise Unfit
        texts = []
        for number, (each, attributes) in enumerate(zip(inputs, arguments)):
            text = f"{writer.name(blocks[0].arguments[number])}: {type_text(each)}" if blocks else type_text(each)
            text += f" {writer.dictionary(attributes)}" if attributes else ""
            texts.append(text + (writer.argument_location(blocks[0], number) if blocks else ""))
        writer.put(f" {symbol_text(name)}({', '.join(texts)})")
        returned = _dictionaries(others.pop("res_attrs", ()), len(results))
        texts = [type_text(each) + (f" {writer.dictionary(a)}" if a else "") for each, a in zip(results, returned)]
        if len(results) == 1 and not returned[0] and not isinstance(results[0], Function):
            writer.put(f" -> {texts[0]}")
        elif results:
            writer.put(f" -> ({', '.join(texts)})")
        writer.optional_dictionary(others, "attributes")
        if blocks:
            writer.put(" ")
            writer.region(operation.regions[0], labelled=False, dialect="func")


def _argument(reader: OperationReader) -> tuple[str, Value, Any, dict[str, Attribute]]:
    """An argument of a function with its name, "" in a declaration that has none, location and attributes."""
    name = ""
    if reader.next[:1] == "%":
        name = reader.new_value("the name of an argument")
        reader.expect(":", "and the type of the argument")
    value = Value(reader.type())
    attributes = _attributes(reader)
    return name, value, reader.location(), attributes


def _attributes(reader: OperationReader) -> dict[str, Attribute]:
    return reader.dictionary() if reader.next == "{" else {}


def _dictionaries(attribute: Any, count: int) -> list[dict[str, Attribute]]:
    """The attributes of each argument or result."""
    if not attribute:
        return [{} for _ in range(count)]
    if not isinstance(attribute, tuple) or len(attribute) != count or not all(isinstance(a, dict) for a in attribute):
        raise Unfit
    return list(attribute)
