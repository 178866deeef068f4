"""The loop nest with reductions of rows and of columns: the sums of a matrix along both dimensions, or the gradient of
a layer normalisation, which needs both.

The rows come in parts. Each part has accumulators of its own for the columns, in an output, so that threads share the
parts; results of rows are computed as in a nest without columns, and columns are accumulated in the first loop of a row
that computes their elements::

    for i in range(lo, hi):
        for j in range(n1):
            out1[i * n1 + j] = c0
        for j in range(n0):
            acc0 = c0
            for k in range(n1):
                acc0 = reduce_add(acc0, x0[(i * n0 + j) * n1 + k])
                out1[i * n1 + k] = reduce_add(out1[i * n1 + k], x0[(i * n0 + j) * n1 + k])
            out0[i * n0 + j] = acc0

Results do not depend on the number of threads: the program says which rows are a part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...hlo.ir import HloInstruction
from ..loops.expressions import Expr
from .collapse import FusedBody
from .kernel import EmittedKernel
from .nest_rows import RowNest
from .sizes import Index


class MixedNest(RowNest):
    """The nest over rows, with accumulators for columns."""

    def __init__(
        self,
        fused: FusedBody,
        sharing: Mapping[int, int],
        rows: Sequence[HloInstruction],
        columns: Sequence[HloInstruction],
    ) -> None:
        self._columns = columns
        super().__init__(fused, sharing, rows)
        self._along = columns[0].attributes.dimensions
        self._accumulators = {k for reduce in columns for k in self.accumulators_of(reduce)}

    def emit(self) -> EmittedKernel:
        """The kernel; the loop over the parts is sliced."""
        parts = [d for d in self.kept if d not in self._along]
        if parts:
            self.sizes.mark_outer(self.domain, parts[0])
        self.sizes.mark_loops(self.domain, (*self._along, *self.reduced))
        with self.sliced_loops(parts) as part:
            level = 1 if parts else 0
            with self.loops_over(self.reduced, level) as column:
                for reduce in self._columns:
                    self.initialise(reduce, self._column({**part, **column}))
            with self.loops_over(self._along, level) as row:
                self.row({**part, **row}, level + len(self._along))
        sizes = self.domain.shape.dimensions
        extent = math.prod(sizes[d] for d in parts)
        return self.finish(extent)

    def sinks(self) -> Mapping[HloInstruction, Sequence[HloInstruction]]:
        return {**super().sinks(), **{r: r.operands[: len(r.operands) // 2] for r in self._columns}}

    def is_kept(self, output: int) -> bool:
        return output not in self._accumulators and super().is_kept(output)

    def visit(self, stage: int, index: Index) -> None:
        columns = [sink for sink in self.sinks_at(stage) if sink in self._columns]
        self.accumulate(columns, [index], self._column(dict(enumerate(index))))
        super().visit(stage, index)  # which may overwrite operands of the columns

    def has_visits(self, stage: int) -> bool:
        return super().has_visits(stage) or any(self.level[reduce] == stage for reduce in self._columns)

    def _column(self, index: Mapping[int, Expr]) -> Index:
        """The index of a column in its part."""
        return tuple(index[d] for d in range(self.domain.shape.rank) if d not in self._along)
