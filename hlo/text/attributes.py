"""How the attributes of an instruction are read and written: the one reader and the one writer, for all ops.

They work from what the fields of attribute classes declare (`ops/declare.py`); values are read and written by codecs.
Source: the attribute tables in XLA's HloParserImpl::CreateInstruction, and HloInstruction::ExtraAttributesToString.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..instruction import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction
from ..ops.declare import REQUIRED, Declared, declared
from .codec import Codec, Writing

Values = Mapping[str, Any]
"""What was read, by key; computations are references when it is built."""


class Form(NamedTuple):
    """An attribute class in text."""

    kind: type[Attributes]
    codecs: Mapping[str, Codec[Any]]
    """By key, in the order of the fields."""
    required: tuple[str, ...]
    """The keys without which there are no attributes."""
    fields: tuple[Declared, ...]
    written: tuple[tuple[Declared, ...], ...]
    """The fields in the order in which they are written; those that share a key together."""
    shared: frozenset[str]
    """The keys that fields share."""

    def build(self, values: Values, op: str) -> Attributes:
        """The attributes of `op`. ValueError for a combination of values that makes no sense."""
        if self.kind is Attributes:
            return NO_ATTRIBUTES
        return self.kind(**{field.name: value for field, value in self._values(values, op) if value is not REQUIRED})

    def _values(self, values: Values, op: str) -> Iterable[tuple[Declared, Any]]:
        columns: dict[str, Any] = {}
        for field in self.fields:
            key, attr = field.key, field.attr
            if _is_nested(field):
                yield field, form_of(field.type).build(values, op)
            elif attr.one_by_one is not None:
                yield field, _all_or_each(field, values, op)
            elif key in self.shared:
                if key not in columns:
                    columns[key] = iter(zip(*values[key], strict=True) if values[key] else _empty())
                yield field, next(columns[key])
            else:
                yield field, values.get(key, attr.absent)

    def texts(self, attributes: Attributes, writing: Writing) -> list[str]:
        """`key=value` for each attribute that must be said."""
        found: list[str] = []
        for group in self.written:
            field = group[0]
            attr, value = field.attr, getattr(attributes, field.name)
            if attr.codec is None:
                if _is_nested(field):
                    found += form_of(field.type).texts(value, writing)
                continue
            if len(group) > 1:
                value = tuple(zip(*(getattr(attributes, other.name) for other in group), strict=False))
            elif (not attr.always and value == field.default) or (attr.when and not attr.when(writing.instruction)):
                continue
            each = attr.one_by_one
            if each is not None and each.when is not None and each.when(writing.instruction):
                parts = zip(each.keys, value, strict=False)
                found += [f"{key}={each.codec.write(part, writing)}" for key, part in parts]
            else:
                found.append(f"{field.key}={attr.codec.write(value, writing)}")
        return found


def attribute_texts(instruction: HloInstruction, name: Callable[[HloComputation], str]) -> Sequence[str]:
    """The attributes of an instruction; `name` names the computations that it calls."""
    attributes = instruction.attributes
    if attributes is NO_ATTRIBUTES:
        return ()
    return form_of(type(attributes)).texts(attributes, Writing(instruction, name))


_FORMS: dict[type[Attributes], Form] = {}


def form_of(kind: type[Attributes]) -> Form:
    """The form of an attribute class."""
    found = _FORMS.get(kind)
    if found is None:
        found = _FORMS[kind] = _form(kind, declared(kind))
    return found


def _form(kind: type[Attributes], given: tuple[Declared, ...]) -> Form:
    codecs: dict[str, Codec[Any]] = {}
    required: list[str] = []
    for field in given:
        attr = field.attr
        if _is_nested(field):
            codecs |= form_of(field.type).codecs
        if attr.codec is None:
            continue
        codecs[field.key] = attr.codec
        if attr.one_by_one is not None:
            codecs |= dict.fromkeys(attr.one_by_one.keys, attr.one_by_one.codec)
        elif field.default is REQUIRED and field.key not in required:
            required.append(field.key)
    written = _in_text_order(given)
    shared = frozenset(group[0].key for group in written if len(group) > 1)
    return Form(kind, codecs, tuple(required), given, written, shared)


def _in_text_order(given: Sequence[Declared]) -> tuple[tuple[Declared, ...], ...]:
    groups: dict[str, tuple[Declared, ...]] = {}
    for field in given:
        key = field.name if field.attr.codec is None else field.key
        groups[key] = (*groups.get(key, ()), field)
    order = [group for group in groups.values() if not group[0].attr.after]
    moved = [group for group in groups.values() if group[0].attr.after]
    while moved:  # behind a field that may itself be moved
        placed = [other[0].name for other in order]
        group = next(g for g in moved if g[0].attr.after in placed)
        order.insert(placed.index(group[0].attr.after) + 1, group)
        moved.remove(group)
    return tuple(order)


def _is_nested(field: Declared) -> bool:
    return isinstance(field.type, type) and issubclass(field.type, Attributes)


def _empty() -> Iterable[tuple[()]]:
    """The columns of no rows."""
    while True:
        yield ()


def _all_or_each(field: Declared, values: Values, op: str) -> Any:
    """A tuple under its own key, or its elements each under one."""
    each = field.attr.one_by_one
    assert each is not None
    is_whole, given = field.key in values, [key for key in each.keys if key in values]
    if is_whole and not given:
        return values[field.key]
    if not is_whole and len(given) == len(each.keys):
        return tuple(values[key] for key in each.keys)
    if not is_whole and not given and field.default is not REQUIRED:
        return field.default
    raise ValueError(f"{op} needs either {field.key}, or {' and '.join(each.keys)}")
