"""Where the matrices of one product of a batch begin, for the kernels of products."""

from __future__ import annotations

from collections.abc import Callable

from ..dot import Strides
from ..loops.expressions import ZERO, Expr, Name, times
from ..loops.writer import Writer


def starts_in_batch(
    writer: Writer, strides: Strides, size: Callable[[int, str], Expr], rest: Name
) -> tuple[Expr, Expr, Expr]:
    """The first elements of the two operands and the result; `rest` is the number of the product in the batch.

    `size(value, name)` makes a parameter of the kernel.
    """
    starts: list[Expr] = [ZERO, ZERO, ZERO]
    here: Name = rest
    for d in reversed(range(len(strides.batch))):
        dimension = strides.batch[d]
        count = size(dimension.count, f"count{d}")
        further = writer.assign(f"further{d}", here // count)
        index = writer.assign(f"index{d}", here - times(further, count))
        steps = (dimension.a_stride, dimension.b_stride, dimension.c_stride)
        starts = [
            start + times(index, size(step, f"step{d}_{name}"))
            for start, step, name in zip(starts, steps, "abc", strict=True)
        ]
        here = further
    a, b, c = (
        writer.assign(f"start_{name}", start) if strides.batch else start
        for start, name in zip(starts, "abc", strict=True)
    )
    return a, b, c
