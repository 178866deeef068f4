"""Why a jitted function is traced again: the differences from the closest earlier call, for `explain_cache_misses`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from ..arguments import StaticArguments
from ..aval import ShapedArray
from ..settings.context import Context
from ..source import function_line, user_line
from ..trees import tree
from .logs import LOGGER

Key = tuple[Any, tuple[ShapedArray, ...], StaticArguments, Context]
"""The key of a traced program: the structure of the arguments, their types, static ones, and the settings."""

WEAK_TYPES = "https://docs.jax.dev/en/latest/type_promotion.html#weak-types"


def explain_miss(fun: Any, key: Key, known: Sequence[Key], labels: Sequence[str]) -> None:
    """Log why none of the programs `known` has the key `key`. `labels`: the names of the arguments' leaves."""
    lines = [f"TRACING CACHE MISS at {user_line() or '<unknown>'}:"]
    if not known:
        lines += ["  never seen function:", f"    {function_line(fun)}"]
    else:
        nearest = min(reversed(known), key=lambda other: _distance(key, other))
        lines.append(f"  for {function_line(fun)}")
        lines.append(f"  earlier traces: {len(known)}; the closest one differs:")
        lines += [f"  * {each}" for each in _differences(key, nearest, labels)]
    LOGGER.warning("%s", "\n".join(lines))


def _distance(a: Key, b: Key) -> int:
    """How much two keys differ; settings count most."""
    types = sum([_unlike(x, y) for x, y in zip(a[1], b[1])]) if a[0] == b[0] else 100
    statics = sum([x != y for x, y in zip((*a[2].positional, *a[2].keyword), (*b[2].positional, *b[2].keyword))])
    return types + statics + (1000 if a[3] is not b[3] else 0)


def _unlike(a: ShapedArray, b: ShapedArray) -> int:
    return (a.shape != b.shape) + (len(a.shape) != len(b.shape)) + (a.dtype != b.dtype) + (a.weak_type != b.weak_type)


def _differences(now: Key, before: Key, labels: Sequence[str]) -> Iterator[str]:
    if now[0] != before[0]:
        yield (
            "different input pytree (positional, keyword): "
            f"now {tree.describe(now[0])}, before {tree.describe(before[0])}"
        )
    else:
        for label, a, b in zip(labels, now[1], before[1], strict=True):
            if a is not b:
                yield f"different input types: at {label}, now {_type(a, b)} and before {_type(b, a)}"
                if a.weak_type != b.weak_type:
                    yield "  weak types are those of Python numbers: " + WEAK_TYPES
    statics = {p: v for p, _, v in (*before[2].positional, *before[2].keyword)}
    for place, _, value in (*now[2].positional, *now[2].keyword):
        if place not in statics:
            yield f"static argument {place!r} is given"
        elif (type(statics[place]), statics[place]) != (type(value), value):
            yield f"static argument {place!r}, now {value!r} and before {statics[place]!r}"
    for field in fields(Context):
        a, b = getattr(now[3], field.name), getattr(before[3], field.name)
        if a != b:
            yield f"different tracing context: setting {field.name}, now {a} and before {b}"


def _type(aval: ShapedArray, other: ShapedArray) -> str:
    """The type; "weak" only if the other type differs in that."""
    weak = f"{{weak_type={aval.weak_type}}}" if aval.weak_type != other.weak_type else ""
    return aval.str_short(short_dtypes=True) + weak
