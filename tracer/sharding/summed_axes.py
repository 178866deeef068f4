"""Along which axes of a mesh the products and sums of a function add up: what `out_sharding=P(unreduced=...)` asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Sums:
    """The entries of specs for the dimensions that one operation sums over, of each operand."""

    is_product: bool
    entries: tuple[tuple[Any, ...], ...]


class _State(local):
    noted: list[Sums] | None = None


_state = _State()


def note(sums: Sums) -> None:
    """Remember the sums of an operation, within `noting`."""
    if _state.noted is not None:
        _state.noted.append(sums)


@contextmanager
def noting() -> Iterator[list[Sums]]:
    """The sums of the operations within the block."""
    before, _state.noted = _state.noted, []
    try:
        yield _state.noted
    finally:
        _state.noted = before
