"""The step `Band`: skip the elements of a result, or the terms of a sum, that a mask hides."""

from __future__ import annotations

from ..loops.expressions import ZERO, Expr, Name, Number, call, maximum, minimum, times
from ..loops.writer import Writer, cast
from .algorithm import Access, Algorithm
from .steps import Band

Limits = tuple[Expr, Expr]
"""The first one, and the one after the last."""


def rows_of_band(writer: Writer, band: Band, rows: Limits, first: Expr, width: int) -> Limits:
    """The rows of a result with elements of the band in `width` columns from `first` on."""
    begin = writer.assign("begin", maximum(rows[0], first - band.high))
    return begin, writer.assign("end", minimum(rows[1], first + width - band.low))


class OperandBand:
    """A band of the operand `access`, [i, p]; its rows are multiplied with packed columns. Outside of the band, the
    elements of a row (or column) are equal, so that one element says whether products with them have to be computed."""

    def __init__(self, writer: Writer, band: Band, algorithm: Algorithm, access: Access) -> None:
        self.writer, self.band, self.access, self.algorithm = writer, band, access, algorithm
        self.kind: str = algorithm.total_type

    def test_outside(self, start: Expr, rows: Limits) -> None:
        """Check the elements outside of the band in some rows; `start`: the offset of the operand's first element. ::

        outside = 0
        for i in range(top, minimum(below, k - 1 - dense_high)):
            if x0[i * a0 + (k - 1) * a1] != 0:
                outside = 1
        for i in range(maximum(top, 1 - dense_low), below):
            if x0[i * a0] != 0:
                outside = 1
        """
        writer, band = self.writer, self.band
        row, column = (self.algorithm.dimension(name) for name, _ in self.access.strides[-2:])
        strides = [self.access.stride(d.name) for d in (row, column)]
        self.outside: Name = writer.assign("outside", 0)
        low: Expr = band.low
        high: Expr = band.high
        begin, stop, last = *rows, column.extent - 1
        if band.by_columns:
            begin, stop, last = ZERO, column.extent, row.extent - 1
            low, high = -high, -low
        for at, first, end in (
            (last, begin, minimum(stop, last - high)), (ZERO, maximum(begin, 1 - low), stop)
        ):  # fmt: skip
            with writer.loop("i", first, end) as i:
                here, there = (at, i) if band.by_columns else (i, at)
                offset = start + times(here, strides[0]) + times(there, strides[1])
                with writer.if_(self.access.pointer[offset].ne(self.algorithm.zero)):
                    writer.assign(self.outside, 1)

    def test_packed(self, packed: Name, count: Expr) -> None:
        """Products with zeros are 0 if the packed elements have neither infinities nor NaN."""
        writer, zero = self.writer, cast(self.kind, 0)
        self.skips: Name = writer.assign("skips", 1 - self.outside)
        zeros = writer.assign("zeros", zero)
        with writer.loop("p", count) as p:
            writer.assign(zeros, call("reduce_add", zeros, packed[p] * zero))
        with writer.if_(zeros.ne(zero)):
            writer.assign(self.skips, 0)

    def limits(self, row: Expr, rows: int, before: Expr, deep: Expr) -> Limits:
        """The range of the terms for `rows` rows, in `deep` columns after `before` others."""
        writer, band = self.writer, self.band
        begin, end = writer.assign("begin_p", 0), writer.assign("end_p", deep)
        with writer.if_(self.skips.eq(1)):
            writer.assign(begin, maximum(ZERO, row + band.low - before))
            writer.assign(end, minimum(deep, row + (Number(rows) + band.high) - before))
        return begin, end
