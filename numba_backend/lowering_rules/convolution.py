"""Rows of a canonical convolution, and of its derivatives.

The input is copied with its padding, and tiles of sums in registers are made of the copy (`policy/convolutions.py`).
Where there are enough images, a thread does both for one of them, and then the instructions that follow in the program,
before the next image; otherwise threads share each of the two, for a block of images at a time, so that the block is
still in the cache. With 1 x 1 windows the input itself is a matrix of a product.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit import convolution_copy as copies
from ..emit.convolution import Sizes, is_pointwise, sizes_of, sizes_of_gradient
from ..emit.convolution_rows import emit_rows
from ..emit.convolution_sums import gradient_of, matrices_of
from ..expansions.convolution import gradient_numbers, transposed_numbers
from ..machine import target_machine
from ..policy import convolutions as policy
from ..policy.convolutions import Panels, Tile, tile_of, tiles_first, tiles_last
from ..policy.products import gemm_kernel
from ..runtime.blas import BatchDimension, Gemm
from ..runtime.program import Argument
from .table import OUTPUT_ROWS, LoweringContext, OutputRows, PieceMemory, Step, register

MAX_BLOCKS = 256
"""A large convolution has larger blocks instead of more of them."""


@register(Opcode.CONVOLUTION, how="kernels: tiles of sums in registers; 1 x 1: as dot")
def _convolution(context: LoweringContext, instruction: HloInstruction) -> None:
    numbers, spatial = instruction.attributes.dimension_numbers, len(instruction.attributes.window)
    if numbers == gradient_numbers(spatial, True):
        _gradient_last(context, instruction, sizes_of_gradient(instruction, True))
        return
    if numbers == gradient_numbers(spatial, False):
        _gradient_first(context, instruction, sizes_of_gradient(instruction, False))
        return
    if numbers == transposed_numbers(spatial):
        _tiles_first(context, instruction, sizes_of(instruction), transposed=True)
        return
    sizes = sizes_of(instruction)
    if context.has_blas and sizes.is_product and is_pointwise(sizes):
        _pointwise(context, instruction, sizes)
    else:
        (_tiles_last if sizes.channels_last else _tiles_first)(context, instruction, sizes)


def _output_rows(instruction: HloInstruction) -> OutputRows | None:
    """Images that are pieces, or the rows of the one product that is a pointwise convolution."""
    numbers, spatial = instruction.attributes.dimension_numbers, len(instruction.attributes.window)
    if numbers in (gradient_numbers(spatial, True), gradient_numbers(spatial, False)):
        return None
    sizes, is_transposed = sizes_of(instruction), numbers == transposed_numbers(spatial)
    if is_transposed or not (sizes.is_product and is_pointwise(sizes)):
        geometry = copies.geometry_of(sizes)
        if is_transposed or not sizes.channels_last:
            geometry = policy.cheaper(geometry, tile_of(target_machine(), sizes.element_type, sizes.outputs))
        elif policy.shares_weights(sizes, _tile_last(sizes, sizes.batch * sizes.positions)):
            return None
        return OutputRows((sizes.batch,), [sizes.batch]) if policy.is_by_images(geometry) else None
    if gemm_kernel(_gemm_of(sizes)) is not None:
        return None
    if sizes.channels_last:
        is_whole, leading = sizes.groups == 1, instruction.shape.dimensions[:-1]
        rows, columns = sizes.batch * sizes.positions, sizes.outputs
    else:
        is_whole, leading = True, instruction.shape.dimensions[:2]
        rows, columns = sizes.outputs, sizes.positions
    return OutputRows(leading, []) if is_whole and min(rows, columns) > 1 else None


OUTPUT_ROWS[Opcode.CONVOLUTION] = _output_rows


def _tile_last(sizes: Sizes, rows: int) -> Tile:
    outputs = sizes.made if _is_depthwise(sizes) else sizes.outputs
    return tile_of(target_machine(), sizes.element_type, max(rows, 2), outputs)


def _at(argument: Argument, sizes: Sizes, elements: int) -> Argument:
    """The argument moved by `elements` elements."""
    return argument._replace(word=argument.word + elements * sizes.element_type.byte_width)


def _pointwise(context: LoweringContext, instruction: HloInstruction, sizes: Sizes) -> None:
    """result[b, g] = kernel[g] @ input[b, g] with channels first, result[:, g] = input[:, g] @ kernel[g] with channels
    last: all images are one matrix."""
    array, kernel = context.operands(instruction)
    (result,) = context.results(instruction)
    operands, gemm = (array, kernel) if sizes.channels_last else (kernel, array), _gemm_of(sizes)
    tiles = gemm_kernel(gemm)
    if tiles is not None:
        context.kernel(instruction.name, tiles, operands, [result])
    else:
        product = context.builder.gemm if sizes.channels_last and sizes.groups > 1 else context.product
        product(gemm, *operands, result)


def _gemm_of(sizes: Sizes) -> Gemm:
    """The product that a pointwise convolution is: of the input and the kernel with channels last, otherwise of the
    kernel and the input."""
    dtype, positions, inputs, outputs = sizes.element_type.value, sizes.positions, sizes.inputs, sizes.outputs
    if not sizes.channels_last:
        batch = (
            BatchDimension(sizes.batch, 0, sizes.features * positions, sizes.made * positions),
            BatchDimension(sizes.groups, outputs * inputs, inputs * positions, outputs * positions),
        )
        return Gemm(dtype, outputs, positions, inputs, "N", "N", inputs, positions, positions, batch=batch)
    of_groups, rows = (BatchDimension(sizes.groups, inputs, outputs, outputs),), sizes.batch * positions
    return Gemm(dtype, rows, outputs, inputs, "N", "N", sizes.features, sizes.made, sizes.made, batch=of_groups)


def _tiles_first(
    context: LoweringContext, instruction: HloInstruction, sizes: Sizes, *, transposed: bool = False
) -> None:
    """Some images at a time, so that their copy is still in the cache when it is multiplied."""
    array, kernel = context.operands(instruction)
    (result,) = context.results(instruction)
    tile = tile_of(target_machine(), sizes.element_type, sizes.outputs)
    rows = policy.rows_of(sizes)
    if rows is not None:
        emitted, places = emit_rows(sizes, rows, transposed=transposed), ([array, kernel], [result])
        if context.has_pieces and policy.is_by_images(policy.cheaper(copies.geometry_of(sizes), tile)):
            context.by_pieces(sizes.batch, [Step(instruction.name, emitted, *places)])
        else:
            context.kernel(instruction.name, emitted, *places)
        return
    geometry = policy.in_parts(policy.cheaper(copies.geometry_of(sizes), tile), tile)
    by_images = context.has_pieces and policy.is_by_images(geometry)
    if context.has_pieces and not by_images:
        geometry = policy.in_strips(geometry, tile)
        by_images = policy.has_images_for_threads(geometry)
    strips = geometry.strips
    offsets = context.constant(geometry.tap_offsets())
    if by_images or strips > 1:
        copies_of_images = _image_memory(geometry, tile)
        context.by_pieces(
            sizes.batch * strips,
            [
                Step(
                    f"{instruction.name}.padded", copies.emit_copy(geometry, 0, sizes.batch), [array],
                    [copies_of_images],
                ),
                Step(
                    instruction.name, tiles_first(geometry, tile, sizes.batch, shares=1, transposed=transposed),
                    [copies_of_images, kernel, offsets], [result],
                ),
            ],
        )  # fmt: skip
        return
    images = _images(geometry, policy.block_bytes())
    shares = -(-policy.MANY_ITEMS // (images * geometry.walks * sizes.groups))
    for first, some, copy in _copies(context, instruction, geometry, images, tile.columns):
        target = _at(result, sizes, first * sizes.made * sizes.positions)
        emitted = tiles_first(geometry, tile, some, shares=shares, transposed=transposed)
        context.kernel(instruction.name, emitted, [copy, kernel, offsets], [target])


def _tiles_last(context: LoweringContext, instruction: HloInstruction, sizes: Sizes) -> None:
    """The same, channels last."""
    geometry = copies.geometry_of(sizes)
    weights, panels, tile = _panels(context, instruction, sizes, sizes.depth, sizes.batch * sizes.positions)
    taps = context.constant(geometry.tap_offsets())
    (result,) = context.results(instruction)
    each = not policy.shares_weights(sizes, tile)
    if context.has_pieces and policy.is_by_images(geometry) and each:
        steps: list[Step] = []
        copy_of: Argument | PieceMemory = context.operands(instruction)[0]
        if not _is_in_place(geometry, tile):
            array, copy_of = copy_of, _image_memory(geometry, tile)
            emitted = copies.emit_copy(geometry, 0, sizes.batch)
            steps.append(Step(f"{instruction.name}.padded", emitted, [array], [copy_of]))
        matrices = matrices_of(geometry, sizes.batch, each=True)
        emitted = tiles_last(sizes, matrices, panels, tile)
        operands = [copy_of, weights, taps, context.constant(matrices.rows)]
        steps.append(Step(instruction.name, emitted, operands, [result]))
        context.by_pieces(sizes.batch, steps)
        return
    rows: Argument | None = None
    in_place, images = _is_in_place(geometry, tile), _images(geometry, policy.block_bytes())
    for first, some, copy in _copies(context, instruction, geometry, images, tile.columns, in_place):
        target = _at(result, sizes, first * sizes.made * sizes.positions)
        matrices = matrices_of(geometry, some, each=each)
        rows = rows or context.constant(matrices.rows)  # of the last images, there may be fewer
        context.kernel(
            instruction.name, tiles_last(sizes, matrices, panels, tile), [copy, weights, taps, rows], [target]
        )


def _gradient_last(context: LoweringContext, instruction: HloInstruction, sizes: Sizes) -> None:
    """The derivative by the kernel, channels last: each block of images adds to the sums."""
    geometry = copies.geometry_of(sizes)
    depth = sizes.batch * sizes.positions
    weights, panels, tile = _panels(context, instruction, sizes, depth, sizes.inputs * sizes.taps)
    taps = context.builder.constant(geometry.position_offsets())
    rows = context.builder.constant(gradient_of(geometry, 1).rows)
    (result,) = context.results(instruction)
    in_place, images = _is_in_place(geometry, tile), _images(geometry, policy.block_bytes() // 4)
    for first, some, copy in _copies(context, instruction, geometry, images, tile.columns, in_place):
        place = _at(weights, sizes, first * sizes.positions * panels.step)
        emitted = tiles_last(sizes, gradient_of(geometry, some), panels, tile, gradient=True, adds=first > 0)
        context.kernel(instruction.name, emitted, [copy, place, taps, rows], [result])


def _gradient_first(context: LoweringContext, instruction: HloInstruction, sizes: Sizes) -> None:
    """The same, channels first."""
    cotangents = context.operands(instruction)[1]
    (result,) = context.results(instruction)
    geometry = copies.geometry_of_gradient(sizes)
    inputs = np.arange(sizes.inputs, dtype=np.int64)[:, None] * geometry.plane
    elements = context.builder.constant((inputs + geometry.tap_offsets()).reshape(-1))
    images = _images(geometry, policy.block_bytes(), sizes.made * sizes.positions)
    for first, some, copy in _copies(context, instruction, geometry, images, 0):
        place = _at(cotangents, sizes, first * sizes.made * sizes.positions)
        emitted = policy.gradient_first(geometry, some, adds=first > 0)
        context.kernel(instruction.name, emitted, [copy, place, elements], [result])


def _image_memory(geometry: copies.Geometry, tile: Tile) -> PieceMemory:
    """Memory for the copy of an image. A tile may read beyond its end, since those values are not used."""
    width = geometry.sizes.element_type.byte_width
    return PieceMemory(geometry.image * width, tile.columns * width)


def _is_depthwise(sizes: Sizes) -> bool:
    return sizes.groups > 1 and sizes.inputs == sizes.outputs == 1


def _panels(
    context: LoweringContext, instruction: HloInstruction, sizes: Sizes, depth: int, rows: int
) -> tuple[Argument, Panels, Tile]:
    """The weights in panels of columns. Few rows do not pay for a copy, if the weights can be read where they are."""
    kernel = context.operands(instruction)[1]
    tile = _tile_last(sizes, rows)
    groups = 1 if _is_depthwise(sizes) else sizes.groups
    outputs = sizes.made // groups
    columns = -(-outputs // tile.columns)
    if not outputs % tile.columns and (columns == 1 or rows < policy.MANY_POSITIONS):
        return kernel, Panels(sizes.made, tile.columns, outputs), tile
    panels = Panels(tile.columns, depth * tile.columns, columns * depth * tile.columns)
    weights = context.scratch(sizes.element_type, groups * panels.group)
    emitted = copies.emit_panels(sizes, groups, depth, tile.columns)
    context.kernel(f"{instruction.name}.panels", emitted, [kernel], [weights])
    return weights, panels, tile


def _copies(
    context: LoweringContext, instruction: HloInstruction, geometry: copies.Geometry, images: int, more: int,
    in_place: bool = False,
) -> Iterator[tuple[int, int, Argument]]:  # fmt: skip
    """Copies the input, some images at a time: the first one, how many, and where they are. `more`: elements after the
    copies that may be read. `in_place`: the input needs no copy."""
    array, sizes = context.operands(instruction)[0], geometry.sizes
    copy = array if in_place else context.scratch(sizes.element_type, images * geometry.image + more)
    for first in range(0, sizes.batch, images):
        some = min(images, sizes.batch - first)
        if not in_place:
            emitted = copies.emit_copy(geometry, first, some)
            context.kernel(f"{instruction.name}.padded", emitted, [array], [copy])
        yield first, some, _at(copy, sizes, first * geometry.image) if in_place else copy


def _is_in_place(geometry: copies.Geometry, tile: Tile) -> bool:
    """Channels last: True if the input needs no copy. A depthwise tile reads whole columns."""
    sizes = geometry.sizes
    return copies.lies_as_copied(geometry) and not (_is_depthwise(sizes) and sizes.features % tile.columns)


def _images(geometry: copies.Geometry, limit: int, others: int = 0) -> int:
    """How many images are copied at a time: of `limit` bytes, or more for a large convolution. `others`: elements that
    are read besides, for each."""
    sizes = geometry.sizes
    per_image = max(1, (geometry.image + others) * sizes.element_type.byte_width)
    return max(1, min(sizes.batch, max(limit, sizes.batch * per_image // MAX_BLOCKS) // per_image))
