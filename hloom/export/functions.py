"""The functions of a module of StableHLO: their names and calls."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..hlo.mlir.tree import Attribute, Opaque, Operation, Symbol, operations

_MESH = re.compile(r"<@([\w$.-]+)")


def functions_of(module: Operation) -> dict[str, Operation]:
    """The functions of a module by name."""
    return {str(f.attributes["sym_name"]): f for f in module.regions[0].block.operations if f.name == "func.func"}


def callee_of(operation: Operation) -> str | None:
    """The function that an operation calls."""
    name = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(operation.name)
    found = operation.attributes.get(name) if name else None
    return found.names[-1] if isinstance(found, Symbol) else None


def rename(module: Operation, names: Mapping[str, str]) -> None:
    """Give functions and meshes other names, in the module and wherever it names them. names: the new names, by the old
    ones."""
    for operation in operations(module):
        operation.attributes = {key: _renamed(each, names) for key, each in operation.attributes.items()}
    for named in module.regions[0].block.operations:
        name = str(named.attributes.get("sym_name"))
        if name in names:
            named.attributes["sym_name"] = names[name]


def _renamed(attribute: Attribute, names: Mapping[str, str]) -> Attribute:
    """The attribute with the new names in its symbols. Custom calls have lists of symbols (`called_computations`), and
    Shardy's attributes, which are kept as text, name meshes: ``#sdy.sharding<@mesh, [{"x"}]>``."""
    match attribute:
        case Symbol(names=(first, *rest)):
            return Symbol((names.get(first, first), *rest))
        case tuple():
            return tuple([_renamed(each, names) for each in attribute])
        case dict():
            return {key: _renamed(each, names) for key, each in attribute.items()}
        case Opaque(dialect="sdy", text=text):
            return Opaque("sdy", _MESH.sub(lambda m: f"<@{names.get(m[1], m[1])}", text))
    return attribute
