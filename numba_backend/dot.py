"""Compile dot as a BLAS call: which matrices it multiplies, for any order of its dimensions in memory, without copies.

An operand is a batch of matrices under two conditions. Its dimensions form three groups (batch, free, contracting), and
each group is stored like one dimension; and the free or the contracting group has stride 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloInstruction
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from .runtime.blas import BatchDimension, Gemm


@dataclass(frozen=True, slots=True)
class _Matrices:
    """One operand: rows x columns at these strides (in elements)."""

    rows: int
    columns: int
    row_stride: int
    column_stride: int
    batch_strides: tuple[int, ...]

    @property
    def transposed(self) -> bool:
        """True when the elements of a column are contiguous."""
        if self.columns == 1 or self.rows == 1:
            # A vector: any distance between its elements is allowed; it becomes the leading dimension.
            return self._unit(self.row_stride, self.rows) and not self._unit(self.column_stride, self.columns)
        return self.column_stride != 1

    @staticmethod
    def _unit(stride: int, size: int) -> bool:
        return size == 1 or stride == 1

    @property
    def is_blas(self) -> bool:
        """True when one of the two dimensions has unit stride and the other does not overlap it."""
        if self._unit(self.column_stride, self.columns):
            return self.rows == 1 or self.row_stride >= max(self.columns, 1)
        if self._unit(self.row_stride, self.rows):
            return self.columns == 1 or self.column_stride >= max(self.rows, 1)
        return False

    @property
    def leading(self) -> int:
        """The distance between neighbouring rows (columns, if transposed)."""
        if self.transposed:
            return self.column_stride if self.columns > 1 else max(self.rows, 1)
        return self.row_stride if self.rows > 1 else max(self.columns, 1)


def _group(sizes: Sequence[int], strides: Sequence[int], dimensions: Sequence[int]) -> tuple[int, int] | None:
    """(size, stride) of dimensions seen as one; None if they are not stored like one dimension."""
    total, stride = 1, 1
    for d in reversed(dimensions):
        if sizes[d] == 1:
            continue
        if total == 1:
            stride = strides[d]
        elif strides[d] != stride * total:
            return None
        total *= sizes[d]
    return total, stride


def _matrices(
    sizes: tuple[int, ...], strides: tuple[int, ...], batch: tuple[int, ...], rows: tuple[int, ...],
    columns: tuple[int, ...],
) -> _Matrices | None:  # fmt: skip
    """An operand with these sizes and strides. Each product is asked many times, by passes and by all who choose its
    kernel."""
    try:
        return _known_matrices(sizes, strides, batch, rows, columns)
    except TypeError:  # observed sizes, which have no hash
        return _known_matrices.__wrapped__(sizes, strides, batch, rows, columns)


@lru_cache(maxsize=1024)
def _known_matrices(
    sizes: tuple[int, ...], strides: tuple[int, ...], batch: tuple[int, ...], rows: tuple[int, ...],
    columns: tuple[int, ...],
) -> _Matrices | None:  # fmt: skip
    if 0 in sizes:
        row_count, column_count = (math.prod(sizes[d] for d in group) for group in (rows, columns))
        return _Matrices(row_count, column_count, max(column_count, 1), 1, tuple(strides[d] for d in batch))
    row, column = _group(sizes, strides, rows), _group(sizes, strides, columns)
    if row is None or column is None:
        return None
    found = _Matrices(row[0], column[0], row[1], column[1], tuple(strides[d] for d in batch))
    return found if found.is_blas else None


def _operands(dot: HloInstruction) -> tuple[_Matrices | None, _Matrices | None]:
    lhs, rhs = (o.shape for o in dot.operands)
    attributes = dot.attributes
    batch, contracting = attributes.lhs_batch_dims, attributes.lhs_contracting_dims
    free = _free(lhs.rank, tuple(batch), tuple(contracting))
    left = _matrices(lhs.dimensions, lhs.strides(), tuple(batch), free, tuple(contracting))
    batch, contracting = attributes.rhs_batch_dims, attributes.rhs_contracting_dims
    free = _free(rhs.rank, tuple(batch), tuple(contracting))
    return left, _matrices(rhs.dimensions, rhs.strides(), tuple(batch), tuple(contracting), free)


@lru_cache(maxsize=256)
def _free(rank: int, batch: tuple[int, ...], contracting: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([d for d in range(rank) if d not in batch and d not in contracting])


def is_matrix(shape: Shape, batch: Sequence[int], contracting: Sequence[int]) -> bool:
    """True when BLAS can take an array with these dot dimensions as a batch of matrices, without a copy. The array is
    dense, its dimensions in any order. The free and the contracting dimensions must each be stored like one dimension,
    and one of the two must have stride 1. Batch dimensions may have any strides."""
    if shape.num_elements == 0:
        return True
    free = [d for d in range(shape.rank) if d not in batch and d not in contracting]
    groups = [_group(shape.dimensions, shape.strides(), dimensions) for dimensions in (free, contracting)]
    return None not in groups and any(size == 1 or stride == 1 for size, stride in filter(None, groups))


def is_gemm(dot: HloInstruction) -> bool:
    """True when BLAS can take both operands without a copy."""
    return None not in _operands(dot)


@dataclass(frozen=True, slots=True)
class Strides:
    """A product, or a batch of them, of any element types: ``c[i, j] = sum over p of a[i, p] * b[p, j]``."""

    m: int
    n: int
    k: int
    a: tuple[int, int]
    """The distance between neighbouring i, and p."""
    b: tuple[int, int]
    """Between neighbouring p, and j."""
    batch: tuple[BatchDimension, ...]


def strides_of(dot: HloInstruction) -> Strides:
    """The sizes and strides of a product that `is_gemm`. The result is row-major."""
    a, b = _operands(dot)
    assert a is not None, dot.name
    assert b is not None, dot.name
    steps = (a.row_stride, a.column_stride), (b.row_stride, b.column_stride)
    return Strides(a.rows, b.columns, a.columns, *steps, _batch(dot, a, b))


def _batch(dot: HloInstruction, a: _Matrices, b: _Matrices) -> tuple[BatchDimension, ...]:
    sizes = [dot.operands[0].shape.dimensions[d] for d in dot.attributes.lhs_batch_dims]
    c_strides = dot.shape.strides()[: len(sizes)]
    return tuple(
        BatchDimension(*values) for values in zip(sizes, a.batch_strides, b.batch_strides, c_strides, strict=True)
    )


def gemm_of(dot: HloInstruction) -> Gemm:
    """The BLAS call that computes `dot`, with lhs and rhs in this order.

    UnsupportedError if BLAS cannot take an operand without a copy; the pass dot-canonicalization prevents this.
    """
    a, b = _operands(dot)
    if a is None or b is None:
        raise UnsupportedError(f"the operands of {dot.name or 'a dot'} do not lie as BLAS needs them")
    m, k, n = a.rows, a.columns, b.columns
    return Gemm(
        dot.shape.element.value, m, n, k,
        "T" if a.transposed else "N", "T" if b.transposed else "N",
        max(a.leading, 1), max(b.leading, 1), max(n, 1), batch=_batch(dot, a, b),
    )  # fmt: skip
