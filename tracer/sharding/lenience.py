"""Whether operations are refused that leave open how Explicit axes of a mesh divide their results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

from ..errors import ShardingTypeError
from .partition_spec import axes_of


class _State(local):
    is_lenient = False


_state = _State()


def is_lenient() -> bool:
    """Whether this thread is in a `not_refused` block."""
    return _state.is_lenient


@contextmanager
def not_refused() -> Iterator[None]:
    """Within the block operations with ambiguous results are not refused."""
    before, _state.is_lenient = _state.is_lenient, True
    try:
        yield
    finally:
        _state.is_lenient = before


def refuse_divided(
    aval: Any, dimensions: Sequence[int], why: str, error: type[Exception] = ShardingTypeError
) -> None:
    """`error`, unless these dimensions of a value of type `aval` are whole. Within `not_refused` nothing happens."""
    if aval.division is None or is_lenient():
        return
    entries = aval.division.spec.partitions
    if any(entries[d] is not None for d in dimensions):
        raise error(f"{why}. Got {aval.str_short()}")


def refuse_uneven(aval: Any, dimension: int, sizes: Sequence[int], what: str) -> None:
    """ShardingTypeError, unless the axes that divide this dimension divide pieces of these sizes, too."""
    if aval.division is None or is_lenient():
        return
    mesh, entry = aval.division.mesh, aval.division.spec.partitions[dimension]
    parts = math.prod([mesh.shape[a] for a in axes_of(entry)])
    uneven = [n for n in sizes if n != aval.shape[dimension] and n % parts]
    if uneven:
        raise ShardingTypeError(
            f"{what} on sharded dims where out dim ({uneven[0]}) is not divisible by mesh axes ({parts}) with spec "
            f"({entry}) is not implemented. Got {aval.str_short()}"
        )
