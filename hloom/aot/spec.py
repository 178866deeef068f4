"""Specifications of a compilation: TOML, and the text form of tfcompile's Config.

name = "matmul"                          feed {
source = "matmul.hlo"                      id { node_name: "x_hold" }
cpp_class = "foo::bar::MatMulComp"         shape { dim { size: 2 } dim { size: 3 } }
feeds = ["x_hold", "y_hold"]             }
fetches = ["x_y_prod"]                   fetch { id { node_name: "x_y_prod" } }
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from ..hlo.errors import HloError
from ..hlo.support.records import dataclass

_TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str, "source": str, "cpp_class": str, "feeds": list, "fetches": list, "freeze": str, "target": str,
    "cpu": str, "features": str, "shapes": dict, "blas": (bool, str), "static_arena": bool,
}  # fmt: skip


class SpecError(HloError, ValueError):
    """A specification that cannot be read; the text names file and line."""


@dataclass(frozen=True)
class Spec:
    """The specification of a compilation by `hloom aot`; the fields are the arguments of `hloom.aot.compile`.

    `source`: an HLO file, or a function, ``module:function`` or ``file.py:function``, which is called without arguments
    and returns (function, arguments). Paths are relative to the specification. `shapes`: the shape of each feed, where
    the specification gives them; they are compared.
    """

    source: str | None = None
    name: str | None = None
    cpp_class: str | None = None
    feeds: list[str | int] | None = None
    fetches: list[str | int] | None = None
    freeze: str | None = None
    target: str = "native"
    cpu: str | None = None
    features: str = ""
    shapes: dict[str, list[int]] = field(default_factory=dict)
    blas: bool | str = False
    static_arena: bool = False


def read_spec(path: str) -> Spec:
    """The specification in a file: ``.toml``, or else the text form of tfcompile's Config (``.pbtxt``)."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: no text: {error}") from None
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from None
    return _from_toml(text, path) if file.suffix == ".toml" else _from_proto(text, path)


def _from_toml(text: str, path: str) -> Spec:
    try:
        import tomllib
    except ImportError:  # pragma: no cover
        raise SpecError(f"{path}: TOML needs Python 3.11") from None
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number may be longer than Python reads
        raise SpecError(f"{path}: {error}") from None
    known = [f.name for f in fields(Spec)]
    for key, value in values.items():
        if key not in known:
            raise SpecError(f"{path}: no such key: {key!r}; there are {', '.join(known)}")
        if not isinstance(value, _TYPES[key]):
            kinds = _TYPES[key]
            names = " or a ".join(k.__name__ for k in (kinds if isinstance(kinds, tuple) else (kinds,)))
            raise SpecError(f"{path}: {key} must be a {names}, not {value!r}")
    for key in ("feeds", "fetches"):
        for item in values.get(key, ()):
            if not isinstance(item, (str, int)):
                raise SpecError(f"{path}: {key} has names and numbers, not {item!r}")
    for name, shape in values.get("shapes", {}).items():
        if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
            raise SpecError(f"{path}: the shape of {name} must be a list of numbers, not {shape!r}")
    return Spec(**values)


_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*) | (?P<name>[A-Za-z_]\w*) | (?P<number>-?\d+) | (?P<mark>[{}:<>;,])
    | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')""",
    re.VERBOSE,
)
_LONGEST, _DEEPEST = 20, 100
"""Characters of a number; messages in messages."""
_Message = list[tuple[str, Any, int]]
"""The fields of a message in order: name, value, line."""


class _Proto:
    """Protocol buffers' text format, as far as Config uses it: messages, strings, integers."""

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._tokens = list(self._scanned(text))
        self._at = 0

    def _scanned(self, text: str) -> Iterator[tuple[str, str, int]]:
        place, line = 0, 1
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise self.error(line, f"{text[place]!r} is not expected")
            kind = str(found.lastgroup)
            if kind != "space":
                yield kind, found[0], line
            line += found[0].count("\n")
            place = found.end()
        yield "end", "the end", line

    def error(self, line: int, message: str) -> SpecError:
        return SpecError(f"{self._path}:{line}: {message}")

    def _next(self) -> tuple[str, str, int]:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def message(self, end: str = "the end", depth: int = 0) -> _Message:
        """Fields up to `end`. `depth`: of how many messages it is a part."""
        found: _Message = []
        while True:
            kind, text, line = self._next()
            if text == end and kind in ("mark", "end"):
                return found
            if kind != "name":
                raise self.error(line, f"expected a field or {end!r}, found {text!r}")
            found.append((text, self._value(depth), line))
            if self._tokens[self._at][1] in (";", ",") and self._tokens[self._at][0] == "mark":
                self._at += 1

    def _value(self, depth: int) -> Any:
        kind, text, line = self._next()
        if text == ":" and kind == "mark":
            kind, text, line = self._next()
        if kind == "mark" and text in "{<":
            if depth == _DEEPEST:
                raise self.error(line, f"messages are nested more than {_DEEPEST} deep")
            return self.message("}" if text == "{" else ">", depth + 1)
        if kind == "number":
            if len(text) > _LONGEST or not -(2**63) <= int(text) < 2**63:
                raise self.error(line, f"a number of {len(text)} digits does not fit in 64 bits")
            return int(text)
        if kind == "text":
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        raise self.error(line, f"expected a value, found {text!r}")


def _from_proto(text: str, path: str) -> Spec:
    proto = _Proto(text, path)
    feeds: list[str | int] = []
    fetches: list[str | int] = []
    shapes: dict[str, list[int]] = {}
    for name, value, line in proto.message():
        if name not in ("feed", "fetch") or not isinstance(value, list):
            raise proto.error(line, f"a Config has messages feed and fetch, not {name}")
        node, shape = _node(proto, name, value, line)
        (feeds if name == "feed" else fetches).append(node)
        if shape is not None:
            shapes[node] = shape
    return Spec(feeds=feeds, fetches=fetches or None, shapes=shapes)


def _node(proto: _Proto, what: str, message: _Message, line: int) -> tuple[str, list[int] | None]:
    node, output, shape = None, 0, None
    for name, value, at in message:
        if name == "id" and isinstance(value, list):
            for inner, text, place in value:
                if inner == "node_name" and isinstance(text, str):
                    node = text
                elif inner == "output_index" and isinstance(text, int):
                    output = text
                else:
                    raise proto.error(place, f"an id has node_name and output_index, not {inner}")
        elif name == "shape" and isinstance(value, list) and what == "feed":
            shape = [_size(proto, *entry) for entry in value]
        elif name == "name" and isinstance(value, str):
            pass  # a name for C++ of tfcompile; arrays have numbers here
        else:
            raise proto.error(at, f"a {what} has id, name and shape, not {name}")
    if node is None:
        raise proto.error(line, f'a {what} needs id {{ node_name: "..." }}')
    return (f"{node}.{output}" if output else node), shape


def _size(proto: _Proto, name: str, value: Any, line: int) -> int:
    if name == "dim" and isinstance(value, list) and len(value) == 1 and value[0][0] == "size":
        size = value[0][1]
        if isinstance(size, int) and size >= 0:
            return size
        raise proto.error(line, f"a size must be known, not {size!r}")
    raise proto.error(line, "a shape has dim { size: N }")
