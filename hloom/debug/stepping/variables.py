"""The user's names for values: of arguments, and of `name = expression` in the user's source.

A traced program does not keep names. The metadata of an instruction has the line and the column of the expression that
made it (`exact_places`), so the last instruction that starts where the right side of an assignment does has its value.
An expression that only calls a function of the user's has no such instruction, and its name is not known.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Mapping

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.metadata import PlacedMetadata
from .execution import Frame, Value

Place = tuple[int, int]


@functools.lru_cache(maxsize=64)
def assignments(file: str) -> Mapping[Place, str]:
    """By line and column of the right side: the name, of all `name = expression`, `name: T = ...` and `name op= ...`
    in a file. Empty if it is no Python source."""
    try:
        module = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[Place, str] = {}
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(
                target=ast.Name(id=name), value=ast.expr() as value
            ):
                found[value.lineno, value.col_offset] = name
            case ast.AugAssign(target=ast.Name(id=name)):
                found[node.lineno, node.col_offset] = name
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                found[value.lineno, value.col_offset] = name
            case _:
                continue
    return found


def name_of(i: HloInstruction) -> str | None:
    """The user's name of the value, if the instruction is where an assigned expression starts."""
    m = i.metadata
    if not isinstance(m, PlacedMetadata) or not m.source_file:
        return None
    return assignments(m.source_file).get((m.source_line, m.column))


def named(computation: HloComputation, name: str) -> HloInstruction | None:
    """The instruction of a computation with a name of its own, or with the value of a variable of the user's."""
    found = None
    for i in computation.instructions:
        if i.name == name.removeprefix("%"):
            return i
        if name_of(i) == name:
            found = i
    return found


def variables_of(frame: Frame, function: str = "") -> dict[str, Value]:
    """Names and values of a frame, by the user's names: the latest value of each. function: its variables come before
    those of other functions, which may have the same names."""
    own: dict[str, Value] = {}
    others: dict[str, Value] = {}
    for i, value in frame.values.items():
        name = name_of(i)
        if name is not None and isinstance(i.metadata, PlacedMetadata):
            (own if i.metadata.function == function else others)[name] = value
    return {**others, **own}
