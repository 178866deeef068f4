"""`dataclass`, as in the standard library, for a tenth of its time.

The standard library compiles five or six functions for each class when it defines the class, and most of them are never
called: for the classes that an import of hloom needs, that is a third of the import. Here `__init__` is compiled when
the first object is made, and the other methods are closures over the names of the fields. The result is a dataclass:
`fields`, `replace` and `is_dataclass` of the standard library work, and classes of both kinds may be derived from one
another. A class with options that are not among the parameters below is the standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True
    ) -> Any:
        """A decorator of classes: see `dataclasses.dataclass`. TypeError for a class that cannot be one."""
        if cls is None:
            return lambda cls: _made(cls, frozen, slots, eq, repr)
        return _made(cls, frozen, slots, eq, repr)


_FIELDS, _PARAMETERS = "__dataclass_fields__", "__dataclass_params__"


@dataclasses.dataclass
class _Example:
    plain: int


_KIND: Any = _Example.__dataclass_fields__["plain"]._field_type  # type: ignore[attr-defined]
"""How the standard library marks a field that is no ClassVar and no InitVar."""


class _FromFactory:
    """The default of a parameter that stands for a new object."""

    def __repr__(self) -> str:
        return "<factory>"


_FROM_FACTORY = _FromFactory()


class _Parameters:
    """The attributes that the standard library reads of a base class."""

    init = match_args = True
    order = unsafe_hash = kw_only = weakref_slot = False

    def __init__(self, frozen: bool, slots: bool, eq: bool, repr: bool) -> None:
        self.frozen, self.slots, self.eq, self.repr = frozen, slots, eq, repr


def _made(cls: Any, frozen: bool, slots: bool, eq: bool, shown: bool) -> Any:
    own: dict[str, str] = cls.__annotations__
    if not all(type(kind) is str for kind in own.values()):
        return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, repr=shown)(cls)
    fields: dict[str, Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        inherited = base.__dict__.get(_FIELDS)
        if inherited is not None:
            fields.update(inherited)
            if getattr(base, _PARAMETERS).frozen != frozen:
                raise TypeError(f"{cls.__qualname__} and its base {base.__qualname__} must both be frozen, or neither")
    for name, kind in own.items():
        if not kind.startswith(("ClassVar", "typing.ClassVar")):
            fields[name] = _field(cls, name, kind)
    setattr(cls, _FIELDS, fields)
    setattr(cls, _PARAMETERS, _Parameters(frozen, slots, eq, shown))
    listed = list(fields.values())
    members = cls.__dict__
    if "__match_args__" not in members:
        names_of_init = tuple([f.name for f in listed if f.init])
        setattr(cls, "__match_args__", names_of_init)  # noqa: B010  # mypy has a rule for this name
    if "__init__" not in members:
        cls.__init__ = _Init(cls, listed, frozen, slots)
    if shown and "__repr__" not in members:
        cls.__repr__ = _repr
    names = [f.name for f in listed if f.compare]
    values = _getter(names)
    explicit = "__hash__" in members and not (members["__hash__"] is None and "__eq__" in members)
    if eq and "__eq__" not in members:
        cls.__eq__ = _equal(values)
    if eq and not explicit:
        cls.__hash__ = _hash(values) if frozen else None
    if frozen:
        for name in ("__setattr__", "__delattr__"):
            if name in members:
                raise TypeError(f"{cls.__qualname__} is frozen and has a {name} of its own")
        cls.__setattr__, cls.__delattr__ = _setattr, _delattr
    return _with_slots(cls, fields, frozen) if slots else cls


def _field(cls: Any, name: str, kind: str) -> Field[Any]:
    default = getattr(cls, name, MISSING)
    found: Any
    if isinstance(default, Field):
        found = default
        if found.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, found.default)
    else:
        if isinstance(default, MemberDescriptorType):  # the slot of a base class
            default = MISSING
        found = field(default=default)
    if type(found.default).__hash__ is None:
        raise ValueError(f"mutable default {type(found.default)} for field {name} is not allowed: use default_factory")
    found.name, found.type, found.kw_only, found._field_type = name, kind, False, _KIND
    return found  # type: ignore[no-any-return]


class _Init:
    """Stands for `__init__` until it is first asked for."""

    __slots__ = ("_cls", "_fields", "_frozen", "_slots")

    def __init__(self, cls: Any, fields: list[Field[Any]], frozen: bool, slots: bool) -> None:
        self._cls, self._fields, self._frozen, self._slots = cls, fields, frozen, slots

    def of(self, cls: Any) -> None:
        """From now on it belongs to another class, which stands in the place of the one it was made for."""
        self._cls = cls

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        cls = self._cls
        function = cls.__dict__["__init__"]
        if function is self:
            function = _compiled(cls, self._fields, self._frozen, self._slots)
            cls.__init__ = function
        return function if instance is None else function.__get__(instance, owner)


def _compiled(cls: Any, fields: list[Field[Any]], frozen: bool, slots: bool) -> Callable[..., None]:
    """The function `__init__`, in which a field is its own parameter."""
    names: dict[str, Any] = {"_missing": _FROM_FACTORY}
    parameters, lines = ["self"], []
    had_default = False
    for k, f in enumerate(fields):
        value = f.name
        if f.default is not MISSING:
            names[f"_default{k}"] = f.default
            given = f"={'_default' + str(k)}"
        elif f.default_factory is not MISSING:
            names[f"_make{k}"] = f.default_factory
            given, value = "=_missing", f"_make{k}() if {f.name} is _missing else {f.name}"
        else:
            given = ""
        if f.init:
            if had_default and not given:
                raise TypeError(f"{cls.__qualname__}: {f.name} has no default and follows a field that has one")
            had_default |= bool(given)
            parameters.append(f.name + given)
        elif f.default_factory is not MISSING:
            value = f"_make{k}()"
        elif f.default is not MISSING and slots:
            value = f"_default{k}"
        else:
            continue
        if not frozen:
            lines.append(f" self.{f.name} = {value}")
        else:
            place = getattr(cls, f.name, None) if slots else None
            if isinstance(place, MemberDescriptorType):
                names[f"_set{k}"] = place.__set__
                lines.append(f" _set{k}(self, {value})")
            else:
                names["_set"] = object.__setattr__
                lines.append(f" _set(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"])
    exec(text, names)
    function: Any = names.pop("__init__")
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__module__ = cls.__module__
    function.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return function  # type: ignore[no-any-return]


def _getter(names: list[str]) -> Callable[[Any], Any]:
    """The values of fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        only = attrgetter(names[0])
        return lambda self: (only(self),)
    return lambda self: ()


def _equal(values: Callable[[Any], Any]) -> Any:
    def __eq__(self: Any, other: Any) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash(values: Callable[[Any], Any]) -> Any:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join([f"{f.name}={getattr(self, f.name)!r}" for f in getattr(self, _FIELDS).values() if f.repr])
    return f"{self.__class__.__qualname__}({shown})"


def _setattr(self: Any, name: str, value: Any) -> None:
    """Of a frozen class. One that is derived from it and is no dataclass may have more attributes."""
    if name in getattr(self, _FIELDS) or _FIELDS in type(self).__dict__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    if name in getattr(self, _FIELDS) or _FIELDS in type(self).__dict__:
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _with_slots(cls: Any, fields: dict[str, Field[Any]], frozen: bool) -> Any:
    """The class once more, with slots."""
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__qualname__} already specifies __slots__")
    taken: set[str] = set()
    for base in cls.__mro__[1:-1]:
        slots = base.__dict__.get("__slots__", ())
        taken.update((slots,) if isinstance(slots, str) else slots)
    members = dict(cls.__dict__)
    members["__slots__"] = tuple([name for name in fields if name not in taken])
    for name in (*fields, "__dict__", "__weakref__"):
        members.pop(name, None)
    if frozen:
        members.setdefault("__getstate__", _getstate)
        members.setdefault("__setstate__", _setstate)
    made = type(cls)(cls.__name__, cls.__bases__, members)
    made.__qualname__ = cls.__qualname__
    init = members.get("__init__")
    if isinstance(init, _Init):
        init.of(made)
    return made


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _FIELDS), state):
        object.__setattr__(self, name, value)
