"""`ds`: an index of a block with a known size and a start that may be traced."""

from __future__ import annotations

from typing import Any

from ...hlo.support.records import dataclass
from .operators import ArrayBase


@dataclass(frozen=True, slots=True)
class Slice:
    """`size` elements from `start`, which may be traced, `stride` apart: an index. `ds` makes it."""

    start: Any
    size: Any
    """An integer. An index map of a kernel may return a block of a traced size."""
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride < 0:
            raise ValueError(f"the stride of a block must not be negative: {self.stride}")


def ds(start: Any, size: int | None = None, stride: int | None = None) -> Slice | slice:
    """The index of `size` elements from `start`, which may be traced; ``ds(n)`` is ``ds(0, n)``, ``ds(None)`` is all.

    In arrays a block that does not fit is moved inside when it is read, and left alone when it is written, as
    `lax.dynamic_slice` and scatters do. With a stride each element is read or written separately.

    >>> hloom.new_ref(jnp.arange(5))[hloom.ds(1, 3)]
    Array([1, 2, 3], dtype=int32)
    >>> hloom.jit(lambda x, i: x[hloom.ds(i, 2)])(jnp.arange(5), 3)
    Array([3, 4], dtype=int32)
    """
    step = 1 if stride is None else int(stride)
    if start is None or (size is None and isinstance(start, slice)):
        if size is None:
            return slice(None, None, stride) if start is None else start
        start = 0
    if size is None:
        start, size = 0, start
    return Slice(start, size if isinstance(size, ArrayBase) else int(size), step)
