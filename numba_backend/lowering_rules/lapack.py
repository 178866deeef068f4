"""Write rows that call LAPACK: the calls themselves, and kernels for the work before and after them.

LAPACK takes matrices column by column, so a kernel copies the operand in that order, and results back. Routines that
read only a triangle (potrf, trsm) work in place instead, on the transpose. The routines are data, and
`lapack_targets.py` makes rows of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...hlo.custom_call_targets.library import Shared, work_lengths
from ...hlo.element_type import ElementType
from ..emit.text_kernels import text_kernel
from ..runtime.lapack import LapackCall, per_matrix, work_bytes
from ..runtime.program import Argument
from .table import LoweringContext

S32 = ElementType.S32


class Array:
    """An array of the batch: where it is, and its shape for one matrix. Without a place it is a workspace of a call."""

    def __init__(self, place: Argument | None, element_type: ElementType, shape: Sequence[int]) -> None:
        self.place, self.element_type, self.shape = place, element_type, tuple(shape)

    @property
    def step(self) -> int:
        """The bytes of one matrix."""
        return per_matrix(self.element_type, self.shape)


Given: TypeAlias = "str | int | float | Array"


class Batch:
    """The base of the rows of one instruction: `count` matrices of an element type."""

    def __init__(self, context: LoweringContext, name: str, element_type: ElementType, count: int) -> None:
        self.context, self.name, self.element_type, self.count = context, name, element_type, count

    def at(self, place: Argument, kind: ElementType | None, *shape: int) -> Array:
        """An operand or a result of the instruction."""
        return Array(place, kind or self.element_type, shape)

    def scratch(self, kind: ElementType | None, *shape: int) -> Array:
        """Memory for all matrices; it holds arbitrary numbers."""
        kind = kind or self.element_type
        return Array(self.context.scratch(kind, max(1, self.count * math.prod(shape))), kind, shape)

    def work(self, kind: ElementType | None, length: int) -> Array:
        """A workspace for the calls: each piece gets one of its own."""
        return Array(None, kind or self.element_type, (max(1, length),))

    def columns(self, source: Array) -> Array:
        """A copy of the matrices, column by column. The shape of the copy is (columns, rows)."""
        m, n = source.shape
        target = self.scratch(source.element_type, n, m)
        self.transpose(source, target)
        return target

    def transpose(self, source: Array, target: Array) -> None:
        """The target becomes the transposes of the source's matrices."""
        m, n = source.shape
        assert target.shape == (n, m) and source.element_type is target.element_type
        if min(m, n) <= 1:
            self.copy(source, target)
            return
        tiles = -(-n // _TILE)
        sizes = {"m": m, "n": n, "tiles": tiles}
        cost = m * min(n, _TILE) * 0.6 + 4
        self.kernel("transposed", _TRANSPOSED, {"x": source, "out": target}, sizes, cost, self.count * tiles)

    def copy(self, source: Array, target: Array) -> None:
        """The same numbers in the same order."""
        assert source.place is not None and target.place is not None
        self.context.builder.copy(target.place, source.place, self.count * source.step)

    def zero(self, target: Array) -> None:
        """Zeros."""
        assert target.place is not None
        self.context.builder.zero(target.place, self.count * target.step)

    def kernel(
        self, name: str, lines: Sequence[str], arrays: dict[str, Array], sizes: dict[str, int], cost: float,
        extent: int | None = None, words: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        """A kernel of a text, for each matrix of the batch; see `emit/text_kernels.py`."""
        pointers = {key: array.element_type for key, array in arrays.items()}
        extent = self.count if extent is None else extent
        emitted, used = text_kernel(name, lines, self.element_type, pointers, sizes, extent, cost, words)
        places = [place for key in used if (place := arrays[key].place) is not None]
        assert len(places) == len(used)
        self.context.kernel(f"{self.name} {name}", emitted, places, [])

    def call(
        self, routine: str, before: Sequence[Given], kinds: Sequence[ElementType] = (), after: Sequence[Given] = ()
    ) -> None:
        """Call a routine for each matrix: with `before`, a workspace of each of `kinds` and its length, `after`."""
        lengths = self._lengths(routine, before, kinds, after) if kinds else []
        given = [*before]
        for kind, length in zip(kinds, lengths, strict=True):
            given += [self.work(kind, length), length]
        given += after
        item_bytes = max([x.step for x in given if isinstance(x, Array) and x.place is not None], default=0)
        row = LapackCall(self.context.builder, routine, self.element_type, self.count, item_bytes)
        for x in given:
            if not isinstance(x, Array):
                row.number(x)
            elif x.place is not None:
                row.array(x.place, x.step)
            else:
                nbytes = work_bytes(math.prod(x.shape), x.element_type)
                row.work(self.context.scratch(ElementType.U8, nbytes * row.pieces), nbytes)
        row.add()

    def _lengths(
        self, routine: str, before: Sequence[Given], kinds: Sequence[ElementType], after: Sequence[Given]
    ) -> list[int]:
        nothing = Shared(np.zeros(2, np.int64))  # a query for workspace lengths reads sizes alone

        def asked(given: Sequence[Given]) -> list[str | int | float | Shared]:
            return [nothing if isinstance(x, Array) else x for x in given]

        return work_lengths(routine, self.element_type, asked(before), kinds, asked(after))


_TILE = 8
_TRANSPOSED = """\
item = b // tiles
first = (b - item * tiles) * 8
last = minimum(first + 8, n)
base = item * m * n
if last - first == 8:
    for i in range(m):
        for j in range(8):
            out[base + (first + j) * m + i] = x[base + i * n + first + j]
else:
    for i in range(m):
        for j in range(first, last):
            out[base + j * m + i] = x[base + i * n + j]
""".splitlines()
