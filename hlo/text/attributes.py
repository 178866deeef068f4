"""How the attributes of an instruction are read and written: one reader and one writer for all ops.

They use the declarations of the fields of attribute classes (`ops/declare.py`); codecs read and write the values.
Source: the attribute tables in XLA's HloParserImpl::CreateInstruction, and HloInstruction::ExtraAttributesToString.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..instruction import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction
from ..ops.declare import REQUIRED, Declared, declared
from .codec import Codec, Writing

Values = Mapping[str, Any]
"""The values that were read, by key; names of computations are resolved before attributes are built."""


class Written(NamedTuple):
    """The writer's treatment of a field, or of the fields that share a key."""

    names: tuple[str, ...]
    key: str
    """The key with its `=`."""
    codec: Codec[Any] | None
    """None: the field is an attribute object, and its fields are written."""
    default: Any
    """A value that is not written; REQUIRED for none."""
    field: Declared


class Form(NamedTuple):
    """The text form of an attribute class."""

    kind: type[Attributes]
    codecs: Mapping[str, Codec[Any]]
    """By key, in the order of the fields."""
    required: tuple[str, ...]
    """The keys that must be present."""
    named: Mapping[str, str]
    """By key: the field that has the key's value."""
    absent: Mapping[str, Any]
    """Values for fields without a default if their key is missing."""
    composed: tuple[Declared, ...]
    """The other fields."""
    written: tuple[Written, ...]
    synonyms: Mapping[str, str]
    """By key that is only parsed: the key that says the same."""

    def build(self, values: Values, op: str) -> Attributes:
        """The attributes of `op`. ValueError for an invalid combination of values."""
        if self.kind is Attributes:
            return NO_ATTRIBUTES
        named = self.named
        for key, other in self.synonyms.items():
            if key in values and other in values:
                raise ValueError(f"{op} takes either {other} or {key}")
        given = {**self.absent, **{named[key]: value for key, value in values.items() if key in named}}
        if not self.composed:
            return self.kind(**given)
        columns: dict[str, Any] = {}
        for field in self.composed:
            key = field.key
            if _is_nested(field):
                given[field.name] = form_of(field.type).build(values, op)
            elif field.attr.one_by_one is not None:
                given[field.name] = _all_or_each(field, values, op)
            else:  # one of several that share a key
                if key not in columns:
                    columns[key] = iter(zip(*values[key], strict=True) if values[key] else _empty())
                given[field.name] = next(columns[key])
        return self.kind(**given)

    def texts(self, attributes: Attributes, writing: Writing) -> list[str]:
        """`key=value` for each attribute that must be written."""
        found: list[str] = []
        for names, key, codec, default, field in self.written:
            value = getattr(attributes, names[0])
            if codec is None:
                found += form_of(field.type).texts(value, writing)
                continue
            if len(names) > 1:
                value = tuple(zip(*(getattr(attributes, name) for name in names), strict=False))
            elif value == default or (field.attr.when is not None and not field.attr.when(writing.instruction)):
                continue
            each = field.attr.one_by_one
            if each is not None and each.when is not None and each.when(writing.instruction):
                parts = zip(each.keys, value, strict=False)
                found += [f"{one}={each.codec.write(part, writing)}" for one, part in parts]
            else:
                found.append(key + codec.write(value, writing))
        return found


def attribute_texts(instruction: HloInstruction, name: Callable[[HloComputation], str]) -> Sequence[str]:
    """The attributes of an instruction; `name` names the computations that it calls."""
    attributes = instruction.attributes
    if attributes is NO_ATTRIBUTES:
        return ()
    form = form_of(type(attributes))
    return form.texts(attributes, Writing(instruction, name)) if form.written else ()


_FORMS: dict[type[Attributes], Form] = {}


def form_of(kind: type[Attributes]) -> Form:
    """The form of an attribute class."""
    found = _FORMS.get(kind)
    if found is None:
        found = _FORMS[kind] = _form(kind, declared(kind))
    return found


def _form(kind: type[Attributes], fields: tuple[Declared, ...]) -> Form:
    codecs: dict[str, Codec[Any]] = {}
    required: dict[str, None] = {}
    named: dict[str, str] = {}
    composed: list[Declared] = []
    keys = [field.key for field in fields]
    synonyms: dict[str, str] = {}
    for field in fields:
        each, codec = field.attr.one_by_one, field.attr.codec
        if _is_nested(field):
            codecs |= form_of(field.type).codecs
        elif codec is not None:
            codecs[field.key] = codec
        if each is not None:
            codecs |= dict.fromkeys(each.keys, each.codec)
        elif codec is not None and field.default is REQUIRED:
            required[field.key] = None
        if _is_nested(field) or each is not None or keys.count(field.key) > 1:
            composed.append(field)
        else:
            named[field.key] = field.name
        if field.attr.also is not None:
            key, codecs[key] = field.attr.also
            named[key], synonyms[key] = field.name, field.key
    absent = {f.name: f.attr.absent for f in fields if f.attr.absent is not REQUIRED}
    written = tuple(map(_written, _in_text_order(fields)))
    return Form(kind, codecs, tuple(required), named, absent, tuple(composed), written, synonyms)


def _written(group: Sequence[Declared]) -> Written:
    field = group[0]
    default = REQUIRED if field.attr.always else field.default
    return Written(tuple(f.name for f in group), f"{field.key}=", field.attr.codec, default, field)


def _in_text_order(fields: Sequence[Declared]) -> list[tuple[Declared, ...]]:
    """The fields that are written, in this order; those that share a key together."""
    groups: dict[str, tuple[Declared, ...]] = {}
    for field in fields:
        if field.attr.codec is not None or _is_nested(field):
            groups[field.key] = (*groups.get(field.key, ()), field)
    order = [group for group in groups.values() if not group[0].attr.after]
    moved = [group for group in groups.values() if group[0].attr.after]
    while moved:  # after a field that may itself be moved
        placed = [other[0].name for other in order]
        group = next(g for g in moved if g[0].attr.after in placed)
        order.insert(placed.index(group[0].attr.after) + 1, group)
        moved.remove(group)
    return order


def _is_nested(field: Declared) -> bool:
    return isinstance(field.type, type) and issubclass(field.type, Attributes)


def _empty() -> Iterable[tuple[()]]:
    """The columns of an empty list."""
    while True:
        yield ()


def _all_or_each(field: Declared, values: Values, op: str) -> Any:
    """A tuple under one key, or each of its elements under a separate key."""
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
