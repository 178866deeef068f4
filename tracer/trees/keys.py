"""The keys of a pytree's paths: the steps from a node to one of its children, with JAX's names and text.

A path is a tuple of keys: ``(DictKey('w'), SequenceKey(0))`` leads to ``tree['w'][0]``, and `keystr` writes it so.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast

KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath: TypeAlias = tuple[KeyEntry, ...]


class _Key:
    """A key of one value, compared by class and value. Not a dataclass: a frozen one takes three times as long to make,
    and each path has several."""

    __slots__ = ("_value",)
    __match_args__: tuple[str, ...]
    _value: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__match_args__[0]}={self._value!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


class SequenceKey(_Key):
    """A child of a list or tuple, by its position.

    >>> path, leaf = hloom.tree.leaves_with_path([5, 6])[1]
    >>> path
    (SequenceKey(idx=1),)
    """

    __slots__ = ()
    __match_args__ = ("idx",)

    def __init__(self, idx: int) -> None:
        self._value = idx

    @property
    def idx(self) -> int:
        return cast(int, self._value)

    def __str__(self) -> str:
        return f"[{self._value!r}]"


class DictKey(_Key):
    """A value of a dictionary, by its key.

    >>> path, leaf = hloom.tree.leaves_with_path({"w": 1})[0]
    >>> path
    (DictKey(key='w'),)
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: Any) -> None:
        self._value = key

    @property
    def key(self) -> Any:
        return self._value

    def __str__(self) -> str:
        return f"[{self._value!r}]"


class GetAttrKey(_Key):
    """A field of a namedtuple, a dataclass or another object, by its name.

    >>> import hloom
    >>> from hloom.tree_util import GetAttrKey, keystr
    >>> keystr((GetAttrKey("w"), GetAttrKey("bias")))
    '.w.bias'
    """

    __slots__ = ()
    __match_args__ = ("name",)

    def __init__(self, name: str) -> None:
        self._value = name

    @property
    def name(self) -> str:
        return cast(str, self._value)

    def __str__(self) -> str:
        return f".{self._value}"


class FlattenedIndexKey(_Key):
    """A child of a registered container that says nothing about its keys, by its position.

    >>> import hloom
    >>> from hloom.tree_util import FlattenedIndexKey, keystr
    >>> keystr((FlattenedIndexKey(0),))
    '[<flat index 0>]'
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: int) -> None:
        self._value = key

    @property
    def key(self) -> int:
        return cast(int, self._value)

    def __str__(self) -> str:
        return f"[<flat index {self._value}>]"


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: ``['w'][0].bias``. `simple`: the bare keys, ``w0bias``; `separator` stands between keys.

    >>> path, leaf = hloom.tree.leaves_with_path({"w": [5, 6]})[1]
    >>> hloom.tree_util.keystr(path), hloom.tree_util.keystr(path, simple=True, separator="/")
    ("['w'][1]", 'w/1')
    """
    return separator.join([_bare(key) if simple else str(key) for key in keys])


def _bare(key: Any) -> str:
    match key:
        case SequenceKey(found) | DictKey(found) | GetAttrKey(found) | FlattenedIndexKey(found):
            return str(found)
        case _:
            return str(key)
