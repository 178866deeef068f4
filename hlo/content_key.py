"""The computation of a module, as bytes: the same for equal modules in every process, so that it can be a name on disk.

Names and metadata (the lines of the user's program) are left out, and so are computations' names. All else counts:
opcodes, shapes with layouts, attributes, constants by their bytes (of large ones, a digest), shardings and other
annotations, aliases. The bytes are those of tuples of strings, bytes and integers in the format of `marshal`, which
tells different tuples apart.

`structural_key.py` makes keys for the caches of one process; they are objects, not bytes.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from .instruction import NO_ATTRIBUTES, HloComputation, HloInstruction
from .ir import HloModule
from .literal import Literal
from .opcode import Opcode
from .ops.control_flow import Composite
from .shape import Shape
from .support.sha256 import sha256

Part: TypeAlias = "str | bytes | int | tuple[Part, ...] | None"

_OMITTED = frozenset({"name", "entry"})
"""Fields of a module that are not part of its key."""


_FORMAT = 2
"""The last one in which the bytes do not depend on which of the objects are the same one."""


class NoKey(Exception):
    """The module has no key; the text says why."""


def content_key(module: HloModule) -> bytes:
    """The bytes. NoKey for a module that may do something else the next time: one that calls a function of the user's,
    or that holds an object which is no plain data."""
    numbers: dict[HloComputation, int] = {}
    shapes: dict[int, str] = {}
    parts: list[Part] = []
    for computation in module.computations:
        parts.append(_computation(computation, numbers, shapes))
        numbers[computation] = len(numbers)
    about = [_part(getattr(module, name), numbers) for name in _names(type(module)) if name not in _OMITTED]
    return marshal.dumps((*about, *parts), _FORMAT)


def data_key(value: object) -> Part:
    """The same for plain data: numbers, strings, enums, tuples and frozen dataclasses of them. NoKey for all else."""
    return _part(value, {})


def _computation(computation: HloComputation, numbers: dict[HloComputation, int], shapes: dict[int, str]) -> Part:
    """`shapes`: the texts of shapes by the identity of these; many instructions have the same."""
    places: dict[HloInstruction, int] = {}
    rows: list[Part] = []
    for i in computation.instructions:
        if i.opcode is Opcode.CUSTOM_CALL:
            _check_custom_call(i)
        attributes = None if i.attributes is NO_ATTRIBUTES else _part(i.attributes, numbers)
        operands = tuple([places[o] for o in i.operands])
        shape = shapes.get(id(i.shape))
        if shape is None:
            shape = shapes[id(i.shape)] = _shape(i.shape)
        rows.append((i.opcode.value, shape, operands, attributes, i.frontend_attributes, i.annotations))
        places[i] = len(places)
    return places[computation.root], *rows


def _check_custom_call(instruction: HloInstruction) -> None:
    target = instruction.attributes.custom_call_target
    if not import_module(".custom_calls", __package__).is_built_in(target):
        raise NoKey(f"it calls {target}, which means what is registered under this name")


def _shape(shape: Shape) -> str:
    """XLA's text, which says all of a shape."""
    return shape.to_text()


def _part(value: Any, numbers: dict[HloComputation, int]) -> Part:
    kind = type(value)
    if kind is int or kind is str:
        return value  # type: ignore[no-any-return]
    if kind is tuple:
        return tuple([v if type(v) is int else _part(v, numbers) for v in value])
    names = _fields.get(kind)
    if names is not None:
        return kind.__qualname__, *[_part(getattr(value, name), numbers) for name in names]
    encode = _ENCODED.get(kind)
    if encode is not None:
        return encode(value)
    if kind is HloComputation:
        return "computation", numbers[value]
    if issubclass(kind, Enum):
        return kind.__qualname__, value.name
    if is_dataclass(kind):
        return kind.__qualname__, *[_part(getattr(value, name), numbers) for name in _names(kind)]
    if issubclass(kind, tuple):
        return kind.__qualname__, *[_part(v, numbers) for v in value]
    raise NoKey(f"it holds a {kind.__module__}.{kind.__qualname__}")


def _same(value: Any) -> Any:
    return value


def _literal(value: Literal) -> Part:
    array = value.array
    data = array.tobytes()
    return "literal", _name_of(array.dtype), array.shape, data if len(data) < 64 else sha256(data).digest()


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return dtype.name


_ENCODED: dict[type, Callable[[Any], Part]] = {
    bytes: _same,
    type(None): _same,
    bool: lambda value: ("bool", int(value)),
    float: lambda value: ("float", struct.pack("<d", value)),
    Shape: _shape,
    Literal: _literal,
    Composite: lambda value: ("composite", value.name, value.parameters, value.version),
}
"""The rule of a composite is for transformations, and does not matter to a program."""

_fields: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    found = _fields.get(kind)
    if found is None:
        found = _fields[kind] = tuple([f.name for f in fields(kind) if f.init])
    return found
