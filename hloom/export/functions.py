"""The functions of a module of StableHLO: their names and calls."""

from __future__ import annotations

from collections.abc import Mapping

from ..hlo.mlir.tree import Attribute, Operation, Symbol, operations


def functions_of(module: Operation) -> dict[str, Operation]:
    """The functions of a module by name."""
    return {str(f.attributes["sym_name"]): f for f in module.regions[0].block.operations if f.name == "func.func"}


def callee_of(operation: Operation) -> str | None:
    """The function that an operation calls."""
    name = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(operation.name)
    found = operation.attributes.get(name) if name else None
    return found.names[-1] if isinstance(found, Symbol) else None


def rename(module: Operation, names: Mapping[str, str]) -> None:
    """Give functions other names, in the module and where they are called. names: the new ones, by the old ones."""
    for operation in operations(module):
        operation.attributes = {key: _renamed(each, names) for key, each in operation.attributes.items()}
    for function in module.regions[0].block.operations:
        name = str(function.attributes.get("sym_name"))
        if name in names:
            function.attributes["sym_name"] = names[name]


def _renamed(attribute: Attribute, names: Mapping[str, str]) -> Attribute:
    """The attribute with the new names in its symbols. Custom calls have lists of them (`called_computations`)."""
    match attribute:
        case Symbol(names=(first, *rest)):
            return Symbol((names.get(first, first), *rest))
        case tuple():
            return tuple([_renamed(each, names) for each in attribute])
        case dict():
            return {key: _renamed(each, names) for key, each in attribute.items()}
    return attribute
