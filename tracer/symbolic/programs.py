"""Programs of symbolic sizes: one program for each combination of sizes, made when it is first called for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ...hlo.ir import HloModule
from ...hlo.support.forking import Order, fork_lock
from ...hlo.symbolic.arguments import Solution, solve
from ...hlo.symbolic.instantiate import instantiate
from ..caches import register_cache

MAX_PROGRAMS = 256
"""Programs that are kept for a module, those used last."""


class SymbolicProgram:
    """A module with symbolic sizes, and the modules of concrete sizes that were made of it."""

    def __init__(self, module: HloModule, shapes: Sequence[Sequence[Any]], names: Sequence[str]) -> None:
        """`shapes`: of the arguments; `names`: ``args[0]``, for messages.

        ValueError if the shapes do not determine the variables.
        """
        self.module = module
        self.solution: Solution = solve(shapes, names)
        self._made: OrderedDict[tuple[Any, ...], HloModule] = OrderedDict()
        self._lock = fork_lock(Order.LEAF)
        register_cache(self)

    def clear(self) -> None:
        """Forget the modules of concrete sizes."""
        with self._lock:
            self._made.clear()

    def values(self, shapes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The values of the variables for arguments of these shapes. ValueError if they do not fit."""
        return self.solution.evaluate(shapes)

    def module_for(self, shapes: Sequence[Sequence[Any]]) -> HloModule:
        """The module for arguments of these shapes, the same object for the same sizes. ValueError if they do not
        fit."""
        values = self.values(shapes)
        key = tuple(values.items())
        with self._lock:
            found = self._made.get(key)
            if found is not None:
                self._made.move_to_end(key)
                return found
        made = instantiate(self.module, values)
        with self._lock:
            made = self._made.setdefault(key, made)
            while len(self._made) > MAX_PROGRAMS:
                self._made.popitem(last=False)
        return made
