"""Schedules of small products, inside native loops and many at a time: a call of BLAS costs more than they do.

The innermost loop goes along the columns of the result if rhs is contiguous along them, along its rows if lhs is
contiguous along them, and otherwise along the sum. Sizes are literals, so that LLVM keeps a row of sums in registers::

    for i in range(4):                                  for i in range(8):
        for j in range(8):                                  sums0[0] = 0
            sums0[j] = 0                                    for p in range(8):
        for p in range(4):                                      sums0[0] = reduce_add(sums0[0], x0[i * 8 + p] * x1[p])
            factor0 = x0[i * 4 + p]                         out[i] = sums0[0]
            for j in range(8):
                sums0[j] = sums0[j] + factor0 * x1[p * 8 + j]
        for j in range(8):
            out[i * 8 + j] = sums0[j]
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ..dot import Strides, gemm_of, strides_of
from ..emit.product import emit_product, product_of, product_of_gemm
from ..emitted_kernel import EmittedKernel
from ..loops.expressions import Number
from ..schedule.steps import Accumulate, AnyOrder, Lanes, Order, Pack, Padded, Partial, Schedule, Slice, Split, Unroll

SUPPORTED = frozenset((ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128))
"""Element types of floats that are multiplied as they are. The others have become these, or fusions; `is_small`
(`products.py`) says which products of integers are computed here, too."""

MOST_WORK = 1 << 14
"""Multiplications times bytes of an element of a product in a native loop: 16 x 16 x 16 of f32. Larger ones are left to
BLAS, which has better loops. A multiplication of complex numbers counts as four."""
MOST_VECTOR_WORK = 1 << 15
"""The same for a matrix and a vector, where BLAS has no advantage beyond its call."""

LITERAL = 64
"""Sizes and strides of up to this are written into the text."""

TILE_ROWS, WHOLE = 4, 32
"""Rows of a tile, if these are whole registers of so many bytes: their additions do not wait for each other. That is up
to 1.7 times as fast (4 x 32 by 32 x 32); rows of 13 would take 6 times as long."""

BLOCK = 1024
"""Elements of a longer row that are computed together, so that their sums stay in a first-level cache."""

ODD = 4
"""The sums of a row of integers that is no multiple of so many have 32 bits. LLVM makes a vector of three neighbours of
16 bits rather than of many rows: 333333 x 3 by 3 x 3 would take 14 times as long. Rows of 4 and 8 numbers fill vectors
of their own, in 0.5 of the time."""

LEAST_PARTIAL = 4
"""Products in a sum from which on a row of results that is alone has two sums, for even and odd ones: fewer additions
wait for each other."""


def work_of(dot: HloInstruction) -> tuple[int, bool]:
    """(the number of multiplications, whether one operand is a vector)."""
    strides = strides_of(dot)
    return _multiplications(strides), strides.m == 1 or strides.n == 1


def _multiplications(strides: Strides) -> int:
    return strides.m * strides.n * strides.k * math.prod(dimension.count for dimension in strides.batch)


def small_product(
    dot: HloInstruction, *, prepared: tuple[int, int] | None = None, is_sliced: bool = True, transposes_b: bool = False
) -> EmittedKernel:
    """The kernel of a product. Operands and result are dense; BLAS could take them too. `prepared`: the number of an
    operand that is a copy, and the length of its rows. They are the steps of the sum, with zeros at their ends.
    `is_sliced`: `lo, hi` is a range of the first dimension of the batch or of the rows of the result; otherwise it has
    one item. `transposes_b`: a small rhs with rows along the sum is first copied into a local array, transposed."""
    product = product_of(dot) if dot.shape.element.is_integral else product_of_gemm(gemm_of(dot))
    strides, padded, width = product.strides, "", 0
    if prepared is not None:
        operand, width = prepared
        padded = "ab"[operand]
        strides = replace(strides, a=(1, width)) if operand == 0 else replace(strides, b=(width, 1))
        product = replace(product, strides=strides)
    by_rows, by_columns = strides.b[1] == 1, strides.a[0] == 1 and (bool(strides.batch) or not is_sliced)
    transposed = (("p", strides.k), ("j", strides.n)) if transposes_b and not by_rows and strides.n > 1 else ()
    lanes = "j" if strides.n > 1 and (by_rows or transposed) else "i" if 1 < strides.m <= LITERAL and by_columns else ""
    along, rows = (strides.n, strides.m) if lanes == "j" else (strides.m, strides.n)
    is_long, element = along > LITERAL, dot.shape.element
    has_whole = not element.is_complex and (width or along) * element.byte_width % WHOLE == 0
    schedule = _schedule(
        product.indices, is_sliced, lanes, BLOCK if is_long else width, padded, transposed,
        together=4 if is_long else 2 if rows == 1 and strides.k >= LEAST_PARTIAL else 0, has_partial=not is_long,
        has_tiles=has_whole and not is_long and not is_sliced and rows % TILE_ROWS == 0,
    )  # fmt: skip
    given = {name: Number(size) for name, size in product.sizes({}, {}).items() if size <= LITERAL}
    extent = 1 if not is_sliced else strides.batch[0].count if strides.batch else strides.m
    batch = math.prod(dimension.count for dimension in strides.batch)
    nanoseconds = 5.0 + strides.m * batch + 0.03 * _multiplications(strides) * (4 if element.is_complex else 1)
    cost, is_odd = nanoseconds / max(extent, 1), along % ODD != 0
    return emit_product("product", product, schedule, extent, cost, given=given, least_bytes=4 if is_odd else 2)


@lru_cache(maxsize=256)
def _schedule(
    indices: tuple[str, ...], is_sliced: bool, lanes: str, width: int, padded: str,
    transposed: tuple[tuple[str, int], ...], *, together: int, has_partial: bool, has_tiles: bool,
) -> Schedule:  # fmt: skip
    """`lanes`: along which dimension of the result, if any; `width`: in blocks of so many. `together`: products that
    are added to a row of sums at a time, or with `has_partial` to one each."""
    rows = "j" if lanes == "i" else "i"
    sliced: Schedule = (Slice((*indices, rows)[0]),) if is_sliced else ()
    if not lanes:
        return (AnyOrder(), Order(*indices, "i", "j", "p"), Accumulate("j"), *sliced)
    outer = (*indices, "tile" if has_tiles else rows, *(["block"] if width else []))
    return (
        *([Split(rows, "tile", TILE_ROWS)] if has_tiles else []),
        *([Split(lanes, "block", width, "short", count="wide")] if width else []),
        *([Split("p", "terms", together, "rest")] if together else []),
        Order(*outer, *(["terms", lanes, "p"] if together else ["p", *([rows] if has_tiles else []), lanes])),
        *([Unroll(rows)] if has_tiles else []),
        *([Unroll("p")] if together else []),
        *([Partial("p")] if together and has_partial else []),
        *([Pack("b", "transposed", indices[-1] if indices else "", transposed)] if transposed else []),
        Lanes(lanes),
        *([Padded(padded)] if padded else []),
        Accumulate(outer[-1]),
        *sliced,
    )
