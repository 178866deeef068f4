"""What is traced and compiled, and why, as log messages: for who wants to know where the time goes.

Two switches turn them on: `hloom.log_compiles()` and `hloom.explain_cache_misses()`. No program depends on them, so
they are not in the context. The messages are warnings of the logger "hloom", as in JAX.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from . import tree
from .arguments import StaticArguments
from .aval import ShapedArray
from .context import Context
from .source import function_line, user_line

_logger = logging.getLogger(__name__.partition(".")[0])


class _Own(threading.local):
    value: bool | None = None


class Switch:
    """A setting of the process that a thread may override within a block."""

    def __init__(self) -> None:
        self.of_process = False
        self._thread = _Own()

    @property
    def is_on(self) -> bool:
        """As this thread sees it."""
        own = self._thread.value
        return self.of_process if own is None else own

    @contextmanager
    def within(self, value: bool) -> Iterator[None]:
        """Within the block, or the decorated function, this thread's value is `value`."""
        before = self._thread.value
        self._thread.value = value
        try:
            yield
        finally:
            self._thread.value = before


LOG_COMPILES, EXPLAIN_CACHE_MISSES = Switch(), Switch()
SWITCHES = {"jax_log_compiles": LOG_COMPILES, "jax_explain_cache_misses": EXPLAIN_CACHE_MISSES}
"""By the names of the settings."""


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Log the time that the block took, if compilations are logged: ``Finished tracing f for jit in 0.002 sec``."""
    if not LOG_COMPILES.is_on:
        yield
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        _logger.warning("Finished %s in %.6f sec", what, time.perf_counter() - start)


def compiling(name: str, types: Iterable[str]) -> None:
    """Log that a program is compiled, if compilations are logged."""
    if LOG_COMPILES.is_on:
        place = user_line() or "<unknown>"
        _logger.warning("Compiling %s with types (%s), called at %s", name, ", ".join(types), place)


# ---- why a function is traced again

Key = tuple[Any, tuple[ShapedArray, ...], StaticArguments, Context]
"""What a traced program depends on: the structure of the arguments, their types, static ones, and the settings."""


def explain_miss(fun: Any, key: Key, known: Sequence[Key], labels: Sequence[str]) -> None:
    """Log why none of the programs `known` is that of `key`. `labels`: the names of the arguments' leaves."""
    lines = [f"TRACING CACHE MISS at {user_line() or '<unknown>'}:"]
    if not known:
        lines += ["  never seen function:", f"    {function_line(fun)}"]
    else:
        nearest = min(reversed(known), key=lambda other: _distance(key, other))
        lines.append(f"  for {function_line(fun)}")
        lines.append(f"  earlier traces: {len(known)}; the closest one differs:")
        lines += [f"  * {each}" for each in _differences(key, nearest, labels)]
    _logger.warning("%s", "\n".join(lines))


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
            "different structure of the arguments (positional, keyword): "
            f"now {tree.describe(now[0])}, before {tree.describe(before[0])}"
        )
    else:
        for label, a, b in zip(labels, now[1], before[1], strict=True):
            if a is not b:
                yield f"at {label}, now {_type(a)} and before {_type(b)}"
    statics = {p: v for p, _, v in (*before[2].positional, *before[2].keyword)}
    for place, _, value in (*now[2].positional, *now[2].keyword):
        if place not in statics:
            yield f"static argument {place!r} is given"
        elif (type(statics[place]), statics[place]) != (type(value), value):
            yield f"static argument {place!r}, now {value!r} and before {statics[place]!r}"
    for field in fields(Context):
        a, b = getattr(now[3], field.name), getattr(before[3], field.name)
        if a != b:
            yield f"setting {field.name}, now {a!r} and before {b!r}"


def _type(aval: ShapedArray) -> str:
    return aval.str_short() + (" (weak type)" if aval.weak_type else "")
