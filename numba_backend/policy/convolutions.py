"""Which schedules convolutions get on a machine.

Channels last, a tile of results is a few rows and a few registers of columns, whose sums are in registers while it goes
through all taps and inputs. The weights of its columns are neighbours (`Padded`): in panels, or since there is one.
"""

from __future__ import annotations

from functools import lru_cache

from ..emit.convolution import Sizes
from ..emit.convolution_sums import Form, Matrices, Panels, emit_sums
from ..emit.convolution_tiles import Tile
from ..emit.kernel import EmittedKernel
from ..loops.expressions import Name
from ..schedule.steps import Accumulate, Collect, Lanes, Order, Padded, Parallel, Part, Schedule, Split, Unroll

PIECE = 512
"""How many products are added up before the sum goes into the total: rounding errors grow with the length of a sum."""
FEWEST_BLOCKS, TILES = 8, 8
"""Threads share so many blocks of rows at least, where there are so many tiles; and the most tiles of a block."""


def tiles_last(
    sizes: Sizes, matrices: Matrices, panels: Panels, tile: Tile, *, gradient: bool = False, adds: bool = False
) -> EmittedKernel:
    """The kernel of a convolution, channels last, or of its derivative by the kernel, which may be added to what is
    there."""
    is_depthwise = sizes.groups > 1 and sizes.inputs == sizes.outputs == 1
    groups = 1 if is_depthwise else sizes.groups
    form = Form(sizes.element_type, is_depthwise, not is_depthwise and not gradient, groups > 1, gradient)
    rows, taps = len(matrices.rows), len(matrices.taps)
    columns = -(-sizes.made // groups // tile.columns)
    block = tile.rows * min(max(1, rows // tile.rows // FEWEST_BLOCKS), TILES)
    blocks = max(1, rows // block)
    parts = {
        "panel": tile.columns, "panels": columns, "block": block, "blocks": blocks,
        "of_column": panels.panel // tile.columns,
        "each_i": min(matrices.inputs, max(1, PIECE // taps)), "each_t": min(taps, PIECE),
    }  # fmt: skip
    extent = matrices.images * groups * columns * blocks
    return emit_sums(form, sizes, matrices, panels, _schedule(form, tile), extent, parts, adds)


@lru_cache(maxsize=64)
def _schedule(form: Form, tile: Tile) -> Schedule:
    groups = ("g",) if form.has_groups else ()
    return (
        Part("o", "panel", ("number", "left", "right")),
        Part("p", "block", ("part", "begin", "stop")),
        Split("o", "column", tile.columns, "short", "first", "wide"),
        Split("p", "row", tile.rows, "short", "row", "some"),
        Split("i", "i0", Name("each_i"), "short", "first_i", "some_i"),
        Split("t", "t0", Name("each_t"), "short", "first_t", "some_t"),
        Order(
            "n", *groups, "panel", "block", "column", "row", "i0", "t0", *(("t", "i") if form.along else ("i", "t")),
            "p", "o",
        ),
        Unroll("p"),
        Lanes("o"),
        Padded("b", Name("of_column")),
        *([Padded("a")] if form.is_depthwise else []),
        Accumulate("t0", adds=True),
        Collect("row", "totals"),
        Parallel(("n", *groups, "panel", "block"), ("n_above", *[f"{g}_above" for g in groups], "rest", "above")),
    )  # fmt: skip
