"""The names of JAX that a program asked for and did not get: counted, for the report at exit."""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from types import FrameType

from ..hlo.support.source import is_internal
from ..namespaces import missing

_PACKAGE = __name__.partition(".")[0]
_PLACES = 3
"""So many places are listed for a name."""


class Misses:
    """How often each name was asked for, and where. The report says it in words."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], Counter[str]] = {}
        self._last: tuple[str, str, str] | None = None

    def record(self, module: str, name: str, *, in_name_only: bool = False) -> None:
        """One more request for `name` of `module`. Names such as __wrapped__ are Python's, not JAX's.

        `from m import x` looks up twice, first the attribute and then a module; that is one request.
        in_name_only: the attribute is there, and cannot be used; then the import statement looks it up twice.
        """
        if name.startswith("__"):
            return
        place, by_import = _place()
        if not place or (in_name_only and by_import):
            return
        request = (module, name, place)
        if by_import and self._last == request:
            self._last = None
            return
        self._last = request
        self._places.setdefault((module, name), Counter())[place] += 1

    def places(self) -> dict[str, dict[str, int]]:
        """By the name in JAX: how often each place asked for it."""
        return {_in_jax(module, name): dict(places) for (module, name), places in self._places.items()}

    def clear(self) -> None:
        """Forget all."""
        self._places.clear()
        self._last = None

    def names(self) -> dict[str, int]:
        """How often each name was asked for, by its name in JAX."""
        return {_in_jax(module, name): places.total() for (module, name), places in self._places.items()}

    def report(self) -> str:
        """The names that the program did not get, the most wanted first, and advice for each."""
        if not self._places:
            return f"{_PACKAGE}: the program used no name of JAX that hloom lacks"
        entries = sorted(self._places.items(), key=lambda e: (-e[1].total(), e[0]))
        lines = [f"{_PACKAGE}: names of JAX that the program used and hloom lacks ({len(entries)})"]
        for (module, name), places in entries:
            asked = [place for place, _ in places.most_common(_PLACES)]
            more = f" and {len(places) - _PLACES} other places" if len(places) > _PLACES else ""
            times = f"{places.total()} time{'s' if places.total() > 1 else ''}"
            lines.append(f"  {_in_jax(module, name)}: {times}, at {', '.join(asked)}{more}")
            lines.append(f"      {_said(module, name)}")
        return "\n".join(lines)


MISSES = Misses()
"""Of this process, since `as_jax`."""


def _in_jax(module: str, name: str) -> str:
    first, *rest = module.split(".")
    return ".".join(["jax" if first == _PACKAGE else first, *rest, name])


def _said(module: str, name: str) -> str:
    if module.startswith(_PACKAGE) and module in sys.modules:
        return str(missing(module, name, silently=True))
    says = getattr(sys.modules.get(module), "_hloom_says", None)  # a module of `jax._src`
    return str(says(name)) if says is not None else "no such module here"


def _place() -> tuple[str, bool]:
    """The line of the request, and whether it is an import statement; no line if a module of ours looks it up."""
    frame: FrameType | None = sys._getframe(2)
    by_import = False
    while frame is not None and _is_on_the_way(frame):
        by_import |= frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    if frame is None:
        return "an unknown place", by_import
    return "" if is_internal(frame) else f"{frame.f_code.co_filename}:{frame.f_lineno}", by_import


def _is_on_the_way(frame: FrameType) -> bool:
    """From the request to here."""
    code = frame.f_code
    return code.co_filename in _ON_THE_WAY or code.co_filename.startswith("<frozen importlib") or (
        code.co_name == "__getattr__" and is_internal(frame)
    )


_ON_THE_WAY = frozenset(
    {
        __file__,
        *(os.path.join(os.path.dirname(__file__), name) for name in ("switch.py", "sources.py")),
        *(missing.__code__.co_filename, importlib.__file__),
    }
)
