"""Why a value is still alive: the names that reach it from the user's program, for messages about leaked values.

The garbage collector knows which objects refer to an object. From the value it is a few steps up to a variable of a
module, or of a function that runs: `model.cache['h'][0]`. References from this library itself are left out.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import BuiltinFunctionType, CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ...hlo.support.loading import visit_all
from ...hlo.support.source import is_users

_PACKAGE = __name__.partition(".")[0]
_MOST_STEPS = 8
_MOST_OBJECTS = 400
"""Objects that are followed in one step."""
_MOST_NAMES = 3


class _Way(NamedTuple):
    """How an object leads to one of the values: the text behind its name, as in ``['h'][0]``."""

    object: Any
    text: str
    key: Any = None
    """For a dictionary: its key, which becomes an attribute if the dictionary belongs to an instance."""
    rest: str = ""
    """The text after this key."""


def names_of(values: Sequence[object], passing: type) -> list[list[str]]:
    """For each of `values`, the names through which the user's program reaches it: at most three, the shortest ones.

    One search for all of them, because each step visits every object of the process.

    passing: objects of this class lead to the value without a name of their own.
    """
    visit_all()
    own: set[int] = set()
    variables = _variables(own)
    modules = {id(vars(m)): name for name, m in _modules()}
    levels, seen = [[_Way(value, "")] for value in values], [{id(value)} for value in values]
    own.update((id(values), id(modules), id(own), id(seen), id(variables)))
    found: list[list[str]] = [[] for _ in values]
    for _ in range(_MOST_STEPS):
        if not any(levels):
            break
        for names, level in zip(found, levels):
            for way in level:
                names += [f"{name}{way.text} in {place}" for name, place in variables.get(id(way.object), ())]
        following: list[list[_Way]] = [[] for _ in values]
        objects = list({id(way.object): way.object for level in levels for way in level}.values())
        for structure in (levels, following):
            own.update((id(structure), *map(id, structure)))
        own.update((id(objects), *(id(way) for level in levels for way in level)))
        referrers = gc.get_referrers(*objects, _MARK)
        own.add(id(referrers))
        for referrer in referrers:
            if id(referrer) in own or isinstance(referrer, FrameType) or type(referrer).__name__.endswith("iterator"):
                continue
            referents = set(map(id, gc.get_referents(referrer)))
            if id(_MARK) in referents:  # the arguments of the call above, or this module
                continue
            for names, level, known, ways in zip(found, levels, seen, following):
                for way in level:
                    if id(way.object) not in referents:
                        continue
                    if id(referrer) in modules and type(referrer) is dict:
                        if not _is_ours(modules[id(referrer)]):
                            of_module = [k for k, v in referrer.items() if v is way.object]
                            names += [f"{modules[id(referrer)]}.{name}{way.text}" for name in of_module]
                        continue
                    step = _step(referrer, way, passing)
                    if step is not None and id(referrer) not in known and len(ways) < _MOST_OBJECTS:
                        known.add(id(referrer))
                        ways.append(step)
                        break
        levels = [[] if names else ways for names, ways in zip(found, following)]
    return [list(dict.fromkeys(names))[:_MOST_NAMES] for names in found]


_MARK = object()


def _modules() -> Iterator[tuple[str, ModuleType]]:
    modules: dict[str, Any] = sys.modules  # where programs put other objects, too
    yield from [(name, m) for name, m in list(modules.items()) if isinstance(m, ModuleType)]


def _variables(own: set[int]) -> dict[int, list[tuple[str, str]]]:
    """The local variables of the user's functions that run: for each value, names and places."""
    found: dict[int, list[tuple[str, str]]] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        own.add(id(frame))
        variables = frame.f_locals
        if variables is frame.f_globals:  # the body of a module
            frame = frame.f_back
            continue
        own.add(id(variables))
        if is_users(frame):
            place = f"{frame.f_code.co_name} at {frame.f_code.co_filename}:{frame.f_lineno}"
            for name, value in variables.items():
                found.setdefault(id(value), []).append((name, place))
        frame = frame.f_back
    return found


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] == _PACKAGE


def _step(referrer: Any, way: _Way, passing: type) -> _Way | None:
    """How `referrer` leads to the value through `way`; None if it does not, or if it is this library's."""
    target, text = way.object, way.text
    kind = type(referrer)
    if isinstance(referrer, passing):
        return _Way(referrer, text)
    if kind is dict:
        keys = [k for k, v in referrer.items() if v is target]
        return _Way(referrer, f"[{keys[0]!r}]{text}", keys[0], text) if keys else None
    if isinstance(referrer, list | tuple | deque):
        places = [k for k, v in enumerate(referrer) if v is target]
        return _Way(referrer, f"[{places[0]}]{text}", places[0], text) if places else None
    if isinstance(referrer, set | frozenset):
        return _Way(referrer, f" (an element){text}")
    if kind is CellType:
        return _Way(referrer, text)
    if kind is FunctionType:
        return _of_function(referrer, way)
    if isinstance(referrer, MethodType | BuiltinFunctionType):
        return _Way(referrer, text)
    if isinstance(referrer, type):
        if _is_ours(referrer.__module__):
            return None
        is_attribute = isinstance(target, dict) and way.key in vars(referrer)
        return _Way(referrer, f".{way.key}{way.rest}") if is_attribute else _of_instance(referrer, way)
    return None if _is_ours(kind.__module__) else _of_instance(referrer, way)


def _of_function(function: FunctionType, way: _Way) -> _Way | None:
    if _is_ours(function.__module__):
        return None
    if function.__closure__ is way.object:
        return _Way(function, f".__closure__<{function.__code__.co_freevars[way.key]}>{way.rest}")
    if function.__defaults__ is way.object:
        return _Way(function, f".__defaults__[{way.key}]{way.rest}")
    return _of_instance(function, way)


def _of_instance(instance: Any, way: _Way) -> _Way | None:
    target = way.object
    if getattr(instance, "__dict__", None) is target and isinstance(target, dict):
        return _Way(instance, f".{way.key}{way.rest}")
    for name in _attributes(instance):
        try:
            if object.__getattribute__(instance, name) is target:
                return _Way(instance, f".{name}{way.text}")
        except AttributeError:
            continue
    return _Way(instance, f".<{type(instance).__name__}>{way.text}")


def _attributes(instance: Any) -> Iterator[str]:
    """The names of the attributes in which an object holds something."""
    yield from list(getattr(instance, "__dict__", ()))
    for cls in type(instance).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def alive_of(trace: object, passing: type) -> list[Any]:
    """The objects of class `passing` that refer to `trace`: its values that are still alive."""

    def referring() -> Iterable[Any]:
        return [r for r in gc.get_referrers(trace) if isinstance(r, passing)]

    if not referring():
        return []
    gc.collect()
    return list(referring())


def as_text(names: Sequence[str]) -> str:
    """For messages, a line each."""
    return "".join([f"  it is still alive as {name}\n" for name in names])

