"""Rows of a canonical convolution.

Convolutions that BLAS can do become matrix products: the input is copied into patch matrices (`emit/convolution.py`), a
block at a time, so that the block is still in the cache when it is multiplied. Threads share both the kernels and the
products. With 1 x 1 windows the input itself is the patch matrix. Depthwise convolutions, and element types that BLAS
does not know, have kernels that do all the work, and so have the convolutions of native loops.
"""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.convolution import (
    Sizes,
    emit_direct_first,
    emit_direct_last,
    emit_patches_first,
    emit_patches_last,
    is_pointwise,
    sizes_of,
)
from ..runtime.blas import BatchDimension, Gemm
from ..runtime.program import Argument
from .table import RowContext, register

BLOCK_BYTES = 1 << 21
"""The patches of one block: about the size of all second-level caches together."""
MAX_BLOCKS = 256
"""A large convolution has larger blocks instead of more of them."""
MANY_POSITIONS = 256
"""With channels last: the rows of a block from which on the product runs at full speed."""


@register(Opcode.CONVOLUTION, how="BLAS gemm on patches; depthwise and integers: a kernel of its own")
def _convolution(context: RowContext, instruction: HloInstruction) -> None:
    sizes = sizes_of(instruction)
    if not (sizes.is_product and context.has_blas):
        kernel = emit_direct_last(sizes) if sizes.channels_last else emit_direct_first(sizes)
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
    elif sizes.channels_last:
        _channels_last(context, instruction, sizes)
    else:
        _channels_first(context, instruction, sizes)


def _at(argument: Argument, sizes: Sizes, elements: int) -> Argument:
    """The argument moved by `elements` elements."""
    return argument._replace(word=argument.word + elements * sizes.element_type.byte_width)


def _limit(total: int) -> int:
    return max(BLOCK_BYTES, total // MAX_BLOCKS)


def _channels_first(context: RowContext, instruction: HloInstruction, sizes: Sizes) -> None:
    """result[b, g] = kernel[g] @ patches[b, g]: one product an image and group; the positions are the columns."""
    array, kernel = context.operands(instruction)
    (result,) = context.results(instruction)
    dtype, depth, positions = sizes.element_type.value, sizes.depth, sizes.positions
    per_image = sizes.groups * depth * positions * sizes.element_type.byte_width
    limit = _limit(sizes.batch * per_image)
    rows = sizes.axes[0].count
    rest = positions // rows

    def product(patches: Argument, image: int, images: int, first: int, width: int) -> None:
        batch = (
            BatchDimension(images, 0, sizes.groups * depth * width, sizes.made * positions),
            BatchDimension(sizes.groups, sizes.outputs * depth, depth * width, sizes.outputs * positions),
        )
        gemm = Gemm(dtype, sizes.outputs, width, depth, "N", "N", depth, width, positions, batch=batch)
        target = _at(result, sizes, image * sizes.made * positions + first * rest)
        context.builder.gemm(gemm, kernel, patches, target)

    if is_pointwise(sizes):
        product(array, 0, sizes.batch, 0, positions)
        return
    images = max(1, min(sizes.batch, limit // per_image))
    height = rows if per_image <= limit else max(1, rows * limit // per_image)
    patches = context.scratch(sizes.element_type, images * sizes.groups * depth * positions * height // rows)
    for image in range(0, sizes.batch, images):
        some = min(images, sizes.batch - image)
        for first in range(0, rows, height):
            end = min(first + height, rows)
            emitted = emit_patches_first(sizes, image, some, first, end)
            context.kernel(f"{instruction.name}.patches", emitted, [array], [patches])
            product(patches, image, some, first, (end - first) * rest)


def _channels_last(context: RowContext, instruction: HloInstruction, sizes: Sizes) -> None:
    """result[b, s, g] = patches[g, (b, s)] @ kernel[g]: all images are one matrix. It is cut along the positions, or
    along the first dimension of the kernel if there are few positions."""
    array, kernel = context.operands(instruction)
    (result,) = context.results(instruction)
    dtype, width = sizes.element_type.value, sizes.element_type.byte_width
    total = sizes.batch * sizes.positions
    height = sizes.axes[0].part.size
    slab = sizes.depth // height

    def product(patches: Argument, row: int, rows: int, first: int, end: int, lda: int, stride: int) -> None:
        batch = (BatchDimension(sizes.groups, stride, sizes.outputs, sizes.outputs),)
        gemm = Gemm(
            dtype, rows, sizes.outputs, (end - first) * slab, "N", "N", lda, sizes.made, sizes.made,
            beta=0.0 if first == 0 else 1.0, batch=batch,
        )  # fmt: skip
        weights = _at(kernel, sizes, first * slab * sizes.made)
        context.builder.gemm(gemm, patches, weights, _at(result, sizes, row * sizes.made))

    if is_pointwise(sizes):
        product(array, 0, total, 0, height, sizes.features, sizes.inputs)
        return
    per_row = sizes.groups * sizes.depth * width
    limit = _limit(total * per_row)
    rows = min(total, max(limit // per_row, MANY_POSITIONS))
    deep = max(1, min(height, limit // (rows * sizes.groups * slab * width)))
    patches = context.scratch(sizes.element_type, rows * sizes.groups * deep * slab)
    for row in range(0, total, rows):
        some = min(rows, total - row)
        for first in range(0, height, deep):
            end = min(first + deep, height)
            emitted = emit_patches_last(sizes, row, some, first, end)
            context.kernel(f"{instruction.name}.patches", emitted, [array], [patches])
            depth = (end - first) * slab
            product(patches, row, some, first, end, depth, some * depth)
