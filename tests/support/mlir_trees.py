"""MLIR trees as lines of text, so that two can be compared: values by their order, arrays by their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hloom.hlo.mlir.tree import Dense, Location, Operation, Record


def lines_of(operation: Operation, *, locations: bool = False) -> list[str]:
    """All of an operation but the names of values; one line for an operation or the arguments of a block."""
    lines: list[str] = []
    _add(operation, lines, {}, "", locations)
    return lines


def _add(operation: Operation, lines: list[str], numbers: dict[int, int], indent: str, locations: bool) -> None:
    operands = [numbers[id(value)] for value in operation.operands]
    for value in operation.results:
        numbers[id(value)] = len(numbers)
    types = [value.type for value in operation.results]
    attributes = {name: _shown(value) for name, value in sorted(operation.attributes.items())}
    place = f" {_place(operation.location)}" if locations else ""
    lines.append(f"{indent}{operation.name}{operands} {attributes} -> {types}{place}")
    for region in operation.regions:
        for block in region.blocks:
            for value in block.arguments:
                numbers[id(value)] = len(numbers)
            places = [_place(each) for each in block.argument_locations]
            where = f" {places}" if locations and set(places) - {Location()} else ""
            lines.append(f"{indent}^{[value.type for value in block.arguments]}{where}")
            for each in block.operations:
                _add(each, lines, numbers, indent + "  ", locations)


def _place(location: Location | None) -> Location:
    return location or Location()


def _shown(value: Any) -> Any:
    if isinstance(value, Dense):
        return "Dense", value.type, value.array.dtype.str, np.ascontiguousarray(value.array).tobytes().hex()
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in sorted(value.items())}
    if isinstance(value, Record):
        return value.dialect, value.kind, {name: _shown(each) for name, each in sorted(value.fields.items())}
    return value
