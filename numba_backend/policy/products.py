"""Choose which products are kernels, and their schedules, by measurements beside OpenBLAS; BLAS computes all others.

    1000 products of 4 x 4 by 4 x 4                   `small_products.py`, a range of the batch for each thread
    100000 x 8 by 8 x 8                               the same, a range of rows
    2000 x 2000 by a few vectors                      `_few_vectors` below
    1000 x 64 by 64 x 1000                            `tiles` below
    4 x 4 by 4 x 4                                    `tiles`
    int32 or other integers                           `tiles`; many small ones `small_products.py`
    int8, int16, bfloat16, float16                    `tiles`, with words of several numbers (`emit/words.py`)

A call of BLAS takes 25 ns and more, and 200 ns if it sets the number of its threads. BLAS copies operands into blocks,
and writes a result more than once. It does products of large matrices with more than a few hundred terms in a sum, but
not where a kernel has 32 registers of 64 bytes: OpenBLAS often uses half of each. Where units are half as wide as these
registers, it does those with the longest sums (`_is_long`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ...hlo.analyses.bands import EVERYTHING, Band
from ...hlo.builder import make_parameter
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...hlo.support.memory_pressure import on_pressure
from ..dot import Strides, gemm_of, is_gemm, strides_of
from ..emit.product import Product, emit_product, product_of, product_of_gemm, type_of_sums
from ..emit.words import words_of
from ..emitted_kernel import EmittedKernel, memory_type
from ..loops.expressions import ONE, Expr, Name, Number
from ..machine import Machine, target_machine
from ..runtime.blas import Gemm
from ..schedule import steps
from ..schedule.steps import Accumulate, AnyOrder, Lanes, Order, Pack, Parallel, Part, Slice, Split, Unroll
from .small_products import SUPPORTED, small_product

FEWEST_ROWS = 256
"""Rows of results, in all products of a batch. With fewer there is little to gain, and BLAS needs no compilation."""
MOST_DEPTH, MOST_COLUMNS, MOST_PLACES = 16, 64, 256
"""The size of a small right-hand side: its rows, columns and elements."""

FAST_BYTES = 1 << 19
"""A matrix up to this size stays in a second-level cache, where BLAS's copy of it costs little."""
LONG = 256
"""The least length of the large operand of a product with a few vectors."""
MOST_VECTORS = 8
"""More vectors than this are a matrix."""
VECTOR_BLOCK, VECTOR_BLOCKS = 1024, 4096
"""The elements of a block of one vector, and of all: vectors of f32 take half of a first-level cache."""
UNCACHED_BYTES, UNCACHED_SUMS = 4096, 1 << 16
"""Bytes of each row that a thread reads in turn, at least, and of its sums, where the matrix is in no cache: memory is
read faster along longer pieces of rows. 8 vectors times 4000 x 10000 f32 take 0.83 of the time with pieces of 1024
columns and more in place of 512, times 8000 x 2000 0.70, times 3000 x 30000 0.69. In a cache, short pieces are as fast,
whose sums stay in a first-level cache: 1000 x 4000 take 1.3."""
FEW_ROWS = 3
"""With at most so many rows of results, copying a panel of the right-hand side does not pay."""
SUMS = 24
"""Sums in registers. AVX-512 has 32; with fewer registers LLVM keeps some of these in memory."""

SHALLOW_DEPTH, SHALLOW_TRANSPOSED_DEPTH = range(8, 257), range(8, 129)
"""How many products in a sum make a kernel faster than BLAS, by 1.05 to 1.5 times. The second range holds if the
left-hand side is stored column by column: each tile then reads a piece of every column."""
SHALLOW_WORK = 1 << 21
"""Multiplications. From so many on, BLAS takes longer for its copies than a kernel for more waste."""
MOST_WASTE, LEAST_WASTE = 1.25, 1.1
"""How many times as large as the result whole tiles may be, from `SHALLOW_WORK` multiplications on and with fewer."""
WIDE_WASTE = 1.34
"""The same on a machine with 32 registers of 64 bytes, for sums of any length from 8 on and all orders. On a Zen 5 BLAS
takes 1.6 to 2.1 times as long from 64 to 4096 (OpenBLAS 0.3.31 uses the code for Haswell there). With OpenBLAS's code
for these registers it takes 0.98 to 1.1 times as long, and 0.8 at 100."""
MANY_ROWS = 64
"""On such a machine, rows from which on columns may be fewer than a tile's, but more than `MOST_VECTORS`: 0.5 to 0.7 of
the time of BLAS with 9 to 12 columns (0.6 to 1.05 where it uses whole registers)."""
MORE_WASTE = 1.12
"""How much larger tiles of two such registers in a row may be than tiles of one, which read more for each product.
Where units are half as wide as registers, no larger: one in a row is as fast then (1.0 of the time for 256 x 256 x 256
and 1000 x 1000 x 1000), and takes 0.9 of the time for 196 columns."""
LITTLE, WIDE_LITTLE = 32, 64
"""If no side is longer, a kernel is 1.13 to 1.6 times as fast as BLAS, even if its tiles are much larger than the
result. The second length holds with 32 registers of 64 bytes. All sizes and orders share two kernels and, with columns
fewer than a tile's, two more; twice as many if tiles have two widths."""

LONG_ROWS, LONG_COLUMNS = 8192, 2048
"""Bytes of the numbers that a sum takes from the left-hand side, from which on BLAS is faster where units are half as
wide as registers: if that matrix is stored row by row, and the right-hand side too; and if it is in columns. BLAS
copies blocks of both matrices, a kernel only of one. 2800 x 2800 x 2800 takes 0.82 of the time (f32) and 0.86 (f64),
512 x 512 x 8192 in columns 0.40 and 0.29. Where units are whole, and for numbers that BLAS does not know, a matrix in
columns is transposed first (`takes_as_stored`)."""
LEAST_LONG, LEAST_RESULTS = 512, 1 << 15
"""Rows and columns of a result, if the left-hand side is stored row by row; and elements, if it is in columns. BLAS
takes 1.3 times as long for 64 x 64 x 16384 in both orders."""
NEAR_CACHES = 2
"""Second-level caches that a left-hand side may fill before its order matters."""
LEAST_COPIED, LEAST_PACKED = 128, 1 << 24
"""Columns of a result from which on the left-hand side is worth a copy; and multiplications, of numbers that are packed
into words: the rows are packed again for each panel, from columns in twice the time."""

LEAST_SIDE = 9
"""Rows and columns of a result that is worth cutting into tiles."""
LEAST_WORK = 1 << 18
"""Multiplications from which on a product has a kernel of its own."""

ROWS = 6
"""Rows of a tile: with two registers for each, and three for a row of the panel and a factor, AVX2's are full."""
WIDE_ROWS = 8
"""The same with 32 registers of 64 bytes. Two for each row are 1.35 times as fast as one for each of six, where
additions wait for each other; 12 rows are no faster, and leave more rows over."""
PANEL_BYTES = 64
"""Bytes of a row of a panel: a register of AVX-512, or two of AVX2."""
DEPTH = 256
"""The most rows of a panel: it takes half of a first-level cache, or most of it with two registers of 64 bytes in a
row. Deeper sums are made in parts."""
EIGHT = 8
"""Rows of a tile of words where they are neighbours in memory, so that a vector has them."""
LEAST_WORDS = 16
"""The least columns of a panel of words, which has up to 64: it stays in a second-level cache."""
BLOCK = 516
"""Rows of a block: fewer take longer to copy a panel than is saved, more do not stay in a second-level cache. A panel
of words is wider, and the results that parts of a sum begin with need that cache, too: half as many."""
ITEMS = 32
"""Pieces to share between threads: blocks of rows, and strips of panels if these are too few."""


Emit = Callable[[], EmittedKernel]
"""Writes the kernel."""


def product_kernel(dot: HloInstruction, machine: Machine) -> EmittedKernel | None:
    """The kernel of a product on dense arrays, or None if BLAS does better on the machine. The same object for equal
    products: a deep network has hundreds."""
    return _kernel_of(*_about(dot, machine))


def is_kernel(dot: HloInstruction, machine: Machine) -> bool:
    """True if a product on dense arrays is a kernel on the machine, and no call of BLAS."""
    return _kernel_of(*_about(dot, machine)) is not None


def _about(dot: HloInstruction, machine: Machine) -> tuple[Machine, Shape, Shape, Shape, Any]:
    """All that the kernel of a product depends on."""
    lhs, rhs = dot.operands
    return machine, dot.shape, lhs.shape, rhs.shape, dot.attributes


@lru_cache(maxsize=256)
def _kernel_of(machine: Machine, shape: Shape, lhs: Shape, rhs: Shape, attributes: Any) -> EmittedKernel | None:
    operands = make_parameter(0, lhs), make_parameter(1, rhs)
    emit = _emitter_of(HloInstruction(Opcode.DOT, shape, operands, attributes), machine)
    return None if emit is None else emit()


on_pressure(_kernel_of.cache_clear)


def _emitter_of(dot: HloInstruction, machine: Machine) -> Emit | None:
    if not dot.shape.num_elements:
        return None
    if is_small(dot):
        strides = strides_of(dot)
        return partial(small_product, dot, transposes_b=strides.m >= FEW_ROWS and strides.n <= MOST_COLUMNS)
    words = words_of(dot, machine.multiplies_bf16)
    if words is not None:
        product = product_of(dot, words)
        return partial(_tiles, product, tile=_tile_of_words(product.strides, machine))
    if dot.shape.element not in SUPPORTED:
        return partial(tiles, dot)
    gemm = gemm_of(dot)
    if _has_small_side(gemm):
        return partial(small_product, dot, transposes_b=True)
    return _few_vectors(gemm) or (partial(tiles, dot) if _beats_blas(gemm) else None)


def is_tiled(dot: HloInstruction) -> bool:
    """True for a large product of two matrices of integers or of halves: it is a kernel. Others are expanded."""
    elements = [i.shape.element for i in (*dot.operands, dot)]
    if not all(map(_is_integer, elements)) and not _are_halves(*elements):
        return False
    depth = _terms(dot)
    return min(_sides(dot)) >= LEAST_SIDE and depth > 1 and dot.shape.num_elements * depth >= LEAST_WORK


def is_small(dot: HloInstruction) -> bool:
    """True for many small products of integers of one type, or one of many rows and a small matrix, as those of floats
    that `_has_small_side`. As a sum in a nest, 100000 products of 3 x 3 by 3 x 3 take five times as long: LLVM makes
    vectors of neither loop."""
    element = dot.shape.element
    if not _is_integer(element) or any(o.shape.element is not element for o in dot.operands) or is_tiled(dot):
        return False
    depth, (few, many) = _terms(dot), sorted(_sides(dot))
    is_batch = bool(dot.attributes.lhs_batch_dims)
    if not 1 < depth <= MOST_DEPTH or many == 1 or few > MOST_COLUMNS or depth * few > MOST_PLACES:
        return False
    return (not is_batch or many <= MOST_COLUMNS) and dot.shape.num_elements >= FEWEST_ROWS * few


def _sides(dot: HloInstruction) -> tuple[int, int]:
    """The rows and columns of each result."""
    batches = len(dot.attributes.lhs_batch_dims)
    first = dot.operands[0].shape.rank - len(dot.attributes.lhs_contracting_dims)
    return math.prod(dot.shape.dimensions[batches:first]), math.prod(dot.shape.dimensions[first:])


def is_deep(dot: HloInstruction) -> bool:
    """True for a product of small numbers whose sums are made in parts, each of which begins with the last one's."""
    words = words_of(dot, target_machine().multiplies_bf16)
    return words is not None and -(-_terms(dot) // words.per_word) > DEPTH


def _terms(dot: HloInstruction) -> int:
    """The numbers in a sum, wherever they are in memory."""
    lhs = dot.operands[0].shape.dimensions
    return math.prod(lhs[d] for d in dot.attributes.lhs_contracting_dims)


def _is_integer(element: ElementType) -> bool:
    return element.is_integral and not element.is_small and element is not ElementType.PRED


def _are_halves(lhs: ElementType, rhs: ElementType, result: ElementType) -> bool:
    """True for floats of 16 bits, which are multiplied in f32."""
    halves = (ElementType.BF16, ElementType.F16)
    return lhs in halves and rhs in halves and (result in halves or result is ElementType.F32)


class GivenBand(NamedTuple):
    """A fact about the left-hand side of a product: outside of a band its elements are equal in each row."""

    band: Band
    """The band of elements [i, p]: row of the result, number of the product in the sum."""
    by_columns: bool
    """Or in each column: it is given transposed."""


def _tile_of_words(strides: Strides, machine: Machine) -> tuple[int, int, int]:
    """The rows of a tile of products of words, the columns of a panel, and how many tiles are side by side in it. With
    32 registers, the sums of a tile of six rows take 24. Each row of the left-hand side is packed for each panel, so a
    wide one pays. Rows that are neighbours in memory are packed eight at a time: 1.2 times as fast."""
    if machine.registers < 32 or machine.register_bytes < 32:
        return ROWS, LEAST_WORDS, 1
    columns = machine.register_bytes
    while columns > max(strides.n, LEAST_WORDS):
        columns //= 2
    has_eight = strides.a[0] == 1 and strides.m >= EIGHT and columns > LEAST_WORDS
    return (EIGHT, columns, 2) if has_eight else (ROWS, columns, 1)


def takes_as_stored(dot: HloInstruction) -> bool:
    """True for a product of two matrices that are best read where they are. A kernel reads the left-hand side once for
    each panel of columns; if it is large and stored column by column, each read of a few numbers goes to another page
    of memory. Transposed first, 2048 x 2048 x 2048 of bf16 takes a quarter of the time."""
    if not is_gemm(dot):
        return False
    strides, machine = strides_of(dot), target_machine()
    if strides.a[0] != 1 or strides.a[1] == 1 or strides.n < LEAST_COPIED:
        return True
    if is_tiled(dot) and words_of(dot, machine.multiplies_bf16) is not None:
        return strides.m * strides.n * strides.k < LEAST_PACKED
    width = dot.operands[0].shape.element.byte_width
    if strides.k * width <= LONG_COLUMNS or strides.m * strides.k * width <= NEAR_CACHES * machine.second_cache:
        return True
    return not is_tiled(dot) and (dot.shape.element not in SUPPORTED or not _beats_blas(gemm_of(dot)))


def rows_of_tile() -> int:
    """The rows of a tile."""
    return WIDE_ROWS if _has_wide_registers() else ROWS


def tile_of(columns: int, byte_width: int) -> tuple[int, int]:
    """The rows and columns of a tile of results with this many bytes each, of which a row has `columns`."""
    one = PANEL_BYTES // byte_width
    most = 1 if target_machine().in_halves else MORE_WASTE
    pays = _has_wide_registers() and _whole(columns, 2 * one) <= most * _whole(columns, one)
    return rows_of_tile(), 2 * one if pays else one


def _whole(size: int, block: int) -> int:
    return -(-size // block) * block


def _has_wide_registers() -> bool:
    machine = target_machine()
    return machine.registers >= 32 and machine.register_bytes >= 64


def tiles(
    dot: HloInstruction, rows: int = 0, wanted: Band = EVERYTHING, given: GivenBand | None = None
) -> EmittedKernel:
    """The kernel of a product with panels of columns and tiles of rows. `rows`: it has an iteration for so many rows
    each, and the rest in the last, in the order of the result. Of the result only the band `wanted` matters; `given` is
    a fact about the left-hand side."""
    return _tiles(product_of(dot), rows, wanted, given)


def _tiles(
    product: Product, rows: int = 0, wanted: Band = EVERYTHING, given: GivenBand | None = None,
    tile: tuple[int, int, int] | None = None,
) -> EmittedKernel:
    """After Goto and van de Geijn, Anatomy of high-performance matrix multiplication, TOMS 34 (2008).

    Parts of a deep sum of floats are added, as BLAS does. If each began with the sum of those before, rounding errors
    of 4096 positive terms would be ten times as large.

    A result is written once, where BLAS clears it first and then adds to it: with 64 products in a sum that is a sixth
    of the time."""
    strides, result = product.strides, product.types[2]
    m, n, k = strides.m, strides.n, product.depth
    tile = tile or (*tile_of(strides.n, max(result.byte_width, 2)), 1)
    height, columns, _ = tile
    most = BLOCK // 2 if product.words else BLOCK
    is_deep = k > DEPTH
    adds = (is_deep or product.adds) and product.words is None and not result.is_integral
    fits = m >= height and not product.adds, n >= columns and not product.adds
    bands: list[steps.Band] = []
    limits: dict[str, int] = {}

    def band(name: str, array: str, known: Band, most: int, by_columns: bool = False) -> None:
        bands.append(steps.Band(array, Name(f"{name}_low"), Name(f"{name}_high"), by_columns))
        # of infinities, the numbers that have the same elements
        limits.update(zip((f"{name}_low", f"{name}_high"), (int(max(-m, min(b, most))) for b in known), strict=True))

    if wanted != EVERYTHING and not is_deep:
        band("wanted", "c", wanted, n)
    if given is not None:
        band("dense", "a", given.band, k, given.by_columns)

    batch = math.prod(d.count for d in strides.batch)
    block = rows or max(1, -(-m // (-(-m // most) * height))) * height
    blocks = max(1, m // block)  # the last one has the rest too, so that each has a whole tile
    panels = max(1, n // columns)
    pieces = 1 if rows else min(panels, -(-ITEMS // (blocks * batch)))
    strip = -(-panels // pieces) * columns
    strips = max(1, n // strip)

    # Elements of another type are converted in whole vectors, not factor by factor; then a stride of 1 helps LLVM.
    converts = product.words is not None or memory_type(product.types[0]) != type_of_sums(result)
    known = {name: step for name, step in product.sizes({}, {}).items() if name in ("a0", "a1", "b0", "b1", "c0", "c1")}
    ones = {name: ONE for name, step in known.items() if step == 1 and (converts or name == "c1")}
    row = {"c0": Name("n")} if product.c_row == n else {}
    layout = (("i", height), ("p", DEPTH)) if converts else ()
    if product.words and strides.a[0] == 1:
        layout = layout[::-1]
    schedule = _tile_schedule(product.indices, tile, fits, is_deep, layout, adds, tuple(bands))
    name = ("deep_product" if is_deep else "shallow_product") if all(fits) else "blocked_product"
    if product.words:
        name = "packed_product"
    each = 1.0 if product.words else result.byte_width / (8 if _has_wide_registers() else 4)
    cost = 0.02 * min(m, block) * strip * k * each
    return emit_product(
        name, product, schedule, blocks * strips * batch, cost, given={**row, **ones}, bands=limits,
        parts={"block": block, "blocks": blocks, "strip": strip, "strips": strips},
    )  # fmt: skip


@lru_cache(maxsize=64)
def _tile_schedule(
    indices: tuple[str, ...], tile: tuple[int, int, int], shifts: tuple[bool, bool], is_deep: bool,
    rows: tuple[tuple[str, int], ...], adds: bool, bands: tuple[steps.Band, ...],
) -> steps.Schedule:  # fmt: skip
    """Panels of `DEPTH` rows, which tiles of results go along, one or more of them side by side. `shifts`: whether the
    last block of rows and that of columns begins earlier, so that it is a whole one."""
    height, columns, count = tile
    side = ("side",) if count > 1 else ()
    panel = (*[(name, count) for name in side], ("p", DEPTH), ("j", columns // count))
    return (
        Part("j", "strip", ("number", "left", "right")),
        Part("i", "block", ("part", "top", "below")),
        Split("j", "column", columns, *(("shift", "first") if shifts[1] else ("short", "column", "wide"))),
        *[Split("j", name, columns // count, "rest") for name in side],
        *([Split("p", "k0", DEPTH, "short", "k0", "deep")] if is_deep else []),
        Split("i", "row", height, "shift" if shifts[0] and not is_deep else "rest", "i"),
        Order(*indices, "block", "strip", "column", *(["k0"] if is_deep else []), "row", *side, "p", "i", "j"),
        Unroll("i"),
        Lanes("j"),
        Pack("b", "panel", "k0" if is_deep else "column", panel),
        *([Pack("a", "rows", "row", rows)] if rows else []),
        Accumulate((*side, "row")[0], adds),
        *bands,
        Parallel(
            (*indices, "block", "strip"), (*[f"further{d}" for d in range(len(indices))], "rest", "above")
        ),
    )  # fmt: skip


def without_blas(gemm: Gemm) -> EmittedKernel:
    """The kernel of any product of floats or complex numbers, for programs that leave this process."""
    product = product_of_gemm(gemm)
    if gemm.m > FEW_ROWS and gemm.n > 1:
        return _tiles(product)
    indices, is_float = product.indices, not product.types[2].is_complex
    batch = Parallel(indices, tuple(f"further{d}" for d in range(len(indices))))
    extent = math.prod(d.count for d in gemm.batch)
    if gemm.m <= FEW_ROWS and gemm.n > 1 and gemm.transpose_b == "N":  # reads b once, without a copy
        schedule = (*_ranks("j", "i", VECTOR_BLOCK, indices), batch if indices else Slice("j"))
        given = {"m": Number(gemm.m)}
        return emit_product("product_of_columns", product, schedule, extent if indices else gemm.n, 0.0, given=given)
    if gemm.n == 1 and gemm.transpose_a != "N":
        schedule = (*_ranks("i", "j", VECTOR_BLOCK, indices), batch if indices else Slice("i"))
        given = {"n": Number(1)}
        return emit_product("product_of_columns", product, schedule, extent if indices else gemm.m, 0.0, given=given)
    # One sum after the other; four vectors of lanes, so that one addition does not wait for another.
    lanes = 128 // product.types[2].byte_width
    side, most = ("i", gemm.m) if gemm.m >= gemm.n else ("j", gemm.n)
    sums: steps.Schedule = (Split("p", "parts", lanes, "rest"), Lanes("p")) if is_float else (AnyOrder(),)
    schedule = (
        *sums,
        Order(*indices, "i", "j", *(["parts"] if is_float else []), "p"),
        Accumulate("j", adds=True),
        batch if indices else Slice(side),
    )
    ones = {name: ONE for name, step in (("a1", product.strides.a[1]), ("b0", product.strides.b[0])) if step == 1}
    return emit_product("product_of_rows", product, schedule, extent if indices else most, 0.0, given=ones)


def _ranks(long: str, few: str, block: int, indices: tuple[str, ...] = ()) -> steps.Schedule:
    """A large operand that is contiguous along the result: four of its rows at a time are added to the sums of a block,
    which stay in a first-level cache."""
    return (
        Split(long, "block", block, "short", count="wide"),
        Split("p", "rows", 4, "rest"),
        Order(*indices, "block", "rows", long, few, "p"),
        Unroll(few),
        Unroll("p"),
        Lanes(long),
        Accumulate("block", adds=True),
    )


def gemm_kernel(gemm: Gemm) -> EmittedKernel | None:
    """The kernel of the product of a BLAS call, or None if BLAS does better."""
    return _tiles(product_of_gemm(gemm)) if _beats_blas(gemm) else None


def _beats_blas(gemm: Gemm) -> bool:
    """True for a product of floats that a kernel computes faster than BLAS: a little one, one in wide registers, or one
    of short sums, which the kernel writes once."""
    element = ElementType(gemm.dtype)
    if element.is_complex:
        return False
    little = WIDE_LITTLE if _has_wide_registers() else LITTLE
    if gemm.m > 1 and gemm.n > 1 and gemm.k > 0 and max(gemm.m, gemm.n, gemm.k) <= little:
        return True
    rows, columns = tile_of(gemm.n, element.byte_width)
    is_small = gemm.flop < 2 * SHALLOW_WORK
    if _has_wide_registers() and has_depth(gemm.k) and gemm.m >= MANY_ROWS and MOST_VECTORS < gemm.n < columns:
        return True
    if gemm.m < rows or gemm.n < columns:
        return False
    if _has_wide_registers():
        if _is_long(gemm, element.byte_width):
            return False
        return has_depth(gemm.k) and _waste(gemm.m, gemm.n, element.byte_width) <= WIDE_WASTE
    if gemm.k not in (SHALLOW_DEPTH if gemm.transpose_a == "N" else SHALLOW_TRANSPOSED_DEPTH):
        return False
    return _waste(gemm.m, gemm.n, element.byte_width) <= (LEAST_WASTE if is_small else MOST_WASTE)


def _is_long(gemm: Gemm, byte_width: int) -> bool:
    """True for sums that are so long, and matrices so large, that BLAS's copies pay; see `LONG_ROWS`."""
    machine = target_machine()
    if not machine.in_halves or gemm.m * gemm.k * byte_width <= NEAR_CACHES * machine.second_cache:
        return False
    if gemm.transpose_a != "N":
        return gemm.k * byte_width > LONG_COLUMNS and gemm.m * gemm.n >= LEAST_RESULTS
    return gemm.transpose_b == "N" and gemm.k * byte_width >= LONG_ROWS and min(gemm.m, gemm.n) >= LEAST_LONG


def has_depth(k: int) -> bool:
    """True for sums of as many products as a kernel of tiles is good at, if its operands are row-major."""
    return k >= SHALLOW_DEPTH[0] if _has_wide_registers() else k in SHALLOW_DEPTH


def suits_tiles(dot: HloInstruction) -> bool:
    """True for a product of floats, on dense arrays, that tiles fit, however deep it is."""
    elements = {i.shape.element for i in (dot, *dot.operands)}
    if len(elements) > 1 or not dot.shape.num_elements or not is_gemm(dot):
        return False
    element = dot.shape.element
    if element not in SUPPORTED or not element.is_floating or element.is_complex:
        return False
    strides = strides_of(dot)
    rows, columns = tile_of(strides.n, element.byte_width)
    if strides.m < rows or strides.n < columns or strides.k < SHALLOW_DEPTH[0]:
        return False
    most = WIDE_WASTE if _has_wide_registers() else MOST_WASTE
    return not _has_small_side(gemm_of(dot)) and _waste(strides.m, strides.n, element.byte_width) <= most


def _waste(m: int, n: int, byte_width: int) -> float:
    """How much larger whole tiles are than the result."""
    rows, columns = tile_of(n, byte_width)
    return _whole(m, rows) * _whole(n, columns) / (m * n)


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


def _few_vectors(gemm: Gemm) -> Emit | None:
    """The kernel of a large matrix and a few vectors, or None. It reads the matrix once, at the speed of memory; BLAS
    copies it into blocks first, which takes several times as long as the products."""
    element = ElementType(gemm.dtype)
    if gemm.batch or element.is_complex or not gemm.k:
        return None
    if 1 < gemm.n <= MOST_VECTORS:
        long, few, of_few, length, vectors = "i", "j", "b", gemm.m, gemm.n
        is_along_sum = gemm.transpose_a == "N"
    elif 1 < gemm.m <= MOST_VECTORS:
        long, few, of_few, length, vectors = "j", "i", "a", gemm.n, gemm.m
        is_along_sum = gemm.transpose_b != "N"
    else:
        return None
    width = element.byte_width
    is_flat, is_large = gemm.k <= MOST_DEPTH, length * gemm.k * width > FAST_BYTES
    if length < LONG or not (is_large or is_flat) or (is_along_sum and is_flat):
        return None
    block, least = min(VECTOR_BLOCK, VECTOR_BLOCKS // vectors), 1 if is_along_sum else 64
    machine = target_machine()
    if not is_along_sum and length * gemm.k * width > machine.last_cache:
        room = min(UNCACHED_SUMS, machine.second_cache // 4) // (vectors * width)
        block = max(block, 1 << (room.bit_length() - 1))
        least = max(least, min(UNCACHED_BYTES // width, length // machine.cores))
    if is_along_sum:
        # Rows of the matrix are stored along the sum. Two or more at a time are multiplied with all vectors, and a
        # block of the vectors is copied so that their elements are interleaved.
        rows = max(1, min(4, SUMS // vectors))
        schedule: steps.Schedule = (
            Slice(long),
            Split("p", "k0", block, "short", count="deep"),
            Split(long, "row", rows, "rest"),
            Order("k0", "row", "p", long, few),
            Unroll(long),
            Unroll(few),
            Pack(of_few, "few", "k0", ((few, vectors), ("p", block))),
            Accumulate("row", adds=True),
            AnyOrder(),
        )
    else:
        schedule = (Slice(long), *_ranks(long, few, block))
    found = product_of_gemm(gemm)
    given: dict[str, Expr] = {name: ONE for name, step in found.sizes({}, {}).items() if step == 1 and name[0] in "abc"}
    given |= {"n" if few == "j" else "m": Number(vectors)}
    name = "product_of_rows" if is_along_sum else "product_of_columns"
    cost = max(gemm.k * width * (0.04 + 0.004 * vectors), 0.5)
    return partial(emit_product, name, found, schedule, length, cost, least, given=given)
