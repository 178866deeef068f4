"""The functions of a module of StableHLO: their names, types and calls."""

from __future__ import annotations

from ..hlo.mlir.tree import Function, Operation, Symbol, TypeAttribute


def functions_of(module: Operation) -> dict[str, Operation]:
    """The functions of a module by name."""
    return {str(f.attributes["sym_name"]): f for f in module.regions[0].block.operations if f.name == "func.func"}


def function_type(function: Operation) -> Function:
    declared = function.attributes["function_type"]
    assert isinstance(declared, TypeAttribute) and isinstance(declared.type, Function), f"{declared} is no such type"
    return declared.type


def callee_of(operation: Operation) -> str | None:
    """The function that an operation calls."""
    name = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(operation.name)
    found = operation.attributes.get(name) if name else None
    return found.names[-1] if isinstance(found, Symbol) else None
