"""The axes of a mesh that divide the dimensions over which a function sums, for `out_sharding=P(unreduced=...)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Sums:
    """The dimensions that one operation sums over."""

    axes: frozenset[Any]
    """The axes of the mesh that divide them, and those along which the operand is unreduced."""
    contracting_specs: tuple[tuple[Any, ...], ...] = ()
    """Of a product: the entries of both operands' specs for the contracting dimensions."""


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
