"""`hlo.support.records.dataclass` makes what the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest
from hloom.hlo.support import records

OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"slots": True, "repr": False},
]


def classes(decorate: Callable[..., Any], **options: bool) -> tuple[type, type, type]:
    """A class with fields of all kinds, one derived from it, and one that is no dataclass."""

    @decorate(**options)
    class Base:
        a: int
        b: float = 1.5
        c: list[int] = field(default_factory=list, compare=False)
        d: str = field(default="d", repr=False)
        kind: ClassVar[str] = "base"

        def twice(self) -> int:
            return 2 * self.a

    @decorate(**options)
    class Derived(Base):  # type: ignore[misc,valid-type]
        b: float = 2.5
        e: tuple[int, ...] = ()
        sum: float = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.a + self.b)

    class Plain(Derived):
        pass

    return Base, Derived, Plain


def seen(Base: Any, Derived: Any, Plain: Any) -> list[object]:
    """The visible properties of the classes and their objects."""
    found: list[object] = []
    for kind in (Base, Derived, Plain):
        found.append(str(inspect.signature(kind)).replace("'", ""))
        found.append([(f.name, f.type, f.init, f.repr, f.compare) for f in fields(kind)])
        found.append((is_dataclass(kind), getattr(kind, "__match_args__", None)))
        found.append((kind.__name__, hasattr(kind(1), "__dict__"), kind.kind))
    one, same, other = Derived(1, e=(2,)), Derived(1, 2.5, [3], e=(2,)), Derived(2)
    found += [one == same, one == other, one != Base(1), Base(1) == Base(1), Plain(1) == Plain(1), one == 3]
    found += [one.sum, one.twice(), one.c, same.c, Base(1).c is not Base(1).c]
    for make in (lambda: hash(one) == hash(same), lambda: replace(one, a=7).sum, lambda: copy.copy(one).a):
        found.append(outcome(make))
    for text in (repr(one), repr(Base(3))):
        found.append(text if " object at " not in text else "object")
    for act in (
        lambda: setattr(one, "a", 5), lambda: setattr(one, "new", 5), lambda: delattr(one, "b"),
        lambda: setattr(Plain(1), "a", 5), lambda: Base(), lambda: Base(1, 2, [], "", 5),
    ):  # fmt: skip
        found.append(outcome(act))
    return found


def outcome(act: Callable[[], object]) -> object:
    """The result, or that it is refused. (With slots, the standard library's message is about `super`.)"""
    try:
        return act()
    except (TypeError, AttributeError):
        return "refused"


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_like_the_standard_library(options: dict[str, bool]) -> None:
    assert seen(*classes(records.dataclass, **options)) == seen(*classes(dataclasses.dataclass, **options))


@records.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@records.dataclass(frozen=True)
class Named(Point):
    name: str = ""


def test_one_nan_is_equal_to_itself() -> None:
    """As in a tuple. So it was in the standard library until Python 3.12; since then it compares field by field."""
    nan = float("nan")
    assert Point(1, nan) == Point(1, nan) and Point(1, nan) != Point(1, float("nan"))  # type: ignore[arg-type]


def test_pickles_and_copies() -> None:
    for value in (Point(1, 2), Named(1, 2, "n")):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value


def test_both_kinds_may_be_mixed() -> None:
    @dataclasses.dataclass(frozen=True)
    class Below(Point):
        z: int = 3

    @records.dataclass(frozen=True)
    class Lowest(Below):
        w: int = 4

    assert Lowest(1, w=5) == Lowest(1, 0, 3, 5)
    assert repr(Lowest(1)).endswith("Lowest(x=1, y=0, z=3, w=4)")


def test_init_is_made_when_it_is_needed() -> None:
    @records.dataclass(slots=True)
    class Late:
        a: int

    assert not inspect.isfunction(vars(Late)["__init__"])
    assert Late(1).a == 1
    assert inspect.isfunction(vars(Late)["__init__"])
    match Late(4):
        case Late(a):
            assert a == 4


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="must both be frozen"):

        @records.dataclass
        class Loose(Point):  # type: ignore[misc]
            pass

    with pytest.raises(ValueError, match="mutable default"):

        @records.dataclass
        class Mutable:
            a: list[int] = []  # noqa: RUF012

    with pytest.raises(TypeError, match="follows a field that has one"):

        @records.dataclass
        class Mixed:
            a: int = 0
            b: int  # type: ignore[misc]

        Mixed(1, 2)
