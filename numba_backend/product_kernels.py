"""Which products are kernels of their own, by what was measured beside OpenBLAS; all others are calls of BLAS.

    1000 products of 4 x 4 by 4 x 4                   `native_loops/products.py`, a range of the batch for each thread
    100000 x 8 by 8 x 8                               the same, a range of rows
    2000 x 2000 by a few vectors                      `emit/skinny.py`
    1000 x 64 by 64 x 1000                            `emit/blocked.py`
    int32 or other integers                           the same
    int8, int16, bfloat16, float16                    `emit/packed.py`

A call of BLAS takes 25 ns and more, copies what it multiplies into blocks, and writes a result more than once. Products
of large matrices with more than a few hundred terms in a sum are left to it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..hlo.ir import HloInstruction
from .dot import gemm_of, is_gemm, strides_of
from .emit.blocked import emit_blocked, tile_of
from .emit.kernel import EmittedKernel
from .emit.packed import emit_packed, format_of
from .emit.skinny import MOST_VECTORS, Skinny, emit_skinny
from .machine import Machine
from .native_loops.products import SUPPORTED, emit_product
from .runtime.blas import Gemm

FEWEST_ROWS = 256
"""Rows of results, in all products of a batch. With fewer there is little to gain, and BLAS needs no compilation."""
MOST_DEPTH, MOST_COLUMNS, MOST_PLACES = 16, 64, 256
"""The size of a small right-hand side: its rows, columns and elements."""

FAST_BYTES = 1 << 19
"""A matrix up to this size stays in a second-level cache, where BLAS's copy of it costs little."""
LONG = 256
"""The least length of the long operand of a skinny product."""

SHALLOW_DEPTH, SHALLOW_TURNED_DEPTH = range(8, 257), range(8, 129)
"""The products in a sum for which a blocked kernel is faster, by 1.05 to 1.5 times; the second if the left-hand side is
stored column by column, of which each tile then reads a piece of every column."""
SHALLOW_WORK = 1 << 21
"""Fewer multiplications are not worth a compilation, though all sizes and orders share one kernel."""
MOST_WASTE = 1.25
"""How much larger whole tiles may be than the result."""


def product_kernel(dot: HloInstruction, machine: Machine) -> EmittedKernel | None:
    """The kernel of a product on dense arrays, or None if BLAS does better on the machine."""
    if not dot.shape.num_elements:
        return None
    form = format_of(dot, machine.multiplies_bf16)
    if form is not None:
        return emit_packed(dot, form, machine)
    if dot.shape.element not in SUPPORTED:
        return emit_blocked(dot)
    gemm = gemm_of(dot)
    if _has_small_side(gemm):
        return _small(dot, gemm)
    skinny = _skinny(dot, gemm)
    if skinny is not None:
        return emit_skinny(skinny)
    return emit_blocked(dot) if _is_shallow(dot, gemm) else None


def _is_shallow(dot: HloInstruction, gemm: Gemm) -> bool:
    """True for short sums of floats, of which a blocked kernel writes each once."""
    rows, columns = tile_of(dot.shape.element.byte_width)
    if dot.shape.element.is_complex or gemm.m < rows or gemm.n < columns or gemm.flop < 2 * SHALLOW_WORK:
        return False
    if gemm.k not in (SHALLOW_DEPTH if gemm.transpose_a == "N" else SHALLOW_TURNED_DEPTH):
        return False
    return _waste(gemm.m, gemm.n, dot.shape.element.byte_width) <= MOST_WASTE


def suits_tiles(dot: HloInstruction) -> bool:
    """True for a product of floats, on dense arrays, that the tiles of a blocked kernel fit, however deep it is."""
    elements = {i.shape.element for i in (dot, *dot.operands)}
    if len(elements) > 1 or not dot.shape.num_elements or not is_gemm(dot):
        return False
    element = dot.shape.element
    if element not in SUPPORTED or not element.is_floating or element.is_complex:
        return False
    strides = strides_of(dot)
    rows, columns = tile_of(element.byte_width)
    if strides.m < rows or strides.n < columns or strides.k < SHALLOW_DEPTH[0]:
        return False
    return not _has_small_side(gemm_of(dot)) and _waste(strides.m, strides.n, element.byte_width) <= MOST_WASTE


def _waste(m: int, n: int, byte_width: int) -> float:
    """How much larger whole tiles are than the result."""
    rows, columns = tile_of(byte_width)
    return (-(-m // rows) * rows) * (-(-n // columns) * columns) / (m * n)


def _has_small_side(gemm: Gemm) -> bool:
    """True for many rows of results, each from one row of `a` and a small `b`."""
    rows = gemm.m * math.prod(d.count for d in gemm.batch)
    if not 1 <= gemm.k <= MOST_DEPTH or gemm.n > MOST_COLUMNS or rows < FEWEST_ROWS:
        return False
    if gemm.n == 1:
        return gemm.ldb == 1 or gemm.transpose_b == "T"
    if gemm.transpose_b == "T" and gemm.m < 3:
        return False  # the transposition of `b` would take longer than the products
    return gemm.k * gemm.n <= MOST_PLACES or gemm.k <= MOST_DEPTH // 2


def _small(dot: HloInstruction, gemm: Gemm) -> EmittedKernel:
    kernel = emit_product(dot, is_sliced=True, turns_b=True)
    products = gemm.flop / 2 * (4 if dot.shape.element.is_complex else 1)
    rows = gemm.m * math.prod(d.count for d in gemm.batch)
    nanoseconds = 0.03 * products + rows
    return replace(kernel, cost=nanoseconds / kernel.extent)


def _skinny(dot: HloInstruction, gemm: Gemm) -> Skinny | None:
    """A large matrix and a few vectors, as `emit_skinny` takes them."""
    if gemm.batch or dot.shape.element.is_complex or not gemm.k:
        return None
    a = (gemm.lda, 1) if gemm.transpose_a == "N" else (1, gemm.lda)
    b = (gemm.ldb, 1) if gemm.transpose_b == "N" else (1, gemm.ldb)
    if 1 < gemm.n <= MOST_VECTORS:
        found = Skinny(dot.shape.element, gemm.m, gemm.k, gemm.n, 0, a, b, (gemm.ldc, 1))
    elif 1 < gemm.m <= MOST_VECTORS:
        found = Skinny(dot.shape.element, gemm.n, gemm.k, gemm.m, 1, (b[1], b[0]), (a[1], a[0]), (1, gemm.ldc))
    else:
        return None
    if found.length < LONG:
        return None
    is_flat = found.depth <= MOST_DEPTH
    if found.along_sum:
        return None if is_flat or not _is_large(found) else found
    return found if is_flat or _is_large(found) else None


def _is_large(product: Skinny) -> bool:
    return product.length * product.depth * product.element.byte_width > FAST_BYTES
