"""Shardy's attributes in portable bytecode. JAX stores them as they are, between operations of VHLO.

In a tree they are text, `#sdy.sharding<@mesh, [{"x"}]>`: each entry becomes its text, from the texts of its parts. This
table is for reading; files that are written have them as text, which MLIR reads too. Source:
shardy/dialect/sdy/ir/bytecode.td (codes and layouts) and printers.cc (texts).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import UnsupportedError
from ..mlir.bytecode_fields import Coding, Field
from ..mlir.tree import Opaque, Symbol


def _part(value: Any, kind: str = "") -> str:
    """The text of a part, without the `#sdy.kind` before it."""
    if not isinstance(value, Opaque):
        raise ValueError("a part of a sharding is of another kind")
    return value.text.removeprefix(f"#sdy.{kind}")


def _list(values: Sequence[Any], kind: str = "") -> str:
    return ", ".join(_part(value, kind) for value in values)


def _quoted(names: Sequence[Any]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _mesh(axes: Sequence[Any], devices: Sequence[int]) -> str:
    ids = f", device_ids=[{', '.join(map(str, devices))}]" if devices else ""
    return f"#sdy.mesh<[{_list(axes)}]{ids}>"


def _dimension(axes: Sequence[Any], is_closed: int, priority: int | None) -> str:
    parts = [_part(axis) for axis in axes] + ([] if is_closed else ["?"])
    return f"{{{', '.join(parts)}}}" + ("" if priority is None else f"p{priority}")


_SUM = 0


def _sharding(
    mesh: Any, dimensions: Sequence[Any], replicated: Sequence[Any], unreduced: Sequence[Any] = (),
    reduction: int = _SUM,
) -> str:  # fmt: skip
    if reduction != _SUM:
        raise UnsupportedError("a sharding with partial results of a reduction that is no sum")
    named = f"@{mesh.names[0]}" if isinstance(mesh, Symbol) else "mesh" + _part(mesh, "mesh")
    pairs = ("replicated", replicated), ("unreduced", unreduced)
    sets = [f", {name}={{{_list(axes)}}}" for name, axes in pairs if axes]
    return f"#sdy.sharding<{named}, [{_list(dimensions)}]{''.join(sets)}>"


def _factor(index: int) -> str:
    """`i` to `z`, then `z_1` and so on."""
    last = ord("z") - ord("i")
    return chr(ord("i") + index) if 0 <= index <= last else f"z_{index - last}"


def _rule(
    sizes: Sequence[int], operands: Sequence[Any], results: Sequence[Any], reduction: Sequence[int],
    replication: Sequence[int], permutation: Sequence[int], blocked: Sequence[int], is_custom: int,
) -> str:  # fmt: skip
    factors = ", ".join(f"{_factor(k)}={size}" for k, size in enumerate(sizes))
    kinds = zip(("reduction", "need_replication", "permutation", "blocked_propagation"),
                (reduction, replication, permutation, blocked))  # fmt: skip
    named = "".join(f" {name}={{{', '.join(map(_factor, members))}}}" for name, members in kinds if members)
    custom = ", custom" if is_custom else ""
    return f"#sdy.op_sharding_rule<({_list(operands)})->({_list(results)}) {{{factors}}}{named}{custom}>"


def _of(code: int, name: str, fields: tuple[Field, ...], text: Callable[..., str]) -> Coding:
    """An attribute that is read as text."""
    return Coding(name, code, fields, lambda *values: Opaque("sdy", text(*values)), lambda value: ())


def _per_value(shardings: Sequence[Any]) -> str:
    return f"#sdy.sharding_per_value<[{_list(shardings, 'sharding')}]>"


_PLACED: tuple[Field, ...] = ("attribute", "attributes", "attributes")

_ATTRIBUTES = (
    _of(0, "manual axes", ("attributes",), lambda names: f"#sdy<manual_axes{{{_quoted(names)}}}>"),
    _of(1, "axis of a mesh", ("string", "signed"), lambda name, size: f'"{name}"={size}'),
    _of(2, "mesh", ("attributes", "signeds"), _mesh),
    _of(3, "part of an axis", ("signed", "signed"), lambda before, size: f"({before}){size}"),
    _of(4, "axis", ("string", "optional"), lambda name, part: f'"{name}"' + (f":{_part(part)}" if part else "")),
    _of(5, "sharding of a dimension", ("attributes", "byte", "optional number"), _dimension),
    _of(6, "sharding", _PLACED, _sharding),
    _of(7, "shardings", ("attributes",), _per_value),
    _of(8, "factors of a dimension", ("signeds",), lambda factors: "".join(map(_factor, factors)) or "*"),
    _of(9, "factors of a tensor", ("attributes",), lambda dimensions: f"[{_list(dimensions)}]"),
    _of(
        10, "sharding rule",
        ("signeds", "attributes", "attributes", "signeds", "signeds", "signeds", "signeds", "byte"), _rule,
    ),
    _of(11, "list of axes", ("attributes",), lambda axes: f"{{{_list(axes)}}}"),
    _of(12, "lists of axes", ("attributes",), lambda lists: f"[{_list(lists)}]"),
    _of(15, "sharding with partial sums", (*_PLACED, "attributes"), _sharding),
    _of(16, "shardings with partial sums", ("attributes",), _per_value),
    _of(17, "sharding with partial results", (*_PLACED, "attributes", "signed"), _sharding),
)  # fmt: skip

_PROPERTIES: dict[str, tuple[str, ...]] = {
    "mesh": ("mesh", "sym_name"), "sharding_constraint": ("sharding",), "reshard": ("sharding",),
    "manual_computation": ("in_shardings", "manual_axes", "out_shardings"), "sharding_group": ("group_id",),
    "return": (),
}  # fmt: skip


class Sdy:
    """The dialect, when a file is read."""

    name = "sdy"

    def __init__(self) -> None:
        self.attributes: dict[int, Coding] = {coding.code: coding for coding in _ATTRIBUTES}
        self.types: dict[int, Coding] = {}

    def attribute_coding(self, value: Any) -> Coding:
        """UnsupportedError: its attributes are written as text."""
        raise UnsupportedError(f"the attribute {value} in bytecode")

    def type_coding(self, value: Any) -> Coding | None:
        """UnsupportedError: it has no types."""
        raise UnsupportedError(f"the type {value} in bytecode")

    def properties(self, operation: str) -> tuple[tuple[str, bool], ...] | None:
        """The names of an operation's properties in the order of the bytes; None for an unknown operation."""
        names = _PROPERTIES.get(operation.removeprefix("sdy."))
        return None if names is None else tuple((name, False) for name in names)
