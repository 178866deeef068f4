"""Functions that keep their argument. Tests import this module anew, each time, once they run: the garbage collector
does not see what the variables of a module refer to if it was imported before (conftest.py)."""

from __future__ import annotations

from typing import Any


class Holder:
    """Keeps its argument."""

    best: Any = None

    def __init__(self) -> None:
        self.layers: dict[str, Any] = {}


kept: list[Any] = []
holder = Holder()


def into_a_list(y: Any) -> None:
    kept.append(y)


def into_an_attribute(y: Any) -> None:
    holder.layers["h"] = (0, [y])


def into_a_class(y: Any) -> None:
    Holder.best = y


def into_a_closure(y: Any) -> None:
    holder.layers["later"] = lambda: y


def into_a_default(y: Any) -> None:
    def later(y: Any = y) -> Any:
        return y

    kept.append(later)


def clear() -> None:
    kept.clear()
    holder.layers.clear()
    Holder.best = None
